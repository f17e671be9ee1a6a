"""Submitting within a caller's own transaction: on their connection, wherever that belongs.

The jobs are inserted by the code that inserts all others, so they mean the same; but the transaction is
somebody else's, and so:

1. The connection must lead to the store's own tables: the same server (by the number it got when its data
   were made), the same database and the same table, by their numbers there. Names prove nothing: two servers
   may well have a database of the same name, and the same schema in it.
2. A transaction must be open. Where the driver begins transactions by itself, it begins one.
3. A savepoint of ours makes the step all or nothing, whatever fails, and leaves the transaction usable.
4. Settings that statements of ours need hold while they run, for this transaction at most, and are put back:
   nothing is bound to the session, so that a pooler may stand between.
5. Nothing is believed of the outcome. The caller may roll back, so no event is told and nothing is kept.
6. What the transaction locks, it locks for as long as its owner likes. Nobody else may wait for that but who
   asks for the very same names: so it never becomes the one who keeps the order of jobs with gates, and it
   leaves those rules alone that the store has already.
7. A transaction that sees the world as it was (REPEATABLE READ and up) cannot tell whether an id is taken
   now, so that ids given by users are refused there. In all else, the server says when it is too old.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

import psycopg
from psycopg import errors

from betimes.core.job import Job, Micros
from betimes.core.limits import GateTerms
from betimes.core.wording import shown
from betimes.errors import BetimesError, ConfigurationError, StoreUnavailable
from betimes.ports import Joined
from betimes.stores.postgres.borrowed import BEGIN_STEP, END_STEP, Borrowed, borrowed
from betimes.stores.postgres.failures import AGAIN, translated
from betimes.stores.postgres.statements import PostgresSql
from betimes.stores.postgres.store_time import StoreTime
from betimes.stores.postgres.target import Target
from betimes.stores.postgres.wire import BY_INDEX, Wire
from betimes.stores.relational.arrivals import Admission
from betimes.stores.relational.callers import driver_connection, keep
from betimes.stores.relational.rows import Specs
from betimes.stores.relational.rules import READ_RULE
from betimes.stores.relational.statements import statement
from betimes.stores.relational.submission import Submission
from betimes.stores.relational.turn import Turn
from betimes.stores.relational.upkeep import SetBack

CALLERS_GROUND = statement("callers_ground")
SERVER_IDENTITY = statement("server_identity")
USE_SETTINGS = statement("use_settings")

ASYNCPG = "asyncpg"


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells a store's tables from all others.

    Attributes:
        server: the number that the server got when its data were first made; None: it is not told.
        database, table: the numbers of the database and of one of our tables.
    """

    server: int | None
    database: int
    table: int | None


