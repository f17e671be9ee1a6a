"""`using(conn=…)`: submitting in a transaction of one's own, and the handles of what may never be."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session
from tests.runtime.sqlite_scene import look
from tests.runtime.stage import CANCELLED, COMPLETED, READY

from betimes import (
    CancelAnswer,
    ConfigurationError,
    DuplicateJob,
    JobEvent,
    Limit,
    PayloadError,
    ReasonCode,
    Scheduler,
    SchedulerClosed,
    UnknownJob,
    every,
)
from betimes.blocking_scheduler import BlockingJob

WAIT_S = 30
NAMES = "SELECT name FROM customer ORDER BY rowid"

pass_time = asyncio.sleep  # noqa: TID251 - the store's threads need a moment of real time


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "app.db"


@pytest.fixture
def scheduler(path: Path) -> Scheduler:
    return Scheduler(f"sqlite:///{path}?journal=delete", watchdog=None)


@pytest.fixture
def conn(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, timeout=WAIT_S)) as connection:
        yield connection


def play(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(WAIT_S):
            await scene()

    asyncio.run(main())


@asynccontextmanager
async def opened(scheduler: Scheduler, conn: sqlite3.Connection, *, runs: bool = True) -> AsyncIterator[None]:
    """Open the scheduler, and make the application's table in its file."""
    async with scheduler if runs else scheduler.client():
        with conn:
            conn.execute("CREATE TABLE customer (name TEXT UNIQUE)")
        yield


def greeting(scheduler: Scheduler, **options: Any) -> Any:
    @scheduler.task(name="greet", **options)
    async def greet(name: str) -> str:
        return f"Hello {name}"

    return greet


# ------------------------------------------------------------------------------------ both, or neither


def test_p04_the_job_and_the_row_are_committed_together(
    scheduler: Scheduler, conn: sqlite3.Connection, path: Path
) -> None:
    greet = greeting(scheduler)

    async def scene() -> None:
        async with opened(scheduler, conn):
            with conn:
                conn.execute("INSERT INTO customer VALUES ('Ada')")
                job = await greet.using(conn=conn).submit("Ada")
            assert await job.result() == "Hello Ada"
            lost = await greet.using(conn=conn).submit("Bob")
            with pytest.raises(sqlite3.IntegrityError):
                conn.execute("INSERT INTO customer VALUES ('Ada')")
            conn.rollback()
            with pytest.raises(UnknownJob, match="rolled back"):
                await lost.result()
            assert [info.id for info in await scheduler.jobs()] == [job.id]
        assert look(path, NAMES) == [("Ada",)]

    play(scene)


def test_p04_a_session_of_sqlalchemy_is_a_transaction_of_its_own_kind(
    scheduler: Scheduler, path: Path
) -> None:
    greet = greeting(scheduler)
    engine = create_engine(f"sqlite:///{path}")

    async def scene() -> None:
        async with scheduler.client():
            with Session(engine) as session, engine.connect() as connection:
                for each in (session, connection):
                    with each.begin():
                        kept = await greet.using(conn=each, job_id=type(each).__name__).submit("Ada")
                    await greet.using(conn=each).submit("Bob")
                    each.rollback()
                    assert await kept.status() is READY
            assert [info.id for info in await scheduler.jobs()] == ["Connection", "Session"]

    play(scene)
    engine.dispose()


def test_p04_no_worker_sees_the_job_before_the_commit(scheduler: Scheduler, conn: sqlite3.Connection) -> None:
    greet = greeting(scheduler)

    async def scene() -> None:
        async with opened(scheduler, conn):
            job = await greet.using(conn=conn).submit("Ada")
            waiting = asyncio.ensure_future(job.result())
            await pass_time(0.3)
            assert not waiting.done()
            assert await scheduler.jobs() == []
            conn.commit()
            assert await waiting == "Hello Ada"

    play(scene)


