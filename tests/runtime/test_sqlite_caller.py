"""Submitting on a caller's own connection: which connections are taken, and how they are left."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.sqlite_scene import CLOCK, job, look, named, opened

from betimes.core.job import Job, JobSpec, Need, Tenant, Terms
from betimes.core.limits import GateKind, GateTerms
from betimes.core.shares import COST, UNTAGGED
from betimes.errors import BetimesError, ConfigurationError, DuplicateJob, SchedulerClosed, StoreUnavailable
from betimes.ports import JobFilter
from betimes.stores.relational import callers
from betimes.stores.sqlite import SqliteStore, opening
from betimes.testing.store_contract.stage import values

BEGUN = "BEGIN IMMEDIATE"
JOB_IDS = "SELECT id FROM betimes_job ORDER BY seq"


@asynccontextmanager
async def shared(path: Path, **options: Any) -> AsyncIterator[SqliteStore]:
    """A store on a file with a rollback journal, and a table of the application's."""
    async with opened(path, **{"journal": "delete", "inline": True, **options}) as store:
        with closing(sqlite3.connect(path)) as sql:
            sql.execute("CREATE TABLE IF NOT EXISTS customer (name TEXT)")
            sql.commit()
        yield store


def play(path: Path, scene: Callable[[SqliteStore], Any], **options: Any) -> None:
    """Play a scene with such a store."""

    async def main() -> None:
        async with shared(path, **options) as store:
            await scene(store)

    asyncio.run(main())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "app.db"


def connected(path: Path, *commands: str, **options: Any) -> closing[sqlite3.Connection]:
    conn = sqlite3.connect(path, **options)
    for command in commands:
        conn.execute(command)
    return closing(conn)


# ------------------------------------------------------------------------------------------ transactions


@pytest.mark.parametrize("level", ["", "DEFERRED", "IMMEDIATE", "EXCLUSIVE"])
def test_p04_where_python_begins_transactions_one_is_begun_and_left_to_its_owner(
    path: Path, level: Any
) -> None:
    async def scene(store: SqliteStore) -> None:
        with connected(path, isolation_level=level) as conn:
            await store.submit_within(conn, [job("a")])
            assert conn.in_transaction
            conn.execute("INSERT INTO customer VALUES ('Ada')")
            conn.rollback()
            assert look(path, JOB_IDS) == look(path, "SELECT name FROM customer") == []
            conn.execute("INSERT INTO customer VALUES ('Bob')")
            await store.submit_within(conn, [job("b")])
            conn.commit()
        assert (look(path, JOB_IDS), look(path, "SELECT name FROM customer")) == ([("b",)], [("Bob",)])

    play(path, scene)


def test_a_connection_that_would_commit_at_once_is_refused_with_the_remedy(path: Path) -> None:
    async def scene(store: SqliteStore) -> None:
        with connected(path, isolation_level=None) as conn:
            with pytest.raises(ConfigurationError, match="BEGIN IMMEDIATE"):
                await store.submit_within(conn, [job("a")])
            assert not conn.in_transaction
            for number, begun in enumerate(("BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE", "SAVEPOINT mine")):
                conn.execute(begun)
                await store.submit_within(conn, [job(f"b{number}")])
                assert conn.in_transaction
                conn.execute("COMMIT")
        assert look(path, JOB_IDS) == [("b0",), ("b1",), ("b2",), ("b3",)]

    play(path, scene)


class Modern(sqlite3.Connection):
    """Answers as a connection of Python 3.12 and later does, whose `autocommit` says who begins."""

    autocommit: Any = -1


def test_python_3_12_s_attribute_says_who_begins_transactions(path: Path) -> None:
    async def scene(store: SqliteStore) -> None:
        with connected(path, factory=Modern) as conn:
            assert isinstance(conn, Modern)
            conn.autocommit = True
            with pytest.raises(ConfigurationError, match="BEGIN IMMEDIATE"):
                await store.submit_within(conn, [job("a")])
            conn.autocommit = -1
            await store.submit_within(conn, [job("b")])
            conn.commit()
        with connected(path, "BEGIN", isolation_level=None, factory=Modern) as conn:
            assert isinstance(conn, Modern)
            conn.autocommit = False  # then a transaction is always open
            await store.submit_within(conn, [job("c")])
            conn.commit()
        assert look(path, JOB_IDS) == [("b",), ("c",)]

    play(path, scene)


