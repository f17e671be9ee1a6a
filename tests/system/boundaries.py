"""The boundaries of a SQLite store, counted, and death at one of them.

They are counted from outside: the connections that the store opens are of a class of this module. A boundary
is passed before and after each BEGIN IMMEDIATE, COMMIT, ROLLBACK, checkpoint, change of the journal mode and
close of a file, and before each answer is given to whoever called.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from typing import Any

from tests.system import evidence

_COUNTED = ("BEGIN IMMEDIATE", "COMMIT", "ROLLBACK", "PRAGMA wal_checkpoint", "PRAGMA journal_mode")

WRITES_TO_CHECKPOINT = 40


class Boundaries:
    """Counts them over all threads of this process, and kills it at the one that is fatal (0: at none).

    Or so many seconds later, wherever it is by then: in the middle of a commit or a checkpoint, say.
    """

    def __init__(self, fatal: int, into_s: float) -> None:
        self._fatal = fatal
        self._into_s = into_s
        self._lock = threading.Lock()
        self.passed = 0
        self.names: set[str] = set()

    def reach(self, name: str) -> None:
        with self._lock:
            self.passed += 1
            self.names.add(name)
            if self.passed == self._fatal:
                if self._into_s:
                    threading.Timer(self._into_s, die).start()
                else:
                    die()

    def watch(self) -> None:
        """Count from now on; before the store is opened. Checkpoints come sooner, so that some do at all."""
        from betimes.stores.relational.operation import Operation  # noqa: PLC0415
        from betimes.stores.sqlite import writer  # noqa: PLC0415 - it imports sqlite3

        assert vars(writer)["WRITES_TO_CHECKPOINT"] > WRITES_TO_CHECKPOINT
        vars(writer)["WRITES_TO_CHECKPOINT"] = WRITES_TO_CHECKPOINT
        connect = sqlite3.connect

        def connect_watched(*args: Any, **kwargs: Any) -> sqlite3.Connection:
            factory = kwargs.pop("factory", sqlite3.Connection)
            watched = type("Watched", (_Watched, factory), {"boundaries": self})
            return connect(*args, factory=watched, **kwargs)

        sqlite3.connect = connect_watched  # type: ignore[assignment] # it is called as it always was
        resolve = Operation.resolve

        def resolve_later(operation: Operation) -> None:
            self.reach("before an answer")
            resolve(operation)

        Operation.resolve = resolve_later  # type: ignore[method-assign, assignment] # the point of it


def die() -> None:
    evidence.note("cut")
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


class _Watched(sqlite3.Connection):
    """Comes before the class of connections that the store asks for."""

    boundaries: Boundaries
    _is_writing = False

    def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
        word = next((word for word in _COUNTED if sql.startswith(word)), None)
        self._is_writing |= word == "BEGIN IMMEDIATE"
        if word is None or not (self._is_writing or word.startswith("PRAGMA")):
            return super().execute(sql, *args)
        self.boundaries.reach(f"before {word}")
        cursor = super().execute(sql, *args)
        self._is_writing = word == "BEGIN IMMEDIATE"
        self.boundaries.reach(f"after {word}")
        return cursor

    def close(self) -> None:
        self.boundaries.reach("before a close")
        super().close()
        self.boundaries.reach("after a close")
