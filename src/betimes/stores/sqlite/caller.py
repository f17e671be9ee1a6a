"""Submitting within a caller's own transaction: on their connection, in their thread.

The jobs are inserted by the code that inserts all others, so they mean the same; but the transaction is
somebody else's, and so:

1. The connection must be to this very file, and within a transaction. Where Python begins transactions by
   itself (the driver's default), one is begun as Python would have; whoever owns it commits it.
2. A savepoint of ours makes the step all or nothing, whatever fails, and leaves the caller's transaction
   as it was: usable.
3. The first statement writes. A transaction that has only been begun gets the write lock with it, and waits
   for it as long as its owner has said; if it read first, SQLite might refuse the lock at once.
4. Nothing is believed of the outcome. The caller may roll back, so no event is told and nothing is
   remembered outside the transaction. There is nothing to invalidate after a commit: all that a turn knows
   it has read in its own transaction.
5. The connection is set up to its owner's taste (rows as dictionaries, text as bytes, converters), and is
   left so.
6. A commit that is not ours cannot be kept apart from checkpoints (see `commit_lock`): a file in WAL mode is
   refused on versions of SQLite with the WAL-reset fault, and on sound ones marked as shared, so that a
   process whose SQLite has the fault refuses to open it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from betimes.core.job import Job
from betimes.core.limits import GateTerms
from betimes.core.wording import shown
from betimes.errors import BetimesError, ConfigurationError, StoreUnavailable
from betimes.ports import Clock, Joined
from betimes.stores.relational.callers import driver_connection, keep
from betimes.stores.relational.rows import Specs
from betimes.stores.relational.statements import Row
from betimes.stores.relational.turn import Turn
from betimes.stores.relational.upkeep import SetBack
from betimes.stores.sqlite import opening
from betimes.stores.sqlite.failures import primary_code, translated
from betimes.stores.sqlite.statements import SqliteSql, statement
from betimes.stores.sqlite.write_lock import begin, patience_ms

TAKE_WRITE_LOCK = statement("take_write_lock")
MARK_SHARED = statement("mark_shared")

OUR_TYPES = frozenset({"ANY", "BLOB", "INTEGER", "TEXT"})
"""The types that our tables declare; a connection may have converters for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What the store that is open here knows, which a caller's connection does not.

    Attributes:
        path: the file.
        clock: where time comes from.
        specs: the shared memory of specs.
    """

    path: Path
    clock: Clock
    specs: Specs


class CallersConnection:
    """A connection with its owner's settings out of the way: the part of it that statements use.

    Each statement has a cursor of its own, which knows nothing of the connection's row factory.
    """

    __slots__ = ("_conn", "_has_converters")

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        self._has_converters = not OUR_TYPES.isdisjoint(sqlite3.converters)

    def execute(self, text: str, values: Row = (), /) -> sqlite3.Cursor:
        """Carry out a statement, and return a cursor whose rows are tuples of SQLite's own values."""
        cursor = sqlite3.Cursor(self._conn).execute(text, values)
        if not self._has_converters or cursor.description is None or not text.startswith("SELECT"):
            return cursor
        # A converter goes by the type that a column was declared with, and an expression has none.
        columns = [f"c{number}" for number in range(len(cursor.description))]
        bare = ", ".join(f"+{column}" for column in columns)
        return sqlite3.Cursor(self._conn).execute(
            f"WITH answer ({', '.join(columns)}) AS ({text}) SELECT {bare} FROM answer",  # noqa: S608
            values,
        )


async def submit_within(
    conn: object, jobs: Sequence[Job], terms: Sequence[GateTerms], ground: Ground
) -> Joined:
    """Keep new jobs if and when the caller's transaction commits; as `Store.submit_within`."""
    conn = await driver_connection(conn)
    if not isinstance(conn, sqlite3.Connection):
        raise ConfigurationError(
            f"conn is {shown(conn)}; for {ground.path} it is an open sqlite3.Connection to that file, or a "
            "session or connection of SQLAlchemy over one (with Django, django.db.connection.connection)"
        )
    sql = CallersConnection(conn)
    text_factory = conn.text_factory
    try:
        conn.text_factory = str
        _refuse_other_file(sql, ground.path)
        with _step(conn, sql):
            _refuse_fault(sql, ground.path)
            kept = keep(lambda: _turn(sql, ground), jobs, terms)
    except sqlite3.Error as error:
        raise _told(error, ground.path) from error
    finally:
        conn.text_factory = text_factory
    return Joined(jobs=kept.acknowledge()[0], is_over=_end_of(conn))


