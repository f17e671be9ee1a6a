"""Copies of a file as it is at one instant, while others go on working with it.

The copy is read within one read transaction, so nothing that is committed meanwhile can make it start again.
In WAL mode nobody waits for it; with a rollback journal, commits wait until it is done. What it makes is read
back and checked before it counts.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from betimes.errors import ConfigurationError, StoreUnavailable
from betimes.stores.sqlite.failures import translated
from betimes.stores.sqlite.opening import NAMES, Location
from betimes.stores.sqlite.survey import onlooker

PAGES_A_STEP = 1024


def copy_file(where: Location, target: Path, *, tell: Callable[[int, int], None]) -> int:
    """Copy a store's file; return the size of the copy in bytes.

    Args:
        where: the store's file.
        target: where the copy is to be; it belongs to its user alone.
        tell: is called now and then with the pages copied and their number in all.

    Raises:
        ConfigurationError: there is no such store, or the target is there already, or cannot be.
        StoreUnavailable: the file cannot be read now, or there is no room; no copy is left.
    """
    if not where.path.is_file():
        raise ConfigurationError(f"there is no file {where.path} to copy")
    if not target.parent.is_dir():
        raise ConfigurationError(f"the folder {target.parent} does not exist; create it first")
    try:
        os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        raise ConfigurationError(f"{target} is there already: name a file that is not") from None
    except OSError as error:
        raise StoreUnavailable(f"{target} cannot be made: {error.strerror}") from error
    try:
        _copy(where, target, tell)
    except BaseException as error:
        for end in ("", "-journal", "-wal", "-shm"):
            target.with_name(target.name + end).unlink(missing_ok=True)
        if isinstance(error, sqlite3.Error):
            raise translated(error, target) from error
        raise
    return target.stat().st_size


def _copy(where: Location, target: Path, tell: Callable[[int, int], None]) -> None:
    with onlooker(where) as source, closing(sqlite3.connect(target)) as copy:
        source.execute("BEGIN")
        if not any(name.startswith("betimes_") for (name,) in source.execute(NAMES)):
            raise ConfigurationError(f"{where.path} is no store of Betimes")
        source.backup(copy, pages=PAGES_A_STEP, progress=lambda _, left, total: tell(total - left, total))
        finding = copy.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if finding != "ok":
            raise StoreUnavailable(f"{where.path} is damaged, and so would the copy be: {finding}")
