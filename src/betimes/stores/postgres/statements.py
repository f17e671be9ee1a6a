"""How PostgreSQL carries out the statements of `stores/sql/postgres`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from operator import itemgetter
from typing import Any, Protocol

from betimes.core.job import Micros
from betimes.stores.postgres.arrays import columns_of
from betimes.stores.postgres.marks import BEFORE_ALL, Marks
from betimes.stores.relational.statements import Answer, Row, statement, text_of

NEXT_NUMBERS = statement("next_numbers")
LOCK_NAMES = statement("lock_names")
WAIT_TO_KEEP_ORDER = statement("wait_to_keep_order")
TRY_TO_KEEP_ORDER = statement("try_to_keep_order")
COMPLETE_JOBS = statement("complete_jobs")
CLAIM_AT_ONCE = statement("claim_at_once")
COUNT_ENTRIES_READ = statement("count_entries_read")
READY_QUEUES = statement("ready_queues")

LOCKS = {
    "live_by_seq": "FOR UPDATE",
    "live_by_id": "FOR UPDATE",
    "newest_live": "FOR UPDATE",
    "states_by_seq": "FOR UPDATE",
    "held_by": "FOR UPDATE SKIP LOCKED",
    "ended_by_seq": "FOR UPDATE",
    "newest_ended": "FOR UPDATE",
    "schedules_by_id": "FOR UPDATE",
}
"""What a query has behind it in a transaction that is to change what it reads; only some need it, for those
that nobody looks with say it themselves.
"""

BY_NUMBER = {"claim_job", "finish_job", "move_line", "order_job", "update_job"}
"""Statements that find the values for a row by its number, among all numbers in order: a join with the values
would be made in the order that the server's statistics suggest, which can take each value with each row.
"""

_number = itemgetter(0)

RECORD = "record"
"""What a query calls its only column when that column's value is the row."""


class Named(Protocol):
    """A column of an answer."""

    @property
    def name(self) -> str:
        """What it is called."""


class Described(Answer, Protocol):
    """An answer that names its columns."""

    @property
    def description(self) -> Sequence[Named] | None:
        """The columns; None: it has none."""


class Wired(Protocol):
    """What carries statements to the server, within a transaction: ours, or a caller's."""

    def run(self, text: str, values: Row = ()) -> Described:
        """Carry out a text."""


def _as_it_says(server: Micros) -> Micros:
    return server


class PostgresSql:
    """A connection within its transaction, as the code that is shared among databases sees it."""

    __slots__ = ("_locks", "_marks", "_time", "_wire")

    is_alone = False

    def __init__(
        self,
        wire: Wired,
        *,
        is_looking: bool = False,
        time: Callable[[Micros], Micros] = _as_it_says,
        marks: Marks | None = None,
    ) -> None:
        """Use a connection; `time` tells the store's time by what the server's clock shows."""
        self._wire = wire
        self._locks = {} if is_looking else LOCKS
        self._marks = Marks(float) if marks is None else marks
        self._time = time

    def execute(self, name: str, values: Row = ()) -> Answer:
        """Carry out a statement."""
        return self._wire.run(text_of("postgres", name), values)

    def read(self, name: str, values: Row) -> list[Row]:
        """Return the rows of a query, in its order."""
        text = text_of("postgres", name)
        if (lock := self._locks.get(name)) is not None:
            text = f"{text} {lock}"
        cursor = self._wire.run(text, values)
        rows: list[Any] = cursor.fetchall()
        columns = cursor.description or ()
        return [row[0] for row in rows] if [column.name for column in columns] == [RECORD] else rows

    def write(self, name: str, rows: Sequence[Row]) -> int:
        """Carry out a statement for these rows, all at once: one array for each column."""
        ordered = sorted(rows, key=_number) if name in BY_NUMBER else rows
        return self._wire.run(text_of("postgres", name), columns_of(ordered)).rowcount

    def numbers(self, count: int) -> Sequence[int]:
        """Return numbers for so many new jobs, each larger than all that were given out before."""
        return [number for (number,) in self.execute(NEXT_NUMBERS, (count,)).fetchall()]

    def keep_order(self, *, wait: bool) -> Micros | None:
        """Become the one who keeps the order of jobs with gates or tenants; None: somebody else does."""
        is_keeper, now = self.execute(WAIT_TO_KEEP_ORDER if wait else TRY_TO_KEEP_ORDER).fetchone()
        return self._time(now) if is_keeper else None

    def claim_at_once(
        self, places: Sequence[tuple[str, str, int]], limit: int, worker: str, now: int, hold: str
    ) -> list[Row] | None:
        """Claim jobs without gates: the first in the order, and of each lane no more than it has free."""
        if not places:
            return []
        marks, asked = self._marks, (limit, worker, now, hold)
        if marks.hold:
            rows = self._claim([(*place, *marks.rank(place[:2])) for place in places], asked)
            marks.move(rows)
            if not _is_full(places, limit, rows):  # nothing more is behind the marks, but perhaps before them
                marks.forget()
            if rows:
                return rows
        marks.begin()
        before = self._entries_read() if marks.is_to_count else None
        rows = self._claim([(*place, *BEFORE_ALL) for place in places], asked)
        marks.end(rows, None if before is None else self._entries_read() - before - len(rows))
        return rows

    def _claim(self, places: Sequence[tuple[str, str, int, int, int]], asked: Row) -> list[Row]:
        queues, lanes, free, keys, numbers = columns_of(places)
        values = (queues, lanes, free, *asked, keys, numbers)
        rows: list[Row] = self._wire.run(text_of("postgres", CLAIM_AT_ONCE), values).fetchall()
        return rows

    def _entries_read(self) -> int:
        count: int = self.execute(COUNT_ENTRIES_READ).fetchone()[0]
        return count

    def ready_queues(self) -> list[str]:
        """Return the queues that have claimable jobs without gates, or had while the marks hold."""
        marks = self._marks
        if not marks.hold or marks.queues is None:
            marks.queues = [queue for (queue,) in self.execute(READY_QUEUES).fetchall()]
        return list(marks.queues)

    def complete(self, rows: Sequence[Row]) -> Collection[int]:
        """Move jobs of which nothing but success is to be recorded to those that have ended."""
        moved = self._wire.run(
            text_of("postgres", COMPLETE_JOBS), columns_of(sorted(rows, key=_number))
        ).fetchall()
        return [seq for (seq,) in moved]

    def lock_names(self, names: Collection[str]) -> None:
        """Have others who lock one of these names wait until this transaction is over."""
        if names:
            self.execute(LOCK_NAMES, (list(names),))


def _is_full(places: Sequence[tuple[str, str, int]], limit: int, rows: Sequence[Row]) -> bool:
    """Say whether a claim may have left something, for lack of room in all or in a lane."""
    taken = Counter(row[4] for row in rows)
    return len(rows) >= limit or any(taken[lane] >= free for _, lane, free in places)
