"""The PostgreSQL store's statements: each says what it is for, is used, and goes by its index.

What they mean is compared with those of SQLite in `test_statements_alike`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import pytest
from psycopg import sql
from tests.postgres.server import Server, fresh_schema
from tests.runtime.sqlite_scene import job

from betimes.core.job import AttemptOutcome, CancelReason, ErrorInfo, FireKey, Job, JobSpec, Tenant
from betimes.stores.postgres.opening import migrations, prepare
from betimes.stores.postgres.statements import PostgresSql
from betimes.stores.postgres.target import target_of
from betimes.stores.postgres.wire import Wire
from betimes.stores.relational.rows import Specs, array
from betimes.stores.relational.statements import ManyRows, Records, text_of

PACKAGE = Path(__file__).parents[2] / "src" / "betimes" / "stores"
FILES = sorted((PACKAGE / "sql" / "postgres").glob("*.sql"))

NEVER_USED = {"add_to_tally"}
"""Many who write would wait for each other there, so that nobody does unless he is alone (`Sql.is_alone`)."""

LARGE = 2**63 - 1


def opened(url: str) -> Wire:
    """A connection to a store's schema, within a transaction that may last."""
    target = target_of(url)
    wire = Wire(target, monotonic=lambda: 0.0)
    prepare(wire, target, "priority")
    wire.begin()
    wire.run("SET LOCAL idle_in_transaction_session_timeout TO 0")
    return wire


@pytest.fixture
def wire(postgres_url: str) -> Iterator[Wire]:
    """A connection to a fresh store."""
    made = opened(postgres_url)
    yield made
    made.close()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_statement_s_file_begins_with_its_purpose_and_holds_one_statement(path: Path) -> None:
    text = path.read_text("utf-8")
    assert re.match(r"-- [A-Z].*\.\n", text), "a sentence"
    assert text.endswith(";\n")
    assert ";" not in text_of("postgres", path.stem)
    numbers = {int(number) for number in re.findall(r"\$(\d+)", text)}
    assert numbers == set(range(1, len(numbers) + 1))


def test_every_statement_is_used_and_none_is_missing() -> None:
    modules = [*(PACKAGE / "postgres").glob("*.py"), *(PACKAGE / "relational").glob("*.py")]
    sources = "\n".join(path.read_text("utf-8") for path in modules)
    used = set(re.findall(r'(?:statement|ManyRows|Records)\(\s*"(\w+)"', sources))
    assert used - NEVER_USED == {path.stem for path in FILES}


def test_migrations_are_numbered_from_one_without_gaps() -> None:
    assert [number for number, _ in migrations()] == list(range(1, len(migrations()) + 1))


def test_every_statement_can_be_prepared_whatever_types_its_values_are_given_with(wire: Wire) -> None:
    wire.run(text_of("postgres", "hold_jobs"))  # PREPARE takes no LOCK
    files = [path for path in FILES if path.stem != "hold_jobs"]
    for path in files:
        wire.run(f"PREPARE {path.stem} AS {text_of('postgres', path.stem)}")
    prepared = wire.run("SELECT name, parameter_types::text[] FROM pg_prepared_statements").fetchall()
    types = {name: set(its) for name, its in prepared}
    assert types.keys() >= {path.stem for path in files}
    for path in files:
        # A smallint here would refuse what does not fit.
        allowed = {"text", "bigint", "integer", "json", "bytea", "text[]", "bigint[]", "integer[]"}
        assert types[path.stem] <= allowed, path.stem


def test_what_is_indexed_goes_by_its_bytes_whatever_the_language_of_the_database(wire: Wire) -> None:
    columns = wire.run(
        "SELECT DISTINCT class.relname, part.attname, place.collname"
        " FROM pg_index AS index"
        " JOIN pg_class AS class ON class.oid = index.indrelid"
        " JOIN pg_attribute AS part ON part.attrelid = class.oid AND part.attnum = ANY (index.indkey)"
        " JOIN pg_collation AS place ON place.oid = part.attcollation"
        " WHERE class.relnamespace = current_schema()::regnamespace"
    ).fetchall()
    assert len(columns) > 20
    assert {(table, name) for table, name, place in columns if place != "C"} == set()


