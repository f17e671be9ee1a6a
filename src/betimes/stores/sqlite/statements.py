"""The SQL: one statement a file, under `stores/sql/sqlite`, read once.

Statements take and return many rows in one step, because each step of a statement gives up the
interpreter's lock: with a hundred steps a turn, code that computes in another thread could hold up each of
them.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import chain
from typing import Any, TypeAlias

import msgspec

Row: TypeAlias = Sequence[Any]

CHUNKS = (64, 16, 4, 1)
"""How many rows go into one statement: few sizes, so that each is prepared once and kept by the driver."""

_ONE_ROW = re.compile(r"VALUES (\([?, \d]+\))")
_decode_records = msgspec.json.Decoder(list[Row]).decode


def _folder() -> Traversable:
    return files("betimes.stores") / "sql" / "sqlite"


@cache
def statement(name: str) -> str:
    """Return the statement of this name, without the comment that says what it is for.

    A module asks for its statements when it is imported, so that a missing file shows at once.
    """
    text = (_folder() / f"{name}.sql").read_text("utf-8")
    return "\n".join(line for line in text.splitlines() if not line.startswith("--")).rstrip(";\n ")


def migrations() -> list[tuple[int, str]]:
    """Return the steps from an empty file to today's schema, each with the version it leads to."""
    steps = [
        (int(entry.name.partition("_")[0]), entry.read_text("utf-8"))
        for entry in (_folder() / "migrations").iterdir()
        if entry.name.endswith(".sql")
    ]
    return sorted(steps)


class ManyRows:
    """A statement whose `VALUES` takes any number of rows."""

    __slots__ = ("_chunks",)

    def __init__(self, name: str) -> None:
        text = statement(name)
        one_row = _ONE_ROW.search(text)
        assert one_row is not None, f"{name}.sql has no VALUES with one row of question marks"
        before, row, after = text[: one_row.start(1)], one_row[1], text[one_row.end(1) :]
        self._chunks = [(size, before + ", ".join([row] * size) + after) for size in CHUNKS]

    def write(self, sql: sqlite3.Connection, rows: Sequence[Row]) -> int:
        """Carry the statement out for these rows, in order; return how many rows of the table it changed."""
        start = changed = 0
        for size, text in self._chunks:
            while len(rows) - start >= size:
                changed += sql.execute(text, list(chain.from_iterable(rows[start : start + size]))).rowcount
                start += size
        return changed


class Records:
    """A query of `record`s; its answer comes as one text, however many they are."""

    __slots__ = ("_one_by_one", "_together")

    def __init__(self, name: str) -> None:
        self._one_by_one = statement(name)
        self._together = f"SELECT group_concat(record) FROM ({self._one_by_one})"  # noqa: S608 - our own text

    def read(self, sql: sqlite3.Connection, values: Row) -> list[Row]:
        """Return the rows, in the query's order."""
        try:
            text = sql.execute(self._together, values).fetchone()[0]
        except sqlite3.DataError:
            # Together they are larger than any text may be.
            text = ",".join(record for (record,) in sql.execute(self._one_by_one, values))
        return _decode_records(f"[{text}]") if text else []
