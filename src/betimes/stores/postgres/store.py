"""`PostgresStore`: the whole contract on a PostgreSQL server, for any number of processes and machines.

What moves jobs is shared with other databases (`stores.relational`). Here: connections, each with a thread of
its own. The *worker's* session carries out what workers and operators do, the *submitters'* what brings new
jobs, so that neither waits for the other; the *heart* prolongs leases; the *reader* looks; the *bell* tells
other processes that something has changed, which is a hint and nothing more. A watchman cuts off a connection
on which the server does not answer.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from betimes.core.job import Job, Micros
from betimes.core.limits import GateTerms, GateView
from betimes.core.queue_view import QueueView
from betimes.core.vitals import Vitals
from betimes.errors import ConfigurationError, SchedulerClosed, StoreUnavailable
from betimes.ports import Clock, Joined, WorkerInfo
from betimes.stores.postgres.caller import Ground, submit_within
from betimes.stores.postgres.opening import migrate
from betimes.stores.postgres.sessions import Sessions
from betimes.stores.postgres.store_time import StoreTime
from betimes.stores.postgres.survey import survey
from betimes.stores.postgres.target import target_of
from betimes.stores.postgres.wire import Wire
from betimes.stores.relational.looks import Look
from betimes.stores.relational.operation import Operation
from betimes.stores.relational.rows import Specs
from betimes.stores.relational.statements import statement
from betimes.stores.relational.store import RelationalStore
from betimes.stores.relational.turn import Turn
from betimes.stores.relational.upkeep import Renewals

T = TypeVar("T")

IS_STIRRED = statement("is_stirred")


def put_in_order(turn: Turn) -> None:
    """Do what others have left to whoever keeps the order, unless somebody else does that just now."""
    if turn.sql.execute(IS_STIRRED).fetchone()[0] and turn.keep_order(wait=False):
        turn.flush()


def _never_gone(_worker: WorkerInfo) -> bool:
    return False


class PostgresStore(RelationalStore):
    """Keeps jobs in a schema of a PostgreSQL database; what was acknowledged survives every process.

    Args:
        url: `postgresql://user@host:port/database`, with libpq's parameters behind a `?`, and `schema=`,
            where our tables are (`betimes`).
        clock: measures intervals; leases and all instants go by the server's clock.
        is_gone: tells whether a worker's process has ended, so that its jobs need not wait for its lease.
        max_stall_us: a worker that has not beaten for this long is left to lose its lease.
        goes_by_clock: have `clock`, and not the server, say what time it is: for tests that move it.

    Raises:
        ConfigurationError: the URL cannot be one.

    Example:
        >>> from betimes.clock import SystemClock
        >>> store = PostgresStore("postgresql://app@db.example:5432/app", clock=SystemClock())
        >>> store.is_durable
        True
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        is_gone: Callable[[WorkerInfo], bool] = _never_gone,
        max_stall_us: Micros = 300_000_000,
        goes_by_clock: bool = False,
    ) -> None:
        """Remember where the store is; nothing is opened yet."""
        super().__init__(is_gone=is_gone)
        self._target = target_of(url)
        self._clock = clock
        self._time = StoreTime(clock, goes_by_clock=goes_by_clock)
        self._leases = Renewals(clock=clock, max_stall_us=max_stall_us)
        self._specs = Specs()
        self._sessions: Sessions | None = None
        self._pid = 0
        self._only_looks = False

    async def open(self, *, strategy: str | None) -> None:
        """Open the schema, creating what an empty one needs."""
        if self._sessions is not None:
            raise ConfigurationError(f"the store {self._target.shown} is open already: close it first")
        sessions = Sessions(
            self._target, self._specs, self._time, self._leases, clock=self._clock, tell=self._tell
        )
        await sessions.open(strategy)
        self._pid = os.getpid()
        self._sessions = sessions
        self._only_looks = False

    # what is looked up where jobs with gates wait: first, what others have left to be put in order is

    async def ahead(self, job: Job, *, most: int = 1000) -> int:
        """Count the claimable jobs of the same queue and lane that go before this one."""
        await self._put_in_order()
        return await super().ahead(job, most=most)

    async def queue(self, name: str) -> QueueView:
        """Show what stands first in a queue, and what is kept back."""
        await self._put_in_order()
        return await super().queue(name)

    async def oldest_due(self) -> dict[str, Micros]:
        """Return since when the oldest claimable job has been due, by queue."""
        await self._put_in_order()
        return await super().oldest_due()

    async def gates(self, keys: Sequence[str], *, most: int = 100) -> list[GateView]:
        """Show these gates, with the first holders and waiters."""
        await self._put_in_order()
        return await super().gates(keys, most=most)

    async def gates_under(self, rule: str | None, *, limit: int = 1000) -> list[GateView]:
        """Show the gates of a rule that are in use."""
        await self._put_in_order()
        return await super().gates_under(rule, limit=limit)

    async def _put_in_order(self) -> None:
        if self._only_looks:
            return
        try:
            await self._write(put_in_order)
        except StoreUnavailable as error:
            if error.why != "privilege":
                raise
            self._only_looks = True  # what is left to others is theirs to do: then a look may be a little old

    async def look(self) -> None:
        """Open the schema for looking: nothing is created or changed."""
        vitals = await self.vitals()
        if vitals.trouble is not None:
            raise StoreUnavailable(f"{vitals.problem}; nothing can be looked at")
        await self.open(strategy=None)
        self._only_looks = True

    def lease_left_us(self, worker: str) -> int | None:
        """Return for how long from now on a worker's lease is sure to hold."""
        return self._leases.left_us(worker)

    async def submit_within(
        self, conn: object, jobs: Sequence[Job], *, terms: Sequence[GateTerms] = ()
    ) -> Joined:
        """Keep new jobs if and when the open transaction commits, of psycopg 3, asyncpg or SQLAlchemy."""
        sessions = self._open_sessions()
        ground = Ground(target=self._target, identity=sessions.identity, time=self._time, specs=self._specs)
        joined = await submit_within(conn, jobs, terms, ground)
        sessions.ends.await_end(joined.is_over)
        return joined

    async def register(self, worker: WorkerInfo) -> None:
        """Begin a worker's lease; from then on the heart prolongs it."""
        await super().register(worker)
        self._open_sessions().nudge()

    async def close(self) -> None:
        """Finish what has been called, and close the connections; what was acknowledged stays."""
        sessions, self._sessions = self._sessions, None
        if sessions is not None and os.getpid() == self._pid:  # a forked child has none of the threads
            await sessions.close()

    async def vitals(self, *, full: bool = False) -> Vitals:
        """Say what can be said of the server and the schema."""
        del full  # the server sees to its own checksums
        now = None if self._time.goes_by_clock else self._clock.now
        return await asyncio.to_thread(survey, self._target, monotonic=self._clock.monotonic, now=now)

    @property
    def schema(self) -> str:
        """The name of the schema."""
        return self._target.schema

    async def migrate(self) -> int:
        """Carry the schema over to the version of this code; return the version that was there before.

        All steps are carried out in one transaction, or none.

        Raises:
            StoreUnavailable: the server cannot be reached, or a table is in use for too long.
            ConfigurationError, SchemaMismatch: the schema cannot be carried over; nothing was changed.
        """
        return await asyncio.to_thread(self._migrate)

    def _migrate(self) -> int:
        wire = Wire(self._target, monotonic=self._clock.monotonic)
        try:
            return migrate(wire, self._target)
        finally:
            wire.close()

    def now(self) -> Micros:
        """Return the server's time, as far as it is known here: to some milliseconds."""
        return self._time.now()

    @property
    def commits(self) -> int:
        """How many transactions this store has committed since it was opened."""
        return self._open_sessions().commits

    def _open_sessions(self) -> Sessions:
        sessions = self._sessions
        if sessions is None:
            raise SchedulerClosed(f"the store {self._target.shown} is not open: open it first")
        if os.getpid() != self._pid:
            raise ConfigurationError(
                f"the store {self._target.shown} was opened before this process was forked: open it after "
                "the fork only, or start this process afresh"
            )
        return sessions

    @property
    def _renewals(self) -> Renewals:
        return self._leases

    def _lease_time(self) -> tuple[Micros, str]:
        return self._time.for_leases(self._time.now()), ""

    async def _call(self, operation: Operation) -> Any:
        return await self._open_sessions().call(operation)

    async def _read(self, look: Callable[[Look], T]) -> T:
        return await self._open_sessions().look(look)