# name, values, index
HOT: list[tuple[str, Sequence[object], str]] = [
    ("claimable", ["q5", "thread", 0, "[]", 50], "betimes_job_ready"),
    ("ahead", ["q5", "thread", 500, 5000, 1000], "betimes_job_ready"),
    ("ready_queues", [], "betimes_job_ready"),
    ("queue_heads", ["q3"], "betimes_job_ready"),
    ("delayed_due", [5000, 500], "betimes_job_delayed"),
    ("next_at", [], "betimes_job_delayed"),
    ("queue_due", ["q1", 100], "betimes_job_delayed"),
    ("expired", [5000, 500], "betimes_job_expires"),
    ("held_by", ["w3"], "betimes_job_running"),
    ("holdings", ["w3"], "betimes_job_running"),
    ("holds_any", ["w3"], "betimes_job_running"),
    ("lost_jobs", ["w3", '["task0"]', 500], "betimes_job_running"),
    ("gates_held_by", ["w3"], "betimes_job_holding"),
    ("held", [], "betimes_job_holding"),
    ("holders", [], "betimes_job_holding"),
    ("parked_under", ["limit", 500], "betimes_job_parked"),
    ("count_parked", [], "betimes_job_parked"),
    ("live_by_id", ["job-1"], "betimes_job_id"),
    ("newest_live", ["job-1"], "betimes_job_id"),
    ("newest_ended", ["job-1"], "betimes_finished_id"),
    ("by_token", ["job-1", "t"], "betimes_finished_token"),
    ("known_ids", [array([f"job-{n}" for n in range(100)])], "betimes_finished_id"),
    ("live_by_seq", [array(range(500))], "betimes_job_pkey"),
    ("states_by_seq", [array(range(500))], "betimes_job_pkey"),
    ("live_seqs", [array(range(500))], "betimes_job_pkey"),
    ("delete_job", [array(range(500))], "betimes_job_pkey"),
    ("mark_awaited", [array(range(500))], "betimes_job_pkey"),
    ("fences", [array(range(500))], "betimes_job_pkey"),
    ("live_after", [0, 1000], "betimes_job_pkey"),
    ("list_live", [None, None, None, None, LARGE, 100], "betimes_job_pkey"),
    ("list_ended", ["failed", None, None, "tag", LARGE, 100], "betimes_finished_pkey"),
    ("ended_by_seq", [array(range(500))], "betimes_finished_pkey"),
    ("delete_finished", [array(range(500))], "betimes_finished_pkey"),
    ("forgettable", [100, 100, 1000], "betimes_finished_forget"),
    ("forgettable", [100, 100, 1000], "betimes_finished_at"),
    ("dependents", [array(range(500))], "betimes_dependency_pkey"),
    ("delete_dependents", [array(range(500))], "betimes_dependency_pkey"),
    ("delete_dependencies", [array(range(500))], "betimes_dependency_child"),
    ("still_waiting", [array(range(500))], "betimes_dependency_child"),
    ("key_by_name", ["k", 0], "betimes_key_pkey"),
    ("forget_keys", [100, 1000], "betimes_key_until"),
    ("forget_keys_of", [array(range(500))], "betimes_key_seq"),
    ("forget_logs", [array(range(500))], "betimes_log_pkey"),
    ("log", [1, 0, 100], "betimes_log_pkey"),
    ("last_line", [array(range(500))], "betimes_log_pkey"),
    ("forget_fires", [100, 1000], "betimes_fire_decided"),
    ("fires", ["s3", LARGE, 100], "betimes_fire_pkey"),
    ("taken_instants", ['[["s1", 1], ["s2", 2]]'], "betimes_fire_pkey"),
    ("due_schedules", [500, -LARGE, "", None, 100], "betimes_schedule_due"),
    ("next_fire", [], "betimes_schedule_due"),
    ("schedules", ["", None, 100], "betimes_schedule_pkey"),
    ("schedules_by_id", ['["s1", "s2"]'], "betimes_schedule_pkey"),
    ("standing_schedules", ['["s1", "s2"]'], "betimes_schedule_pkey"),
    ("following_schedules", ['["s1", "s2"]'], "betimes_schedule_pkey"),
    ("line_states", ['[["q3", "loop", "[]"]]'], "betimes_job_line"),
    ("line_states", ['[["q3", "loop", "[]"]]'], "betimes_line_of"),
    ("next_in_lines", ["q3", "loop", '["[]"]', -LARGE, -1, 5], "betimes_job_line"),
    ("claimable_in_lines", ["q3", "loop", '["[]"]', -LARGE, -1, 5, 0, "[]"], "betimes_job_line"),
    ("first_in_line", ["q3", "loop", "[]", 5], "betimes_job_line"),
    ("ahead_in_line", ["q3", "loop", "[]", 500, 5, 1000], "betimes_job_line"),
    ("ready_lines", ["q3", "loop", -LARGE, -1, 16], "betimes_line_ready"),
    ("ready_lines_before", ["q3", "loop", 500, 5, 1000], "betimes_line_ready"),
    ("ready_line_queues", [], "betimes_line_ready"),
    ("lease_holds", ["w3", 0, "b"], "betimes_line_ready"),
    ("waiting_lines", ['[["g", "q3", "loop"]]', 100], "betimes_line_waiting"),
    ("line_places", ['["g", "h"]'], "betimes_line_waiting"),
    ("gates_waited_at", ['["g", "h"]'], "betimes_line_waiting"),
    ("gates_waited_for", ["rate:b", 1000], "betimes_line_waiting"),
    ("untagged", [500], "betimes_job_untagged"),
    ("is_stirred", [], "betimes_job_untagged"),
    ("take_stirred", [500], "betimes_stirred_pkey"),
    ("gates_due", [100, 500], "betimes_gate_opens"),
    ("gate_rows", ['["g", "h"]'], "betimes_gate_pkey"),
    ("delete_gates", ['["g", "h"]'], "betimes_gate_pkey"),
    ("rules", ['["g", "h"]'], "betimes_rule_pkey"),
    ("finishes", ['["t1", "t2"]'], "betimes_tenant_pkey"),
    ("claim_job", [[1, 2]] * 3 + [["w", "w"], [1, 2]], "betimes_job_pkey"),
    ("complete_jobs", [[1, 2]] * 3 + [["1", "2"], [1, 2]], "betimes_job_pkey"),
    (
        "finish_job",
        [[1, 2]] * 3 + [["1", "2"]] + [[1, 2]] * 6 + [["1", "2"]] * 2 + [[1, 2]],
        "betimes_job_pkey",
    ),
    (
        "update_job",
        [[1, 2], ["1", "2"], *[[1, 2]] * 4, ["1", "2"], [1, 2], [1, 2], ["1", "2"], [1, 2], ["1", "2"]],
        "betimes_job_pkey",
    ),
    ("order_job", [[1, 2], [1, 2], ["1", "2"]], "betimes_job_pkey"),
    ("move_line", [[1, 2]] * 3 + [["1", "2"]], "betimes_line_pkey"),
    (
        "move_schedule_on",
        [["1", "2"]] + [[1, 2]] * 5 + [["[1]", "[2]"]] + [[1, 2]] * 2,
        "betimes_schedule_pkey",
    ),
]

