"""Scenes on a full disk, each run by `test_file_faults_full` in a process and on a disk of its own.

Run one as `python -m tests.system.full_disk_scenes NAME FOLDER`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import pytest

from betimes import Context, Scheduler, StoreUnavailable, every
from betimes.clock import SystemClock
from betimes.core.events import Succeeded
from betimes.core.job import Job, JobSpec, JobStatus
from betimes.ports import CancelAnswer, ClaimRequest, JobFilter, Report, WorkerInfo
from betimes.stores.sqlite import SqliteStore

CLOCK = SystemClock()
SPEC = JobSpec(task="work")
WORKER = WorkerInfo(id="w", lease_us=3_600_000_000)
PATIENCE_S = 60.0


class Ballast:
    """A file of somebody else's that takes all that is left."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "ballast"

    def load(self) -> None:
        """Fill the disk to the last byte."""
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for size in (65536, 4096, 1):
            with suppress(OSError):
                while True:
                    os.write(file, bytes(size))
        os.close(file)

    def drop(self) -> None:
        self._path.unlink()


class Messages(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        logging.getLogger("betimes").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())

    def count(self, part: str) -> int:
        return sum(part in text for text in self.texts)


def job(job_id: str, payload: bytes = b"{}") -> Job:
    return Job(job_id, SPEC, payload, submitted_at=CLOCK.now(), run_at=CLOCK.now())


@asynccontextmanager
async def opened(folder: Path, journal: str | None = None) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(folder / "jobs.db", clock=CLOCK, journal=journal)
    await store.open(strategy="priority")
    try:
        yield store
    finally:
        await store.close()


async def claim(store: SqliteStore, limit: int) -> list[Job]:
    request = ClaimRequest(worker="w", limit=limit, lanes={"loop": limit})
    return (await store.exchange([], request)).claimed


async def finish(store: SqliteStore, jobs: list[Job], result: bytes = b"null") -> None:
    reports = [Report(each, each.fence, Succeeded(CLOCK.now(), result)) for each in jobs]
    steps = (await store.exchange(reports, None)).steps
    assert all(step is not None and step.after is JobStatus.COMPLETED for step in steps)


def size_of(path: Path) -> int:
    return path.stat().st_size


async def refused(submit: Awaitable[object]) -> None:
    """See a submit fail that finds no room."""
    with pytest.raises(StoreUnavailable, match="disk is full") as caught:
        await submit
    assert caught.value.why == "full"


async def submit_until_refused(store: SqliteStore) -> int:
    """Submit by fifty; return how many jobs there was room for."""
    for number in range(0, 1_000_000, 50):
        some = [job(f"late-{number + more}", b'"%s"' % (b"x" * 1000)) for more in range(50)]
        try:
            await store.submit(some)
        except StoreUnavailable:
            return number
    raise AssertionError("the disk is never full")


async def all_but_submits(folder: Path, journal: str | None) -> None:
    """Claim, finish, cancel, prune and beat on a full disk; then there is room again."""
    ballast = Ballast(folder)
    async with opened(folder, journal) as store:
        await store.register(WORKER)
        await store.submit([job(f"job-{number}") for number in range(200)])
        await finish(store, await claim(store, 50))
        ballast.load()
        await refused(store.submit([job("too-much")]))
        running = await claim(store, 40)
        assert len(running) == 40
        await finish(store, running[:30])
        waiting = (await store.jobs(JobFilter(status=JobStatus.READY, limit=1)))[0]
        assert (await store.cancel(waiting, reason="asked for")).answer is CancelAnswer.CANCELLED
        told = await store.cancel(running[30], reason="asked for")
        assert told.answer is CancelAnswer.REQUESTED
        assert (await store.beat("w", {each.seq: each.fence for each in running[30:]}, {})).is_alive
        assert await store.prune(keep_us=0) > 0
        for _ in range(11):
            await finish(store, await claim(store, 10))
        await refused(store.submit([job("too-much")]))
        assert await store.find("too-much") is None
        ballast.drop()
        await store.submit([job("enough-room")])
        facts = store.disk()
        assert facts.reserve_bytes == facts.wanted_bytes > 0
        assert not facts.is_full


async def a_long_log(folder: Path) -> None:
    """A log that was long once takes no more jobs than the database has room for."""
    ballast = Ballast(folder)
    async with opened(folder) as store:
        await store.register(WORKER)
        for _ in range(600):
            await store.beat("w", {}, {})  # the same page again and again: a long log, and a small database
        assert size_of(folder / "jobs.db-wal") > 2_000_000
        await asyncio.sleep(2)  # until the timer has had it copied
        ballast.load()
        late = await submit_until_refused(store)
        done = 0
        while jobs := await claim(store, 20):
            await finish(store, jobs)
            done += len(jobs)
        assert done == late
    async with opened(folder):
        pass


async def somebody_else(folder: Path) -> None:
    """While one process uses the reserve, no other takes jobs into it."""
    ballast = Ballast(folder)
    async with opened(folder) as store, opened(folder) as other:
        await store.register(WORKER)
        await store.submit([job(f"job-{number}") for number in range(100)])
        ballast.load()
        await finish(store, await claim(store, 50))
        while store.disk().reserve_bytes:
            await store.beat("w", {}, {})
            await finish(store, await claim(store, 10))
        assert store.disk().free_bytes > 0
        await refused(other.submit([job("too-much")]))
        ballast.drop()
        await other.submit([job("enough-room")])


