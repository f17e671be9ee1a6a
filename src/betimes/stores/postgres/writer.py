"""The sessions that change something, and the one that looks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from betimes.core.job import Micros
from betimes.ports import Clock, Hint
from betimes.stores.postgres.batch import Committer
from betimes.stores.postgres.failures import translated
from betimes.stores.postgres.session import Session
from betimes.stores.postgres.statements import PostgresSql
from betimes.stores.postgres.target import Target
from betimes.stores.postgres.watchman import DEADLINE_S
from betimes.stores.relational.leases import renew
from betimes.stores.relational.looks import Look
from betimes.stores.relational.operation import Operation
from betimes.stores.relational.rows import Specs
from betimes.stores.relational.upkeep import Renewals

T = TypeVar("T")

LEAST_S = 5.0
"""The shortest deadline of a session that does more than beat: a large batch may take a while."""
HEART_DEADLINE_S = 5.0
DEADLINES_PER_LEASE = 4
"""How long a beat may take at most, and how often that goes into a lease at least."""


class Writer(Session[Operation]):
    """Carries out operations, all that have gathered in one transaction.

    Args:
        committer: carries them out.
        tell: called on the loop after commits that subscribers should hear of.
        renewals: the leases that depend on it; None: none do.
        is_one_by_one: each operation has a transaction of its own.
        target, clock, name: as for any session.
    """

    def __init__(
        self,
        target: Target,
        committer: Committer,
        *,
        tell: Callable[[Collection[Hint]], None],
        clock: Clock,
        name: str,
        renewals: Renewals | None = None,
        is_one_by_one: bool = False,
    ) -> None:
        super().__init__(target, clock=clock, name=name)
        self._committer = committer
        self._tell = tell
        self._renewals = renewals
        self._is_one_by_one = is_one_by_one
        self._under_way = 0

    @property
    def deadline_s(self) -> float:
        """The longest that it waits for an answer: if leases depend on it, not much longer than they last."""
        return _deadline_s(self._renewals)

    async def call(self, operation: Operation) -> Any:
        """Carry an operation out in its turn and return its answer, or raise its error."""
        operation.future = asyncio.get_running_loop().create_future()
        self._under_way += 1
        self.put(operation)
        try:
            return await operation.future
        finally:
            self._under_way -= 1

    @property
    def under_way(self) -> int:
        """How many calls wait for their answers."""
        return self._under_way

    @property
    def commits(self) -> int:
        """How many transactions have been committed."""
        return self._committer.commits

    def _carry_out(self, batch: list[Operation]) -> None:
        if self._is_one_by_one and len(batch) > 1:
            for operation in batch:
                self._carry_out([operation])
            return
        hints: set[Hint] = set()
        try:
            hints = self._committer.commit(self._connected(), batch)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the thread must outlive it
            self._committer.fail(batch, error)
        self._post(self._deliver, batch, hints)

    def _deliver(self, batch: list[Operation], hints: Collection[Hint]) -> None:
        for operation in batch:
            operation.resolve()
        if hints:
            self._tell(hints)


class Heart(Writer):
    """Prolongs leases by its own timer, so that neither a blocked loop nor a long call costs any.

    A beat that fails is tried again soon, on a new connection if need be: several times in what is left of a
    lease, whatever the network does to one of them.

    Args:
        tell: called on the loop when a lease has been ended by others.
        renewals: the leases.
        target, committer, clock: as for any writer.
    """

    def __init__(
        self,
        target: Target,
        committer: Committer,
        renewals: Renewals,
        *,
        tell: Callable[[Collection[Hint]], None],
        clock: Clock,
    ) -> None:
        super().__init__(target, committer, tell=tell, clock=clock, name="heart")
        self._leases = renewals

    @property
    def deadline_s(self) -> float:
        """The longest that a beat may take: a part of the shortest lease, so that another has time, too."""
        shortest_us = self._leases.shortest_us
        if shortest_us is None:
            return HEART_DEADLINE_S
        return min(HEART_DEADLINE_S, shortest_us / 1_000_000 / DEADLINES_PER_LEASE)

    def _connect_patience_s(self) -> float | None:
        return self.deadline_s

    def _pause_s(self) -> float | None:
        pause_us = self._leases.next_due_in_us()
        return None if pause_us is None else pause_us / 1_000_000

    def _keep_up(self) -> None:
        due = self._leases.due()
        if not due:
            return
        since = self._leases.now()
        beat = Operation(lambda turn: [worker for worker in due if renew(turn, worker)])
        self._carry_out([beat])
        if beat.error is not None:
            self._leases.failed(due)
            return
        self._leases.confirm(beat.value, since=since)
        if len(beat.value) < len(due):
            self._post(self._tell, {Hint.CANCEL})  # have the worker itself look, and let go of what it runs


class Reader(Session[tuple[Callable[[Look], Any], "asyncio.Future[Any]"]]):
    """Looks, each time on a snapshot of its own."""

    def __init__(
        self,
        target: Target,
        specs: Specs,
        renewals: Renewals,
        *,
        clock: Clock,
        time: Callable[[Micros], Micros],
    ) -> None:
        super().__init__(target, clock=clock, name="reader")
        self._specs = specs
        self._renewals = renewals
        self._time = time

    @property
    def deadline_s(self) -> float:
        """The longest that it waits for an answer: workers look, too, and should not wait for long."""
        return _deadline_s(self._renewals)

    async def call(self, look: Callable[[Look], T]) -> T:
        """Return what the look sees."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.put((look, future))
        return await future

    def _carry_out(self, batch: list[tuple[Callable[[Look], Any], asyncio.Future[Any]]]) -> None:
        for look, future in batch:
            answer: Any = None
            error: BaseException | None = None
            try:
                answer = self._look(look)
            except BaseException as raised:  # noqa: BLE001 - it is the answer to whoever called
                error = translated(raised, self._target.shown)
            self._post(_resolve, future, answer, error)

    def _look(self, look: Callable[[Look], T]) -> T:
        wire = self._connected()
        try:
            self._time(wire.begin(for_looking=True))
            return look(Look(PostgresSql(wire, is_looking=True), self._specs))
        finally:
            wire.rollback()


def _deadline_s(renewals: Renewals | None) -> float:
    shortest_us = None if renewals is None else renewals.shortest_us
    return DEADLINE_S if shortest_us is None else min(DEADLINE_S, max(LEAST_S, shortest_us / 1_000_000))


def _resolve(future: asyncio.Future[Any], answer: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(answer)
