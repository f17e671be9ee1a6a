"""A batch: whatever has gathered goes through one transaction, and each operation gets its own answer.

An operation that refuses (`DuplicateJob` …) leaves nothing, and the others go on. When one fails in a way
nobody foresaw, the whole batch is rolled back and its operations are run one by one, so that only the
culprit fails. A transaction that the server has chosen to give way to another is carried out again, as a
whole. When the connection is lost, all fail: whether the commit was done is then not known, and whoever
called asks again, by the same ids and fences.
"""

from __future__ import annotations

from collections.abc import Sequence

from betimes.core.job import Micros
from betimes.errors import BetimesError
from betimes.ports import Hint
from betimes.stores.postgres.at_once import submit_at_once
from betimes.stores.postgres.failures import AGAIN, is_lost, translated
from betimes.stores.postgres.marks import Marks
from betimes.stores.postgres.statements import PostgresSql
from betimes.stores.postgres.store_time import StoreTime
from betimes.stores.postgres.wire import Wire
from betimes.stores.relational.arrivals import insert_plain
from betimes.stores.relational.firing import follow
from betimes.stores.relational.operation import Operation
from betimes.stores.relational.rows import Specs
from betimes.stores.relational.turn import Turn
from betimes.stores.relational.upkeep import SetBack

TRIES = 10
"""How often a transaction that gives way to others is carried out, in all."""


class Committer:
    """Carries out batches of operations, each in one transaction.

    Args:
        specs: the shared memory of specs.
        shown: the store's place in words.
        time: the store's time.

    Attributes:
        commits: how many transactions have been committed.
    """

    def __init__(self, *, specs: Specs, shown: str, time: StoreTime) -> None:
        self._specs = specs
        self._shown = shown
        self._time = time
        self._set_back = SetBack()
        self._marks = Marks(time.monotonic)
        self.commits = 0

    def commit(self, wire: Wire, batch: Sequence[Operation]) -> set[Hint]:
        """Carry out a batch: each operation then has its `value` or its `error`.

        Returns what to tell subscribers.
        """
        hints: set[Hint] = set()
        error = None if self._submit_at_once(wire, batch, hints) else self._try(wire, batch, hints)
        if error is None:
            for operation in batch:
                if operation.error is None:
                    operation.value = operation.finish(operation.value)
        elif len(batch) > 1 and not is_lost(error):
            for operation in batch:
                hints |= self.commit(wire, [operation])
        else:
            self.fail(batch, error)
        return hints

    def _submit_at_once(self, wire: Wire, batch: Sequence[Operation], hints: set[Hint]) -> bool:
        """Try the short way; False, and no change: they have to go the long one."""
        calls = [operation.plain for operation in batch if operation.plain is not None]
        if len(calls) < len(batch):
            return False
        admissions = submit_at_once(wire, self._specs, self._time, calls)
        if admissions is None:
            return False
        for operation, admission in zip(batch, admissions, strict=True):
            operation.value, operation.error = admission, None
        hints.add(Hint.WORK)
        self.commits += 1
        return True

    def fail(self, batch: Sequence[Operation], error: BaseException) -> None:
        """Have operations fail."""
        for operation in batch:
            told = translated(error, self._shown)
            if told is not error:
                told.__cause__ = error
            operation.error = told

    def _try(self, wire: Wire, batch: Sequence[Operation], hints: set[Hint]) -> Exception | None:
        """Carry a batch out, again as often as it gives way to others; return what went wrong."""
        for left in reversed(range(TRIES)):
            new: set[Hint] = set()
            try:
                self._transact(wire, batch, new)
            except AGAIN as error:
                if not left:
                    return error
            except Exception as error:  # noqa: BLE001 - it is the answer to whoever called
                return error
            else:
                hints |= new
                return None
        raise AssertionError("the last try returns")

    def _transact(self, wire: Wire, batch: Sequence[Operation], hints: set[Hint]) -> None:
        try:
            now = self._time.see(wire.begin())
            self._set_back.is_heeded = False
            self._set_back.see(now)
            for operation in batch:
                operation.error = None
            self._carry_out(wire, batch, now, hints)
            wire.commit()
        except BaseException:
            wire.rollback()
            raise
        self._set_back.committed()
        self.commits += 1

    def _carry_out(self, wire: Wire, batch: Sequence[Operation], now: Micros, hints: set[Hint]) -> None:
        sql = PostgresSql(wire, time=self._time.see, marks=self._marks)
        start = 0
        while start < len(batch):
            end = start
            while end < len(batch) and batch[end].plain is not None:
                end += 1
            if end > start and self._submit_together(self._turn(sql, now, hints), batch[start:end]):
                start = end
                continue
            for operation in batch[start : max(end, start + 1)]:
                self._run(wire, sql, operation, now, hints)
            start = max(end, start + 1)

    def _submit_together(self, turn: Turn, submits: Sequence[Operation]) -> bool:
        admissions = insert_plain(turn, [operation.plain or () for operation in submits])
        if admissions is None:
            return False
        for operation, admission in zip(submits, admissions, strict=True):
            operation.value = admission
        return True

    def _run(self, wire: Wire, sql: PostgresSql, operation: Operation, now: Micros, hints: set[Hint]) -> None:
        if not operation.is_guarded:
            _carry_out_one(self._turn(sql, now, hints), operation)
            return
        own_hints: set[Hint] = set()
        wire.run("SAVEPOINT operation")
        try:
            _carry_out_one(self._turn(sql, now, own_hints), operation)
        except BetimesError as refusal:
            wire.run("ROLLBACK TO operation")
            operation.error = refusal
        else:
            hints |= own_hints
        wire.run("RELEASE operation")

    def _turn(self, sql: PostgresSql, now: Micros, hints: set[Hint]) -> Turn:
        return Turn(
            sql,
            self._specs,
            now=now,
            set_back=self._set_back,
            boottime=self._time.for_leases(now),
            boot_id="",  # the server's clock does not begin anew
            hints=hints,
        )


def _carry_out_one(turn: Turn, operation: Operation) -> None:
    """Carry an operation out, and then what the ends of jobs, however they came, do to schedules."""
    operation.value = operation.run(turn)
    follow(turn)
