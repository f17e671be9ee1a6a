"""What SQLite's errors mean for the caller: try again, or repair something first. None of them leaks raw."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from betimes.errors import ConfigurationError, StoreUnavailable
from betimes.stores.sqlite.room import is_disk_full

_UNAVAILABLE = {
    sqlite3.SQLITE_BUSY: ("locked", "is locked by another connection"),
    sqlite3.SQLITE_LOCKED: ("locked", "is locked by another connection"),
    sqlite3.SQLITE_FULL: ("full", "cannot grow: the disk is full; make room"),
    sqlite3.SQLITE_IOERR: ("disk", "cannot be read or written: the disk reports an error"),
    sqlite3.SQLITE_READONLY: (
        "read_only",
        "is read-only: this process needs write access to the file and its folder",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "",
        "cannot be opened: look at its path (how long is it?) and permissions, and how many files are open",
    ),
    sqlite3.SQLITE_PERM: ("", "cannot be opened: look at its permissions"),
    sqlite3.SQLITE_NOMEM: ("", "cannot be used: there is not enough memory"),
    sqlite3.SQLITE_PROTOCOL: ("locked", "is locked by another connection"),
}
"""By primary code: the word for programs (`StoreUnavailable.why`), and the words for people."""
_FULL_IN_DISGUISE = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
"""What SQLite also says on a full disk: where its index of the log cannot grow, or no file can be made."""
_DAMAGED = {
    sqlite3.SQLITE_CORRUPT: "is damaged; nothing was repaired or deleted. Restore a backup, or move the file "
    "(with its -wal and -shm) away and save what can be read by `sqlite3 FILE .recover`",
    sqlite3.SQLITE_NOTADB: "is not an SQLite database; nothing was changed. Give another path, or move the "
    "file away",
}


def primary_code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code; 0 where the driver itself raised."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def is_full(error: BaseException | None, path: Path) -> bool:
    """Say whether an error means that there is no room on the disk, whatever it calls itself."""
    if isinstance(error, StoreUnavailable):
        return error.why == "full"
    if not isinstance(error, sqlite3.Error):
        return False
    code = primary_code(error)
    return code == sqlite3.SQLITE_FULL or (code in _FULL_IN_DISGUISE and is_disk_full(path))


def translated(error: BaseException, path: Path) -> BaseException:
    """Return the error to raise instead; one that is not SQLite's is returned as it is."""
    if not isinstance(error, sqlite3.Error):
        return error
    code = sqlite3.SQLITE_FULL if is_full(error, path) else primary_code(error)
    detail = f"({error})"
    if code in _UNAVAILABLE:
        why, text = _UNAVAILABLE[code]
        return StoreUnavailable(f"{path} {text} {detail}", why=why)
    if code in _DAMAGED:
        return ConfigurationError(f"{path} {_DAMAGED[code]} {detail}")
    return ConfigurationError(
        f"{path} cannot be used as a store: its tables are not what they should be {detail}"
    )
