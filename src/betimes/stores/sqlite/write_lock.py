"""Beginning a transaction that writes, where others write, too.

SQLite's own way of waiting for the write lock sleeps up to a tenth of a second between tries. Whoever waits
so beside an application that writes one transaction after the other, and lets go of the lock for a blink
only, may never get it. So it is tried every few milliseconds instead.
"""

from __future__ import annotations

import sqlite3
import threading
from typing import Protocol

from betimes.stores.sqlite.failures import primary_code

_WAITS_S = (0.0005, 0.001, 0.001, 0.002, 0.003)
"""How long to wait between tries; the last one goes on. Odd, so as not to keep step with somebody else."""

_waiting = threading.Event()  # never set: it is there to wait by, and is nobody's


class Executes(Protocol):
    """A connection, or what stands for one."""

    def execute(self, text: str, /) -> sqlite3.Cursor:
        """Carry out a statement."""
        ...


def patience_ms(sql: Executes) -> int:
    """Return how long a connection waits for others' locks."""
    patience: int = sql.execute("PRAGMA busy_timeout").fetchone()[0]
    return patience


def begin(sql: Executes, *, patience_ms: int) -> None:
    """Begin a transaction with the write lock; the connection's own patience is `patience_ms` afterwards.

    Raises:
        sqlite3.OperationalError: somebody else has had the lock for that long (SQLITE_BUSY), or another.
    """
    sql.execute("PRAGMA busy_timeout = 0")
    try:
        _try_to_begin(sql, patience_ms / 1000)
    finally:
        sql.execute(f"PRAGMA busy_timeout = {patience_ms}")


def _try_to_begin(sql: Executes, patience_s: float) -> None:
    waited_s = 0.0
    tries = 0
    while True:
        try:
            sql.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if primary_code(error) != sqlite3.SQLITE_BUSY or waited_s >= patience_s:
                raise
        else:
            return
        pause_s = _WAITS_S[min(tries, len(_WAITS_S) - 1)]
        _waiting.wait(pause_s)
        waited_s += pause_s
        tries += 1
