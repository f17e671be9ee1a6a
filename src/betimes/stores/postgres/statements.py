"""How PostgreSQL carries out the statements of `stores/sql/postgres`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from betimes.stores.relational.statements import Answer, Row, statement, text_of

if TYPE_CHECKING:
    from betimes.stores.postgres.wire import Wire

NEXT_NUMBERS = statement("next_numbers")
LOCK_NAMES = statement("lock_names")
WAIT_TO_KEEP_ORDER = statement("wait_to_keep_order")
TRY_TO_KEEP_ORDER = statement("try_to_keep_order")
COMPLETE_JOBS = statement("complete_jobs")

LOCKS = {
    "live_by_seq": "FOR UPDATE",
    "live_by_id": "FOR UPDATE",
    "newest_live": "FOR UPDATE",
    "states_by_seq": "FOR UPDATE",
    "held_by": "FOR UPDATE",
    "ended_by_seq": "FOR UPDATE",
    "newest_ended": "FOR UPDATE",
    "schedules_by_id": "FOR UPDATE",
}
"""What a query has behind it in a transaction that is to change what it reads; only some need it, for those
that nobody looks with say it themselves.
"""

RECORD = "record"
"""What a query calls its only column when that column's value is the row."""


class PostgresSql:
    """A connection within its transaction, as the code that is shared among databases sees it."""

    __slots__ = ("_locks", "_wire")

    is_alone = False

    def __init__(self, wire: Wire, *, is_looking: bool = False) -> None:
        self._wire = wire
        self._locks = {} if is_looking else LOCKS

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
        columns = [list(column) for column in zip(*rows, strict=True)]
        return self._wire.run(text_of("postgres", name), columns).rowcount

    def numbers(self, count: int) -> Sequence[int]:
        """Return numbers for so many new jobs, each larger than all that were given out before."""
        return [number for (number,) in self.execute(NEXT_NUMBERS, (count,)).fetchall()]

    def keep_order(self, *, wait: bool) -> bool:
        """Become the one who keeps the order of jobs with gates or tenants; False: somebody else does."""
        row = self.execute(WAIT_TO_KEEP_ORDER if wait else TRY_TO_KEEP_ORDER).fetchone()
        return wait or bool(row[0])

    def complete(self, rows: Sequence[Row]) -> Collection[int]:
        """Move jobs of which nothing but success is to be recorded to those that have ended."""
        columns = [list(column) for column in zip(*rows, strict=True)]
        moved = self._wire.run(text_of("postgres", COMPLETE_JOBS), columns).fetchall()
        return [seq for (seq,) in moved]

    def lock_names(self, names: Collection[str]) -> None:
        """Have others who lock one of these names wait until this transaction is over."""
        if names:
            self.execute(LOCK_NAMES, (list(names),))
