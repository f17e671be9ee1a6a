"""The SQLite store's statements: each says what it is for, is used, and goes by its index."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.runtime.sqlite_scene import CLOCK, job, opened

from betimes.core.events import Errored, GivenBack
from betimes.core.job import AttemptOutcome, CancelReason, ErrorInfo, FireKey, Job, JobSpec, JobStatus, Terms
from betimes.ports import ClaimRequest, JobFilter, Report, WorkerInfo
from betimes.stores.relational.rows import SPECS_KEPT, Specs, array
from betimes.stores.relational.statements import ManyRows, Records
from betimes.stores.sqlite.statements import SqliteSql, migrations, statement

PACKAGE = Path(__file__).parents[2] / "src" / "betimes" / "stores"
AMONG_OTHERS = {
    "add_stirred", "take_stirred", "untagged",
    "count_off", "still_awaited", "note_unsettled", "unsettled", "forget_unsettled",
    "live_if_free", "states_if_free", "ended_as_they_are", "hold_jobs",
}  # fmt: skip
"""Statements of the shared code that are carried out only where others can write at the same time."""
FILES = sorted((PACKAGE / "sql" / "sqlite").glob("*.sql"))


@pytest.fixture
def sql(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A connection of our own to a store's file."""

    async def make() -> None:
        async with opened(tmp_path / "jobs.db"):
            pass

    asyncio.run(make())
    with closing(sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)) as connection:
        yield connection


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_statement_s_file_begins_with_its_purpose_and_holds_one_statement(path: Path) -> None:
    text = path.read_text("utf-8")
    assert re.match(r"-- [A-Z].*\.\n", text), "a sentence"
    assert text.endswith(";\n")
    assert sqlite3.complete_statement(text)
    assert ";" not in statement(path.stem)


def test_every_statement_is_used_and_none_is_missing() -> None:
    modules = [*(PACKAGE / "sqlite").glob("*.py"), *(PACKAGE / "relational").glob("*.py")]
    sources = "\n".join(path.read_text("utf-8") for path in modules)
    used = set(re.findall(r'(?:statement|ManyRows|Records)\(\s*"(\w+)"', sources))
    assert used - AMONG_OTHERS == {path.stem for path in FILES}


def test_every_statement_can_be_prepared(sql: sqlite3.Connection) -> None:
    for path in FILES:
        text = statement(path.stem)
        count = max([text.count("?"), *(int(number) for number in re.findall(r"\?(\d)", text))])
        numbered = "?1" in text
        values = [None] * (max(int(number) for number in re.findall(r"\?(\d)", text)) if numbered else count)
        named = dict.fromkeys(re.findall(r"(?<!:):([a-z_]+)", text))
        assert sql.execute(f"EXPLAIN {text}", named or values).fetchall(), path.stem


def test_migrations_are_numbered_from_one_without_gaps() -> None:
    assert [number for number, _ in migrations()] == list(range(1, len(migrations()) + 1))


def plan(sql: sqlite3.Connection, query: str, values: list[object]) -> str:
    return "\n".join(row[3] for row in sql.execute(f"EXPLAIN QUERY PLAN {query}", values))


