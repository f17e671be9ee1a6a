"""The SQLite store's schedules: few statements, each by its index, and files of the first schema."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.runtime.sqlite_scene import CLOCK, LANES, SPEC, finish_all, job, look, opened

from betimes.core.events import Succeeded
from betimes.core.job import FireKey, Job, JobSpec, JobStatus
from betimes.core.schedule import Advance, Fire, Fired, FireOutcome, Overlap, ScheduleRecord
from betimes.errors import ConfigurationError, StoreUnavailable
from betimes.ports import ClaimRequest, Report, ScheduleFilter, WorkerInfo
from betimes.stores.relational.looks import Look
from betimes.stores.relational.rows import Specs
from betimes.stores.sqlite import SqliteStore
from betimes.stores.sqlite.opening import SCHEMA_VERSION, _commands
from betimes.stores.sqlite.statements import SqliteSql, migrations

SECOND = 1_000_000
MINUTE = 60 * SECOND
NOW = CLOCK.now()


def step(record: ScheduleRecord, **fields: Any) -> Advance:
    """The step that makes a job of the next instant."""
    at = record.next_fire_at
    assert at is not None
    made = job(f"{record.id}@{at}")
    made.fire = FireKey(record.id, at)
    return Advance(**{"record": record, "due": (made,), "next_fire_at": at + MINUTE, **fields})


async def saved(store: SqliteStore, *ids: str, **fields: Any) -> list[ScheduleRecord]:
    """Schedules that are due."""
    records = [ScheduleRecord(id=name, spec=SPEC, next_fire_at=NOW, **fields) for name in ids]
    for record in records:
        assert await store.save_schedule(record, expected_version=None)
    return records


# the first schema


def first_schema(path: Path, *commands: str) -> None:
    """A file as the first version made it: an ended job, a waiting one, and a schedule with a past."""
    spec = "'work', 'default', 'loop', 1, NULL, '{}'"
    ended = "1, 1, 0, 'completed', 1, 1, 2, 3, NULL, 0, NULL, 'null', NULL, NULL"
    waiting = "5, 5, 0, 'ready', 0, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0"
    rows = [
        "INSERT INTO betimes_meta VALUES ('strategy', 'priority')",
        "UPDATE betimes_meta SET value = 2 WHERE name = 'last_seq'",
        f"INSERT INTO betimes_finished VALUES (1, 'done', {spec}, {ended})",
        f"INSERT INTO betimes_job VALUES (2, 'waits', {spec}, {waiting})",
        "INSERT INTO betimes_tally VALUES ('default', 'ready', 1)",
        f"INSERT INTO betimes_schedule VALUES ('nightly', {spec}, '{{\"a\":1}}', {NOW}, 4, 0, 11, 2, 1)",
        "INSERT INTO betimes_fire VALUES ('nightly', 9, 1), ('nightly', 10, NULL), ('nightly', 11, 2)",
    ]
    with closing(sqlite3.connect(path)) as sql:
        for command in (*_commands(migrations()[0][1]), *rows, *commands):
            sql.execute(command)
        sql.commit()


def test_p28_a_file_of_the_first_schema_is_carried_over_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    first_schema(path)

    async def main() -> None:
        async with opened(path) as store:
            done, waits = await store.find("done"), await store.find("waits")
            assert done is not None
            assert waits is not None
            assert (done.status, waits.status) == (JobStatus.COMPLETED, JobStatus.READY)
            (record,) = await store.schedules(ScheduleFilter())
            assert record == ScheduleRecord(
                id="nightly",
                spec=JobSpec(task="work"),
                definition='{"a":1}',
                next_fire_at=NOW,
                version=4,
                last_fire_at=11,
                fired=2,
                skipped=1,
            )
            fired = [Fire(at=at, first_at=at, decided_at=at, outcome=FireOutcome.FIRED) for at in (11, 9)]
            assert await store.fires("nightly") == [
                replace(fired[0], job_id="waits"),
                Fire(at=10, first_at=10, decided_at=10, outcome=FireOutcome.MISSED),
                replace(fired[1], job_id="done"),
            ]
            assert (await store.fire([step(record)]))[0] != [None]
            assert await finish_all(store) == 2

    asyncio.run(main())
    assert look(path, "SELECT value FROM betimes_meta WHERE name = 'schema_version'") == [(SCHEMA_VERSION,)]
    assert look(path, "PRAGMA integrity_check") == [("ok",)]
    asyncio.run(main_again(path))


async def main_again(path: Path) -> None:
    """What was carried over once is left alone the next time."""
    async with opened(path) as store:
        assert len(await store.fires("nightly")) == 4


def test_p28_the_application_s_tables_stay_as_they_are_when_the_schema_grows(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    first_schema(path, "CREATE TABLE customer (name TEXT)", "CREATE VIEW broken AS SELECT name FROM nowhere")
    asyncio.run(main_of_application(path))
    assert look(path, "PRAGMA journal_mode") == [("delete",)]
    assert look(path, "SELECT count(*) FROM customer") == [(0,)]


async def main_of_application(path: Path) -> None:
    async with opened(path) as store:
        assert len(await store.fires("nightly")) == 3


def test_a_file_that_cannot_be_carried_over_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    first_schema(path, "DROP TABLE betimes_fire")

    async def main() -> None:
        async with opened(path):
            pass

    with pytest.raises(ConfigurationError, match="betimes_fire"):
        asyncio.run(main())
    assert look(path, "SELECT value FROM betimes_meta WHERE name = 'schema_version'") == [(1,)]
    columns = [name for (name,) in look(path, "SELECT name FROM pragma_table_info('betimes_schedule')")]
    assert "held_at" not in columns


def test_of_two_that_open_a_file_of_the_first_schema_one_carries_it_over(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    first_schema(path)

    async def main() -> None:
        stores = [SqliteStore(path, clock=CLOCK, max_stall_us=0) for _ in range(2)]
        await asyncio.gather(*(store.open(strategy="priority") for store in stores))
        for store in stores:
            assert len(await store.fires("nightly")) == 3
            await store.close()

    asyncio.run(main())


# few statements


def test_five_hundred_steps_take_one_commit_and_a_few_dozen_statements(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "jobs.db", inline=True) as store:
            records = await saved(store, *(f"schedule-{number:03}" for number in range(500)))
            traced: list[str] = []
            store._writer._sql.set_trace_callback(traced.append)  # type: ignore[union-attr]
            before = store.commits
            for overlap in (Overlap.SKIP, Overlap.QUEUE_ONE, Overlap.REPLACE):
                traced.clear()
                fired, _ = await store.fire([step(record, overlap=overlap) for record in records])
                assert len(traced) < 80, traced
                records = [one.record for one in fired if one is not None]
                assert len(records) == 500
            assert store.commits == before + 3
            jobs = await store.counts()
            assert jobs == {"default": {JobStatus.READY: 500}}, "fired, skipped, replaced"

    asyncio.run(main())


def test_a_job_whose_id_is_known_is_the_one_that_was_submitted_before(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "jobs.db", inline=True) as store:
            first, second = await saved(store, "a", "b")
            before = job(f"a@{NOW}")
            await store.submit([before])
            (one, two), _ = await store.fire([step(first), step(second)])
            assert one is not None
            assert two is not None
            assert [each.seq for each in (*one.jobs, *two.jobs)] == [1, 2]
            assert (one.record.jobs, two.record.jobs) == ((1,), (2,))

    asyncio.run(main())


@pytest.fixture
def full(tmp_path: Path) -> Path:
    """A file with 100,000 schedules, of which every tenth is paused."""
    path = tmp_path / "jobs.db"

    async def make() -> None:
        async with opened(path):
            pass

    asyncio.run(make())
    with closing(sqlite3.connect(path)) as sql:
        counted = "WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 99999)"
        sql.execute(
            f"{counted} INSERT INTO betimes_schedule (id, task, queue, lane, priority, payload, definition, "
            "next_fire_at, version, paused, fired, skipped) "
            "SELECT printf('s%06d', n), 't', 'q', 'loop', 1, '{}', '{}', n / 4, 1, n % 10 = 0, 0, 0 FROM n"
        )
        sql.execute(
            f"{counted} INSERT INTO betimes_fire "
            "SELECT printf('s%06d', n % 10), n, 0, n, 1, 1, 'fired', n, 'j', NULL FROM n"
        )
        sql.commit()
    return path


class Steps:
    """Counts the steps that SQLite's machine takes, in hundreds: work, whatever the time it takes."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self.hundreds = 0
        sql.set_progress_handler(self._count, 100)

    def _count(self) -> int:
        self.hundreds += 1
        return 0

    def taken(self) -> int:
        """The steps since last asked."""
        taken, self.hundreds = self.hundreds * 100, 0
        return taken


