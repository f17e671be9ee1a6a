"""Betimes with work in other processes, in memory: functions in two children, and commands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench.clockwork import Stopwatch
from bench.limits.in_process import IN_FLIGHT, WARM_UP
from bench.limits.pipes import CHILDREN
from bench.process_work import WORK
from bench.windows import Call
from bench.windows import starts as starts_of
from betimes import Scheduler


def burst(jobs: int, what: str = "noop", warm_up: int = WARM_UP) -> dict[str, float]:
    """Submit calls one by one as fast as it goes, and wait until two children have run all of them."""

    async def main() -> dict[str, float]:
        scheduler = Scheduler(concurrency=IN_FLIGHT, processes=CHILDREN)
        task = scheduler.task(executor="process", retry=3)(WORK[what])
        async with scheduler:
            for _ in range(warm_up):
                await task.submit()
            await scheduler.drain()
            watch = Stopwatch()
            for _ in range(jobs):
                await task.submit()
            await scheduler.drain()
            figures = watch.figures(jobs)
            metrics = await scheduler.metrics()
            assert metrics.completed == jobs + warm_up, metrics
            assert metrics.peak_running <= IN_FLIGHT, metrics
        return figures

    return asyncio.run(main())


@asynccontextmanager
async def _opened() -> AsyncIterator[Call]:
    """Have a scheduler with one child, and a call that submits and waits for the result."""
    scheduler = Scheduler(processes=1)
    now = scheduler.task(executor="process", retry=3)(WORK["now"])

    async def call() -> int:
        return await (await now.submit()).result()

    async with scheduler:
        yield call


def starts(jobs: int, *, is_cold: bool) -> dict[str, float]:
    """From a submit to the job's first line, in a child that is there, or in a scheduler just opened."""
    return asyncio.run(starts_of(_opened, jobs, is_cold=is_cold))


def commands(jobs: int, window: int) -> dict[str, float]:
    """Run `true` so many times, as many at once as a window has."""

    async def main() -> dict[str, float]:
        scheduler = Scheduler(concurrency=window)
        true = scheduler.command("true", ["true"], retry=3)
        async with scheduler:
            for _ in range(window * 2):
                await true.submit()
            await scheduler.drain()
            watch = Stopwatch()
            for _ in range(jobs):
                await true.submit()
            await scheduler.drain()
            figures = watch.figures(jobs)
            assert (await scheduler.metrics()).completed == jobs + window * 2
        return figures

    return asyncio.run(main())