@pytest.mark.parametrize(
    ("name", "values", "index"),
    [
        ("claimable", ["q", "loop", 0, "[]", 5], "betimes_job_ready (queue=? AND lane=?)"),
        (
            "ahead",
            ["q", "loop", 0, 0, 5],
            "betimes_job_ready (queue=? AND lane=? AND sort_key=? AND rowid<?)",
        ),
        ("delayed_due", [0, 5], "betimes_job_delayed (run_at<?)"),
        ("expired", [0, 5], "betimes_job_expires (expires_at>? AND expires_at<?)"),
        ("held_by", ["w"], "betimes_job_running (worker=?)"),
        ("holdings", ["w"], "betimes_job_running (worker=?)"),
        ("cancel_requests", ["w"], "betimes_job_running (worker=?)"),
        ("holds_any", ["w"], "betimes_job_running (worker=?)"),
        ("lost_jobs", ["w", "[]", 5], "betimes_job_running (worker=?)"),
        ("parked_under", ["limit", 5], "betimes_job_parked (parked=?)"),
        ("live_by_id", ["a"], "betimes_job_id (id=?)"),
        ("newest_live", ["a"], "betimes_job_id (id=?)"),
        ("newest_ended", ["a"], "betimes_finished_id (id=?)"),
        ("by_token", ["a", "t"], "betimes_finished_token (id=? AND token=?)"),
        ("known_ids", ["[]"], "betimes_finished_id (id=?)"),
        ("live_by_seq", ["[]"], "INTEGER PRIMARY KEY (rowid=?)"),
        ("states_by_seq", ["[]"], "INTEGER PRIMARY KEY (rowid=?)"),
        ("ended_by_seq", ["[]"], "INTEGER PRIMARY KEY (rowid=?)"),
        ("dependents", ["[]"], "PRIMARY KEY (parent=?)"),
        ("delete_dependencies", ["[]"], "betimes_dependency_child (child=?)"),
        ("forgettable", [0, 0, 5], "betimes_finished_at (finished_at<?)"),
        ("forget_keys", [0, 5], "betimes_key_until (until<?)"),
        ("forget_fires", [0, 5], "betimes_fire_decided (decided_at<?)"),
        ("fires", ["s", 0, 5], "PRIMARY KEY (schedule=? AND at<?)"),
        ("taken_instants", ["[]"], "PRIMARY KEY (schedule=? AND at=? AND by_hand=?)"),
        (
            "due_schedules",
            [0, 0, "", None, 5],
            "betimes_schedule_due ((next_fire_at,id)>(?,?) AND next_fire_at<?)",
        ),
        ("schedules", ["", None, 5], "PRIMARY KEY (id>?)"),
        ("schedules_by_id", ["[]"], "PRIMARY KEY (id=?)"),
        ("standing_schedules", ["[]"], "PRIMARY KEY (id=?)"),
        ("following_schedules", ["[]"], "PRIMARY KEY (id=?)"),
        ("line_states", ["[]"], "betimes_job_line (queue=? AND lane=? AND gates=?)"),
        ("line_states", ["[]"], "betimes_line_of (queue=? AND lane=? AND gates=?)"),
        ("next_in_lines", ["q", "loop", "[]", 0, 0, 5], "betimes_job_line (queue=? AND lane=? AND gates=?"),
        (
            "claimable_in_lines",
            ["q", "loop", "[]", 0, 0, 5, 0, "[]"],
            "betimes_job_line (queue=? AND lane=? AND gates=?",
        ),
        ("first_in_line", ["q", "loop", "[]", 5], "betimes_job_line (queue=? AND lane=? AND gates=?)"),
        ("ahead_in_line", ["q", "loop", "[]", 0, 0, 5], "betimes_job_line (queue=? AND lane=? AND gates=?"),
        ("ready_lines", ["q", "loop", 0, 0, 5], "betimes_line_ready (queue=? AND lane=?"),
        ("ready_lines_before", ["q", "loop", 0, 0, 5], "betimes_line_ready (queue=? AND lane=?"),
        ("waiting_lines", ["[]", 5], "betimes_line_waiting (waits_at=? AND queue=? AND lane=?)"),
        ("line_places", ["[]"], "betimes_line_waiting (waits_at=? AND queue>?)"),
        ("gates_waited_at", ["[]"], "betimes_line_waiting (waits_at=?)"),
        ("gates_due", [0, 5], "betimes_gate_opens (opens_at>? AND opens_at<?)"),
        ("gate_rows", ["[]"], "PRIMARY KEY (key=?)"),
        ("rules", ["[]"], "PRIMARY KEY (rule=?)"),
        ("gates_held_by", ["w"], "betimes_job_running (worker=?)"),
        ("finishes", ["[]"], "PRIMARY KEY (name=?)"),
        ("fences", ["[]"], "INTEGER PRIMARY KEY (rowid=?)"),
        ("log", [1, 0, 5], "PRIMARY KEY (seq=? AND number>?)"),
    ],
)
def test_a_hot_query_goes_by_its_index_and_sorts_nothing(
    sql: sqlite3.Connection, name: str, values: list[object], index: str
) -> None:
    steps = plan(sql, statement(name), values)
    assert index in steps
    assert not re.search(r"SCAN (betimes|job)", steps)
    if name != "dependents":
        assert "TEMP B-TREE FOR ORDER BY" not in steps


