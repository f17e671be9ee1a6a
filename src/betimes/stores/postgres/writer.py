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
from betimes.stores.relational.leases import renew
from betimes.stores.relational.looks import Look
from betimes.stores.relational.operation import Operation
from betimes.stores.relational.rows import Specs
from betimes.stores.relational.upkeep import Renewals

T = TypeVar("T")


class Writer(Session[Operation]):
    """Carries out operations, all that have gathered in one transaction.

    Args:
        committer: carries them out.
        tell: called on the loop after commits that subscribers should hear of.
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
        is_one_by_one: bool = False,
    ) -> None:
        super().__init__(target, clock=clock, name=name)
        self._committer = committer
        self._tell = tell
        self._is_one_by_one = is_one_by_one
        self._under_way = 0

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
    """Prolongs leases by its own timer, so that neither a blocked loop nor a long call costs any."""

    def __init__(self, target: Target, committer: Committer, renewals: Renewals, *, clock: Clock) -> None:
        super().__init__(target, committer, tell=_tell_nobody, clock=clock, name="heart")
        self._renewals = renewals

    def _pause_s(self) -> float | None:
        pause_us = self._renewals.next_due_in_us()
        return None if pause_us is None else pause_us / 1_000_000

    def _keep_up(self) -> None:
        due = self._renewals.due()
        if due:
            self._carry_out([Operation(lambda turn: [renew(turn, worker) for worker in due])])


class Reader(Session[tuple[Callable[[Look], Any], "asyncio.Future[Any]"]]):
    """Looks, each time on a snapshot of its own."""

    def __init__(
        self, target: Target, specs: Specs, *, clock: Clock, time: Callable[[Micros], Micros]
    ) -> None:
        super().__init__(target, clock=clock, name="reader")
        self._specs = specs
        self._time = time

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


def _tell_nobody(_hints: Collection[Hint]) -> None:
    pass


def _resolve(future: asyncio.Future[Any], answer: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(answer)
