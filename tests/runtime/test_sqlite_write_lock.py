"""Getting the write lock beside others: patiently, and however little they leave of it."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.runtime.sqlite_scene import job, look, opened

from betimes.stores.sqlite.write_lock import begin, patience_ms

WAIT_S = 30


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "app.db")) as sql:
        sql.execute("CREATE TABLE entry (number INTEGER)")
    return tmp_path / "app.db"


@pytest.fixture
def sql(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, timeout=0.05, isolation_level=None)) as connection:
        yield connection


def test_it_begins_a_transaction_and_leaves_the_connection_s_patience(sql: sqlite3.Connection) -> None:
    begin(sql, patience_ms=patience_ms(sql))
    assert sql.in_transaction
    assert patience_ms(sql) == 50


def test_whoever_is_kept_out_too_long_hears_so_and_keeps_its_patience(
    sql: sqlite3.Connection, path: Path
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            begin(sql, patience_ms=50)
    assert (sql.in_transaction, patience_ms(sql)) == (False, 50)


def test_another_fault_is_raised_at_once(sql: sqlite3.Connection) -> None:
    sql.execute("BEGIN")
    with pytest.raises(sqlite3.OperationalError, match="within a transaction"):
        begin(sql, patience_ms=3_600_000)
    assert patience_ms(sql) == 3_600_000


def test_it_is_got_as_soon_as_it_is_free(sql: sqlite3.Connection, path: Path) -> None:
    is_held, is_tried = threading.Event(), threading.Event()

    def hold() -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            is_held.set()
            assert is_tried.wait(WAIT_S)
            other.execute("COMMIT")

    class Tried:
        def execute(self, text: str, /) -> sqlite3.Cursor:
            try:
                return sql.execute(text)
            except sqlite3.OperationalError:
                is_tried.set()
                raise

    holder = threading.Thread(target=hold, daemon=True)
    holder.start()
    assert is_held.wait(WAIT_S)
    begin(Tried(), patience_ms=WAIT_S * 1000)
    holder.join(WAIT_S)
    assert sql.in_transaction


def test_a_store_gets_its_turn_beside_an_application_that_never_stops_writing(path: Path) -> None:
    is_done = threading.Event()
    written: list[int] = []

    def write() -> None:
        with closing(sqlite3.connect(path, timeout=WAIT_S)) as conn:
            while not is_done.is_set():
                conn.execute("INSERT INTO entry VALUES (1)")
                conn.commit()
                written.append(1)

    async def main() -> None:
        async with opened(path) as store:
            try:
                for number in range(20):
                    await store.submit([job(f"job-{number}")])
            finally:
                is_done.set()

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    asyncio.run(main())
    writer.join(WAIT_S)
    assert look(path, "SELECT count(*) FROM entry") == [(len(written),)]
    assert look(path, "SELECT count(*) FROM betimes_job") == [(20,)]
