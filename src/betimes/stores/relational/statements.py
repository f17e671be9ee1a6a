"""Statements by their names: the code says which and with what values, each database says the rest.

The text of a statement is a file of its database's, `stores/sql/<database>/<name>.sql`. What a statement
takes and answers is the same for all. Statements take and return many rows in one step, because a step
costs: on SQLite it gives up the interpreter's lock, which code that computes in another thread may then hold;
on a server it is a round trip.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Protocol, TypeAlias

from betimes.core.job import Micros

Row: TypeAlias = Sequence[Any]


class Answer(Protocol):
    """What a statement has come to."""

    @property
    def rowcount(self) -> int:
        """How many rows it has changed."""

    def fetchone(self) -> Any:
        """Return the next row; None: there is none."""

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""

    def __iter__(self) -> Iterator[Any]:
        """Go through the rows that are left."""


class Sql(Protocol):
    """A connection within its transaction. `statement`, `Records` and `ManyRows` give the names.

    Attributes:
        is_alone: whether nobody else can write before this transaction is over. Otherwise the rows that it
            reads to change them are locked by its queries themselves, one by one, and what is not a row is
            locked by name.
    """

    is_alone: bool

    def execute(self, name: str, values: Row = ()) -> Answer:
        """Carry out a statement."""

    def read(self, name: str, values: Row) -> list[Row]:
        """Return the rows of a query, in its order."""

    def write(self, name: str, rows: Sequence[Row]) -> int:
        """Carry out a statement for these rows, in order; return how many rows of the table it changed."""

    def numbers(self, count: int) -> Sequence[int]:
        """Return numbers for so many new jobs, each larger than all that were given out before."""

    def lock_names(self, names: Collection[str]) -> None:
        """Have others who lock one of these names wait until this transaction is over."""

    def keep_order(self, *, wait: bool) -> Micros | None:
        """Become the one who keeps the order of jobs with gates or tenants, until this transaction is over.

        Args:
            wait: for whoever keeps it now.

        Returns:
            The store's time, which is no earlier than that of whoever kept it before; None: somebody else
            keeps it.
        """

    def ready_queues(self) -> list[str]:
        """Return the queues that may have claimable jobs without gates."""

    def claim_at_once(
        self, places: Sequence[tuple[str, str, int]], limit: int, worker: str, now: int, hold: str
    ) -> list[Row] | None:
        """Claim jobs without gates: the first in the order, and of each lane no more than it has free.

        Args:
            places: queues and lanes, each with how many jobs the lane has room for.
            limit: the most in all.
            worker: whose they are.
            now: from when on.
            hold: the ids that are to be held back, a JSON array.

        Returns:
            Their records as they are now, in any order; None: here it takes several steps.
        """

    def complete(self, rows: Sequence[Row]) -> Collection[int]:
        """Move jobs of which nothing but success is to be recorded to those that have ended.

        Args:
            rows: number, fence, instant of the end, result, and when to forget it.

        Returns:
            The numbers of those that were moved. Whatever is stale, was asked to stop, is waited for or has a
            past stays, to be looked at one by one.
        """


def statement(name: str) -> str:
    """Return the name by which a statement is carried out with `Sql.execute`."""
    return name


class Records:
    """A query that answers with whole records, in the order in which `rows` reads them."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def read(self, sql: Sql, values: Row) -> list[Row]:
        """Return the records, in the query's order."""
        return sql.read(self._name, values)


class ManyRows:
    """A statement that takes any number of rows."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def write(self, sql: Sql, rows: Sequence[Row]) -> int:
        """Carry the statement out for these rows, in order; return how many rows of the table it changed."""
        return sql.write(self._name, rows) if rows else 0


def folder_of(database: str) -> Traversable:
    """Return where a database's statements lie."""
    return files("betimes.stores") / "sql" / database


@cache
def text_of(database: str, name: str) -> str:
    """Return the text of a statement, without the comment that says what it is for."""
    text = (folder_of(database) / f"{name}.sql").read_text("utf-8")
    return "\n".join(line for line in text.splitlines() if not line.startswith("--")).rstrip(";\n ")


def migrations_of(database: str) -> list[tuple[int, str]]:
    """Return the steps from an empty database to today's schema, each with the version it leads to."""
    steps = [
        (int(entry.name.partition("_")[0]), entry.read_text("utf-8"))
        for entry in (folder_of(database) / "migrations").iterdir()
        if entry.name.endswith(".sql")
    ]
    return sorted(steps)
