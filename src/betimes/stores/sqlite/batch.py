"""A batch: whatever has gathered goes through one transaction, and each operation gets its own answer.

An operation that refuses (`DuplicateJob` …) leaves nothing, and the others go on. When one fails in a way
nobody foresaw, the whole batch is rolled back and its operations are run one by one, so that only the
culprit fails. When the commit itself fails, all fail: nothing is half-written.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from betimes.errors import BetimesError
from betimes.ports import Clock, Hint
from betimes.stores.sqlite.arrivals import insert_plain
from betimes.stores.sqlite.commit_lock import CommitLock
from betimes.stores.sqlite.failures import primary_code, translated
from betimes.stores.sqlite.firing import follow
from betimes.stores.sqlite.operation import Operation
from betimes.stores.sqlite.rows import Specs
from betimes.stores.sqlite.turn import Turn
from betimes.stores.sqlite.upkeep import SetBack


class Committer:
    """Carries out batches of operations on the writing connection.

    Attributes:
        commits: how many transactions have been committed.
        on_commit: called after each, while the lock is still held.
    """

    def __init__(
        self, sql: sqlite3.Connection, lock: CommitLock, *, path: Path, clock: Clock, specs: Specs
    ) -> None:
        self._sql = sql
        self._lock = lock
        self._path = path
        self._clock = clock
        self._specs = specs
        self._set_back = SetBack()
        self.commits = 0
        self.on_commit: Callable[[], None] | None = None

    def commit(self, batch: Sequence[Operation]) -> set[Hint]:
        """Carry out a batch: each operation then has its `value` or its `error`.

        Returns what to tell subscribers.
        """
        hints: set[Hint] = set()
        try:
            with self._lock:
                self._transact(batch, hints)
        except Exception as error:  # noqa: BLE001 - it is the answer to whoever called
            hints.clear()
            if len(batch) > 1 and _may_be_one_culprit(error):
                for operation in batch:
                    hints |= self.commit([operation])
            else:
                self._fail(batch, error)
            return hints
        for operation in batch:
            if operation.error is None:
                operation.value = operation.finish(operation.value)
        return hints

    def checkpoint(self) -> None:
        """Copy the log into the database file, as far as readers allow; what fails is done the next time."""
        with suppress(sqlite3.Error, BetimesError), self._lock:
            self._sql.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _transact(self, batch: Sequence[Operation], hints: set[Hint]) -> None:
        sql = self._sql
        try:
            sql.execute("BEGIN IMMEDIATE")
            self._set_back.is_heeded = False
            for operation in batch:
                operation.error = None
            self._carry_out(batch, hints)
            sql.execute("COMMIT")
        except BaseException:
            # SQLite may have rolled back by itself (disk full); otherwise it is for us to do.
            if sql.in_transaction:
                sql.execute("ROLLBACK")
            raise
        self._set_back.committed()
        self.commits += 1
        if self.on_commit is not None:
            self.on_commit()

    def _carry_out(self, batch: Sequence[Operation], hints: set[Hint]) -> None:
        start = 0
        while start < len(batch):
            end = start
            while end < len(batch) and batch[end].plain is not None:
                end += 1
            if end > start and self._submit_together(batch[start:end], hints):
                start = end
                continue
            for operation in batch[start : max(end, start + 1)]:
                self._run(operation, hints)
            start = max(end, start + 1)

    def _submit_together(self, submits: Sequence[Operation], hints: set[Hint]) -> bool:
        turn = self._turn(hints)
        admissions = insert_plain(turn, [operation.plain or () for operation in submits])
        if admissions is None:
            return False
        for operation, admission in zip(submits, admissions, strict=True):
            operation.value = admission
        return True

    def _run(self, operation: Operation, hints: set[Hint]) -> None:
        if not operation.is_guarded:
            self._carry_out_one(operation, hints)
            return
        own_hints: set[Hint] = set()
        self._sql.execute("SAVEPOINT operation")
        try:
            self._carry_out_one(operation, own_hints)
        except BetimesError as refusal:
            self._sql.execute("ROLLBACK TO operation")
            operation.error = refusal
        else:
            hints |= own_hints
        self._sql.execute("RELEASE operation")

    def _carry_out_one(self, operation: Operation, hints: set[Hint]) -> None:
        """Carry an operation out, and then what the ends of jobs, however they came, do to schedules."""
        turn = self._turn(hints)
        operation.value = operation.run(turn)
        follow(turn)

    def _turn(self, hints: set[Hint]) -> Turn:
        clock = self._clock
        now = clock.now()
        self._set_back.see(now)
        return Turn(
            self._sql,
            self._specs,
            now=now,
            set_back=self._set_back,
            boottime=clock.boottime(),
            boot_id=clock.boot_id(),
            hints=hints,
        )

    def _fail(self, batch: Sequence[Operation], error: Exception) -> None:
        for operation in batch:
            operation.error = translated(error, self._path)
            operation.error.__cause__ = error if operation.error is not error else error.__cause__


def _may_be_one_culprit(error: Exception) -> bool:
    """Say whether the rest of a batch may do better alone: not if the file is locked or its disk broken."""
    hopeless = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_READONLY)
    return not (isinstance(error, sqlite3.Error) and primary_code(error) in hopeless)
