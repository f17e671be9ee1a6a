"""Inspecting a file before it is opened for writing: what is damaged is refused, and stays as it was.

Whoever opens a file for writing may change it by that alone: SQLite rolls back what a journal beside it
says, and copies the log that lies beside it when it closes. If the journal or the log is another file's
(somebody has put a copy in place, and left these), that destroys what could have been saved. So:

1. The look is by a connection that cannot write, nor copy the log when it is closed.
2. With a log that is not empty, the whole is checked, indexes included: a log of another file shows there,
   or by the number of the last job, which never goes back.
3. A file with a journal that is to be rolled back cannot be looked at like that. It is rolled back in a
   copy, and the copy is checked.

What SQLite itself cannot tell, this cannot either: a log that was made from the very file, but later than
the copy in its place, is taken for its own.
"""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from betimes.stores.sqlite.commit_lock import CommitLock
from betimes.stores.sqlite.failures import translated
from betimes.stores.sqlite.statements import statement

READ_LAST_SEQ = statement("read_last_seq")

SMALLEST_BYTES = 512
"""The smallest page that a database can have."""
CHECKED_BYTES = 64 * 1024 * 1024
"""A file up to this size is checked for damage when it is opened; a larger one would take too long."""


def inspect(path: Path, lock: CommitLock, *, busy_timeout_s: float) -> None:
    """Refuse a file that is damaged, or no database.

    The lock, which is open, is held only until the file is: others need not wait for the check.

    Raises:
        ConfigurationError: it is; nothing was changed.
        StoreUnavailable: it cannot be read now.
    """
    size = path.stat().st_size
    if not 0 < size <= CHECKED_BYTES:
        return
    if size < SMALLEST_BYTES:  # SQLite would take it for an empty one, and write over it
        raise translated(_finding(sqlite3.SQLITE_NOTADB, f"it has {size} bytes"), path)
    try:
        with closing(_onlooker(path, "mode=ro", busy_timeout_s)) as sql:
            with lock:
                sql.execute("BEGIN")
                sql.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # only now is the file opened
                has_log = _has_log(path)
                if has_log:
                    _refuse_earlier_log(sql, path, busy_timeout_s)
            _check(sql, whole=has_log)
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) != sqlite3.SQLITE_READONLY_ROLLBACK:
            raise translated(error, path) from error
        _inspect_copy(path, busy_timeout_s)


def _refuse_earlier_log(sql: sqlite3.Connection, path: Path, busy_timeout_s: float) -> None:
    """Refuse a log by which fewer jobs have been submitted than by the file without it."""
    with closing(_onlooker(path, "immutable=1", busy_timeout_s)) as alone:
        try:
            ((before,),) = alone.execute(READ_LAST_SEQ).fetchall()
        except (sqlite3.Error, ValueError):
            return  # there is nothing of ours in it but by the log
    rows = sql.execute(READ_LAST_SEQ).fetchall()
    if not rows or rows[0][0] < before:
        raise _finding(sqlite3.SQLITE_CORRUPT, "the log beside it (-wal) is not its own")


def _inspect_copy(path: Path, busy_timeout_s: float) -> None:
    """Roll a copy back, and check it."""
    with tempfile.TemporaryDirectory(prefix="betimes-") as folder:
        copy = Path(folder) / "copy.db"
        try:
            # It is read through SQLite: closing it by hand would drop the locks that this process has on it.
            with closing(_onlooker(path, "immutable=1", busy_timeout_s)) as sql:
                copy.write_bytes(sql.serialize())
            journal = path.with_name(f"{path.name}-journal")
            copy.with_name(f"{copy.name}-journal").write_bytes(journal.read_bytes())
        except OSError:
            return  # there is no room for a copy, or somebody else has just rolled it back
        try:
            with closing(sqlite3.connect(copy)) as sql:
                _check(sql, whole=True)
        except sqlite3.Error as error:
            raise translated(error, path) from error


def _onlooker(path: Path, how: str, busy_timeout_s: float) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?{how}", uri=True, timeout=busy_timeout_s, isolation_level=None)


def _has_log(path: Path) -> bool:
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size > 0
    except OSError:
        return False


def _check(sql: sqlite3.Connection, *, whole: bool) -> None:
    pragma = "PRAGMA integrity_check(1)" if whole else "PRAGMA quick_check(1)"
    finding = sql.execute(pragma).fetchone()[0]
    if finding != "ok":
        raise _finding(sqlite3.SQLITE_CORRUPT, finding)


def _finding(code: int, text: str) -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError(text)
    error.sqlite_errorcode = code
    return error
