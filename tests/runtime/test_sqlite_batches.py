"""The SQLite store's writer: what gathers goes together, and what fails, fails alone."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from tests.runtime.sqlite_scene import CLOCK, LANES, SPEC, finish_all, job, look, named, opened

from betimes.core.events import Errored, Event, Succeeded
from betimes.core.job import ErrorInfo, Job, JobStatus, Need, Terms
from betimes.errors import ConfigurationError, DuplicateJob, StoreUnavailable
from betimes.ports import ClaimRequest, Hint, Report, WorkerInfo
from betimes.stores.relational.turn import Turn
from betimes.stores.sqlite import SqliteStore, writer

PATIENCE_S = 30


@asynccontextmanager
async def held_up(store: SqliteStore) -> AsyncIterator[None]:
    """Keep the writer busy, so that whatever is called in the block gathers behind it."""
    begun, go_on = threading.Event(), threading.Event()

    def wait(_turn: Turn) -> None:
        begun.set()
        go_on.wait(PATIENCE_S)

    holding = asyncio.create_task(store._write(wait))
    while not begun.is_set():
        await asyncio.to_thread(begun.wait, PATIENCE_S)
    yield
    await a_moment()  # what the block has started reaches the writer's queue
    go_on.set()
    await holding


async def a_moment() -> None:
    """Let every task that can run do so once."""
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    loop.call_soon(over.set_result, None)
    await over


async def submit(store: SqliteStore, *jobs: Job) -> list[Job]:
    return (await store.submit(jobs))[0]


def test_what_gathers_while_the_writer_is_busy_shares_one_commit(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "jobs.db") as store, asyncio.TaskGroup() as group:
            before = store.commits
            async with held_up(store):
                tasks = [group.create_task(submit(store, job(f"job-{number}"))) for number in range(200)]
            kept = await asyncio.gather(*tasks)
            assert store.commits == before + 2
            assert [each.seq for (each,) in kept] == list(range(1, 201))
            assert await finish_all(store) == 200

    asyncio.run(main())


def test_of_calls_that_share_a_commit_only_the_one_that_is_refused_fails(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "jobs.db") as store:
            await submit(store, named("taken"))
            before = store.commits
            async with held_up(store):
                calls = [
                    asyncio.create_task(submit(store, *jobs))
                    for jobs in ([job("a")], [job("b"), named("taken")], [named("c")], [job("d")])
                ]
            a, b, c, d = await asyncio.gather(*calls, return_exceptions=True)
            assert store.commits == before + 2
            assert isinstance(b, DuplicateJob)
            assert [await exists(store, job_id) for job_id in "abcd"] == [True, False, True, True]
            assert isinstance(a, list)
            assert isinstance(c, list)
            assert isinstance(d, list)
            assert [a[0].seq, c[0].seq, d[0].seq] == [2, 3, 4], "what was refused has used no number"

    asyncio.run(main())


async def exists(store: SqliteStore, job_id: str) -> bool:
    return await store.find(job_id) is not None


def test_of_calls_that_share_a_commit_only_the_one_that_breaks_fails(tmp_path: Path) -> None:
    def break_midway(turn: Turn) -> NoReturn:
        turn.sql.execute("delete_job", ("[1]",))
        raise RuntimeError("nobody foresaw this")

    async def main() -> None:
        async with opened(tmp_path / "jobs.db") as store:
            async with held_up(store):
                before = asyncio.create_task(submit(store, job("a")))
                broken = asyncio.create_task(store._write(break_midway))
                after = asyncio.create_task(submit(store, job("b")))
            with pytest.raises(RuntimeError, match="nobody foresaw this"):
                await broken
            assert [(await before)[0].seq, (await after)[0].seq] == [1, 2]
            assert [await exists(store, job_id) for job_id in "ab"] == [True, True]

    asyncio.run(main())


def test_when_the_commit_fails_all_fail_and_nothing_is_written(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "jobs.db", inline=True) as store:
            await submit(store, job("first"))
            writer: Any = store._writer
            committer = writer._committer
            working, committer._sql = committer._sql, FailsToCommit(committer._sql)
            given = [job("a"), named("b")]
            with pytest.raises(StoreUnavailable, match="disk reports an error"):
                await store.submit(given)
            committer._sql = working
            assert [(each.seq, each.terms is None) for each in given] == [(0, True), (0, False)]
            assert [await exists(store, job_id) for job_id in ("first", "a", "b")] == [True, False, False]
            await store.submit(given)
            assert [each.seq for each in given] == [2, 3]

    asyncio.run(main())


class FailsToCommit:
    """A connection whose disk breaks at the commit."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self._sql = sql

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sql, name)

    def execute(self, query: str, *values: Any) -> sqlite3.Cursor:
        if query == "COMMIT":
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR
            raise error
        return self._sql.execute(query, *values)


