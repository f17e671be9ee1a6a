"""Opening the file: created if it is not there, refused if it is not ours to use, never repaired.

A file that we create belongs to its user alone (mode 0600). Its journal mode is settled then, WAL unless the
rollback journal is asked for, and never changed afterwards, since that takes a moment in which nobody else
has the file open. A file that others commit to as well, which is one with tables that are not ours or whose
jobs have been submitted in callers' transactions, must not be in WAL mode on SQLite versions with the
WAL-reset fault (see `commit_lock`).
"""

from __future__ import annotations

import errno
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from betimes.errors import ConfigurationError, SchemaMismatch, StoreUnavailable
from betimes.stores.sqlite.commit_lock import CommitLock
from betimes.stores.sqlite.failures import translated
from betimes.stores.sqlite.forks import OurConnection, identity, refuse_inherited
from betimes.stores.sqlite.inspection import inspect
from betimes.stores.sqlite.mounts import refuse_network, refuse_other_names
from betimes.stores.sqlite.room import RESERVE_BYTES
from betimes.stores.sqlite.statements import migrations, statement
from betimes.stores.sqlite.write_lock import begin, patience_ms

OLDEST_SQLITE = (3, 38, 0)
"""The first with everything used here: STRICT tables, RETURNING, JSON built in."""

APPLICATION_ID = 0x42746D73
CACHE_KIB = 32 * 1024
"""Memory for pages of the file, for writing; a large backlog's indexes should fit."""
LOG_BYTES = 64 * 1024 * 1024
"""The log's size on disk after a burst; it is cut when it is next begun anew."""
JOURNALS = ("wal", "delete")
"""The journal modes that a file can be made with: SQLite's own names."""

SCHEMA_VERSION = migrations()[-1][0]

NAMES = statement("names")
READ_SCHEMA_VERSION = statement("read_schema_version")
READ_STRATEGY = statement("read_strategy")
WRITE_STRATEGY = statement("write_strategy")
HAS_JOBS = statement("has_jobs")
IS_SHARED = statement("is_shared")


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where the store is, and how it is to be used there.

    Attributes:
        path: the file's real path.
        busy_timeout_s: how long to wait for those who lock it.
        journal: the journal mode asked for; None: none is.
        reserve_bytes: how much of the disk is kept for what must be recorded although it is full.
    """

    path: Path
    busy_timeout_s: float
    journal: str | None = None
    reserve_bytes: int = RESERVE_BYTES


def has_wal_reset_fault(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> bool:
    """Say whether a version of SQLite has the WAL-reset fault (source: sqlite.org/wal.html#walresetbug)."""
    is_backported = (3, 44, 6) <= version < (3, 45) or (3, 50, 7) <= version < (3, 51)
    return version < (3, 51, 3) and not is_backported


def location(
    path: str | Path,
    *,
    busy_timeout_s: float,
    journal: str | None = None,
    reserve_bytes: int = RESERVE_BYTES,
) -> Location:
    """Return where the store is to be.

    Raises:
        ConfigurationError: the path names no file, there is no such journal mode, or no such size.
    """
    if reserve_bytes < 0:
        raise ConfigurationError(f"reserve_bytes is {reserve_bytes}: give a size in bytes, or 0 for none")
    if journal is not None and journal not in JOURNALS:
        raise ConfigurationError(
            f"journal is {journal!r:.100}; it is one of {', '.join(map(repr, JOURNALS))}"
        )
    text = os.fspath(path)
    if not text or text == ":memory:":
        raise ConfigurationError(f"path={text!r} names no file; for a store in memory use the memory store")
    try:
        # One file must not go by two names, or it would have two locks.
        real = Path(text).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigurationError(f"path={text!r:.200} names no file: {error}") from error
    return Location(
        path=real,
        busy_timeout_s=busy_timeout_s,
        journal=journal,
        reserve_bytes=reserve_bytes,
    )


def open_writer(where: Location, lock: CommitLock, *, strategy: str | None) -> sqlite3.Connection:
    """Open the file for writing, creating what an empty one needs.

    Raises:
        ConfigurationError, SchemaMismatch, StoreUnavailable: as `Store.open`; nothing was changed.
    """
    _check_version()
    refuse_network(where.path)
    refuse_other_names(where.path)
    refuse_inherited(where.path)
    _ensure_file(where.path)
    try:
        lock.open()
        inspect(where.path, lock, busy_timeout_s=where.busy_timeout_s)
        with lock:
            sql = _connect(where)
            sql.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
            sql.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}")
            try:
                _prepare(sql, where, strategy)
            except BaseException:
                sql.close()
                raise
    except BaseException as error:
        lock.close()
        if isinstance(error, StoreUnavailable) or not isinstance(error, OSError | sqlite3.Error):
            raise
        raise unusable(where.path, error) from error
    return sql


def open_reader(where: Location, *, is_wal: bool) -> sqlite3.Connection:
    """Open the file for looking only.

    With a rollback journal the file itself must be open for writing, or a reader could not roll back what a
    crashed writer has left; the connection refuses to write all the same.
    """
    refuse_inherited(where.path)
    uri = f"{where.path.as_uri()}?mode={'ro' if is_wal else 'rw'}"
    try:
        sql = _connect(where, uri)
        sql.execute("PRAGMA query_only = 1")
    except sqlite3.Error as error:
        raise translated(error, where.path) from error
    return sql


def is_wal(sql: sqlite3.Connection) -> bool:
    """Say whether the file is in WAL mode."""
    return bool(sql.execute("PRAGMA journal_mode").fetchone()[0] == "wal")