def test_p04_a_savepoint_that_is_rolled_back_takes_its_jobs_with_it(path: Path) -> None:
    async def scene(store: SqliteStore) -> None:
        with connected(path, BEGUN, isolation_level=None) as conn:
            await store.submit_within(conn, [job("a")])
            conn.execute("SAVEPOINT mine")
            conn.execute("INSERT INTO customer VALUES ('Ada')")
            (lost,) = (await store.submit_within(conn, [named("b")])).jobs
            conn.execute("ROLLBACK TO mine")
            (kept,) = (await store.submit_within(conn, [named("b")])).jobs
            conn.execute("RELEASE mine")
            conn.execute("COMMIT")
        assert lost.seq == kept.seq == 2
        assert (look(path, JOB_IDS), look(path, "SELECT name FROM customer")) == ([("a",), ("b",)], [])

    play(path, scene)


# ------------------------------------------------------------------------------------- all or nothing


class BrokenOff(Exception):
    """Raised half-way through."""


@pytest.mark.parametrize("error", [BrokenOff, KeyboardInterrupt, sqlite3.OperationalError])
@pytest.mark.parametrize("level", ["", None])
def test_p04_a_step_that_fails_half_way_leaves_the_transaction_usable(
    path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException], level: Any
) -> None:
    async def scene(store: SqliteStore) -> None:
        begun = [] if level is not None else [BEGUN]
        with connected(path, *begun, isolation_level=level) as conn:
            with monkeypatch.context() as patch:
                patch.setattr(callers, "follow", fail(error))
                with pytest.raises((error, BetimesError)):
                    await store.submit_within(conn, [job("a"), named("b")])
            assert conn.in_transaction is (level is None)
            conn.execute("INSERT INTO customer VALUES ('Ada')")
            await store.submit_within(conn, [job("c")])
            conn.execute("COMMIT")
        assert (look(path, JOB_IDS), look(path, "SELECT name FROM customer")) == ([("c",)], [("Ada",)])

    play(path, scene)


def fail(error: type[BaseException]) -> Callable[..., None]:
    def follow(_: object) -> None:
        raise error("half-way")

    return follow


def test_p04_a_full_database_refuses_the_jobs_and_keeps_the_transaction(path: Path) -> None:
    async def scene(store: SqliteStore) -> None:
        with connected(path, BEGUN, isolation_level=None) as conn:
            conn.execute("INSERT INTO customer VALUES ('Ada')")
            (pages,) = conn.execute("PRAGMA page_count").fetchone()
            conn.execute(f"PRAGMA max_page_count = {pages + 10}")
            with pytest.raises(StoreUnavailable, match="full"):
                await store.submit_within(
                    conn, [job(f"big-{n}", payload=b'"%s"' % (b"x" * 9000)) for n in range(99)]
                )
            assert conn.in_transaction
            conn.execute("COMMIT")
        assert (look(path, JOB_IDS), look(path, "SELECT name FROM customer")) == ([], [("Ada",)])

    play(path, scene)


# ----------------------------------------------------------------------------- connections of all kinds