async def within_a_transaction(folder: Path) -> None:
    """Nor does a caller's own transaction take the room that was given up for what runs."""
    ballast = Ballast(folder)
    async with opened(folder, "delete") as store:
        await store.register(WORKER)
        await store.submit([job(f"job-{number}") for number in range(50)])
        ballast.load()
        await finish(store, await claim(store, 50))
        with closing(sqlite3.connect(folder / "jobs.db", isolation_level=None)) as conn:
            conn.execute("BEGIN IMMEDIATE")
            await refused(store.submit_within(conn, [job("too-much")]))
            conn.execute("ROLLBACK")
            ballast.drop()
            conn.execute("BEGIN IMMEDIATE")
            await store.submit_within(conn, [job("enough-room")])
            conn.execute("COMMIT")
        assert await store.find("enough-room") is not None


async def opening(folder: Path) -> None:
    """A worker that starts on a full disk finishes what is there."""
    ballast = Ballast(folder)
    async with opened(folder) as store:
        await store.submit([job(f"job-{number}") for number in range(20)])
    ballast.load()
    async with opened(folder) as store:
        await store.register(WORKER)
        await refused(store.submit([job("too-much")]))
        await finish(store, await claim(store, 20))


def scheduler_on(folder: Path) -> Scheduler:
    return Scheduler(folder / "jobs.db", concurrency=5, lease="5s", poll="0.2s", watchdog=None)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - what is looked at tells nobody that it changes
            await asyncio.sleep(0.02)


async def running_work(folder: Path) -> None:
    """What runs is recorded, what waits runs, what they log is lost, and schedules wait."""
    ballast, messages = Ballast(folder), Messages()
    scheduler, go, runs = scheduler_on(folder), asyncio.Event(), list[int]()

    @scheduler.task(name="work")
    async def work(ctx: Context, number: int) -> int:
        runs.append(number)
        await go.wait()
        for _ in range(50):
            ctx.log.info("x" * 1000)
        return number

    @scheduler.task(name="tick", schedule=every("1s"), missed="latest")
    async def tick() -> None:
        pass

    async with scheduler:
        handles = [await work.submit(number) for number in range(20)]
        await until(lambda: len(runs) == 5)
        ballast.load()
        await refused(work.submit(99))
        go.set()
        async with asyncio.timeout(PATIENCE_S):
            assert [await handle.result() for handle in handles] == list(range(20))
        await until(lambda: messages.count("schedules wait") == 1)
        fired = (await scheduler.schedule("tick")).fired
        await refused(work.submit(99))
        ballast.drop()
        assert await (await work.submit(20)).result(timeout=PATIENCE_S) == 20
        while (await scheduler.schedule("tick")).fired <= fired:  # noqa: ASYNC110 - as in `until`
            await asyncio.sleep(0.05)
    assert sorted(runs) == list(range(21))
    assert messages.count("what jobs log is lost") <= 1, messages.texts
    assert messages.count("no new jobs are taken") == messages.count("new jobs are taken") / 2 == 1


async def not_even_the_reserve(folder: Path) -> None:
    """Outcomes that cannot be recorded at all are held, and recorded as soon as there is room."""
    ballast, messages = Ballast(folder), Messages()
    scheduler, go, runs = scheduler_on(folder), asyncio.Event(), list[int]()

    @scheduler.task(name="work")
    async def work(number: int) -> str:
        runs.append(number)
        await go.wait()
        return "x" * 100_000

    async with scheduler:
        handles = [await work.submit(number) for number in range(8)]
        await until(lambda: len(runs) == 5)
        os.truncate(folder / "jobs.db-betimes-reserve", 0)
        ballast.load()
        go.set()
        while (await scheduler.metrics()).store_stalled_s < 2:  # noqa: ASYNC110 - as in `until`
            await asyncio.sleep(0.05)
        assert len(runs) == 5, "a slot is free when its outcome is recorded"
        assert (await scheduler.metrics()).in_flight == 5
        assert messages.count("the store failed") == 1, messages.texts
        ballast.drop()
        for handle in handles:
            assert len(await handle.result(timeout=PATIENCE_S)) == 100_000
        await until(lambda: messages.count("the store answers again") == 1)
        assert (await scheduler.metrics()).lost_leases == 0
    assert sorted(runs) == list(range(8))


SCENES: dict[str, Callable[[Path], Awaitable[None]]] = {
    "all-but-submits": lambda folder: all_but_submits(folder, None),
    "all-but-submits-rollback": lambda folder: all_but_submits(folder, "delete"),
    "a-long-log": a_long_log,
    "somebody-else": somebody_else,
    "within-a-transaction": within_a_transaction,
    "opening": opening,
    "running-work": running_work,
    "not-even-the-reserve": not_even_the_reserve,
}


async def play(name: str, folder: Path) -> None:
    await SCENES[name](folder)


if __name__ == "__main__":
    asyncio.run(play(sys.argv[1], Path(sys.argv[2])))
