"""The statements of PostgreSQL mean what those of SQLite mean: the same rows, answers and counts."""

from __future__ import annotations

import asyncio
import json
import operator
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.sqlite_scene import opened
from tests.runtime.statement_cases import CHANGES, LOOKS, SCENE, SINGLY, WRITES, Values

from betimes.stores.postgres.opening import prepare
from betimes.stores.postgres.statements import PostgresSql
from betimes.stores.postgres.target import target_of
from betimes.stores.postgres.wire import Wire
from betimes.stores.relational.statements import Row, Sql, folder_of, text_of
from betimes.stores.sqlite.statements import SqliteSql

ALIKE = {
    entry.name.removesuffix(".sql")
    for entry in folder_of("sqlite").iterdir()
    if (folder_of("postgres") / entry.name).is_file()
} - {"names", "counts", "read_schema_version"}
"""What both databases have, but for what each does in its own way."""

TABLES = (
    "job", "finished", "key", "dependency", "worker", "worker_known", "paused_queue", "schedule", "fire",
    "rule", "gate", "permit", "line", "tenant", "log",
)  # fmt: skip


class Pair:
    """The same store on both databases."""

    def __init__(self, lite: sqlite3.Connection, wire: Wire) -> None:
        self._lite = lite
        self._wire = wire
        self._sqls: tuple[Sql, Sql] = (SqliteSql(lite), PostgresSql(wire))

    def both(self, ask: Callable[[Sql], Any]) -> tuple[Any, Any]:
        """What each of them says."""
        first, second = map(ask, self._sqls)
        return first, second

    def write(self, name: str, rows: Sequence[Row]) -> tuple[int, int]:
        """How many rows each of them says that it has written."""
        if name == "complete_jobs":
            first, second = (len(sql.complete(rows)) for sql in self._sqls)
        else:
            first, second = (sql.write(name, rows) for sql in self._sqls)
        return first, second

    def rows(self, table: str) -> tuple[list[Any], list[Any]]:
        """What is in a table of each."""
        names = [row[1] for row in self._lite.execute(f"PRAGMA table_info(betimes_{table})")]
        query = f"SELECT {', '.join(names)} FROM betimes_{table}"
        found = self._lite.execute(query).fetchall(), self._wire.run(query).fetchall()
        return _sorted(found[0]), _sorted(found[1])


@pytest.fixture
def pair(tmp_path: Path, postgres_url: str) -> Iterator[Pair]:
    """Both databases, with the same rows in every table."""

    async def make() -> None:
        async with opened(tmp_path / "jobs.db"):
            pass

    asyncio.run(make())
    target = target_of(postgres_url)
    wire = Wire(target, monotonic=lambda: 0.0)
    try:
        prepare(wire, target, "priority")
        wire.begin()
        with closing(sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)) as lite:
            made = Pair(lite, wire)
            for name, rows in SCENE.items():
                made.write(name, rows)
            for name, values in SINGLY:
                made.both(partial(_execute, name=name, values=values))
            yield made
    finally:
        wire.close()


def _execute(sql: Sql, name: str, values: Values) -> tuple[int, list[Any]]:
    """How many rows a statement has changed, and which it gives back."""
    answer = sql.execute(name, values)
    rows = _sorted(answer.fetchall()) if "RETURNING" in text_of("postgres", name) else []
    return len(rows) or answer.rowcount, rows


def _sorted(rows: Sequence[Any]) -> list[Any]:
    return sorted((_plain(row) for row in rows), key=repr)


def _plain(row: Any) -> list[Any]:
    """A row with the types of both databases made one."""
    return [_value(value) for value in row]


def _value(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, tuple):
        return list(value)
    # The jobs of a schedule: a text in one database, an array in the other.
    return json.loads(value) if isinstance(value, str) and value.startswith("[") else value


RELATIONAL = Path(__file__).parents[2] / "src" / "betimes" / "stores" / "relational"
RECORDS = {
    name
    for path in RELATIONAL.glob("*.py")
    for name in re.findall(r'Records\(\s*"(\w+)"', path.read_text("utf-8"))
}


def ask(name: str, values: Values) -> Callable[[Sql], list[Any]]:
    """What reads the answer of a query; in its order, if it says one."""
    is_ordered = re.search(r"^\S.*ORDER BY|^ORDER BY", text_of("postgres", name), re.MULTILINE)

    def answer(sql: Sql) -> list[Any]:
        rows = sql.read(name, values) if name in RECORDS else sql.execute(name, values).fetchall()
        return [_plain(row) for row in rows] if is_ordered else _sorted(rows)

    return answer


def test_every_statement_that_both_have_is_compared() -> None:
    assert {name for name, _ in (*LOOKS, *CHANGES, *WRITES, *SINGLY)} | set(SCENE) == ALIKE
    assert len(ALIKE) > 100


def test_both_begin_alike(pair: Pair) -> None:
    for table in TABLES:
        lite, post = pair.rows(table)
        assert lite == post, table
        assert lite or table == "permit", table


def test_queries_answer_alike(pair: Pair) -> None:
    empty: set[str] = {name for name, _ in LOOKS}
    for name, values in LOOKS:
        lite, post = pair.both(ask(name, values))
        assert lite == post, (name, values)
        if any(map(any, lite)):
            empty.discard(name)
    assert empty == {"read_virtual_time", "read_pruned"}, "of these there is nothing to tell"


def test_rows_are_written_alike(pair: Pair) -> None:
    for name, rows in WRITES:
        lite, post = pair.write(name, rows)
        assert post > 0, name
        assert lite == post or lite < 0, name  # the driver does not count what begins with WITH
        for table in TABLES:
            assert operator.eq(*pair.rows(table)), (name, table)


def test_changes_are_made_alike(pair: Pair) -> None:
    pair.write("keep_permit", dict(WRITES)["keep_permit"])
    for name, values in CHANGES:
        lite, post = pair.both(partial(_execute, name=name, values=values))
        assert lite == post, (name, values)
        for table in TABLES:
            assert operator.eq(*pair.rows(table)), (name, table)
    for name in ("read_strategy", "read_pruned", "read_virtual_time"):
        assert operator.eq(*pair.both(ask(name, ())))