MAY_SORT = {
    "dependents", "still_waiting", "gates_held_by", "held", "next_in_lines", "claimable_in_lines",
    "live_by_id", "newest_live",
}  # fmt: skip
"""They sort what they have found: what they were asked about, one worker holds, or has the same id."""

FILLING = """
INSERT INTO betimes_job (
    seq, id, task, queue, lane, priority, payload, submitted_at, run_at, sort_key, status, attempt, fence,
    worker, started_at, expires_at, parked, cancel_requested, awaited, gates
)
SELECT n, 'job-' || n, 'task' || n % 20, 'q' || n % 10, (ARRAY['loop', 'thread', 'process'])[1 + n % 3], 0,
    '{}', n, n * 10, n % 1000,
    CASE
        WHEN n % 50 = 0 THEN 'running' WHEN n % 10 = 1 THEN 'delayed' WHEN n % 10 = 2 THEN 'blocked'
        ELSE 'ready'
    END,
    0, 0, CASE WHEN n % 50 = 0 THEN 'w' || n / 50 % 20 END, CASE WHEN n % 50 = 0 THEN n END,
    CASE WHEN n % 100 = 7 THEN n * 10 END, CASE WHEN n % 500 = 9 THEN 'limit' END, 0, 0,
    CASE WHEN n % 5 = 3 THEN '["limit:a","rate:' || n % 2000 || '"]' END
FROM generate_series(1, 20000) AS n;
INSERT INTO betimes_finished (
    seq, id, task, queue, lane, priority, payload, submitted_at, run_at, sort_key, status, attempt, fence,
    finished_at, cancel_requested, forget_at
)
SELECT n, 'job-' || n, 'task' || n % 20, 'q', 'loop', 0, '{}', n, n, n % 1000, 'completed', 1, 1, n * 10, 0,
    CASE WHEN n % 10 = 0 THEN n END
FROM generate_series(20001, 40000) AS n;
INSERT INTO betimes_line (queue, lane, gates, head_key, head_seq, waits_at)
SELECT queue, lane, gates, min(sort_key), min(seq),
    CASE WHEN min(seq) % 2 = 0 THEN 'rate:' || min(seq) % 300 END
FROM betimes_job WHERE gates IS NOT NULL AND status = 'ready' GROUP BY queue, lane, gates;
INSERT INTO betimes_gate
SELECT 'rate:' || n, n, 0, CASE WHEN n % 3 = 0 THEN n END FROM generate_series(1, 2000) AS n;
INSERT INTO betimes_rule SELECT 'rate:' || n, '{}' FROM generate_series(1, 500) AS n;
INSERT INTO betimes_fire
SELECT 's' || n % 1000, n, 0, n, 1, 1, 'fired', n FROM generate_series(1, 20000) AS n;
INSERT INTO betimes_schedule
SELECT 's' || n, 't', 'q', 'loop', 0, NULL, '{}', '{}', n, 1, 0, NULL, n, 0, 0
FROM generate_series(1, 5000) AS n;
INSERT INTO betimes_dependency SELECT n, n + 1, 'completed' FROM generate_series(1, 20000) AS n;
INSERT INTO betimes_key SELECT 'k' || n, n, 'x', n FROM generate_series(1, 20000) AS n;
INSERT INTO betimes_log SELECT n % 500, n, n, 1, 's', 1, 'x' FROM generate_series(1, 20000) AS n;
INSERT INTO betimes_tenant SELECT 't' || n, n FROM generate_series(1, 5000) AS n;
INSERT INTO betimes_worker
SELECT 'w' || n, 'h', 1, 'n', 1, 'b', NULL, 1, 1, 1, 'b', 0 FROM generate_series(1, 20) AS n;
"""


