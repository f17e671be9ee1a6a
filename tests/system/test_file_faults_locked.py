"""Another program keeps the file locked, for longer than a lease: the worker lives, and nothing is lost."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

import pytest

from betimes import JobStatus, Scheduler, StoreUnavailable
from betimes.clock import SystemClock, is_gone
from betimes.core.job import Job, JobSpec
from betimes.stores.sqlite import SqliteStore
from betimes.tasks import Task

CLOCK = SystemClock()
OUTAGE_S, LEASE, BUSY_S = 2.5, "1s", 0.3
PATIENCE_S = 60.0

journals = pytest.mark.parametrize("journal", ["wal", "delete"])


def store_at(path: Path, journal: str) -> SqliteStore:
    return SqliteStore(path, clock=CLOCK, is_gone=is_gone, busy_timeout_s=BUSY_S, journal=journal)


class Work:
    """A scheduler on the file, and a task whose runs are noted, and end when they may."""

    def __init__(self, path: Path, journal: str) -> None:
        self.runs: list[int] = []
        self.go = asyncio.Event()
        store = store_at(path, journal)
        self.scheduler = Scheduler(store, concurrency=5, lease=LEASE, poll="0.2s", watchdog=None)
        self.task: Task[[int], int] = self.scheduler.task(name="work")(self._work)

    async def _work(self, number: int) -> int:
        self.runs.append(number)
        await self.go.wait()
        return number


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """The file, locked by somebody else."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA busy_timeout = 60000")
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - what is looked at tells nobody that it changes
            await asyncio.sleep(0.02)


@asynccontextmanager
async def outage(path: Path) -> AsyncIterator[None]:
    with locked(path):
        yield
        await asyncio.sleep(OUTAGE_S)


@journals
def test_case_112_an_idle_worker_outlives_an_outage(
    tmp_path: Path, journal: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "jobs.db"

    async def main() -> None:
        work = Work(path, journal)
        work.go.set()
        async with work.scheduler as scheduler:
            assert await (await work.task.submit(1)).result(timeout=PATIENCE_S) == 1
            async with outage(path):
                pass
            assert await (await work.task.submit(2)).result(timeout=PATIENCE_S) == 2
            assert (await scheduler.metrics()).lost_leases == 0

    with caplog.at_level(logging.WARNING, "betimes"):
        asyncio.run(main())
    told = [record.getMessage() for record in caplog.records]
    assert sum("the store failed" in text for text in told) <= 1, told


@journals
def test_p23_case_112_outcomes_of_an_outage_are_held_and_recorded_once(tmp_path: Path, journal: str) -> None:
    path = tmp_path / "jobs.db"

    async def main() -> None:
        work = Work(path, journal)
        async with work.scheduler as scheduler:
            handles = [await work.task.submit(number) for number in range(12)]
            await until(lambda: len(work.runs) == 5)
            async with outage(path):
                work.go.set()
                with pytest.raises(StoreUnavailable, match="locked") as caught:
                    await work.task.submit(99)
                assert caught.value.why == "locked"
            assert len(work.runs) == 5, "what is held is bounded by the slots"
            for handle, number in zip(handles, range(12), strict=True):
                assert await handle.result(timeout=PATIENCE_S) == number
            assert (await scheduler.metrics()).lost_leases == 0
        assert sorted(work.runs) == list(range(12))

    asyncio.run(main())


def test_case_147_a_worker_that_cannot_claim_shows_it(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"

    async def main() -> None:
        work = Work(path, "wal")
        work.go.set()
        async with work.scheduler as scheduler:
            await (await work.task.submit(1)).result(timeout=PATIENCE_S)
            assert (await scheduler.metrics()).store_stalled_s < 1
            with locked(path):
                before = 0.0
                for _ in range(3):
                    stalled_s = before
                    async with asyncio.timeout(PATIENCE_S):
                        while stalled_s <= before + 0.3:
                            await asyncio.sleep(0.05)
                            stalled_s = (await scheduler.metrics()).store_stalled_s
                    before = stalled_s
                async with asyncio.timeout(PATIENCE_S):
                    while not (await scheduler.metrics()).store_errors:  # noqa: ASYNC110 - as in `until`
                        await asyncio.sleep(0.05)
            async with asyncio.timeout(PATIENCE_S):
                while (await scheduler.metrics()).store_stalled_s > 0.2:  # noqa: ASYNC110 - as in `until`
                    await asyncio.sleep(0.05)

    asyncio.run(main())


def test_case_112_a_commit_that_somebody_holds_up_is_not_half_done(tmp_path: Path) -> None:
    """With a rollback journal, a reader keeps a commit waiting that has begun."""
    path = tmp_path / "jobs.db"

    async def main() -> None:
        store = store_at(path, "delete")
        await store.open(strategy="priority")
        jobs = [
            Job(f"job-{number}", JobSpec(task="work"), submitted_at=CLOCK.now(), run_at=CLOCK.now())
            for number in range(10)
        ]
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN")
            other.execute("SELECT * FROM betimes_job").fetchall()
            with pytest.raises(StoreUnavailable, match="locked"):
                await store.submit(jobs)
            assert await store.find("job-0") is None
            other.execute("COMMIT")
        await store.submit(jobs)
        assert await store.counts() == {"default": {JobStatus.READY: 10}}
        await store.close()

    asyncio.run(main())