def test_p04_many_and_graphs_go_into_one_transaction(scheduler: Scheduler, conn: sqlite3.Connection) -> None:
    greet = greeting(scheduler)

    async def scene() -> None:
        async with opened(scheduler, conn, runs=False):
            bound = greet.using(conn=conn)
            many = await scheduler.submit_many(bound.bind(str(number)) for number in range(500))
            graph = await scheduler.submit_graph(
                {"last": (bound.bind("z"), ["first"]), "first": greet.using(conn=conn, key="f").bind("a")}
            )
            assert await scheduler.jobs() == []
            conn.commit()
            assert [info.version for info in await scheduler.jobs(limit=1000)] == list(range(502, 0, -1))
            assert [await job.status() for job in (many[0], many[-1], graph["first"])] == [READY] * 3
            assert (await graph["last"].info()).depends_on == (graph["first"].id,)

    play(scene)


def test_p04_a_job_of_the_transaction_can_be_depended_on_within_it(
    scheduler: Scheduler, conn: sqlite3.Connection
) -> None:
    greet = greeting(scheduler)

    async def scene() -> None:
        async with opened(scheduler, conn):
            first = await greet.using(conn=conn).submit("Ada")
            with pytest.raises(UnknownJob):  # it does not exist for anybody else
                await first.info()
            second = await greet.using(conn=conn, depends_on=first).submit("Bob")
            conn.commit()
            assert [await job.result() for job in (first, second)] == ["Hello Ada", "Hello Bob"]
            third = await greet.using(depends_on=[first, second]).submit("Cleo")
            assert await third.result() == "Hello Cleo"

    play(scene)


def test_p04_a_rolled_back_job_is_never_taken_for_the_one_that_got_its_number(
    scheduler: Scheduler, conn: sqlite3.Connection
) -> None:
    greet = greeting(scheduler)

    async def scene() -> None:
        async with opened(scheduler, conn, runs=False):
            lost = await greet.using(conn=conn).submit("Ada")
            named = await greet.using(conn=conn, job_id="x").submit("Ada")
            conn.rollback()
            other = await greet.submit("Bob")
            renamed = await greet.using(job_id="x").submit("Bob")
            assert [lost._job.seq, named._job.seq] == [other._job.seq, renamed._job.seq]
            for handle in (lost, named):
                for call in (
                    handle.status,
                    handle.info,
                    handle.explain,
                    handle.log,
                    handle.result,
                    handle.wait,
                ):
                    with pytest.raises(UnknownJob):
                        await call()
                assert await handle.cancel() is CancelAnswer.UNKNOWN
                assert await handle.progress() is None
            with pytest.raises(UnknownJob):
                await greet.using(depends_on=lost).submit("Cleo")
            assert await other.status() is await renamed.status() is READY

    play(scene)


def test_a_handle_is_like_any_other_after_the_commit(scheduler: Scheduler, conn: sqlite3.Connection) -> None:
    greet = greeting(scheduler)

    async def scene() -> None:
        async with opened(scheduler, conn, runs=False):
            job = await greet.using(conn=conn, delay="1h", tags=["t"]).submit("Ada")
            conn.commit()
            conn.close()
            assert await job.progress() is None
            assert (await job.info()).tags == ("t",)
            assert await job.log() == []
            assert (await job.explain()).reasons[0].code is ReasonCode.NOT_DUE
            with pytest.raises(TimeoutError):
                await job.result(timeout=0.01)
            assert await job.cancel() is CancelAnswer.CANCELLED
            assert await job.wait() is CANCELLED

    play(scene)


def test_whoever_waits_for_an_open_transaction_stops_waiting_when_it_is_rolled_back(
    scheduler: Scheduler, conn: sqlite3.Connection
) -> None:
    greet = greeting(scheduler)

    async def scene() -> None:
        async with opened(scheduler, conn):
            job = await greet.using(conn=conn).submit("Ada")
            with pytest.raises(TimeoutError, match="it goes on"):
                await job.result(timeout=0.1)
            waiting = [asyncio.ensure_future(job.result()), asyncio.ensure_future(job.wait())]
            await pass_time(0.1)
            conn.rollback()
            for each in waiting:
                with pytest.raises(UnknownJob):
                    await each
            closed = await greet.using(conn=conn).submit("Ada")
            conn.close()
            with pytest.raises(UnknownJob):
                await closed.result()

    play(scene)