def test_looks_at_100_000_schedules_read_no_more_than_they_answer(full: Path) -> None:
    with closing(sqlite3.connect(full, isolation_level=None)) as sql:
        steps, look_at = Steps(sql), Look(SqliteSql(sql), Specs())
        page = look_at.schedules(ScheduleFilter(due_by=50_000, limit=100))
        assert [one.id for one in page[:3]] == ["s000001", "s000002", "s000003"]
        assert steps.taken() < 10_000
        late = replace(page[0], next_fire_at=20_000, id="s080001")
        (second,) = look_at.schedules(ScheduleFilter(due_by=50_000, after=late, limit=1))
        assert second.id == "s080002"
        assert look_at.schedules(ScheduleFilter(due_by=-1)) == []
        assert look_at.next_fire() == 0
        assert look_at.schedule("s099999") is not None
        behind = look_at.schedules(ScheduleFilter(after=late, limit=10))
        assert [one.id for one in behind][::9] == ["s080002", "s080011"]
        fires = look_at.fires("s000003", 50_000, 10)
        assert [fire.at for fire in fires][::9] == [49_993, 49_903]
        assert steps.taken() < 5_000


# one transaction


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


def test_p17_a_fire_that_is_not_committed_has_not_been(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "jobs.db", inline=True) as store:
            (record,) = await saved(store, "nightly")
            asked = step(record)
            await without_commit(store, store.fire([asked]))
            assert asked.due[0].seq == 0
            assert await store.schedule("nightly") == record
            assert await store.fires("nightly") == []
            (fired,), _ = await store.fire([asked])
            assert fired is not None
            assert (asked.due[0].seq, fired.jobs) == (1, asked.due)

    asyncio.run(main())


