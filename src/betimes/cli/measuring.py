"""Short measurements of this machine: each step ends when its time is over, and counts what it has done."""

from __future__ import annotations

import asyncio
import os
import platform
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from betimes.clock import monotonic_s
from betimes.errors import ConfigurationError
from betimes.scheduler import Scheduler
from betimes.tasks import Task

MANY = 1000
"""How many jobs go in one write."""

MOST = 200_000
"""The most jobs that a step makes, however long it may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where it was measured.

    Attributes:
        python, sqlite, system: their versions.
        cores: as many as this process may use.
        file: where the file was; it is gone.
        journal_mode: how SQLite kept it.
        concurrency: the most jobs at once.
    """

    python: str
    sqlite: str
    system: str
    cores: int
    file: str
    journal_mode: str
    concurrency: int

    def lines(self) -> list[str]:
        """Say it in words."""
        return [
            f"Python {self.python}, SQLite {self.sqlite}, {self.system}, {self.cores} cores",
            f"file: {self.file} (journal: {self.journal_mode}); at most {self.concurrency} jobs at once",
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """What one step came to.

    Attributes:
        store: `memory` or `file`.
        what: the step, in words.
        jobs: how many there were.
        seconds: how long they took.
        per_second: jobs a second.
        median_ms, p95_ms: of each job's own time, where jobs were measured one by one.
    """

    store: str
    what: str
    jobs: int
    seconds: float
    per_second: float
    median_ms: float | None = None
    p95_ms: float | None = None

    @classmethod
    def of(cls, store: str, what: str, jobs: int, seconds: float) -> Measure:
        """Reckon the rate."""
        return cls(store=store, what=what, jobs=jobs, seconds=seconds, per_second=jobs / max(seconds, 1e-9))


def measure_all(seconds: float, *, concurrency: int, folder: Path | None) -> tuple[Machine, list[Measure]]:
    """Measure a scheduler in memory and one on a new file, which is removed afterwards.

    Args:
        seconds: how long each step may take.
        concurrency: the most jobs at once.
        folder: where the file is made; None: where temporary files are.

    Raises:
        ConfigurationError: no file can be made there.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="betimes-bench-", dir=folder) as place:
            path = Path(place) / "jobs.db"
            in_memory = Scheduler(concurrency=concurrency, watchdog=None)
            in_file = Scheduler(path, concurrency=concurrency, watchdog=None)
            measures = asyncio.run(_Steps("memory", in_memory, seconds).run())
            measures += asyncio.run(_Steps("file", in_file, seconds).run())
            return asyncio.run(_machine(in_file, str(path.resolve()), concurrency)), measures
    except OSError as error:
        raise ConfigurationError(f"the file cannot be made: {error}") from error


async def _machine(scheduler: Scheduler, path: str, concurrency: int) -> Machine:
    file = (await scheduler._store.vitals()).file  # noqa: SLF001 - the command line is part of the package
    return Machine(
        python=platform.python_version(),
        sqlite=file.sqlite if file is not None else "",
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        file=path,
        journal_mode=file.journal_mode if file is not None else "",
        concurrency=concurrency,
    )


async def nothing() -> None:
    """Do nothing: what is measured is all the rest."""


class _Steps:
    """The steps on one store, one after the other."""

    def __init__(self, store: str, scheduler: Scheduler, seconds: float) -> None:
        self._store = store
        self._scheduler = scheduler
        self._seconds = seconds
        self._task: Task[[], Any] = scheduler.task(name="nothing")(nothing)

    async def run(self) -> list[Measure]:
        async with self._scheduler as scheduler:
            await (
                await self._task.submit()
            ).result()  # what is done once, at the first job, is no part of it
            measures = [await self._there_and_back()]
            await scheduler.pause_queue("default")
            measures += [await self._one_by_one(), await self._in_batches()]
            measures.append(await self._run(await self._ended()))
            return measures

    async def _there_and_back(self) -> Measure:
        times: list[float] = []
        began = now = monotonic_s()
        while now - began < self._seconds and len(times) < MOST:
            job = await self._task.submit()
            await job.result()
            times.append(-now + (now := monotonic_s()))
        times.sort()
        rate = Measure.of(self._store, "submit and result, one at a time", len(times), now - began)
        return Measure(
            store=rate.store,
            what=rate.what,
            jobs=rate.jobs,
            seconds=rate.seconds,
            per_second=rate.per_second,
            median_ms=times[len(times) // 2] * 1000,
            p95_ms=times[len(times) * 95 // 100] * 1000,
        )

    async def _one_by_one(self) -> Measure:
        made, began = 0, monotonic_s()
        while monotonic_s() - began < self._seconds and made < MOST:
            await self._task.submit()
            made += 1
        return Measure.of(self._store, "submit, one after the other", made, monotonic_s() - began)

    async def _in_batches(self) -> Measure:
        bound = [self._task.bind()] * MANY
        made, began = 0, monotonic_s()
        while monotonic_s() - began < self._seconds and made < MOST:
            await self._scheduler.submit_many(bound)
            made += MANY
        return Measure.of(self._store, f"submit, {MANY:,} in one write", made, monotonic_s() - began)

    async def _run(self, before: int) -> Measure:
        began = monotonic_s()
        await self._scheduler.resume_queue("default")
        with suppress(TimeoutError):  # the rest goes with the store
            await self._scheduler.drain(timeout=self._seconds)
        took = monotonic_s() - began
        return Measure.of(self._store, "run", await self._ended() - before, took)

    async def _ended(self) -> int:
        return (await self._scheduler.metrics()).completed