@pytest.mark.parametrize("name", ["next_at", "ready_queues", "next_fire", "ready_line_queues"])
def test_a_look_at_what_comes_first_reads_an_index_s_end(sql: sqlite3.Connection, name: str) -> None:
    steps = plan(sql, statement(name), [])
    assert re.search("SEARCH betimes_(job|schedule|line)", steps)
    assert not re.search(r"SCAN betimes_(job|schedule|line|gate)(?! USING (COVERING )?INDEX)", steps)


@pytest.mark.parametrize(
    "name", ["finish_job", "update_job", "claim_job", "move_schedule_on", "move_line", "order_job"]
)
def test_rows_that_are_written_together_are_found_by_number(sql: sqlite3.Connection, name: str) -> None:
    text = statement(name)
    steps = plan(sql, text, [None] * text.count("?"))
    assert re.search(r"PRIMARY KEY \((rowid|id)=\?\)", steps)
    assert not re.search(r"SCAN (betimes_\w+|job)", steps)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 15, 63, 64, 65, 200])
def test_any_number_of_rows_is_written_in_order(sql: sqlite3.Connection, count: int) -> None:
    rows = [(number, number + 1, "ended") for number in range(count)]
    ManyRows("add_dependency").write(SqliteSql(sql), rows)
    found = sql.execute("SELECT parent, child, need FROM betimes_dependency ORDER BY parent").fetchall()
    assert found == rows


def test_a_hundred_rows_take_a_handful_of_steps(sql: sqlite3.Connection) -> None:
    steps: list[str] = []
    sql.set_trace_callback(steps.append)
    ManyRows("add_dependency").write(SqliteSql(sql), [(number, number, "ended") for number in range(100)])
    assert len(steps) == 4


def test_jobs_that_have_all_succeeded_take_one_look_and_no_second(sql: sqlite3.Connection) -> None:
    specs, steps = Specs(), list[str]()
    rows = [specs.new_row(job(f"job-{seq}"), seq=seq, status=JobStatus.READY) for seq in range(1, 21)]
    ManyRows("insert_job").write(SqliteSql(sql), rows)
    ManyRows("claim_job").write(SqliteSql(sql), [(seq, 1, 1, "w", 5) for seq in range(1, 21)])
    sql.set_trace_callback(steps.append)
    ended = [(seq, 1, 6, "null", None) for seq in range(1, 21)]
    assert list(SqliteSql(sql).complete(ended)) == list(range(1, 21))
    assert [step.split()[0] for step in steps] == ["INSERT", "INSERT", "DELETE"]
    assert list(SqliteSql(sql).complete(ended)) == []


def test_records_too_large_for_one_text_are_read_one_by_one(sql: sqlite3.Connection) -> None:
    specs = Specs()
    jobs = [job(f"job-{number}", payload=b'"%s"' % (b"x" * 4000)) for number in range(20)]
    ManyRows("insert_job").write(
        SqliteSql(sql), [specs.new_row(each, seq=seq, status=each.status) for seq, each in enumerate(jobs, 1)]
    )
    by_number = Records("live_by_seq")
    wanted = (array(range(1, 21)),)
    together = by_number.read(SqliteSql(sql), wanted)
    sql.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 10_000)
    assert by_number.read(SqliteSql(sql), wanted) == together
    assert [specs.job(row).payload for row in together] == [each.payload for each in jobs]