def by_name(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


@contextmanager
def converting(*types: str) -> Iterator[None]:
    """Converters for types, such as those of our own tables."""
    before = dict(sqlite3.converters)
    for name in types:
        sqlite3.register_converter(name, lambda value: ("converted", value))
    try:
        yield
    finally:
        sqlite3.converters.clear()
        sqlite3.converters.update(before)


TASTES: dict[str, dict[str, Any]] = {
    "rows as mappings": {"row_factory": sqlite3.Row},
    "rows as dictionaries": {"row_factory": by_name},
    "rows that cannot be": {"row_factory": lambda *_: 1 / 0},
    "text as bytes": {"text_factory": bytes},
    "text that cannot be": {"text_factory": lambda _: 1 / 0},
}


async def everything(store: SqliteStore, conn: sqlite3.Connection) -> None:
    """Submit what makes the store read as much as it ever does."""
    key = Terms(key="k", key_until=2**60, key_digest=b"1")
    gated, tenanted = job("gated"), job("tenanted")
    gated.gates = (LIMIT.rule,)
    tenanted.tenant, tenanted.sort_key = Tenant("a", COST), UNTAGGED
    await store.submit_within(conn, [job("a"), gated, tenanted], terms=[LIMIT])
    await store.submit_within(conn, [named("b"), job("c", terms=key)])
    await store.submit_within(conn, [job("d", terms=key)])
    await store.submit_within(conn, [job("b", terms=Terms(named=True, replace=True, token="t"))])
    again = job("b", terms=Terms(named=True, replace=True, token="t"))
    ((found,), child) = (await store.submit_within(conn, [again])).jobs, job("child")
    child.terms = Terms(depends_on=((found, NEED), ("gated", NEED)))
    await store.submit_within(conn, [child])
    with pytest.raises(DuplicateJob):
        await store.submit_within(conn, [named("b")])


NEED = Need.COMPLETED
LIMIT = GateTerms(kind=GateKind.LIMIT, name="l", max_running=1)
EVERYTHING = [("a",), ("gated",), ("tenanted",), ("c",), ("b",), ("child",)]


@pytest.mark.parametrize("taste", TASTES, ids=str)
def test_a_connection_is_used_whatever_its_owner_s_taste_and_left_so(path: Path, taste: str) -> None:
    async def scene(store: SqliteStore) -> None:
        with connected(path) as conn:
            for name, value in TASTES[taste].items():
                setattr(conn, name, value)
            await everything(store, conn)
            assert {name: getattr(conn, name) for name in TASTES[taste]} == TASTES[taste]
            conn.commit()
        assert look(path, JOB_IDS) == EVERYTHING

    play(path, scene)


@pytest.mark.parametrize(
    "detect", [0, sqlite3.PARSE_DECLTYPES, sqlite3.PARSE_COLNAMES | sqlite3.PARSE_DECLTYPES]
)
def test_converters_even_of_our_own_types_do_no_harm(path: Path, detect: int) -> None:
    async def scene(store: SqliteStore) -> None:
        with (
            converting("integer", "TEXT", "Blob", "any", "date"),
            connected(path, detect_types=detect) as conn,
        ):
            await everything(store, conn)
            conn.commit()
        assert look(path, JOB_IDS) == EVERYTHING

    play(path, scene)


def test_a_subclass_with_a_mind_of_its_own_is_a_connection(path: Path) -> None:
    class Careful(sqlite3.Connection):
        def execute(self, *_: Any) -> Any:
            raise AssertionError("its owner's statements only")

        cursor = execute  # type: ignore[assignment]

    async def scene(store: SqliteStore) -> None:
        with connected(path, factory=Careful) as conn:
            await store.submit_within(conn, [job("a")])
            conn.commit()
        assert look(path, JOB_IDS) == [("a",)]

    play(path, scene)


# ------------------------------------------------------------------------------------ wrong connections


def test_a_connection_to_another_file_is_refused_and_both_are_named(path: Path, tmp_path: Path) -> None:
    async def scene(store: SqliteStore) -> None:
        for where, name in (
            (str(tmp_path / "other.db"), "other.db"),
            (":memory:", "no file"),
            ("", "no file"),
        ):
            with closing(sqlite3.connect(where)) as conn:
                with pytest.raises(ConfigurationError, match=rf"{name}.*app\.db"):
                    await store.submit_within(conn, [job("a")])
                assert not conn.in_transaction

    play(path, scene)


def test_a_file_that_is_only_attached_is_refused(path: Path, tmp_path: Path) -> None:
    async def scene(store: SqliteStore) -> None:
        with closing(sqlite3.connect(tmp_path / "other.db")) as conn:
            conn.execute("ATTACH ? AS jobs", (str(path),))
            with pytest.raises(ConfigurationError, match="cannot span both"):
                await store.submit_within(conn, [job("a")])

    play(path, scene)


def test_one_file_by_two_names_is_one_file(path: Path, tmp_path: Path) -> None:
    async def scene(store: SqliteStore) -> None:
        (tmp_path / "link.db").symlink_to(path)
        with connected(tmp_path / "link.db") as conn:
            await store.submit_within(conn, [job("a")])
            conn.commit()
        assert look(path, JOB_IDS) == [("a",)]

    play(path, scene)


def test_a_connection_of_another_thread_or_a_closed_one_is_refused(path: Path) -> None:
    async def scene(store: SqliteStore) -> None:
        made: list[sqlite3.Connection] = []
        thread = threading.Thread(target=lambda: made.append(sqlite3.connect(path)))
        thread.start()
        thread.join(30)
        with pytest.raises(ConfigurationError, match=r"conn cannot be used here.*thread"):
            await store.submit_within(made[0], [job("a")])
        conn = sqlite3.connect(path)
        conn.close()
        with pytest.raises(ConfigurationError, match=r"conn cannot be used here.*closed"):
            await store.submit_within(conn, [job("a")])

    play(path, scene)


def test_a_read_only_connection_is_refused(path: Path) -> None:
    async def scene(store: SqliteStore) -> None:
        with (
            connected(path, "PRAGMA query_only = 1") as conn,
            pytest.raises(StoreUnavailable, match="read-only"),
        ):
            await store.submit_within(conn, [job("a")])

    play(path, scene)


def test_a_store_that_is_not_open_here_is_refused(path: Path) -> None:
    async def main() -> None:
        async with shared(path) as store:
            pass
        with connected(path) as conn, pytest.raises(SchedulerClosed, match="not open"):
            await store.submit_within(conn, [job("a")])

    asyncio.run(main())


def test_a_file_that_was_put_in_the_place_of_ours_is_refused(path: Path, tmp_path: Path) -> None:
    async def scene(store: SqliteStore) -> None:
        with connected(path) as before:
            with connected(tmp_path / "other.db", "CREATE TABLE other (name TEXT)"):
                (tmp_path / "other.db").replace(path)
            with connected(path) as after:
                for conn in (before, after):
                    with pytest.raises(StoreUnavailable) as caught:
                        await store.submit_within(conn, [job("a")])
                    assert caught.value.why == "replaced"

    play(path, scene)


# ------------------------------------------------------------------------------------------------ locks


def test_whoever_is_locked_out_hears_what_to_do(path: Path) -> None:
    async def scene(store: SqliteStore) -> None:
        with connected(path, BEGUN, isolation_level=None), connected(path, timeout=0) as conn:
            with pytest.raises(StoreUnavailable, match="roll back and run the transaction again") as caught:
                await store.submit_within(conn, [job("a")])
            assert caught.value.why == "locked"
            assert not conn.in_transaction

    play(path, scene)


def test_a_transaction_that_read_something_older_hears_what_to_do(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "has_wal_reset_fault", lambda: False)

    async def scene(store: SqliteStore) -> None:
        with connected(path, "BEGIN", isolation_level=None) as conn:
            assert conn.execute("SELECT count(*) FROM customer").fetchone() == (0,)
            await store.submit([job("somebody-else-s")])
            with pytest.raises(StoreUnavailable, match="has changed since your transaction read it"):
                await store.submit_within(conn, [job("a")])
            conn.execute("ROLLBACK")
            conn.execute(BEGUN)
            await store.submit_within(conn, [job("a")])
            conn.execute("COMMIT")
        assert look(path, JOB_IDS) == [("somebody-else-s",), ("a",)]

    play(path, scene, journal="wal")


def test_a_transaction_that_was_only_begun_waits_for_the_lock_before_it_reads(path: Path) -> None:
    async def scene(store: SqliteStore) -> None:
        is_held = threading.Event()

        def hold() -> None:
            with connected(path, BEGUN, isolation_level=None) as other:
                is_held.set()
                threading.Event().wait(0.3)  # the other waits for it, in SQLite's own way
                other.execute("INSERT INTO customer VALUES ('Ada')")
                other.execute("COMMIT")

        holder = threading.Thread(target=hold)
        holder.start()
        assert is_held.wait(30)
        with connected(path, "BEGIN DEFERRED", isolation_level=None, timeout=60) as conn:
            await store.submit_within(conn, [job("a")])
            conn.execute("COMMIT")
        holder.join(30)
        assert (look(path, JOB_IDS), look(path, "SELECT name FROM customer")) == ([("a",)], [("Ada",)])

    play(path, scene)


# ------------------------------------------------------------------------------------------- WAL mode


def test_a_file_in_wal_mode_is_refused_where_others_commits_can_damage_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "has_wal_reset_fault", lambda: True)

    async def main() -> None:
        async with opened(path, inline=True) as store:
            with connected(path, BEGUN, isolation_level=None) as conn:
                with pytest.raises(ConfigurationError, match=r"journal=delete.*PRAGMA journal_mode = DELETE"):
                    await store.submit_within(conn, [job("a")])
                assert conn.in_transaction
        assert look(path, JOB_IDS) == []

    asyncio.run(main())


