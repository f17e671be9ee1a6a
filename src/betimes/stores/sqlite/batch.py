"""A batch: whatever has gathered goes through one transaction, and each operation gets its own answer.

An operation that refuses (`DuplicateJob` …) leaves nothing, and the others go on. When one fails in a way
nobody foresaw, the whole batch is rolled back and its operations are run one by one, so that only the
culprit fails. When the commit itself fails, all fail: nothing is half-written. When the disk is full, what
brings new jobs fails, and the rest gets the reserve (see `room`). When the file at the path is no longer the
one that was opened, everything fails: what is written to a file without a name is lost.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from betimes.errors import BetimesError, StoreUnavailable
from betimes.ports import Clock, Hint
from betimes.stores.relational.arrivals import insert_plain
from betimes.stores.relational.firing import follow
from betimes.stores.relational.operation import Operation
from betimes.stores.relational.rows import Specs
from betimes.stores.relational.turn import Turn
from betimes.stores.relational.upkeep import SetBack
from betimes.stores.sqlite.commit_lock import CommitLock
from betimes.stores.sqlite.failures import is_full, primary_code, translated
from betimes.stores.sqlite.forks import identity
from betimes.stores.sqlite.room import Room
from betimes.stores.sqlite.statements import SqliteSql
from betimes.stores.sqlite.write_lock import begin, patience_ms


class Committer:
    """Carries out batches of operations on the writing connection.

    Attributes:
        commits: how many transactions have been committed.
        on_commit: called after each, while the lock is still held.
    """

    def __init__(
        self, sql: sqlite3.Connection, lock: CommitLock, *, room: Room, path: Path, clock: Clock, specs: Specs
    ) -> None:
        self._sql = sql
        self._shared = SqliteSql(sql)
        self._lock = lock
        self._room = room
        self._path = path
        self._clock = clock
        self._specs = specs
        self._set_back = SetBack()
        self._identity = identity(path)
        self._page_size: int = sql.execute("PRAGMA page_size").fetchone()[0]
        self._patience_ms = patience_ms(sql)
        self.commits = 0
        self.on_commit: Callable[[], None] | None = None

    @property
    def is_replaced(self) -> bool:
        """Whether the file at the path is no longer the one that was opened; one system call."""
        return identity(self._path) != self._identity

    def commit(self, batch: Sequence[Operation]) -> set[Hint]:
        """Carry out a batch: each operation then has its `value` or its `error`.

        Returns what to tell subscribers.
        """
        hints: set[Hint] = set()
        if self.is_replaced:
            self._fail(batch, replaced(self._path))
            return hints
        growth = [operation for operation in batch if operation.is_growth]
        if growth:
            refusal = self._room.refusal(self._owed_bytes)
            if refusal is not None:
                self._fail(growth, refusal)
                batch = [operation for operation in batch if not operation.is_growth]
        if batch:
            self._commit(batch, hints)
        if self._room.is_scarce:
            # The log is to be written over, not prolonged, and perhaps there is room again.
            self._checkpoint()
            self._room.fill()
        return hints

    def _commit(self, batch: Sequence[Operation], hints: set[Hint]) -> None:
        error = self._try(batch, hints)
        if is_full(error, self._path):
            growth = [operation for operation in batch if operation.is_growth]
            if 0 < len(growth) < len(batch):
                self._commit([operation for operation in batch if not operation.is_growth], hints)
                self._commit(growth, hints)
                return
            error = self._try_with_room(batch, hints, error)
        if error is None:
            for operation in batch:
                if operation.error is None:
                    operation.value = operation.finish(operation.value)
        elif len(batch) > 1 and _may_be_one_culprit(error):
            self._commit_one_by_one(batch, hints)
        else:
            self._fail(batch, error)

    def _commit_one_by_one(self, batch: Sequence[Operation], hints: set[Hint]) -> None:
        for place, operation in enumerate(batch):
            self._commit([operation], hints)
            if operation.is_growth and is_full(operation.error, self._path):
                # The others would only try the same disk once more each; whoever asked may try again.
                assert operation.error is not None
                self._fail(batch[place + 1 :], operation.error)
                return

    def _try(self, batch: Sequence[Operation], hints: set[Hint]) -> Exception | None:
        """Carry a batch out in one transaction; return what went wrong."""
        new: set[Hint] = set()
        try:
            with self._lock:
                self._transact(batch, new)
        except Exception as error:  # noqa: BLE001 - it is the answer to whoever called
            return error
        hints |= new
        return None

    def _try_with_room(
        self, batch: Sequence[Operation], hints: set[Hint], error: Exception | None
    ) -> Exception | None:
        """Try again on a full disk: writing over the log, and, but for new jobs, with the reserve."""
        steps = [self._checkpoint]
        if not batch[0].is_growth:
            steps += [self._room.give_up, self._checkpoint]
        for make_room in steps:
            if make_room():
                error = self._try(batch, hints)
                if not is_full(error, self._path):
                    break
        return error

    def checkpoint(self) -> None:
        """Copy the log into the database file, as far as readers allow; what fails is done the next time."""
        self._checkpoint()

    def _checkpoint(self) -> bool:
        """Return whether all of the log has been copied, so that it is written over from now on."""
        try:
            with self._lock:
                is_busy, frames, copied = self._sql.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except (sqlite3.Error, BetimesError):
            return False
        return not is_busy and 0 <= frames == copied

    def _owed_bytes(self) -> int:
        """Return by how much the database will grow when the log is copied into it."""
        try:
            pages: int = self._sql.execute("PRAGMA page_count").fetchone()[0]
            return max(0, pages * self._page_size - self._path.stat().st_size)
        except (sqlite3.Error, OSError):
            return 0

    def _transact(self, batch: Sequence[Operation], hints: set[Hint]) -> None:
        sql = self._sql
        try:
            begin(sql, patience_ms=self._patience_ms)
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
            self._shared,
            self._specs,
            now=now,
            set_back=self._set_back,
            boottime=clock.boottime(),
            boot_id=clock.boot_id(),
            hints=hints,
        )

    def _fail(self, batch: Sequence[Operation], error: BaseException) -> None:
        for operation in batch:
            operation.error = translated(error, self._path)
            operation.error.__cause__ = error if operation.error is not error else error.__cause__


def _may_be_one_culprit(error: Exception) -> bool:
    """Say whether the rest of a batch may do better alone: not if the file is locked or its disk broken."""
    hopeless = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_READONLY)
    if isinstance(error, sqlite3.Error):
        return primary_code(error) not in hopeless
    return not isinstance(error, StoreUnavailable)  # nobody could get at the file


def replaced(path: Path) -> StoreUnavailable:
    """Return what to raise when the file at the path is no longer the one that was opened."""
    happened = "has been moved or deleted" if identity(path) is None else "has been replaced by another file"
    return StoreUnavailable(
        f"{path} {happened} while it was open: nothing more is written to it. Put the same file back, and "
        "work goes on; or stop this process and start it again, to use what lies there now",
        why="replaced",
    )