@pytest.fixture(scope="module", params=["empty", "grown since", "known"])
def tables(request: pytest.FixtureRequest, postgres: Server) -> Iterator[Wire]:
    """A store that is empty, that was when the server took its statistics, or that it knows as it is."""
    with fresh_schema(postgres) as url:
        made = opened(url)
        if request.param == "grown since":
            made.run("ANALYZE")
        if request.param != "empty":
            made.run(FILLING)
        if request.param == "known":
            made.run("ANALYZE")
        yield made
        made.close()


@pytest.mark.parametrize(("name", "values", "index"), HOT, ids=[f"{name}-{index}" for name, _, index in HOT])
def test_a_hot_statement_goes_by_its_index_and_sorts_nothing(
    tables: Wire, name: str, values: Sequence[object], index: str
) -> None:
    given = sql.SQL(", ").join(map(sql.Literal, values)).as_string(tables.conn)
    for mode in ("force_custom_plan", "force_generic_plan"):
        tables.run(f"SET LOCAL plan_cache_mode TO {mode}")
        tables.run(f"PREPARE hot AS {text_of('postgres', name)}")
        explained = tables.run(f"EXPLAIN (COSTS OFF) EXECUTE hot {f'({given})' if values else ''}").fetchall()
        tables.run("DEALLOCATE hot")
        plan = "\n".join(line for (line,) in explained)
        assert re.search(rf"Scan (Backward )?using {index}\b", plan), plan
        assert not re.search(r"Seq Scan on betimes_(?!worker|permit|paused_queue)", plan), plan
        assert name in MAY_SORT or not re.search(r"\bSort\b(?! Key)", plan), plan