def _refuse_other_file(sql: CallersConnection, path: Path) -> None:
    """Refuse a connection whose main database is not the store's file."""
    files: dict[str, str] = {name: file for _, name, file in sql.execute("PRAGMA database_list")}
    theirs = files.get("main") or ""
    try:
        is_ours = bool(theirs) and path.samefile(theirs)
    except OSError:
        is_ours = False
    if not is_ours:
        raise ConfigurationError(
            f"conn is a connection to {theirs or 'no file'}, and the jobs are in {path}: one transaction "
            "cannot span both; give the scheduler the application's file, or submit after the commit"
        )


def _refuse_fault(sql: CallersConnection, path: Path) -> None:
    """Refuse a file in WAL mode where others' commits can damage it; note the first of them elsewhere."""
    if sql.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        return
    if opening.has_wal_reset_fault():
        raise ConfigurationError(
            f"{path} is in WAL mode, which SQLite {sqlite3.sqlite_version} can damage when a connection that "
            "is not the scheduler's commits to it: make the file with 'sqlite:///FILE?journal=delete', run "
            "`PRAGMA journal_mode = DELETE` on one that stands, with everything else closed, or use SQLite "
            "3.51.3 or later"
        )
    sql.execute(MARK_SHARED)


@contextmanager
def _step(conn: sqlite3.Connection, sql: CallersConnection) -> Iterator[None]:
    """Hold the transaction's write lock; what the block raises leaves the transaction as it was."""
    begins = not conn.in_transaction
    if begins:
        _refuse_autocommit(conn)
        begin(sql, patience_ms=patience_ms(sql))
    try:
        sql.execute("SAVEPOINT betimes_submit")
        sql.execute(TAKE_WRITE_LOCK)
        yield
        sql.execute("RELEASE betimes_submit")
    except BaseException:
        # SQLite may have rolled the whole transaction back by itself, as when the disk is full.
        if conn.in_transaction:
            sql.execute("ROLLBACK" if begins else "ROLLBACK TO betimes_submit")
        if conn.in_transaction:
            sql.execute("RELEASE betimes_submit")
        raise


def _refuse_autocommit(conn: sqlite3.Connection) -> None:
    """Refuse a connection on which each statement is a transaction of its own, and none is open."""
    autocommit = getattr(conn, "autocommit", None)  # Python 3.12 and later; a number: as it was before
    if autocommit is True or (not isinstance(autocommit, bool) and conn.isolation_level is None):
        raise ConfigurationError(
            'conn has no open transaction and would commit at once: run conn.execute("BEGIN IMMEDIATE") '
            "first, then your own statements and the submits, then conn.commit()"
        )


def _turn(sql: CallersConnection, ground: Ground) -> Turn:
    clock = ground.clock
    return Turn(
        SqliteSql(sql),
        ground.specs,
        now=clock.now(),
        boottime=clock.boottime(),
        boot_id=clock.boot_id(),
        hints=set(),  # nobody is told: writers notice the commit, as they notice those of other processes
        set_back=SetBack(),
    )


def _told(error: sqlite3.Error, path: Path) -> BetimesError:
    """Return what to raise instead of an error of the caller's connection."""
    if isinstance(error, sqlite3.ProgrammingError):  # the driver's own: another thread's, or closed
        return ConfigurationError(f"conn cannot be used here: {error}")
    if primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreUnavailable(
            f"{path} is locked by another connection, or has changed since your transaction read it: roll "
            f"back and run the transaction again, from BEGIN IMMEDIATE on ({error})",
            why="locked",
        )
    return cast("BetimesError", translated(error, path))


def _end_of(conn: sqlite3.Connection) -> Callable[[], bool]:
    """Return what tells whether the transaction is over, as far as the connection shows."""

    def is_over() -> bool:
        try:
            return not conn.in_transaction
        except sqlite3.ProgrammingError:  # it is closed
            return True

    return is_over