def identity_of(wire: Wire, target: Target) -> Identity:
    """Return what tells the store's tables from all others."""
    sql = PostgresSql(wire)
    server = None
    with suppress(errors.InsufficientPrivilege):
        server = sql.execute(SERVER_IDENTITY).fetchone()[0]
    database, table = sql.execute(CALLERS_GROUND, (target.schema,)).fetchone()[:2]
    return Identity(server, database, table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What the store that is open here knows, which a caller's connection does not.

    Attributes:
        target: where the store is.
        identity: what tells its tables from all others.
        time: the store's time.
        specs: the shared memory of specs.
    """

    target: Target
    identity: Identity
    time: StoreTime
    specs: Specs


async def submit_within(
    conn: object, jobs: Sequence[Job], terms: Sequence[GateTerms], ground: Ground
) -> Joined:
    """Keep new jobs if and when the caller's transaction commits; as `Store.submit_within`."""
    theirs = borrowed(await driver_connection(conn))
    if theirs is None:
        raise ConfigurationError(
            f"conn is {shown(conn)}; for {ground.target.shown} it is a connection of psycopg 3 or asyncpg, "
            "or a session or connection of SQLAlchemy over one of these (with Django, "
            "django.db.connection.connection)"
        )
    try:
        _refuse_unusable(theirs)
        kept = await theirs.carry_out(lambda: _Step(theirs, ground).keep(jobs, terms))
    except Exception as error:
        told = _told(error, ground.target.shown)
        if told is error:
            raise
        raise told from error
    return Joined(jobs=kept.acknowledge()[0], is_over=theirs.is_over)


def _refuse_unusable(theirs: Borrowed) -> None:
    if theirs.is_closed:
        raise ConfigurationError("conn is closed")
    if not theirs.has_transaction:
        raise ConfigurationError(
            "conn has no open transaction and would commit at once: begin one (`with conn.transaction():`; "
            "`async with` on an asynchronous connection), then your own statements and the submits"
        )


class _Step:
    """One step of ours in a caller's transaction."""

    def __init__(self, theirs: Borrowed, ground: Ground) -> None:
        self._theirs = theirs
        self._ground = ground
        self._sql = PostgresSql(theirs)
        self._now: Micros = 0

    def keep(self, jobs: Sequence[Job], terms: Sequence[GateTerms]) -> Admission | Submission:
        """Keep the jobs; whatever is raised leaves the transaction as it was."""
        theirs, sql = self._theirs, self._sql
        try:
            theirs.run(BEGIN_STEP)
            settings = self._look(jobs)
            ours = (f"{self._ground.target.schema}, pg_temp", *BY_INDEX.values())
            sql.execute(USE_SETTINGS, ours if theirs.leaves_jit else (*ours[:-1], settings[-1]))
            unknown = [each for each in terms if sql.execute(READ_RULE, (each.rule,)).fetchone() is None]
            kept = keep(self._turn, jobs, unknown)
            sql.execute(USE_SETTINGS, settings)
            theirs.run(END_STEP)
        except BaseException:
            with suppress(Exception):  # what counts is what went wrong first
                theirs.undo()
            raise
        return kept

    def _look(self, jobs: Sequence[Job]) -> Sequence[str]:
        """Refuse a transaction that the jobs cannot be kept in; return the settings that it has."""
        target, identity = self._ground.target, self._ground.identity
        settings: list[str]
        row = self._sql.execute(CALLERS_GROUND, (target.schema,)).fetchone()
        database, table, isolation, is_read_only, encoding, now, *settings = row
        server = None if identity.server is None else self._sql.execute(SERVER_IDENTITY).fetchone()[0]
        if Identity(server, database, table) != identity:
            raise ConfigurationError(
                f"conn is a connection to another database than the jobs', {target.shown}: one transaction "
                "cannot span both; give the scheduler the application's database, or submit after the commit"
            )
        if is_read_only == "on":
            raise ConfigurationError("conn's transaction is read-only, and jobs are to be written in it")
        if encoding in {"SQL_ASCII", b"SQL_ASCII"}:  # it may be read as bytes then
            raise ConfigurationError("conn does not say how text is encoded: set its client_encoding to UTF8")
        if isolation in {"repeatable read", "serializable"} and any(
            job.terms is not None and job.terms.named for job in jobs
        ):
            raise ConfigurationError(
                f"conn's transaction is {isolation.upper()}, in which nobody can tell whether a job_id is "
                "taken now: use READ COMMITTED, or leave job_id away (key= can be used)"
            )
        self._now = self._ground.time.see(now)
        return settings

    def _turn(self) -> Turn:
        return Turn(
            self._sql,
            self._ground.specs,
            now=self._now,
            boottime=self._ground.time.for_leases(self._now),
            boot_id="",
            hints=set(),  # nobody is told before it is over
            set_back=SetBack(),
        )


def _told(error: Exception, where: str) -> BetimesError | Exception:
    """Return what to raise instead of an error of the caller's connection."""
    found = error
    state = getattr(error, "sqlstate", None)
    if not isinstance(error, psycopg.Error):
        if not type(error).__module__.startswith(ASYNCPG):
            return error
        found = _of_state(state, str(error)) if isinstance(state, str) else psycopg.InterfaceError(str(error))
    if isinstance(found, (*AGAIN, errors.LockNotAvailable)):
        return StoreUnavailable(
            f"{where} has something locked, or changed, that your transaction needs: roll back and run it "
            f"again ({found})",
            why="locked",
        )
    if isinstance(found, errors.InFailedSqlTransaction):
        return ConfigurationError("conn's transaction has failed already: roll it back first")
    if state is None and isinstance(found, psycopg.InterfaceError | psycopg.ProgrammingError):
        return ConfigurationError(f"conn cannot be used here: {found}")
    return cast("BetimesError", translated(found, where))


def _of_state(state: str, text: str) -> psycopg.Error:
    """Return the error of psycopg that means the same as another driver's."""
    kind: Any = psycopg.OperationalError
    with suppress(KeyError):
        kind = errors.lookup(state)
    made: psycopg.Error = kind(text)
    return made
