"""Callers' connections as statements use them: psycopg's, its asynchronous ones, and asyncpg's.

What is shared among databases is synchronous code, and statements on an asynchronous connection have to be
awaited on its loop. So that code runs in a thread of its own, and hands each statement to the loop. That is
safe: the caller awaits the whole, so nothing else is to use the connection meanwhile; the thread touches the
connection on the loop only, one statement at a time; and it never outlives the call, not even one that is
cancelled: then the statement under way is, too, and the thread has undone the step before the caller goes on.

A connection's settings are its owner's. Each statement has a cursor of ours, with our own ways from values to
texts and back; none is prepared, as nothing may outlive the transaction behind a pooler.
"""

from __future__ import annotations

import asyncio
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import psycopg
from psycopg.adapt import AdaptersMap
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from betimes.stores.postgres.arrays import lists_of
from betimes.stores.postgres.statements import Described
from betimes.stores.relational.callers import kinds_of, once_awaited
from betimes.stores.relational.statements import Row

T = TypeVar("T")

ASYNCPG = {"asyncpg.connection.Connection", "asyncpg.pool.PoolConnectionProxy"}

BEGIN_STEP = "SAVEPOINT betimes_submit"
END_STEP = "RELEASE betimes_submit"
UNDO_STEP = ("ROLLBACK TO betimes_submit", END_STEP)

_ADAPTERS = AdaptersMap(psycopg.adapters)

_JSON_VALUE = re.compile(r"(\$\d+)::json\b")
_COUNT = re.compile(r"\d+$")


class _Cursor(psycopg.RawCursor[tuple[Any, ...]]):
    """A cursor that takes and gives values in our way, whatever the connection's owner has registered."""

    @property
    def adapters(self) -> AdaptersMap:
        return _ADAPTERS


class _AsyncCursor(psycopg.AsyncRawCursor[tuple[Any, ...]]):
    """The same on an asynchronous connection."""

    @property
    def adapters(self) -> AdaptersMap:
        return _ADAPTERS


class Column(NamedTuple):
    """A column of an answer."""

    name: str


@dataclass(slots=True)
class Outcome:
    """What a statement has come to, read to its end."""

    rows: list[Any]
    rowcount: int
    description: Sequence[Column] = ()

    def fetchone(self) -> Any:
        """Return the next row; None: there is none."""
        return self.rows.pop(0) if self.rows else None

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""
        rows, self.rows = self.rows, []
        return rows

    def __iter__(self) -> Iterator[Any]:
        """Go through the rows that are left."""
        return iter(self.fetchall())


class Borrowed(ABC):
    """A caller's connection, as one step of ours uses it.

    Attributes:
        leaves_jit: whether the driver never sets `jit` by itself.
    """

    leaves_jit = True

    @property
    @abstractmethod
    def has_transaction(self) -> bool:
        """Whether a transaction is open, or the driver begins one with the next statement."""

    @property
    @abstractmethod
    def is_closed(self) -> bool:
        """Whether it can be used no more."""

    @abstractmethod
    def is_over(self) -> bool:
        """Say, from any thread, whether the transaction has ended, as far as the connection shows."""

    @abstractmethod
    def run(self, text: str, values: Row = ()) -> Described:
        """Carry out a statement."""

    @abstractmethod
    def undo(self) -> None:
        """Leave the transaction as it was before `BEGIN_STEP`."""

    async def carry_out(self, step: Callable[[], T]) -> T:
        """Have a step use it."""
        return step()