def test_listeners_hear_of_the_claim_first_since_the_submit_may_not_have_been(
    scheduler: Scheduler, conn: sqlite3.Connection
) -> None:
    greet = greeting(scheduler)
    heard: list[JobEvent] = []
    scheduler.listen(heard.append)

    async def scene() -> None:
        async with opened(scheduler, conn):
            lost = await greet.using(conn=conn).submit("Ada")
            conn.rollback()
            job = await greet.using(conn=conn).submit("Bob")
            conn.commit()
            await job.result()
        assert lost.id not in {event.job_id for event in heard}
        assert (heard[0].before, heard[0].job_id) == (READY, job.id)
        assert heard[-1].after is COMPLETED

    play(scene)


def test_p04_rules_of_limits_come_with_the_jobs_while_the_lock_is_held(
    scheduler: Scheduler, conn: sqlite3.Connection
) -> None:
    async def scene() -> None:
        async with opened(scheduler, conn):
            conn.execute("INSERT INTO customer VALUES ('Ada')")  # from here on nobody else can write
            running: list[int] = []
            most: list[int] = []

            @scheduler.task(limit=Limit("one", max_running=1))
            async def alone(number: int) -> int:
                running.append(number)
                most.append(len(running))
                await pass_time(0.01)
                running.remove(number)
                return number

            jobs = await scheduler.submit_many(alone.using(conn=conn).bind(number) for number in range(5))
            conn.commit()
            assert [await job.result() for job in jobs] == list(range(5))
            assert max(most) == 1

    play(scene)


# -------------------------------------------------------------------------------- threads and other loops


def test_p04_code_without_a_loop_submits_in_its_own_thread(
    scheduler: Scheduler, conn: sqlite3.Connection, path: Path
) -> None:
    greet = greeting(scheduler)
    with scheduler.blocking() as s:
        with conn:
            conn.execute("CREATE TABLE customer (name TEXT)")
        with conn:
            conn.execute("INSERT INTO customer VALUES ('Ada')")
            bound = greet.using(conn=conn)
            one: BlockingJob[str] = bound.submit_blocking("one")
            two = s.submit(bound.bind("two"))
            three, four = s.submit_many([bound.bind("three"), bound.bind("four")])
            graph = s.submit_graph({"five": bound.bind("five"), "six": (bound.bind("six"), ["five"])})
            with pytest.raises(UnknownJob):
                one.status()
        jobs = [one, two, three, four, graph["five"], graph["six"]]
        assert [job.result(timeout=WAIT_S) for job in jobs] == [
            f"Hello {name}" for name in ("one", "two", "three", "four", "five", "six")
        ]
        lost = bound.submit_blocking("lost")
        conn.rollback()
        with pytest.raises(UnknownJob):
            lost.result()
    assert look(path, NAMES) == [("Ada",)]


def test_p04_threads_with_connections_of_their_own_submit_beside_each_other(
    scheduler: Scheduler, path: Path
) -> None:
    greet = greeting(scheduler)
    kept: list[str] = []
    errors: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            with closing(sqlite3.connect(path, timeout=WAIT_S)) as mine:
                for number in range(10):
                    job = greet.using(conn=mine).submit_blocking(f"{thread}-{number}")
                    if number % 2:
                        mine.rollback()
                    else:
                        mine.commit()
                        kept.append(job.id)
        except BaseException as error:  # noqa: BLE001 - passed on below
            errors.append(error)

    with scheduler.blocking() as s:
        threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
            assert not thread.is_alive()
        if errors:
            raise errors[0]
        s.drain(timeout=WAIT_S)
        assert sorted(info.id for info in s.jobs(limit=1000)) == sorted(kept)
        assert {info.status for info in s.jobs(limit=1000)} == {COMPLETED}


def test_p04_a_submit_may_be_awaited_on_another_loop(scheduler: Scheduler, conn: sqlite3.Connection) -> None:
    greet = greeting(scheduler)
    with scheduler.blocking() as s:
        job = asyncio.run(greet.using(conn=conn).submit("Ada"))
        several = asyncio.run(scheduler.submit_many([greet.using(conn=conn).bind("Bob")]))
        conn.commit()
        assert [s.job(each.id).result(timeout=WAIT_S) for each in (job, *several)] == [
            "Hello Ada",
            "Hello Bob",
        ]


