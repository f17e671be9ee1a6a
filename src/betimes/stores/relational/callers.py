"""Callers' own connections: what is beneath a wrapper, and what is done in their transactions.

The libraries are told by the names of their classes and never imported: whoever brings a connection has its
library, and nobody else needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from types import coroutine
from typing import Any

from betimes.core.job import Job
from betimes.core.limits import GateTerms
from betimes.errors import BetimesError, ConfigurationError, StoreUnavailable
from betimes.stores.relational.arrivals import Admission, insert_plain, is_plain
from betimes.stores.relational.firing import follow
from betimes.stores.relational.rules import declare
from betimes.stores.relational.submission import Submission
from betimes.stores.relational.turn import Turn

SQLALCHEMY = "sqlalchemy."
SESSIONS = {"sqlalchemy.orm.session.Session", "sqlalchemy.orm.scoping.scoped_session"}
CONNECTION = "sqlalchemy.engine.base.Connection"
ASYNC_SESSIONS = {
    "sqlalchemy.ext.asyncio.session.AsyncSession",
    "sqlalchemy.ext.asyncio.scoping.async_scoped_session",
}
ASYNC_CONNECTION = "sqlalchemy.ext.asyncio.engine.AsyncConnection"


@coroutine
def once_awaited() -> Generator[None, None, None]:
    """Go on only if a loop does: whoever takes a single step is told to await, and nothing has been begun."""
    yield


def kinds_of(conn: object) -> set[str]:
    """Return the full names of the classes that an object is of."""
    return {f"{kind.__module__}.{kind.__qualname__}" for kind in type(conn).__mro__}


async def driver_connection(conn: object) -> object:
    """Return the driver's own connection beneath one of SQLAlchemy's; any other as it is.

    SQLAlchemy begins a transaction with the first statement that goes through it, and knows of no other: so
    one goes through it.

    Raises:
        ConfigurationError: SQLAlchemy does not give it out.
        StoreUnavailable: its connection has been lost.
    """
    kinds = kinds_of(conn)
    if not any(name.startswith(SQLALCHEMY) for name in kinds):
        return conn
    try:
        return await _beneath(conn, kinds)
    except BetimesError:
        raise
    except Exception as error:
        if not any(name.startswith(SQLALCHEMY) for name in kinds_of(error)):
            raise
        if getattr(error, "connection_invalidated", False):
            raise StoreUnavailable(f"conn has lost its database ({error})", why="connection") from error
        raise ConfigurationError(f"conn cannot be used here: {error}") from error


async def _beneath(conn: Any, kinds: set[str]) -> object:
    if kinds & (ASYNC_SESSIONS | {ASYNC_CONNECTION}):
        await once_awaited()
    if kinds & ASYNC_SESSIONS:
        conn = await conn.connection()
        kinds = kinds_of(conn)
    elif kinds & SESSIONS:
        conn = conn.connection()
        kinds = kinds_of(conn)
    if ASYNC_CONNECTION in kinds:
        await conn.exec_driver_sql("SELECT 1")
        return conn.sync_connection.connection.driver_connection
    if CONNECTION in kinds:
        conn.exec_driver_sql("SELECT 1").scalar()
        return conn.connection.driver_connection
    raise ConfigurationError(
        f"conn is a {type(conn).__name__} of SQLAlchemy's; pass the session or the connection that your "
        "transaction is on"
    )


def keep(
    new_turn: Callable[[], Turn], jobs: Sequence[Job], terms: Sequence[GateTerms]
) -> Admission | Submission:
    """Keep jobs as the store does in a transaction of its own; the turns are all of one transaction."""
    if terms:
        declare(new_turn(), terms)
    if all(map(is_plain, jobs)) and (admissions := insert_plain(new_turn(), [jobs])) is not None:
        return admissions[0]
    turn = new_turn()
    submission = Submission(turn, jobs)
    submission.run()
    follow(turn)
    return submission
