"""How SQLite carries out the statements of `stores/sql/sqlite`."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Sequence
from functools import cache
from itertools import chain
from typing import Protocol

import msgspec

from betimes.core.job import Micros
from betimes.stores.relational import statements as named
from betimes.stores.relational.rows import array
from betimes.stores.relational.statements import Row, migrations_of, text_of

CHUNKS = (64, 16, 4, 1)
"""How many rows go into one statement: few sizes, so that each is prepared once and kept by the driver."""

_ONE_ROW = re.compile(r"VALUES (\([?, \d]+\))")
_decode_records = msgspec.json.Decoder(list[Row]).decode


class Executes(Protocol):
    """A connection, or what stands for one, as far as statements use it."""

    def execute(self, text: str, values: Row = (), /) -> sqlite3.Cursor:
        """Carry out a text."""


def statement(name: str) -> str:
    """Return the text of the statement of this name."""
    return text_of("sqlite", name)


def migrations() -> list[tuple[int, str]]:
    """Return the steps from an empty file to today's schema, each with the version it leads to."""
    return migrations_of("sqlite")


READ_LAST_SEQ = named.statement("read_last_seq")
WRITE_LAST_SEQ = named.statement("write_last_seq")
COMPLETE_JOBS = named.statement("complete_jobs")
READY_QUEUES = named.statement("ready_queues")
COPIED_JOBS = named.statement("copied_jobs")
DELETE_JOB = named.statement("delete_job")


@cache
def _in_chunks(name: str) -> list[tuple[int, str]]:
    """Return the texts of a statement for many rows, each with how many it takes."""
    text = statement(name)
    one_row = _ONE_ROW.search(text)
    assert one_row is not None, f"{name}.sql has no VALUES with one row of question marks"
    before, row, after = text[: one_row.start(1)], one_row[1], text[one_row.end(1) :]
    return [(size, before + ", ".join([row] * size) + after) for size in CHUNKS]


class SqliteSql:
    """A connection, as the code that is shared among databases sees it."""

    __slots__ = ("_execute",)

    is_alone = True

    def __init__(self, conn: Executes) -> None:
        self._execute = conn.execute

    def execute(self, name: str, values: Row = ()) -> sqlite3.Cursor:
        """Carry out a statement."""
        return self._execute(statement(name), values)

    def read(self, name: str, values: Row) -> list[Row]:
        """Return the rows of a query; they come as one text, however many they are."""
        query = statement(name)
        try:
            together = f"SELECT group_concat(record) FROM ({query})"  # noqa: S608 - our own text
            text = self._execute(together, values).fetchone()[0]
        except sqlite3.DataError:
            # Together they are larger than any text may be.
            text = ",".join(record for (record,) in self._execute(query, values))
        return _decode_records(f"[{text}]") if text else []

    def write(self, name: str, rows: Sequence[Row]) -> int:
        """Carry out a statement for these rows, in order; return how many rows of the table it changed."""
        start = changed = 0
        for size, text in _in_chunks(name):
            while len(rows) - start >= size:
                values = list(chain.from_iterable(rows[start : start + size]))
                changed += self._execute(text, values).rowcount
                start += size
        return changed

    def numbers(self, count: int) -> Sequence[int]:
        """Return numbers for so many new jobs; none comes again, whatever is pruned."""
        last: int = self.execute(READ_LAST_SEQ).fetchone()[0]
        self.execute(WRITE_LAST_SEQ, (last + count,))
        return range(last + 1, last + count + 1)

    def lock_names(self, names: Collection[str]) -> None:
        """Do nothing: nobody else can write."""

    def keep_order(self, *, wait: bool) -> Micros:
        """Do nothing: nobody else can write, and no time has passed."""
        del wait
        return 0

    def ready_queues(self) -> list[str]:
        """Return the queues that have claimable jobs without gates."""
        return [queue for (queue,) in self.execute(READY_QUEUES)]

    def claim_at_once(
        self, places: Sequence[tuple[str, str, int]], limit: int, worker: str, now: int, hold: str
    ) -> list[Row] | None:
        """Leave it to several steps, each of which is as quick."""

    def complete(self, rows: Sequence[Row]) -> Collection[int]:
        """Move jobs of which nothing but success is to be recorded to those that have ended."""
        moved = [row[0] for row in rows]
        if self.write(COMPLETE_JOBS, rows) < len(rows):
            moved = [seq for (seq,) in self.execute(COPIED_JOBS, (array(moved),)).fetchall()]
        if moved:
            self.execute(DELETE_JOB, (array(moved),))
        return moved
