"""Dead rows that cannot be taken away are walked over once in a while, and not by each claim."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from tests.postgres.server import Server
from tests.runtime.test_postgres_statements import opened

from betimes.stores.postgres.marks import LONGEST_S, MANY_ENTRIES, Marks
from betimes.stores.postgres.statements import PostgresSql
from betimes.stores.postgres.wire import Wire

ENTRIES_READ = "SELECT pg_stat_get_xact_tuples_returned('betimes_job_ready'::regclass)"
MANY = 2 * MANY_ENTRIES
ADD = """
INSERT INTO betimes_job (
    seq, id, task, queue, lane, priority, payload, submitted_at, run_at, sort_key, status, attempt, fence,
    cancel_requested, awaited
)
SELECT n, 'job-' || n, 't', 'q', 'loop', 0, '{}', 1, 1, $3::bigint, 'ready', 0, 0, 0, 0
FROM generate_series($1::bigint, $2::bigint) AS n
"""


class Clock:
    """Each look at it lasts as long as it says."""

    def __init__(self) -> None:
        self.now = 0.0
        self.step = 0.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


class Claimer:
    """One session that claims, beside a transaction elsewhere that sees what was before."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.clock = Clock()
        self.sql = PostgresSql(wire, marks=Marks(self.clock))

    def claim(self, limit: int = 100) -> tuple[list[int], int]:
        """The numbers of what was claimed, and how many entries were read for it."""
        before = self._read()
        rows = self.sql.claim_at_once([("q", "loop", limit)], limit, "w", 5, "[]")
        assert rows is not None
        return sorted(row[0] for row in rows), self._read() - before

    def _read(self) -> int:
        row = self.wire.run(ENTRIES_READ).fetchone()
        assert row is not None
        return int(row[0])

    def add(self, first: int, last: int, sort_key: int = 0) -> None:
        """Make jobs ready."""
        self.wire.run(ADD, (first, last, sort_key))


@pytest.fixture
def claimer(postgres: Server, postgres_url: str) -> Iterator[Claimer]:
    """A claimer with more dead entries behind it than are worth a mark, and a few jobs."""
    wire = opened(postgres_url)
    made = Claimer(wire)
    made.add(1, MANY)
    wire.commit()
    with psycopg.connect(postgres.url()) as elsewhere:
        elsewhere.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        elsewhere.execute("SELECT 1")
        wire.begin()
        wire.run("UPDATE betimes_job SET status = 'running', worker = 'w'")
        made.add(MANY + 1, MANY + 1000)
        wire.commit()
        wire.begin()
        yield made
        wire.close()


def mark(claimer: Claimer) -> None:
    """Have it find out that it pays to use a mark."""
    claimer.clock.step = 0.05
    assert claimer.claim() == (list(range(MANY + 1, MANY + 101)), MANY + 100), "slow, and not yet counted"
    assert claimer.claim()[1] > MANY, "counted"


def test_a_claim_goes_on_from_a_mark_while_dead_entries_make_looks_slow(claimer: Claimer) -> None:
    mark(claimer)
    assert claimer.claim() == (list(range(MANY + 201, MANY + 301)), 100)
    assert claimer.claim() == (list(range(MANY + 301, MANY + 401)), 100)


def test_what_has_come_in_before_the_mark_is_found_when_its_time_is_over(claimer: Claimer) -> None:
    mark(claimer)
    claimer.add(90_000, 90_000, sort_key=-5)
    assert 90_000 not in claimer.claim()[0]
    claimer.clock.now += LONGEST_S
    numbers, read = claimer.claim()
    assert 90_000 in numbers
    assert read > MANY


def test_what_has_come_in_before_the_mark_is_found_at_once_when_nothing_is_behind_it(
    claimer: Claimer,
) -> None:
    mark(claimer)
    assert len(claimer.claim(limit=1000)[0]) == 800
    claimer.add(90_000, 90_000, sort_key=-5)
    assert claimer.claim()[0] == [90_000]


def test_a_claim_with_a_mark_leaves_paused_queues_alone(claimer: Claimer) -> None:
    assert claimer.sql.ready_queues() == ["q"]
    mark(claimer)
    claimer.wire.run("INSERT INTO betimes_paused_queue (queue) VALUES ('q')")
    assert claimer.sql.ready_queues() == ["q"], "as it was a moment ago"
    assert claimer.claim()[0] == []


def test_looks_that_are_quick_are_neither_counted_nor_marked(claimer: Claimer) -> None:
    for _ in range(3):
        assert claimer.claim()[1] >= MANY
    claimer.add(90_000, 90_000, sort_key=-5)
    assert 90_000 in claimer.claim()[0]


def test_looks_that_are_slow_for_another_reason_are_not_marked(postgres_url: str) -> None:
    claimer = Claimer(opened(postgres_url))
    claimer.add(1, 1000)
    claimer.clock.step = 0.05
    for _ in range(4):
        assert len(claimer.claim()[0]) == 100
        claimer.clock.now -= 0.2
    claimer.add(90_000, 90_000, sort_key=-5)
    assert 90_000 in claimer.claim()[0]
    claimer.wire.close()
