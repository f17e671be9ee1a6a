"""All sessions of an open store: who carries out what, opened and closed together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from betimes.ports import Clock, Hint
from betimes.stores.postgres.batch import Committer
from betimes.stores.postgres.bell import Bell
from betimes.stores.postgres.caller import Identity, identity_of
from betimes.stores.postgres.ends import Ends
from betimes.stores.postgres.opening import prepare
from betimes.stores.postgres.session import Session
from betimes.stores.postgres.store_time import StoreTime
from betimes.stores.postgres.target import Target
from betimes.stores.postgres.watchman import Watchman, watched
from betimes.stores.postgres.wire import Wire
from betimes.stores.postgres.writer import Heart, Reader, Writer
from betimes.stores.relational.looks import Look
from betimes.stores.relational.operation import Operation
from betimes.stores.relational.rows import Specs
from betimes.stores.relational.upkeep import Renewals

T = TypeVar("T")

PATIENT = 3
"""How many submits of a process can wait for names at once: ids of users, keys, and what they depend on."""


class Sessions:
    """The sessions of one open store.

    Args:
        target: where to.
        specs: the shared memory of specs.
        time: the store's time.
        renewals: the leases that are prolonged here.
        clock: measures intervals.
        tell: called on the loop with what subscribers are to hear.

    Attributes:
        ends: of callers' transactions, after which workers are told to look.
    """

    def __init__(
        self,
        target: Target,
        specs: Specs,
        time: StoreTime,
        renewals: Renewals,
        *,
        clock: Clock,
        tell: Callable[[Collection[Hint]], None],
    ) -> None:
        self._target = target
        self._clock = clock
        self._tell = tell

        def committer() -> Committer:
            return Committer(specs=specs, shown=target.shown, time=time)

        def writer(name: str, *, leases: Renewals | None = None, is_one_by_one: bool = False) -> Writer:
            return Writer(
                target,
                committer(),
                tell=self._spread,
                clock=clock,
                name=name,
                renewals=leases,
                is_one_by_one=is_one_by_one,
            )

        self._worker = writer("worker", leases=renewals)
        self._submitter = writer("submitter")
        self._patient = [writer(f"patient-{number}", is_one_by_one=True) for number in range(PATIENT)]
        self._heart = Heart(target, committer(), renewals, tell=tell, clock=clock)
        self._reader = Reader(target, specs, renewals, clock=clock, time=time.see)
        self._bell = Bell(target, tell=tell, clock=clock)
        self._identity: Identity | None = None
        self.ends = Ends(lambda: self._spread({Hint.WORK}))
        self._writers: Sequence[Writer] = (self._worker, self._submitter, *self._patient, self._heart)
        self._all: Sequence[Session[Any]] = (*self._writers, self._reader, self._bell)
        self._watchman = Watchman(self._all)

    async def open(self, strategy: str | None) -> None:
        """Make the schema ready, and start."""
        await asyncio.to_thread(self._prepare, strategy)
        for session in self._all:
            await session.open()
        self.ends.open()
        self._watchman.begin()

    def _prepare(self, strategy: str | None) -> None:
        wire = Wire(self._target, monotonic=self._clock.monotonic)
        try:
            with watched(wire):
                prepare(wire, self._target, strategy)
                self._identity = identity_of(wire, self._target)
        finally:
            wire.close()

    async def close(self) -> None:
        """Carry out what has been called, and end."""
        self.ends.close()
        await asyncio.gather(*(session.close() for session in self._all))
        self._watchman.end()

    @property
    def identity(self) -> Identity:
        """What tells the store's tables from all others."""
        assert self._identity is not None, "it is open"
        return self._identity

    @property
    def commits(self) -> int:
        """How many transactions have been committed."""
        return sum(session.commits for session in self._writers)

    def nudge(self) -> None:
        """Have the heart look at its timer anew."""
        self._heart.put(None)

    async def call(self, operation: Operation) -> Any:
        """Carry an operation out and return its answer, or raise its error."""
        if operation.plain is not None:
            writer = self._submitter
        elif operation.waits:
            writer = min(self._patient, key=lambda session: session.under_way)
        else:
            writer = self._worker
        return await writer.call(operation)

    async def look(self, look: Callable[[Look], T]) -> T:
        """Return what a look sees."""
        return await self._reader.call(look)

    def _spread(self, hints: Collection[Hint]) -> None:
        """Tell the subscribers here, and other processes."""
        self._tell(hints)
        for hint in hints:
            self._bell.put(hint)
