"""Betimes in memory: bursts, a steady load, single jobs on an idle scheduler, threads, pending jobs."""

from __future__ import annotations

import asyncio

from bench.clockwork import Latencies, Stopwatch, pace
from bench.limits.in_process import IN_FLIGHT, WARM_UP
from bench.pending import Weighing
from betimes import JobEvent, JobHandle, Scheduler
from betimes.tasks import Submitter

AT_ONCE = 1_000
FAR = "1h"


async def _submit(scheduler: Scheduler, task: Submitter[[], None], jobs: int, batch: int) -> JobHandle[None]:
    """Submit so many jobs of a task, one a call or `batch` a call; return the last one's handle."""
    if batch == 1:
        for _ in range(jobs - 1):
            await task.submit()
        return await task.submit()
    last: list[JobHandle[None]] = []
    for start in range(0, jobs, batch):
        last = await scheduler.submit_many([task.bind() for _ in range(min(batch, jobs - start))])
    return last[-1]


async def _finish(scheduler: Scheduler, task: Submitter[[], None], jobs: int, batch: int) -> None:
    """Submit jobs and wait until all of them have finished, whatever else waits for its time."""
    before = (await scheduler.metrics()).completed
    last = await _submit(scheduler, task, jobs, batch)
    await last.wait()
    while (await scheduler.metrics()).completed < before + jobs:  # noqa: ASYNC110 - the last few turns
        await asyncio.sleep(0)


def burst(jobs: int, *, batch: int = 1, pending: int = 0, is_heard: bool = False) -> dict[str, float]:
    """Submit no-op coroutine jobs as fast as it goes, and wait until all have finished.

    Args:
        jobs: how many.
        batch: how many go with one call.
        pending: how many jobs are waiting for their time meanwhile.
        is_heard: have a listener hear of every transition.
    """
    heard = 0

    def hear(_: JobEvent) -> None:
        nonlocal heard
        heard += 1

    async def main() -> dict[str, float]:
        scheduler = Scheduler(concurrency=IN_FLIGHT)
        if is_heard:
            scheduler.listen(hear)

        @scheduler.task(retry=3)
        async def noop() -> None:
            """Do nothing."""

        async with scheduler:
            if pending:
                await _submit(scheduler, noop.using(delay=FAR), pending, AT_ONCE)
            await _finish(scheduler, noop, WARM_UP, batch)
            watch = Stopwatch()
            await _finish(scheduler, noop, jobs, batch)
            figures = watch.figures(jobs)
            metrics = await scheduler.metrics()
            assert metrics.completed == jobs + WARM_UP, metrics
            assert metrics.peak_running <= IN_FLIGHT, metrics
            assert metrics.delayed == pending, metrics
            await scheduler.stop()
        assert heard > 2 * jobs or not is_heard, heard
        return figures

    return asyncio.run(main())


def starts(jobs: int, per_second: int | None = None) -> dict[str, float]:
    """Submit at a fixed rate, or one job at a time to an idle scheduler."""
    latencies = Latencies(jobs)

    async def main() -> dict[str, float]:
        scheduler = Scheduler(concurrency=IN_FLIGHT)

        @scheduler.task(retry=3)
        async def job(number: int) -> None:
            latencies.started(number)

        async def submit(number: int) -> None:
            latencies.submitted(number)
            await job.submit(number)

        async with scheduler:
            return await pace(submit, latencies, per_second=per_second)

    return asyncio.run(main())


def threads(jobs: int, workers: int) -> dict[str, float]:
    """Submit no-op functions to the thread lane, one a call."""

    async def main() -> dict[str, float]:
        scheduler = Scheduler(concurrency=IN_FLIGHT, threads=workers)

        @scheduler.task(retry=3)
        def work() -> None:
            """Do nothing."""

        async with scheduler:
            await _submit(scheduler, work, WARM_UP, 1)
            await scheduler.drain()
            watch = Stopwatch()
            await _submit(scheduler, work, jobs, 1)
            await scheduler.drain()
            figures = watch.figures(jobs)
            assert (await scheduler.metrics()).completed == jobs + WARM_UP
        return figures

    return asyncio.run(main())


def weigh(jobs: int, *, traced: bool) -> dict[str, float]:
    """Keep jobs pending whose time has not come; their handles are dropped."""

    async def main() -> dict[str, float]:
        scheduler = Scheduler()

        @scheduler.task(retry=3)
        async def noop() -> None:
            """Do nothing."""

        async with scheduler:
            await _submit(scheduler, noop.using(delay=FAR), WARM_UP, AT_ONCE)
            weighing = Weighing(traced=traced)
            await _submit(scheduler, noop.using(delay=FAR), jobs, AT_ONCE)
            delayed = (await scheduler.metrics()).delayed - WARM_UP
            return weighing.figures(jobs, lambda: delayed)

    return asyncio.run(main())