def _connect(where: Location, uri: str | None = None) -> OurConnection:
    sql = sqlite3.connect(
        uri or where.path,
        timeout=where.busy_timeout_s,
        isolation_level=None,
        check_same_thread=False,  # it is used by one thread at a time, but may be closed by another
        cached_statements=256,
        uri=uri is not None,
        factory=OurConnection,
    )
    try:
        sql.file = identity(where.path)
        sql.execute("PRAGMA synchronous = FULL")
        sql.execute("PRAGMA wal_autocheckpoint = 0")
    except BaseException:
        sql.close()
        raise
    return sql


def _check_version() -> None:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        raise ConfigurationError(f"SQLite {sqlite3.sqlite_version} is too old; at least {oldest} is needed")


def _ensure_file(path: Path) -> None:
    """Create the file for its user alone if it is not there."""
    if path.is_dir():
        raise ConfigurationError(f"{path} is a folder; give the path of a file")
    if path.exists() and not path.is_file():
        raise ConfigurationError(f"{path} is not a file; give the path of a file")
    if not path.parent.is_dir():
        raise ConfigurationError(f"the folder {path.parent} does not exist; create it first")
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise unusable(path, error, what="created") from error
    if not os.access(path, os.W_OK):  # SQLite would open it all the same, to fail at the first write
        raise StoreUnavailable(f"{path} is read-only: this process needs write access to it", why="read_only")


def unusable(path: Path, error: OSError | sqlite3.Error, *, what: str = "opened") -> BaseException:
    """Return what to raise when the system or SQLite refuses a file that is to be opened or created."""
    if isinstance(error, sqlite3.Error):
        return translated(error, path)
    text = f"{path} cannot be {what}: {error.strerror}"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        advice = "this process needs write access to the file and its folder"
        return StoreUnavailable(f"{text}; {advice}", why="read_only")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreUnavailable(f"{text}; make room", why="full")
    return StoreUnavailable(text, why="disk" if error.errno == errno.EIO else "")


def _prepare(sql: sqlite3.Connection, where: Location, strategy: str | None) -> None:
    path = where.path
    names = {name for (name,) in sql.execute(NAMES)}
    ours = {name for name in names if name.startswith("betimes_")}
    found = _schema_version(sql, path, ours)
    _refuse_other_version(path, found)
    if not names:
        sql.execute(f"PRAGMA journal_mode = {where.journal or 'wal'}")
    _agree_on_journal(sql, where)
    if names != ours or (ours and sql.execute(IS_SHARED).fetchone()[0]):
        _refuse_shared_wal(sql, path)
    begin(sql, patience_ms=patience_ms(sql))
    try:
        _migrate(sql, _schema_version(sql, path, ours), is_own_file=names == ours)
        if strategy is not None:
            _agree_on_strategy(sql, path, strategy)
    except BaseException:
        sql.rollback()
        raise
    sql.execute("COMMIT")


def _agree_on_journal(sql: sqlite3.Connection, where: Location) -> None:
    mode: str = sql.execute("PRAGMA journal_mode").fetchone()[0]
    if where.journal is None or mode == where.journal:
        return
    raise ConfigurationError(
        f"{where.path} was made with journal={mode!r}, and {where.journal!r} is asked for; leave that out, "
        f"or run `PRAGMA journal_mode = {where.journal.upper()}` on the file while nothing else has it open"
    )


def _refuse_shared_wal(sql: sqlite3.Connection, path: Path) -> None:
    """Refuse a file to which others commit, too, where that is not safe."""
    if is_wal(sql) and has_wal_reset_fault():
        raise ConfigurationError(
            f"{path} is shared with other code and in WAL mode, which SQLite {sqlite3.sqlite_version} can "
            "damage when several write to it; run `PRAGMA journal_mode = DELETE` on it with everything else "
            "closed, use a file of its own, or SQLite 3.51.3 or later"
        )


def _schema_version(sql: sqlite3.Connection, path: Path, ours: set[str]) -> int:
    if not ours:
        return 0
    try:
        row = sql.execute(READ_SCHEMA_VERSION).fetchone()
    except sqlite3.OperationalError:
        row = None
    if row is None or not isinstance(row[0], int):
        raise SchemaMismatch(
            f"{path} has tables named betimes_* of another making; use another file; nothing was changed",
            expected=SCHEMA_VERSION,
        )
    version: int = row[0]
    return version


def _refuse_other_version(path: Path, found: int) -> None:
    if found > SCHEMA_VERSION:
        raise SchemaMismatch(
            f"{path} has schema version {found}; this version of betimes knows up to {SCHEMA_VERSION}. "
            "Nothing was changed; use the version of betimes that made it, or a later one",
            found=found,
            expected=SCHEMA_VERSION,
        )


def _migrate(sql: sqlite3.Connection, version: int, *, is_own_file: bool) -> None:
    """Carry out the steps that are missing, inside the caller's transaction."""
    for number, text in migrations():
        if number > version:
            for command in _commands(text):
                sql.execute(command)
    if version == 0 and is_own_file:
        sql.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def _commands(text: str) -> list[str]:
    commands = []
    command = ""
    for line in text.splitlines(keepends=True):
        command += line
        if sqlite3.complete_statement(command):
            commands.append(command)
            command = ""
    return commands


def _agree_on_strategy(sql: sqlite3.Connection, path: Path, strategy: str) -> None:
    row = sql.execute(READ_STRATEGY).fetchone()
    if row is not None and row[0] == strategy:
        return
    if row is not None and sql.execute(HAS_JOBS).fetchone()[0]:
        raise ConfigurationError(
            f"{path} holds jobs ordered by strategy {row[0]!r} and was opened with {strategy!r}; open it "
            "with the same strategy, order its jobs anew by `rekey`, or use a new file"
        )
    sql.execute(WRITE_STRATEGY, (strategy,))
