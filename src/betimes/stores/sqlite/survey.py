"""What can be said of a file without using it: it is looked at, and nothing in it is created or changed.

The look has a connection of its own that cannot write, for a moment. The file itself is never opened by
hand: closing it would drop the locks that SQLite keeps on it for this whole process.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

from betimes.core.vitals import FileVitals, Trouble, Vitals
from betimes.errors import ConfigurationError, StoreUnavailable
from betimes.stores.sqlite.commit_lock import CommitLock
from betimes.stores.sqlite.failures import primary_code, translated
from betimes.stores.sqlite.inspection import CHECKED_BYTES, SMALLEST_BYTES
from betimes.stores.sqlite.mounts import refuse_network, refuse_other_names
from betimes.stores.sqlite.opening import (
    IS_SHARED,
    NAMES,
    READ_SCHEMA_VERSION,
    READ_STRATEGY,
    SCHEMA_VERSION,
    Location,
    has_wal_reset_fault,
    open_reader,
)
from betimes.stores.sqlite.room import disk_facts
from betimes.stores.sqlite.statements import statement

LATEST = statement("latest")

PATIENCE_S = 2.0
"""How long a look waits for whoever has locked the file."""
FINDINGS = 10
"""How many kinds of damage are named."""


def survey(where: Location, *, full: bool) -> Vitals:
    """Look at a file, whatever it is.

    Args:
        where: the file.
        full: check the whole file for damage, too.
    """
    path = where.path
    plain = Vitals(kind="sqlite", is_durable=True, place=str(path))
    if not path.parent.is_dir():
        problem = f"the folder {path.parent} does not exist; create it first"
        return replace(plain, trouble=Trouble.REFUSED, problem=problem)
    if not path.exists():
        return replace(plain, trouble=Trouble.MISSING, problem=f"{path} is not there")
    try:
        refuse_network(path)
        refuse_other_names(path)
        if not path.is_file():
            raise ConfigurationError(f"{path} is not a file; give the path of a file")
        file = _stat(path)
        if 0 < file.size < SMALLEST_BYTES:  # SQLite would take it for an empty one
            raise ConfigurationError(f"{path} is not an SQLite database: it has {file.size} bytes")
    except ConfigurationError as error:
        return replace(plain, trouble=Trouble.REFUSED, problem=_sentence(error))
    except OSError as error:
        problem = f"{path} cannot be looked at: {error.strerror}"
        return replace(plain, trouble=Trouble.UNAVAILABLE, problem=problem)
    return _inside(where, replace(plain, file=file), file, full=full)


def _stat(path: Path) -> FileVitals:
    found = path.stat()
    log_size, free, is_full = 0, None, False
    with suppress(OSError):
        log_size = log_of(path).stat().st_size
    with suppress(OSError):
        disk = disk_facts(path)
        free, is_full = disk.free_bytes, disk.is_full
    return FileVitals(
        size=found.st_size,
        log_size=log_size,
        free=free,
        is_full=is_full,
        mode=found.st_mode & 0o7777,
        is_writable=os.access(path, os.W_OK) and os.access(path.parent, os.W_OK),
        sqlite=sqlite3.sqlite_version,
        has_reset_fault=has_wal_reset_fault(),
        newest_schema=SCHEMA_VERSION,
    )


def _inside(where: Location, vitals: Vitals, file: FileVitals, *, full: bool) -> Vitals:
    try:
        with onlooker(replace(where, busy_timeout_s=min(where.busy_timeout_s, PATIENCE_S))) as sql:
            return _read(sql, vitals, file, full=full)
    except (sqlite3.Error, ConfigurationError, StoreUnavailable) as error:
        if _is_left_open(error):
            problem = f"{where.path} holds a transaction that a crash has left half done"
            return replace(vitals, trouble=Trouble.LEFT_OPEN, problem=problem)
        failure = translated(error, where.path)
        trouble = Trouble.UNAVAILABLE if isinstance(failure, StoreUnavailable) else Trouble.REFUSED
        return replace(vitals, trouble=trouble, problem=_sentence(failure))


def _is_left_open(error: BaseException) -> bool:
    """Say whether a file could not be read because it has to be rolled back first."""
    cause = error if isinstance(error, sqlite3.Error) else error.__cause__
    return getattr(cause, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY_ROLLBACK


def _read(sql: sqlite3.Connection, vitals: Vitals, file: FileVitals, *, full: bool) -> Vitals:
    names = {name for (name,) in sql.execute(NAMES)}
    ours = {name for name in names if name.startswith("betimes_")}
    schema = _schema(sql) if ours else 0
    is_shared = names != ours
    if schema:
        is_shared = is_shared or bool(sql.execute(IS_SHARED).fetchone()[0])
    file = replace(
        file,
        journal_mode=sql.execute("PRAGMA journal_mode").fetchone()[0],
        is_shared=is_shared,
        schema=schema,
        damage=_damage(sql) if full else None,
    )
    vitals = replace(vitals, file=file)
    if schema is None:
        problem = f"{vitals.place} has tables named betimes_* of another making"
        return replace(vitals, trouble=Trouble.REFUSED, problem=problem)
    if schema > SCHEMA_VERSION:
        problem = f"{vitals.place} has schema version {schema}; this Betimes knows up to {SCHEMA_VERSION}"
        return replace(vitals, trouble=Trouble.NEWER, problem=problem)
    if not full and file.size <= CHECKED_BYTES:
        finding = sql.execute("PRAGMA quick_check(1)").fetchone()[0]
        if finding != "ok":
            file = replace(file, damage=(finding,))
    if schema != SCHEMA_VERSION:
        return replace(vitals, file=file)
    strategy = sql.execute(READ_STRATEGY).fetchone()
    return replace(
        vitals,
        file=file,
        strategy=None if strategy is None else strategy[0],
        latest=sql.execute(LATEST).fetchone()[0],
    )


def _schema(sql: sqlite3.Connection) -> int | None:
    """Return the version of our tables; None: they are not ours."""
    try:
        row = sql.execute(READ_SCHEMA_VERSION).fetchone()
    except sqlite3.OperationalError as error:
        if primary_code(error) == sqlite3.SQLITE_ERROR:
            return None
        raise
    return row[0] if row is not None and isinstance(row[0], int) else None


def _damage(sql: sqlite3.Connection) -> tuple[str, ...]:
    found = [finding for (finding,) in sql.execute(f"PRAGMA integrity_check({FINDINGS})")]
    return () if found == ["ok"] else tuple(found)


@contextmanager
def onlooker(where: Location) -> Iterator[sqlite3.Connection]:
    """Open a connection that cannot write, for a look; no commit of ours goes on while it is opened.

    Nor can it roll back what a crashed writer has left half done: then it is refused.
    """
    has_log = log_of(where.path).exists()
    try:
        with _locked(where):
            sql = _reading(where)
        with closing(sql):
            yield sql
    finally:
        if not has_log:
            tidy(where)


def log_of(path: Path) -> Path:
    """Return the path of a file's write-ahead log."""
    return path.with_name(f"{path.name}-wal")


def tidy(where: Location) -> None:
    """Remove the empty log that a look has made of a file that nobody else has open, as any writer would."""
    with suppress(sqlite3.Error, OSError, StoreUnavailable), _locked(where) as is_locked:
        if is_locked and log_of(where.path).exists():
            with closing(open_reader(where, is_wal=False)) as sql:
                sql.execute(NAMES).fetchone()


@contextmanager
def _locked(where: Location) -> Iterator[bool]:
    """Keep our own commits and checkpoints away, if the file is one of ours and this user may; say so."""
    lock = CommitLock(where.path, patience_s=where.busy_timeout_s)
    is_ours = False
    if lock.path.exists():
        with suppress(OSError):  # who may not write to it cannot disturb anybody either
            lock.open()
            is_ours = True
    try:
        with lock if is_ours else nullcontext():
            yield is_ours
    finally:
        lock.close()


def _reading(where: Location) -> sqlite3.Connection:
    sql = open_reader(where, is_wal=True)
    try:
        sql.execute(NAMES).fetchone()  # only now it reads, and joins or makes the index of the log
    except BaseException:
        sql.close()
        raise
    return sql


def _sentence(error: BaseException) -> str:
    return str(error).rstrip(".")