async def without_commit(store: SqliteStore, call: Any) -> None:
    """Make a call whose transaction cannot be committed."""
    writer: Any = store._writer
    committer = writer._committer
    working, committer._sql = committer._sql, FailsToCommit(committer._sql)
    with pytest.raises(StoreUnavailable, match="disk reports an error"):
        await call
    committer._sql = working


def test_p17_the_end_of_a_run_and_what_it_does_to_its_schedule_are_one_commit(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "jobs.db", inline=True) as store:
            (record,) = await saved(store, "nightly", delay_us=5 * SECOND)
            (fired,), _ = await store.fire([step(record, next_fire_at=None)])
            assert isinstance(fired, Fired)
            await store.register(WorkerInfo(id="w", lease_us=30 * SECOND))
            taken = await claimed(store)
            report = Report(taken, taken.fence, Succeeded(NOW, b"1"))
            await without_commit(store, store.exchange([report], None))
            assert await store.schedule("nightly") == fired.record
            running = await store.get(taken)
            assert running is not None
            assert running.status is JobStatus.RUNNING
            before = store.commits
            await store.exchange([report], None)
            assert store.commits == before + 1
            assert await store.next_fire() == NOW + 5 * SECOND

    asyncio.run(main())


async def claimed(store: SqliteStore) -> Job:
    """The one job that can be claimed."""
    (taken,) = (await store.exchange([], ClaimRequest(worker="w", limit=9, lanes=LANES))).claimed
    return taken