def test_a_connection_of_another_thread_is_refused_with_the_reason(
    scheduler: Scheduler, conn: sqlite3.Connection
) -> None:
    greet = greeting(scheduler)

    async def scene() -> None:
        async with opened(scheduler, conn):
            with pytest.raises(ConfigurationError, match="conn cannot be used here"):
                await asyncio.to_thread(greet.using(conn=conn).submit_blocking, "Ada")

    play(scene)


def test_submit_threadsafe_is_refused_with_the_remedy(scheduler: Scheduler, conn: sqlite3.Connection) -> None:
    greet = greeting(scheduler)

    async def scene() -> None:
        async with opened(scheduler, conn):
            with pytest.raises(ConfigurationError, match=r"use submit_blocking\(\) there"):
                scheduler.submit_threadsafe(greet.using(conn=conn).bind("Ada"))

    play(scene)


# ------------------------------------------------------------------------------------------- refusals


def test_it_takes_an_open_scheduler(scheduler: Scheduler, conn: sqlite3.Connection) -> None:
    greet = greeting(scheduler)
    bound = greet.using(conn=conn)

    async def scene() -> None:
        for submit in (
            lambda: bound.submit("Ada"),
            lambda: scheduler.submit_many([bound.bind("Ada")]),
            lambda: scheduler.submit_graph({"a": bound.bind("Ada")}),
        ):
            with pytest.raises(SchedulerClosed, match="not open"):
                await submit()

    play(scene)
    with pytest.raises(SchedulerClosed, match="not open"):
        bound.submit_blocking("Ada")


def test_calls_for_different_transactions_are_not_submitted_together(
    scheduler: Scheduler, conn: sqlite3.Connection, path: Path
) -> None:
    greet = greeting(scheduler)

    async def scene() -> None:
        async with opened(scheduler, conn, runs=False):
            with closing(sqlite3.connect(path)) as other:
                for calls in (
                    [greet.using(conn=conn).bind("a"), greet.bind("b")],
                    [greet.using(conn=conn).bind("a"), greet.using(conn=other).bind("b")],
                ):
                    with pytest.raises(ConfigurationError, match="give all of the calls the same conn="):
                        await scheduler.submit_many(calls)
                    with pytest.raises(ConfigurationError, match="give all of the calls the same conn="):
                        await scheduler.submit_graph({str(n): call for n, call in enumerate(calls)})
            assert not conn.in_transaction
            assert await scheduler.jobs() == []

    play(scene)


def test_a_store_in_memory_takes_part_in_no_transaction(conn: sqlite3.Connection) -> None:
    scheduler = Scheduler(watchdog=None)
    greet = greeting(scheduler)

    async def scene() -> None:
        async with scheduler.client():
            with pytest.raises(ConfigurationError, match=r"'sqlite:///app\.db'"):
                await greet.using(conn=conn).submit("Ada")

    play(scene)


def test_a_schedule_cannot_be_part_of_a_transaction(scheduler: Scheduler, conn: sqlite3.Connection) -> None:
    greet = greeting(scheduler)

    async def scene() -> None:
        async with scheduler.client():
            with pytest.raises(ConfigurationError, match="conn holds for one only"):
                await scheduler.add_schedule("hello", greet.using(conn=conn).bind("Ada"), every("5m"))

    play(scene)


def test_what_is_refused_leaves_the_transaction_usable(
    scheduler: Scheduler, conn: sqlite3.Connection, path: Path
) -> None:
    greet = greeting(scheduler)

    async def scene() -> None:
        async with opened(scheduler, conn, runs=False):
            await greet.using(job_id="x").submit("Ada")
            with conn:
                conn.execute("INSERT INTO customer VALUES ('Ada')")
                with pytest.raises(DuplicateJob):
                    await greet.using(conn=conn, job_id="x").submit("Bob")
                with pytest.raises(PayloadError):
                    await greet.using(conn=conn).submit(object())
                with pytest.raises(UnknownJob):
                    await greet.using(conn=conn, depends_on="nobody").submit("Bob")
                with pytest.raises(ConfigurationError, match=r"made with task\.bind"):
                    await scheduler.submit_many([greet.using(conn=conn).bind("a"), "b"])  # type: ignore[list-item]
            assert [info.id for info in await scheduler.jobs()] == ["x"]
        assert look(path, NAMES) == [("Ada",)]

    play(scene)