def test_a_beat_touches_no_index(wire: Wire) -> None:
    statements = PostgresSql(wire)
    for number in range(20):
        row = (f"w{number}", "h", 1, "n", 1, "b", None, 1, 1000, 1000, "boot")
        statements.execute("register_worker", row)
    for number in range(20):
        assert statements.execute("renew_lease", (f"w{number}", 5000, "boot")).rowcount == 1
    updates = wire.run(
        "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables"
        " WHERE schemaname = current_schema() AND relname = 'betimes_worker'"
    ).fetchone()
    assert updates == (20, 20)


def test_gates_may_be_longer_together_than_an_index_takes(wire: Wire) -> None:
    letters = Random(5).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=4000)
    gates = tuple(f"rate:r\t{''.join(letters[start : start + 400])}" for start in range(0, 4000, 400))
    statements, specs = PostgresSql(wire), Specs()
    made = job("a")
    made.gates = gates
    ManyRows("insert_job").write(statements, [specs.new_row(made, seq=1, status=made.status)])
    text = specs.gates_text(gates)
    ManyRows("add_line").write(statements, [("default", made.spec.lane, text, 0, 1, None)])
    found = Records("first_in_line").read(statements, (made.spec.queue, made.spec.lane, text, 9))
    assert [row[1:] for row in found] == [(1, "a")]


def test_numbers_grow_and_never_come_again(wire: Wire) -> None:
    statements = PostgresSql(wire)
    first, second = statements.numbers(3), statements.numbers(2)
    assert first[0] < first[1] < first[2] < second[0] < second[1]
    assert statements.numbers(0) == []
    wire.rollback()
    wire.begin()
    assert statements.numbers(1)[0] > second[1]


ODD = JobSpec(
    task="töst'",
    queue="q “uoted” {}[]\\",
    lane="thread",
    priority=-1000,
    at_most_once=True,
    timeout_s=0.1,
    retry={"max_attempts": 3, "retry_on": ["builtins.Exception"], "jitter": True},
    keep_s=1e-3,
    tags=("a", "", "ü"),
)


def test_every_field_comes_back_as_it_was(wire: Wire) -> None:
    given = Job(
        "ïd\N{SNOWMAN}",
        ODD,
        '{"text": "\\u0000 \N{PILE OF POO} \\ud83d \\"", "number": 1e400}'.encode(),
        submitted_at=-(2**63),
        run_at=LARGE,
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
    given.fire = FireKey("nïghtly", -(2**63), by_hand=True)
    given.gates = ("limit:{a}", 'rate:"b"\tü,')
    given.tenant = Tenant("ä", 3)
    statements = PostgresSql(wire)
    ManyRows("insert_job").write(statements, [Specs().new_row(given, seq=7, status=given.status)])
    (row,) = Records("live_by_seq").read(statements, ("[7]",))
    (state,) = Records("states_by_seq").read(statements, ("[7]",))
    for found in (Specs().job(row), Specs().current(given, state)):
        assert found.seq == 7
        found.seq = 0
        for name in Job.__slots__:
            if name != "__weakref__":
                assert getattr(found, name) == getattr(given, name), name


def test_a_list_of_lists_comes_back_as_lists(wire: Wire) -> None:
    statements = PostgresSql(wire)
    wire.run(FILLING)
    gates = json.dumps(['["limit:a","rate:3"]', "[]", '["limit:a","rate:13"]'])
    first, none, third = Records("next_in_lines").read(statements, ("q3", "loop", gates, -LARGE, -1, 3))
    assert none == []
    assert len(first) == len(third) == 3
    assert all(type(key) is int and type(seq) is int for key, seq in first)
