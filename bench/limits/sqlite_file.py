"""The limits on a SQLite file, by bare statements: submits, bulk submits, whole lives, the way to a start."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from bench.clockwork import DURABLE_IDLE_S, Latencies, Stopwatch, pace
from bench.limits.raw_file import GroupWriter, RawFile
from bench.ours.durable import FILE, WAL, fill

AT_ONCE = 100


def submits(jobs: int, callers: int, folder: Path, journal: str = WAL) -> dict[str, float]:
    """Insert one row a call from many coroutines, through a writer thread with group commit."""

    file = _file(folder, journal)

    async def main() -> dict[str, float]:
        writer = GroupWriter(file)

        async def caller(number: int) -> None:
            for _ in range(number):
                await writer.call("insert", file.row())

        async def all_callers(number: int) -> None:
            await asyncio.gather(*(caller(number // callers) for _ in range(callers)))

        await all_callers(callers * 5)
        watch = Stopwatch()
        await all_callers(jobs)
        return watch.figures(jobs)

    return asyncio.run(main())


def submits_one_by_one(jobs: int, folder: Path) -> dict[str, float]:
    """Insert one row a transaction, in the calling thread: one fsync each."""
    return bulk(jobs, 1, folder)


def bulk(jobs: int, batch: int, folder: Path, journal: str = WAL) -> dict[str, float]:
    """Insert so many rows a transaction, in the calling thread."""
    file = _file(folder, journal)

    def insert(number: int) -> None:
        for _ in range(0, number, batch):
            rows = [file.row() for _ in range(batch)]
            file.sql.execute("BEGIN IMMEDIATE")
            file.insert(rows)
            file.sql.execute("COMMIT")

    insert(batch * 2)
    watch = Stopwatch()
    insert(jobs)
    return watch.figures(jobs)


def drain(
    jobs: int,
    *,
    together: bool,
    folder: Path,
    alone: bool = False,
    shared: Path | None = None,
    journal: str = WAL,
) -> dict[str, float]:
    """Claim 100 and finish 100, in turns, until so many jobs have been finished.

    Args:
        jobs: how many to finish.
        together: finish a hundred and claim the next in one transaction; otherwise each has its own.
        folder: where the file of a run is made.
        alone: leave `shared` alone.
        shared: a folder with a file that is filled already.
        journal: the journal mode of the file.
    """
    if alone:
        shared = None
    if shared is None:
        fill(jobs, folder, journal)
    file = RawFile((shared or folder) / FILE)
    sql = file.sql
    watch = Stopwatch()
    claimed: list[tuple[Any, ...]] = []
    for _ in range(0, jobs, AT_ONCE):
        sql.execute("BEGIN IMMEDIATE")
        file.finish(claimed)
        claimed = file.claim(AT_ONCE)
        sql.execute("COMMIT")
        if not together:
            sql.execute("BEGIN IMMEDIATE")
            file.finish(claimed)
            sql.execute("COMMIT")
            claimed = []
    sql.execute("BEGIN IMMEDIATE")
    file.finish(claimed)
    sql.execute("COMMIT")
    return watch.figures(jobs)


def starts(jobs: int, folder: Path, per_second: int | None = None, journal: str = WAL) -> dict[str, float]:
    """Insert a row, commit, wake, claim it, commit, start a task: at a fixed rate, or one by one.

    Each commit is made in the writer thread, which takes what has gathered in one.
    """
    latencies = Latencies(jobs)
    file = _file(folder, journal)

    async def main() -> dict[str, float]:
        worker = _Worker(file, latencies)
        pump = asyncio.create_task(worker.run())
        figures = await pace(
            worker.submit, latencies, per_second=per_second, is_waiting=True, idle_s=DURABLE_IDLE_S
        )
        pump.cancel()
        return figures

    return asyncio.run(main())


class _Worker:
    """Takes jobs, claims them when it is woken, runs each as a task, and has their ends recorded."""

    def __init__(self, file: RawFile, latencies: Latencies) -> None:
        self._file = file
        self._latencies = latencies
        self._writer = GroupWriter(file)
        self._wake = asyncio.Event()
        self._numbers: dict[int, int] = {}
        self._ended: list[tuple[Any, ...]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def submit(self, number: int) -> None:
        row = self._file.row()
        self._numbers[row[0]] = number
        self._latencies.submitted(number)
        await self._writer.call("insert", row)
        self._wake.set()

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            ended, self._ended = self._ended, []
            self._writer.call("finish", ended)
            for claimed in await self._writer.call("claim", AT_ONCE):
                self._tasks.add(task := asyncio.create_task(self._job(claimed)))
                task.add_done_callback(self._tasks.discard)

    async def _job(self, claimed: tuple[Any, ...]) -> None:
        self._latencies.started(self._numbers.pop(claimed[0]))
        self._ended.append(claimed)
        self._wake.set()


def _file(folder: Path, journal: str) -> RawFile:
    """Make a file without a job to run: its only one, the pattern, is taken."""
    fill(1, folder, journal)
    file = RawFile(folder / FILE)
    file.claim(1)
    return file
