"""What SQLite's errors mean for the caller: try again, or repair something first. None of them leaks raw."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from betimes.errors import ConfigurationError, StoreUnavailable

_UNAVAILABLE = {
    sqlite3.SQLITE_BUSY: "is locked by another connection",
    sqlite3.SQLITE_LOCKED: "is locked by another connection",
    sqlite3.SQLITE_FULL: "cannot grow: the disk is full; make room",
    sqlite3.SQLITE_IOERR: "cannot be read or written: the disk reports an error",
    sqlite3.SQLITE_READONLY: "is read-only: this process needs write access to the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: look at the path and its permissions",
    sqlite3.SQLITE_PERM: "cannot be opened: look at its permissions",
    sqlite3.SQLITE_NOMEM: "cannot be used: there is not enough memory",
    sqlite3.SQLITE_PROTOCOL: "is locked by another connection",
}
_DAMAGED = {
    sqlite3.SQLITE_CORRUPT: "is damaged; nothing was repaired or deleted. Restore a backup, or move the file "
    "(with its -wal and -shm) away and save what can be read by `sqlite3 FILE .recover`",
    sqlite3.SQLITE_NOTADB: "is not an SQLite database; nothing was changed. Give another path, or move the "
    "file away",
}


def primary_code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code; 0 where the driver itself raised."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def translated(error: BaseException, path: Path) -> BaseException:
    """Return the error to raise instead; one that is not SQLite's is returned as it is."""
    if not isinstance(error, sqlite3.Error):
        return error
    code = primary_code(error)
    detail = f"({error})"
    if code in _UNAVAILABLE:
        return StoreUnavailable(f"{path} {_UNAVAILABLE[code]} {detail}")
    if code in _DAMAGED:
        return ConfigurationError(f"{path} {_DAMAGED[code]} {detail}")
    return ConfigurationError(
        f"{path} cannot be used as a store: its tables are not what they should be {detail}"
    )
