"""Betimes with what holds jobs back, in memory or on a SQLite file: limits, rates, fair shares."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from bench.clockwork import Stopwatch
from bench.ours.durable import AT_ONCE, FILE, IN_FLIGHT, QUEUE
from betimes import FairShareStrategy, JobHandle, Limit, Rate, Scheduler
from betimes.tasks import BoundJob

WARM_UP = 1_000


def _scheduler(folder: Path | None, **options: Any) -> Scheduler:
    """Make a scheduler on a file in a folder; None: in memory."""
    store = "memory:" if folder is None else folder / FILE
    return Scheduler(store, concurrency=IN_FLIGHT, **options)


async def _submit(scheduler: Scheduler, jobs: Iterable[BoundJob[None]]) -> list[JobHandle[None]]:
    """Submit jobs, 1,000 a call; return the last call's handles."""
    last: list[JobHandle[None]] = []
    waiting = iter(jobs)
    while batch := list(islice(waiting, AT_ONCE)):
        last = await scheduler.submit_many(batch)
    return last


async def _whole_lives(scheduler: Scheduler, jobs: list[BoundJob[None]]) -> dict[str, float]:
    """Submit jobs while their queue is paused, then run them: the rate of each, and of both together."""
    await scheduler.pause_queue(QUEUE)
    whole, watch = Stopwatch(), Stopwatch()
    await _submit(scheduler, jobs)
    stored = watch.figures(len(jobs))
    watch = Stopwatch()
    await scheduler.resume_queue(QUEUE)
    await scheduler.drain()
    run, both = watch.figures(len(jobs)), whole.figures(len(jobs))
    assert (await scheduler.metrics()).completed == len(jobs)
    return {
        "rate": run["rate"],
        "cpu_rate": run["cpu_rate"],
        "submitted_rate": stored["rate"],
        "run_rate": run["rate"],
        "both_rate": both["rate"],
    }


def limited(
    groups: int,
    each: int,
    folder: Path,
    *,
    is_durable: bool,
    max_running: int | None = None,
    is_mixed: bool = False,
) -> dict[str, float]:
    """Run what waits, of so many groups; each may run only so many jobs at once.

    Args:
        groups, each: how many groups, and jobs of each.
        folder: where the file of a run is made.
        is_durable: on a file; otherwise in memory.
        max_running: the limit for a group; None: the task has none.
        is_mixed: a job of each group comes after the other; otherwise all of a group come together, so that
            the head of the queue is full of jobs that have to wait.
    """

    async def main() -> dict[str, float]:
        scheduler = _scheduler(folder if is_durable else None)
        limit = max_running and Limit("group", max_running, by="group")

        @scheduler.task(name="work", retry=3, limit=limit or None)
        async def work(group: int) -> None:
            """Do nothing."""

        numbers = range(groups * each)
        async with scheduler:
            return await _whole_lives(
                scheduler, [work.bind(number % groups if is_mixed else number // each) for number in numbers]
            )

    return asyncio.run(main())


def shared(
    tenants: int, each: int, folder: Path, *, is_durable: bool, is_fair: bool, is_mixed: bool = False
) -> dict[str, float]:
    """Submit and run jobs of so many tenants, in fair shares or by priority.

    Args:
        tenants, each: how many tenants, and jobs of each.
        folder: where the file of a run is made.
        is_durable: on a file; otherwise in memory.
        is_fair: by fair shares; otherwise by priority.
        is_mixed: a job of each tenant comes after the other; otherwise all of a tenant come together.
    """

    async def main() -> dict[str, float]:
        options = {"strategy": FairShareStrategy(by="tenant")} if is_fair else {}
        scheduler = _scheduler(folder if is_durable else None, **options)

        @scheduler.task(name="work", retry=3)
        async def work(tenant: int) -> None:
            """Do nothing."""

        numbers = range(tenants * each)
        async with scheduler:
            return await _whole_lives(
                scheduler, [work.bind(number % tenants if is_mixed else number // each) for number in numbers]
            )

    return asyncio.run(main())


class _Others:
    """A task that nothing holds back, beside others that have to wait."""

    def __init__(self, folder: Path | None) -> None:
        self.scheduler = _scheduler(folder)
        self._ran = 0

        @self.scheduler.task(name="other", retry=3)
        async def other() -> None:
            self._ran += 1

        self._other = other

    async def finish(self, jobs: int) -> None:
        """Submit jobs of it, and wait for the end of all.

        They end in their order but for those that are in flight together, so waiting for the last few is
        enough.
        """
        before = self._ran
        last = await _submit(self.scheduler, (self._other.bind() for _ in range(jobs)))
        for handle in last[-IN_FLIGHT:]:
            await handle.wait()
        assert self._ran == before + jobs

    async def rate(self, jobs: int) -> dict[str, float]:
        """Return how many of its jobs end in a second, after some that warm up."""
        await self.finish(WARM_UP)
        watch = Stopwatch()
        await self.finish(jobs)
        return watch.figures(jobs)


@asynccontextmanager
async def _crowd(others: _Others, waiting: int) -> AsyncIterator[None]:
    """Have so many jobs wait for one that holds the only permit they can get."""
    scheduler = others.scheduler
    holds, free = asyncio.Event(), asyncio.Event()

    @scheduler.task(name="held", retry=3, limit=Limit("group", 1, by="group"))
    async def held(group: str) -> None:
        del group
        holds.set()
        await free.wait()

    async with scheduler:
        if waiting:
            await held.submit("one")
            await holds.wait()
            await _submit(scheduler, (held.bind("one") for _ in range(waiting)))
        yield
        assert (await scheduler.metrics()).ready == waiting
        await scheduler.stop(cancel_running=True)


def crowded(jobs: int, waiting: int, folder: Path, *, is_durable: bool) -> dict[str, float]:
    """Run jobs that nothing holds back, while others of one group wait for a permit, and came first."""

    async def main() -> dict[str, float]:
        others = _Others(folder if is_durable else None)
        async with _crowd(others, waiting):
            return await others.rate(jobs)

    return asyncio.run(main())


def throttled(jobs: int, waiting: int, folder: Path, *, rate: str, is_durable: bool) -> dict[str, float]:
    """Run jobs that nothing holds back, while those of another task wait for its tokens, and came first."""

    async def main() -> dict[str, float]:
        others = _Others(folder if is_durable else None)
        scheduler = others.scheduler

        @scheduler.task(name="slow", retry=3, rate=Rate(rate))
        async def slow() -> None:
            """Do nothing."""

        async with scheduler:
            await _submit(scheduler, (slow.bind() for _ in range(waiting)))
            return await others.rate(jobs)

    return asyncio.run(main())