ODD = JobSpec(
    task="töst\x00'",
    queue="q “uoted”",
    lane="thread",
    priority=-1000,
    at_most_once=True,
    timeout_s=0.1,
    retry={"max_attempts": 3, "retry_on": ["builtins.Exception"], "jitter": True},
    keep_s=1e-3,
    tags=("a", "", "ü"),
)


def test_every_field_comes_back_as_it_was(sql: sqlite3.Connection) -> None:
    given = Job(
        "ïd\x00\N{SNOWMAN}",
        ODD,
        '{"text": "\\u0000 \N{PILE OF POO} \\ud83d \\"", "number": 1e400}'.encode(),
        submitted_at=-(2**63),
        run_at=2**63 - 1,
        sort_key=-(2**63),
        expires_at=0,
    )
    given.crashes = 2
    given.superseded = True
    given.error = ErrorInfo(type="E", message="line\n\x00", traceback="…")
    given.reason = CancelReason.REPLACED
    given.attempts = (
        AttemptOutcome(attempt=1, fence=1, started_at=None, ended_at=5, outcome="lost"),
        AttemptOutcome(
            attempt=1, fence=3, started_at=6, ended_at=7, outcome="failed", error=given.error, note="who"
        ),
    )
    given.depends_on = ("a", "b\x00")
    given.key = "k\x00ey"
    given.fire = FireKey("nïght\x00ly", -(2**63), by_hand=True)
    specs = Specs()
    ManyRows("insert_job").write(SqliteSql(sql), [specs.new_row(given, seq=7, status=given.status)])
    (row,) = Records("live_by_seq").read(SqliteSql(sql), ("[7]",))
    (state,) = Records("states_by_seq").read(SqliteSql(sql), ("[7]",))
    for found in (Specs().job(row), Specs().current(given, state)):
        assert found.seq == 7
        found.seq = 0
        for name in Job.__slots__:
            if name != "__weakref__":
                assert getattr(found, name) == getattr(given, name), name


def test_specs_are_shared_and_their_memory_is_bounded() -> None:
    specs = Specs()
    first = specs.columns(ODD)
    assert specs.spec(first) is specs.spec(specs.columns(ODD))
    for number in range(3 * SPECS_KEPT):
        spec = JobSpec(task="t", tags=(str(number),))
        assert specs.spec(specs.columns(spec)) == spec
    assert len(specs._specs) <= SPECS_KEPT
    assert len(specs._columns) <= SPECS_KEPT
    assert specs.columns(ODD) == first


def test_what_happened_to_a_job_survives_in_every_table(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "jobs.db", inline=True) as store:
            spec = replace(ODD, at_most_once=False)
            given = job("a", spec=spec, terms=Terms(named=True, token="t", key="k", key_until=10**18))
            await store.submit([given])
            await store.register(WorkerInfo(id="w", lease_us=1))
            request = ClaimRequest(worker="w", limit=1, lanes={"thread": 1})
            boom = ErrorInfo(type="E", message="boom")
            for event in (
                Errored(CLOCK.now(), boom, retry_in_us=0),
                GivenBack(CLOCK.now()),
                Errored(CLOCK.now(), boom),
            ):
                (taken,) = (await store.exchange([], request)).claimed
                await store.exchange([Report(taken, taken.fence, event)], None)
            (ended,) = await store.jobs(JobFilter(tag="ü"))
            assert [each.outcome for each in ended.attempts] == ["failed", "given_back"]
            await store.retry(ended, by="me")
            found = await store.get(ended)
            assert found is not None
            assert [each.outcome for each in found.attempts] == ["failed", "given_back", "failed"]
            assert (found.attempts[-1].error, found.key, found.spec) == (boom, "k", spec)
            again = job("a", spec=spec, terms=Terms(named=True, token="t"))
            assert (await store.submit([again]))[0][0].seq == given.seq, "its token has gone with it"

    asyncio.run(main())
