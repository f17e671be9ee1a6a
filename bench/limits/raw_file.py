"""Bare statements on the very tables that Betimes uses, synchronous=FULL; a thread with group commit.

The tables are those of a store that Betimes made, with one of its rows as the pattern for new ones, so that
rows and indexes are the same. Nothing is decided and nothing checked.
"""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from itertools import chain
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, ClassVar

CACHE_KIB = 64 * 1024
FAR = 1_000_000_000
CHUNK = 50


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


class RawFile:
    """A connection with the statements of a whole life: insert, claim, finish.

    Args:
        path: a file with at least one job of Betimes's making, the pattern.

    Attributes:
        VARYING: what differs from job to job; only that is bound, and the rest stands in the statement.
    """

    VARYING: ClassVar[tuple[str, ...]] = ("seq", "id", "payload", "submitted_at", "run_at", "sort_key")

    def __init__(self, path: Path) -> None:
        self.sql = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.sql.execute("PRAGMA synchronous = FULL")
        self.sql.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        assert self.sql.execute("PRAGMA journal_mode").fetchone() in {("wal",), ("delete",)}
        self._numbers = itertools.count(FAR)
        pattern = self._pattern()
        self._queue = (pattern["queue"], pattern["lane"])
        self._same = tuple(pattern[name] for name in self.VARYING[2:])
        fixed = {name: _literal(value) for name, value in pattern.items() if name not in self.VARYING}
        row = f"({', '.join(['?'] * len(self.VARYING) + list(fixed.values()))})"
        head = f"INSERT INTO betimes_job ({', '.join([*self.VARYING, *fixed])}) VALUES "
        self._insert = {size: head + ", ".join([row] * size) for size in (CHUNK, 1)}
        ended = {name: name for name in self._columns("betimes_finished")}
        ended |= {
            "status": "'completed'",
            "finished_at": "started_at + 1",
            "result": "'null'",
            "forget_at": "NULL",
        }
        self._finish = (
            f"INSERT INTO betimes_finished ({', '.join(ended)}) "
            f"SELECT {', '.join(ended.values())} FROM betimes_job"
        )
        self._claim = """
            UPDATE betimes_job SET status = 'running', worker = 'limit', started_at = run_at + 1,
                attempt = attempt + 1, fence = fence + 1
            WHERE seq IN (SELECT seq FROM betimes_job
                WHERE status = 'ready' AND parked IS NULL AND gates IS NULL AND queue = ? AND lane = ?
                ORDER BY sort_key, seq LIMIT ?)
            RETURNING seq, id, task, payload, attempt, fence
        """

    def _columns(self, table: str) -> list[str]:
        return [row[1] for row in self.sql.execute(f"PRAGMA table_info({table})")]

    def _pattern(self) -> dict[str, Any]:
        columns = self._columns("betimes_job")
        row = self.sql.execute(f"SELECT {', '.join(columns)} FROM betimes_job LIMIT 1").fetchone()
        return dict(zip(columns, row, strict=True))

    def row(self) -> tuple[Any, ...]:
        """Make what differs from job to job, of one more; its number comes first."""
        number = next(self._numbers)
        return (number, f"{number:036x}", *self._same)

    def insert(self, rows: list[tuple[Any, ...]]) -> None:
        """Insert rows, as many as possible with one statement."""
        self.write(self._insert, rows)

    def write(self, statements: dict[int, str], rows: list[tuple[Any, ...]]) -> None:
        """Write rows with statements that take so many of them."""
        start = 0
        for size, statement in statements.items():
            while len(rows) - start >= size:
                self.sql.execute(statement, list(chain.from_iterable(rows[start : start + size])))
                start += size

    def claim(self, limit: int) -> list[tuple[Any, ...]]:
        """Mark jobs as running and return what it takes to run them."""
        return self.sql.execute(self._claim, (*self._queue, limit)).fetchall()

    def finish(self, claimed: list[tuple[Any, ...]]) -> None:
        """Move jobs to the ended ones."""
        if claimed:
            numbers = [job[0] for job in claimed]
            where = f" WHERE seq IN ({', '.join('?' * len(numbers))})"
            self.sql.execute(self._finish + where, numbers)
            self.sql.execute(f"DELETE FROM betimes_job{where}", numbers)


class GroupWriter:
    """A thread that carries out whatever has gathered in one transaction, and answers all together."""

    def __init__(self, file: RawFile) -> None:
        self._file = file
        self._queue: SimpleQueue[tuple[str, Any, asyncio.Future[Any]] | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        Thread(target=self._serve, daemon=True).start()

    def call(self, what: str, argument: Any) -> asyncio.Future[Any]:
        """Have a method of the file called with an argument; rows to insert go together."""
        future = self._loop.create_future()
        self._queue.put((what, argument, future))
        return future

    def _serve(self) -> None:
        get = self._queue.get_nowait
        while (first := self._queue.get()) is not None:
            batch = [first]
            try:
                while (more := get()) is not None:
                    batch.append(more)
            except Empty:
                pass
            self._file.sql.execute("BEGIN IMMEDIATE")
            rows = [argument for what, argument, _ in batch if what == "insert"]
            if rows:
                self._file.insert(rows)
            answers = [
                None if what == "insert" else getattr(self._file, what)(argument)
                for what, argument, _ in batch
            ]
            self._file.sql.execute("COMMIT")
            futures = [future for _, _, future in batch]
            self._loop.call_soon_threadsafe(self._answer, futures, answers)

    @staticmethod
    def _answer(futures: list[asyncio.Future[Any]], answers: list[Any]) -> None:
        for future, answer in zip(futures, answers, strict=True):
            future.set_result(answer)
