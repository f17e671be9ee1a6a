"""Betimes on a SQLite file of its own: synchronous=FULL, as it comes."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bench.clockwork import DURABLE_IDLE_S, Latencies, Stopwatch, pace
from betimes import Scheduler
from betimes.tasks import Task

FILE = "jobs.db"
WAL = "wal"
QUEUE = "default"
AT_ONCE = 1_000
IN_FLIGHT = 100
LOOK_S = 0.003


class _Program:
    """A scheduler on a file, and its task, which counts how often it ran."""

    def __init__(self, folder: Path, *, concurrency: int = IN_FLIGHT, journal: str = WAL) -> None:
        self.scheduler = Scheduler(url_of(folder, journal), concurrency=concurrency)
        self.ran = 0

        @self.scheduler.task(name="noop", retry=3)
        async def noop() -> None:
            self.ran += 1

        self.noop: Task[[], None] = noop

    async def submit_many(self, jobs: int, batch: int) -> None:
        for start in range(0, jobs, batch):
            await self.scheduler.submit_many([self.noop.bind() for _ in range(min(batch, jobs - start))])


def url_of(folder: Path, journal: str) -> str:
    """Name the file of a run, in one of the two journal modes."""
    return f"sqlite:///{folder / FILE}?journal={journal}"


def fill(jobs: int, folder: Path, journal: str = WAL) -> dict[str, float]:
    """Make a file with so many jobs that are ready."""

    async def main() -> dict[str, float]:
        program = _Program(folder, journal=journal)
        async with program.scheduler.client():
            watch = Stopwatch()
            await program.submit_many(jobs, AT_ONCE)
            return watch.figures(jobs)

    return asyncio.run(main())


def fill_shared(jobs: int, shared: Path, journal: str = WAL) -> dict[str, float]:
    """Make the file that several runs of a row work off."""
    return fill(jobs, shared, journal)


def submits(jobs: int, callers: int, folder: Path, journal: str = WAL) -> dict[str, float]:
    """Submit one job a call, from so many coroutines; nothing runs them here."""

    async def main() -> dict[str, float]:
        program = _Program(folder, journal=journal)

        async def caller(number: int) -> None:
            for _ in range(number):
                await program.noop.submit()

        async def all_callers(number: int) -> None:
            await asyncio.gather(*(caller(number // callers) for _ in range(callers)))

        async with program.scheduler.client():
            await all_callers(callers * 5)
            watch = Stopwatch()
            await all_callers(jobs)
            figures = watch.figures(jobs)
            metrics = await program.scheduler.metrics()
            assert metrics.ready == jobs + callers * 5, metrics
            return figures

    return asyncio.run(main())


def bulk(jobs: int, batch: int, folder: Path, journal: str = WAL) -> dict[str, float]:
    """Submit so many jobs a call."""

    async def main() -> dict[str, float]:
        program = _Program(folder, journal=journal)
        async with program.scheduler.client():
            await program.submit_many(batch * 2, batch)
            watch = Stopwatch()
            await program.submit_many(jobs, batch)
            return watch.figures(jobs)

    return asyncio.run(main())


def drain(
    jobs: int,
    folder: Path,
    *,
    concurrency: int = IN_FLIGHT,
    alone: bool = False,
    shared: Path | None = None,
    journal: str = WAL,
) -> dict[str, float]:
    """Run jobs that a file holds, until so many have been finished and recorded.

    Args:
        jobs: how many to finish.
        concurrency: how many may be in flight.
        folder: where the file of a run is made.
        alone: leave `shared` alone.
        shared: a folder with a file that is filled already, with more jobs than these.
        journal: the journal mode of the file.
    """
    if alone:
        shared = None
    if shared is None:
        fill(jobs, folder, journal)

    async def main() -> dict[str, float]:
        program = _Program(shared or folder, concurrency=concurrency, journal=journal)
        scheduler = program.scheduler
        async with scheduler.client():
            await scheduler.pause_queue(QUEUE)
            ready = (await scheduler.metrics()).ready
        async with scheduler:
            watch = Stopwatch()
            await scheduler.resume_queue(QUEUE)
            if shared is None:
                await scheduler.drain()
            else:
                # They count when their end is on disk. A look costs a reader's transaction.
                while (await scheduler.metrics()).completed < jobs:  # noqa: ASYNC110 - others wait on
                    await asyncio.sleep(LOOK_S)
            done = (await scheduler.metrics()).completed
            figures = watch.figures(done)
            await scheduler.pause_queue(QUEUE)
        async with scheduler.client():
            assert (await scheduler.metrics()).ready == ready - program.ran, "a job was lost, or ran twice"
        return figures

    return asyncio.run(main())


def starts(jobs: int, folder: Path, per_second: int | None = None, journal: str = WAL) -> dict[str, float]:
    """Submit at a fixed rate, or one job at a time, to a scheduler that runs them in the same process."""
    latencies = Latencies(jobs)

    async def main() -> dict[str, float]:
        scheduler = Scheduler(url_of(folder, journal), concurrency=IN_FLIGHT)

        @scheduler.task(name="job", retry=3)
        async def job(number: int) -> None:
            latencies.started(number)

        async def submit(number: int) -> None:
            latencies.submitted(number)
            await job.submit(number)

        async with scheduler:
            return await pace(
                submit, latencies, per_second=per_second, is_waiting=True, idle_s=DURABLE_IDLE_S
            )

    return asyncio.run(main())