class _Psycopg(Borrowed):
    """What both kinds of psycopg's connections have in common."""

    def __init__(self, conn: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
        self._pgconn = conn.pgconn
        self._begins = not conn.autocommit and conn.info.transaction_status is TransactionStatus.IDLE

    @property
    def has_transaction(self) -> bool:
        """Whether a transaction is open, or comes with the next statement."""
        return self._begins or self._pgconn.transaction_status != TransactionStatus.IDLE

    @property
    def is_closed(self) -> bool:
        """Whether it can be used no more."""
        return self._pgconn.transaction_status == TransactionStatus.UNKNOWN

    def is_over(self) -> bool:
        """Say whether the transaction has ended."""
        return self._pgconn.transaction_status in {TransactionStatus.IDLE, TransactionStatus.UNKNOWN}

    @property
    def _undoing(self) -> Sequence[str]:
        return ("ROLLBACK",) if self._begins else UNDO_STEP


class OfPsycopg(_Psycopg):
    """A `psycopg.Connection`."""

    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        super().__init__(conn)
        self._conn = conn

    def run(self, text: str, values: Row = ()) -> psycopg.Cursor[Any]:
        """Carry out a statement."""
        cursor = _Cursor(self._conn, row_factory=tuple_row)
        return cursor.execute(text, values or None, prepare=False)

    def undo(self) -> None:
        """Leave the transaction as it was."""
        for text in self._undoing:
            self.run(text)


class _Awaited(Borrowed):
    """A connection whose statements are awaited on its loop: a thread carries the step out."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._under_way: asyncio.Task[Any] | None = None
        self._is_cancelled = False

    @abstractmethod
    async def _ask(self, text: str, values: Row) -> Outcome:
        """Carry out a statement, on the connection's loop."""

    async def carry_out(self, step: Callable[[], T]) -> T:
        """Have a step use it; returns, or raises, when the step has ended or has been undone."""
        await once_awaited()
        self._loop = loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        thread = threading.Thread(
            target=self._serve, args=(step, done), name="betimes-postgres-caller", daemon=True
        )
        thread.start()
        try:
            await asyncio.wait([done])
        except asyncio.CancelledError:
            self._is_cancelled = True
            if self._under_way is not None:
                self._under_way.cancel()
            await _see_out(done)
            if not done.cancelled():
                done.exception()  # it has been seen
            raise
        return done.result()

    # in the thread

    def _serve(self, step: Callable[[], T], done: asyncio.Future[T]) -> None:
        assert self._loop is not None
        try:
            value = step()
        except BaseException as error:  # noqa: BLE001 - it is the answer to whoever called
            self._loop.call_soon_threadsafe(_fail, done, error)
        else:
            self._loop.call_soon_threadsafe(done.set_result, value)

    def run(self, text: str, values: Row = ()) -> Outcome:
        """Carry out a statement, unless the call has been cancelled."""
        if self._is_cancelled:
            raise asyncio.CancelledError
        return self._wait_for(text, values)

    def _wait_for(self, text: str, values: Row) -> Outcome:
        assert self._loop is not None
        asked = asyncio.run_coroutine_threadsafe(self._asked(text, values), self._loop)
        outcome, error = asked.result()
        if error is not None:
            raise error
        assert outcome is not None
        return outcome

    async def _asked(self, text: str, values: Row) -> tuple[Outcome | None, BaseException | None]:
        self._under_way = asyncio.current_task()
        try:
            return await self._ask(text, values), None
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - the thread raises it
            return None, error
        finally:
            self._under_way = None


class OfAsyncPsycopg(_Awaited, _Psycopg):
    """A `psycopg.AsyncConnection`."""

    def __init__(self, conn: psycopg.AsyncConnection[Any]) -> None:
        _Awaited.__init__(self)
        _Psycopg.__init__(self, conn)
        self._conn = conn

    async def _ask(self, text: str, values: Row) -> Outcome:
        cursor = _AsyncCursor(self._conn, row_factory=tuple_row)
        await cursor.execute(text, values or None, prepare=False)
        if cursor.description is None:
            return Outcome([], cursor.rowcount)
        columns = [Column(column.name) for column in cursor.description]
        return Outcome(await cursor.fetchall(), cursor.rowcount, columns)

    def undo(self) -> None:
        """Leave the transaction as it was."""
        for text in self._undoing:
            self._wait_for(text, ())


class OfAsyncpg(_Awaited):
    """A `Connection` of asyncpg, as it is or as its pool hands it out.

    To look types up, asyncpg turns `jit` off for the session, and on again if it was on: so it has to be.
    """

    leaves_jit = False

    def __init__(self, conn: Any) -> None:
        super().__init__()
        self._conn = conn

    @property
    def has_transaction(self) -> bool:
        """Whether a transaction is open, or comes with the next statement."""
        return bool(self._conn.is_in_transaction())

    @property
    def is_closed(self) -> bool:
        """Whether it can be used no more."""
        return bool(self._conn.is_closed())

    def is_over(self) -> bool:
        """Say whether the transaction has ended."""
        try:
            return self.is_closed or not self.has_transaction
        except Exception:  # noqa: BLE001 - it is back in its pool, or its pool is gone
            return True

    async def _ask(self, text: str, values: Row) -> Outcome:
        text, values = _without_json_values(text), lists_of(values)
        if not (text.startswith(("SELECT", "WITH")) or "RETURNING" in text):
            count = _COUNT.search(await self._conn.execute(text, *values))
            return Outcome([], int(count[0]) if count else 0)
        records = await self._conn.fetch(text, *values)
        columns = [Column(name) for name in records[0].keys()] if records else []  # noqa: SIM118 - no dict
        return Outcome([tuple(record) for record in records], len(records), columns)

    def undo(self) -> None:
        """Leave the transaction as it was."""
        for text in UNDO_STEP:
            self._wait_for(text, ())


@lru_cache(maxsize=1000)
def _without_json_values(text: str) -> str:
    """Have JSON go as text: the owner may have told asyncpg to make JSON of whatever is given for it."""
    return _JSON_VALUE.sub(r"\1::text::json", text)


def borrowed(conn: object) -> Borrowed | None:
    """Return a driver's connection as statements use it; None: it is of no kind that is known."""
    if isinstance(conn, psycopg.Connection):
        return OfPsycopg(conn)
    if isinstance(conn, psycopg.AsyncConnection):
        return OfAsyncPsycopg(conn)
    return OfAsyncpg(conn) if kinds_of(conn) & ASYNCPG else None


async def _see_out(done: Awaitable[Any]) -> None:
    """Wait for the end of a step, however often whoever waits is cancelled."""
    future = asyncio.ensure_future(done)
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            continue


def _fail(done: asyncio.Future[Any], error: BaseException) -> None:
    if isinstance(error, asyncio.CancelledError):
        done.cancel()
    else:
        done.set_exception(error)
