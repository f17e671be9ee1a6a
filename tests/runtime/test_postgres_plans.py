"""Hot statements go by their indexes whatever the server believes of its tables, and read what they need."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import pytest
from psycopg import sql
from tests.postgres.server import Server, fresh_schema
from tests.runtime.test_postgres_statements import FILLING, HOT, LARGE, MAY_SORT, opened

from betimes.stores.postgres.arrays import array_of
from betimes.stores.postgres.statements import BY_NUMBER
from betimes.stores.postgres.wire import Wire
from betimes.stores.relational.statements import text_of

EMPTIED = "DELETE FROM betimes_job; DELETE FROM betimes_finished; DELETE FROM betimes_line"
MOVED = """
UPDATE betimes_job SET status = 'ready' WHERE status = 'delayed';
UPDATE betimes_job SET status = 'running', worker = 'w3' WHERE status = 'ready' AND gates IS NULL;
UPDATE betimes_job SET status = 'ready', worker = NULL WHERE status = 'running' AND seq % 3 = 0;
DELETE FROM betimes_job WHERE seq % 7 = 0
"""
MANY_READY = """
INSERT INTO betimes_job (
    seq, id, task, queue, lane, priority, payload, submitted_at, run_at, sort_key, status, attempt, fence,
    cancel_requested, awaited
)
SELECT n, 'more-' || n, 't', 'q' || n % 4, 'loop', 0, '{}', 1, 1, 0, 'ready', 0, 0, 0, 0
FROM generate_series(100001, 130000) AS n
"""
STATES = {
    "emptied since": (FILLING, "ANALYZE", EMPTIED),
    "bloated": (FILLING, "ANALYZE", MOVED),
    "bloated and known": (FILLING, MOVED, "ANALYZE"),
    "many ready since": ("ANALYZE", FILLING, MANY_READY),
}

IDS = array_of([f"job-{number}" for number in range(1, 101)])
NUMBERS = array_of(range(1, 101))
PLACES = [array_of(["q1", "q2"]), array_of(["loop"] * 2), array_of([50, 50])]
MARKS = [array_of([-LARGE] * 2), array_of([-1, -1])]
MORE: list[tuple[str, Sequence[object], str]] = [
    ("claim_at_once", [*PLACES, 80, "w", 5, "[]", *MARKS], "betimes_job_ready"),
    ("claim_at_once", [*PLACES, 80, "w", 5, "[]", *MARKS], "betimes_job_pkey"),
    ("add_at_once", [None, *[IDS] * 4, NUMBERS, *[IDS] * 2, *[NUMBERS] * 4], "betimes_job_id"),
    ("add_at_once", [None, *[IDS] * 4, NUMBERS, *[IDS] * 2, *[NUMBERS] * 4], "betimes_finished_id"),
]
SORTS_WHAT_IT_PICKED = {"claim_at_once"}


def plan(wire: Wire, name: str, values: Sequence[object], *, mode: str) -> str:
    """What the server means to do."""
    given = sql.SQL(", ").join(map(sql.Literal, values)).as_string(wire.conn)
    wire.run(f"SET LOCAL plan_cache_mode TO {mode}")
    wire.run(f"PREPARE hot AS {text_of('postgres', name)}")
    lines = wire.run(f"EXPLAIN (COSTS OFF) EXECUTE hot {f'({given})' if values else ''}").fetchall()
    wire.run("DEALLOCATE hot")
    return "\n".join(line for (line,) in lines)


@pytest.fixture(scope="module", params=STATES)
def tables(request: pytest.FixtureRequest, postgres: Server) -> Iterator[Wire]:
    """A store that has changed since the server took its statistics, or that has many dead rows."""
    with fresh_schema(postgres) as url:
        made = opened(url)
        for text in STATES[request.param]:
            made.run(text)
        yield made
        made.close()


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize(
    ("name", "values", "index"), [*HOT, *MORE], ids=[f"{name}-{index}" for name, _, index in [*HOT, *MORE]]
)
def test_a_hot_statement_stays_on_its_index(
    tables: Wire, name: str, values: Sequence[object], index: str, mode: str
) -> None:
    found = plan(tables, name, values, mode=mode)
    assert re.search(rf"Scan (Backward )?using {index}\b", found), found
    assert not re.search(r"Seq Scan on betimes_(?!worker|permit|paused_queue)", found), found
    assert name in MAY_SORT | SORTS_WHAT_IT_PICKED or not re.search(r"\bSort\b(?! Key)", found), found


@pytest.mark.parametrize("name", sorted({*BY_NUMBER, "complete_jobs"}))
def test_values_are_found_by_number_and_never_joined_with_rows(tables: Wire, name: str) -> None:
    values = next(values for each, values, _ in HOT if each == name)
    for mode in ("force_custom_plan", "force_generic_plan"):
        assert not re.search(r"Nested Loop|\bJoin\b|Function Scan", plan(tables, name, values, mode=mode)), (
            name
        )


def test_a_claim_reads_what_it_takes_and_one_more(tables: Wire) -> None:
    def entries() -> int:
        row = tables.run("SELECT pg_stat_get_xact_tuples_returned('betimes_job_ready'::regclass)").fetchone()
        assert row is not None
        return int(row[0])

    tables.run(MANY_READY.replace("'more-'", "'claimed-'").replace("n, 'claimed-'", "n + 900000, 'claimed-'"))
    tables.run("UPDATE betimes_job SET sort_key = -9, queue = 'own' WHERE seq > 1000000 AND seq <= 1001000")
    values = [array_of(["own"]), array_of(["loop"]), array_of([100]), 100, "w", 5, "[]"]
    before = entries()
    rows = tables.run(
        text_of("postgres", "claim_at_once"), [*values, array_of([-LARGE]), array_of([-1])]
    ).fetchall()
    assert len(rows) == 100
    assert entries() - before <= 101