def test_tables_that_somebody_dropped_are_named_and_nothing_leaks_raw(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"

    async def main() -> None:
        async with opened(path, inline=True) as store:
            drop(path, "betimes_tally")
            with pytest.raises(ConfigurationError, match="betimes_tally"):
                await submit(store, job("a"))
            with pytest.raises(ConfigurationError, match="betimes_tally"):
                await store.counts()

    asyncio.run(main())


def drop(path: Path, table: str) -> None:
    sql = sqlite3.connect(path)
    sql.execute(f"DROP TABLE {table}")
    sql.close()


def test_p02_a_repeated_submission_among_others_finds_its_job(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "jobs.db") as store:
            lost = job("a")
            await submit(store, lost.copy())
            assert await finish_all(store) == 1
            async with held_up(store):
                calls = [asyncio.create_task(submit(store, each)) for each in (job("b"), lost, job("c"))]
            (b,), (a,), (c,) = await asyncio.gather(*calls)
            assert (a.seq, a.status) == (1, JobStatus.COMPLETED)
            assert [b.seq, c.seq] == [2, 3]

    asyncio.run(main())


def test_hints_of_a_batch_are_told_once_each(tmp_path: Path) -> None:
    async def main() -> None:
        heard: list[Hint] = []
        async with opened(tmp_path / "jobs.db") as store:
            stop = store.subscribe(heard.append)
            async with held_up(store):
                calls = [asyncio.create_task(submit(store, job(f"job-{number}"))) for number in range(20)]
            await asyncio.gather(*calls)
            assert heard == [Hint.WORK]
            async with held_up(store):
                ends = [
                    asyncio.create_task(store.cancel(call.result()[0], reason="requested")) for call in calls
                ]
            await asyncio.gather(*ends)
            assert heard == [Hint.WORK, Hint.ENDED]
            stop()
            await submit(store, job("unheard"))
            assert heard == [Hint.WORK, Hint.ENDED]

    asyncio.run(main())


def test_calls_on_their_way_are_carried_out_before_the_file_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "IDLE_CHECKPOINT_US", 3_600_000_000)  # closing waits for no timer
    path = tmp_path / "jobs.db"

    async def main() -> None:
        store = SqliteStore(path, clock=CLOCK)
        await store.open(strategy="priority")
        async with held_up(store):
            calls = [asyncio.create_task(submit(store, job(f"job-{number}"))) for number in range(20)]
            await a_moment()
            closing = asyncio.create_task(store.close())
        await asyncio.gather(*calls, closing)

    asyncio.run(main())
    assert look(path, "SELECT count(*) FROM betimes_job") == [(20,)]


def test_a_store_whose_opening_was_given_up_lets_go_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"

    async def main() -> None:
        before = set(threading.enumerate())
        store = SqliteStore(path, clock=CLOCK)
        opening = asyncio.create_task(store.open(strategy="priority"))
        await a_moment()
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        for thread in set(threading.enumerate()) - before:
            await asyncio.to_thread(thread.join, PATIENCE_S)
            assert not thread.is_alive()
        await store.open(strategy="priority")
        await store.close()

    asyncio.run(main())