def test_a_file_in_wal_mode_with_a_transaction_of_others_is_marked_for_older_versions(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(*, has_fault: bool) -> None:
        monkeypatch.setattr(opening, "has_wal_reset_fault", lambda: has_fault)
        async with opened(path, inline=True) as store:
            for number in range(2):
                with connected(path) as conn:
                    await store.submit_within(conn, [job(f"job-{number}")])
                    conn.commit()

    asyncio.run(main(has_fault=False))
    with pytest.raises(ConfigurationError, match="is shared with other code and in WAL mode"):
        asyncio.run(main(has_fault=True))
    assert look(path, JOB_IDS) == [("job-0",), ("job-1",)]


# ------------------------------------------------------------------------------- the same as by `submit`

NAMES = st.sampled_from(["x", "y", "z"])


@st.composite
def batches(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Jobs as values, so that the same ones can be made twice."""
    return draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    "name": st.none() | NAMES,
                    "replace": st.booleans(),
                    "key": st.none() | st.sampled_from(["k", "l"]),
                    "digest": st.sampled_from([b"1", b"2"]),
                    "needs": st.lists(NAMES, max_size=2),
                    "delay_s": st.sampled_from([0, 0, 5]),
                    "is_limited": st.booleans(),
                    "tenant": st.none() | st.sampled_from(["a", "b"]),
                    "priority": st.integers(0, 2),
                }
            ),
            min_size=1,
            max_size=4,
        )
    )


def made(batch: list[dict[str, Any]], first: int) -> list[Job]:
    jobs = []
    for number, each in enumerate(batch, first):
        name, key = each["name"], each["key"]
        one = Job(
            name or f"generated-{number}",
            JobSpec(task="work", priority=each["priority"]),
            b"{}",
            CLOCK.now(),
            CLOCK.now() + each["delay_s"] * 1_000_000,
            sort_key=-each["priority"] if each["tenant"] is None else UNTAGGED,
            terms=Terms(
                named=name is not None,
                token=None if name is None else f"token-{number}",
                replace=each["replace"] and name is not None,
                key=key,
                key_until=2**60,
                key_digest=each["digest"],
                depends_on=tuple((what, NEED) for what in each["needs"]),
            ),
        )
        one.gates = (LIMIT.rule,) if each["is_limited"] else ()
        one.tenant = None if each["tenant"] is None else Tenant(each["tenant"], COST)
        jobs.append(one)
    return jobs


async def submitted(store: SqliteStore, conn: sqlite3.Connection | None, jobs: list[Job]) -> object:
    """Submit a batch one way or the other; return what came of it."""
    try:
        if conn is None:
            kept = (await store.submit(jobs))[0]
        else:
            kept = (await store.submit_within(conn, jobs)).jobs
            conn.commit()
    except BetimesError as error:
        return type(error), str(error)
    return [(one.seq, one.id, one.status, one.sort_key, one.unmet, one.depends_on, one.key) for one in kept]


async def outcome(folder: Path, course: list[list[dict[str, Any]]], *, within: bool) -> object:
    path = folder / f"{within}.db"
    async with opened(path, journal="delete", inline=True) as store:
        await store.declare_gates([LIMIT])
        answers = []
        with connected(path) as conn:
            for place, batch in enumerate(course):
                answers.append(await submitted(store, conn if within else None, made(batch, 10 * place)))
        jobs = [values(each) for each in await store.jobs(JobFilter(limit=1000))]
        counts = await store.counts()
    keys = look(path, "SELECT key, seq, digest, until FROM betimes_key ORDER BY key")
    lines = look(
        path, "SELECT queue, lane, gates, head_key, head_seq, waits_at FROM betimes_line ORDER BY id"
    )
    tenants = look(path, "SELECT name, finish FROM betimes_tenant ORDER BY name")
    return answers, jobs, counts, keys, lines, tenants


@settings(max_examples=40, deadline=None)
@given(course=st.lists(batches(), min_size=1, max_size=5))
def test_p04_within_a_transaction_a_submit_means_what_it_means_anywhere(
    tmp_path_factory: pytest.TempPathFactory, course: list[list[dict[str, Any]]]
) -> None:
    folder = tmp_path_factory.mktemp("alike")
    alone = asyncio.run(outcome(folder, course, within=False))
    assert asyncio.run(outcome(folder, course, within=True)) == alone