def test_an_opening_that_fails_leaves_no_file_open(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    path.write_text("These are my notes.\n" * 100)

    async def main() -> None:
        for is_inline in (True, False):
            with pytest.raises(ConfigurationError):
                await SqliteStore(path, clock=CLOCK, inline=is_inline).open(strategy="priority")

    asyncio.run(main())
    assert [name for name in open_files() if name.startswith(str(path))] == []


def open_files() -> list[str]:
    """The files this process has open, where the system tells."""
    names = []
    for link in Path("/proc/self/fd").glob("*"):
        with suppress(OSError):
            names.append(str(link.readlink()))
    return names


def test_p10_the_numbers_kept_are_those_of_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    kept = "SELECT queue, status, jobs FROM betimes_tally WHERE jobs <> 0 ORDER BY queue, status"
    counted = "SELECT queue, status, count(*) FROM betimes_job GROUP BY queue, status"

    async def main() -> None:
        async with opened(path, inline=True) as store:
            other = replace(SPEC, queue="other")
            first = [job(f"job-{number}", spec=(SPEC, other)[number % 2]) for number in range(9)]
            await store.submit(first)
            needy = Terms(depends_on=((first[0], Need.COMPLETED), (first[1], Need.ENDED)))
            await store.submit([job("blocked", terms=needy), job("later", terms=needy)])
            await store.register(WorkerInfo(id="w", lease_us=1))
            turn = await store.exchange([], ClaimRequest(worker="w", limit=6, lanes=LANES))
            assert look(path, kept) == look(path, counted)
            events: list[Event] = [
                Succeeded(CLOCK.now(), b"null"),
                Errored(CLOCK.now(), BOOM, retry_in_us=10_000_000),
                Errored(CLOCK.now(), BOOM, retry_in_us=0),
                Errored(CLOCK.now(), BOOM),
            ]
            reports = [
                Report(each, each.fence, event) for each, event in zip(turn.claimed, events, strict=False)
            ]
            await store.exchange(reports, None)
            assert look(path, kept) == look(path, counted)
            await store.retry(first[3], by="me")
            await store.cancel(first[8], reason="requested")
            await store.retire("w")
            assert look(path, kept) == look(path, counted)
            assert await finish_all(store, "w2") > 0
            assert look(path, kept) == look(path, counted)

    asyncio.run(main())


def test_p15_a_job_behind_its_dependent_in_the_batch_releases_it_whatever_moves_in_between(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with opened(tmp_path / "jobs.db", inline=True) as store:
            failed = job("failed")
            await store.submit([failed])
            await store.cancel(failed, reason="requested")
            parent = job("parent")
            child = job("child", terms=Terms(depends_on=((parent, Need.COMPLETED),)))
            lost = job("lost", terms=Terms(depends_on=((failed, Need.COMPLETED), (parent, Need.ENDED))))
            await store.submit([child, lost, parent])
            assert [each.status for each in (child, lost, parent)] == [
                JobStatus.BLOCKED,
                JobStatus.CANCELLED,
                JobStatus.READY,
            ]
            assert await finish_all(store) == 2

    asyncio.run(main())


def test_a_job_that_waits_for_many_is_not_rewritten_for_each(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "jobs.db", inline=True) as store:
            parents = [job(f"parent-{number}") for number in range(300)]
            needs = tuple((parent, Need.COMPLETED) for parent in parents)
            child = job("child", terms=Terms(depends_on=needs))
            await store.submit([*parents, child])
            written: list[str] = []
            store._writer._sql.set_trace_callback(written.append)  # type: ignore[union-attr]
            await store.register(WorkerInfo(id="w", lease_us=30_000_000))
            request = ClaimRequest(worker="w", limit=100, lanes=LANES)
            turn = await store.exchange([], request)
            unmet = []
            while turn.claimed:
                reports = [Report(each, each.fence, Succeeded(CLOCK.now(), b"null")) for each in turn.claimed]
                turn = await store.exchange(reports, request)
                found = await store.get(child)
                assert found is not None
                unmet.append(found.unmet)
            assert unmet == [200, 100, 0, 0]
            assert sum("UPDATE betimes_job" in text and "changed.status" in text for text in written) == 1

    asyncio.run(main())


BOOM = ErrorInfo(type="ValueError", message="boom")
