"""The writer: one thread that owns the one writing connection.

Natural batching: while a commit is on its way, calls gather; when it is done, they go together through the
next. There is no delay when nobody waits, and large batches under load. All answers of a batch go back to
the event loop in one call.

With `is_inline` there is no thread: each call is carried out where it is made, by the same code; then
there is no timer either, and leases are prolonged by `beat` alone.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

from betimes.errors import BetimesError, StoreUnavailable
from betimes.ports import Clock, Hint
from betimes.stores.relational.leases import renew
from betimes.stores.relational.operation import Operation
from betimes.stores.relational.rows import Specs
from betimes.stores.relational.upkeep import Renewals
from betimes.stores.sqlite.batch import Committer
from betimes.stores.sqlite.commit_lock import CommitLock
from betimes.stores.sqlite.doorbell import Doorbell, touches_of
from betimes.stores.sqlite.opening import Location, is_wal, open_writer, unusable
from betimes.stores.sqlite.room import Room
from betimes.stores.sqlite.watch import Watch

_log = logging.getLogger("betimes")

CLOSE_PATIENCE_S = 2.0
"""How long a close waits for calls that are still on their way."""

IDLE_CHECKPOINT_US = 1_000_000
"""A checkpoint is made after this long without work, or once enough has been written."""
WRITES_TO_CHECKPOINT = 10_000
"""Rows changed between two checkpoints under load: some megabytes of log."""

BATCH_LIMIT = 1000
"""The most calls in one transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterSettings:
    """What a writer needs to know.

    Attributes:
        where: the file.
        clock: where time comes from.
        specs: the shared memory of specs.
        max_stall_us: how long a worker may go without a beat before its lease is left to run out.
        tell: called on the event loop after commits that subscribers should hear of.
        is_heard: whether there are subscribers.
        is_inline: carry calls out where they are made.
    """

    where: Location
    clock: Clock
    specs: Specs
    max_stall_us: int
    tell: Callable[[Collection[Hint]], None]
    is_heard: Callable[[], bool]
    is_inline: bool = False


class Writer:
    """Owns the writing connection; `call` is its door."""

    def __init__(self, settings: WriterSettings) -> None:
        self._settings = settings
        self._clock = settings.clock
        self._lock = CommitLock(settings.where.path, patience_s=settings.where.busy_timeout_s)
        self._queue: SimpleQueue[Operation | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed: asyncio.Future[None] | None = None
        self._is_ending = False
        self._worked_at = self._checkpointed = 0
        self._bell: Doorbell | None = None
        self._watch: Watch | None = None
        self.renewals = Renewals(clock=settings.clock, max_stall_us=settings.max_stall_us)

    # from the event loop

    async def open(self, *, strategy: str | None) -> bool:
        """Open the file; return whether it is in WAL mode.

        Raises:
            ConfigurationError, SchemaMismatch, StoreUnavailable: as `Store.open`.
        """
        self._loop = asyncio.get_running_loop()
        if self._settings.is_inline:
            self._open_file(strategy)
        else:
            opened = self._loop.create_future()
            self._closed = self._loop.create_future()
            self._thread = threading.Thread(
                target=self._serve, args=(strategy, opened), name="betimes-sqlite-writer", daemon=True
            )
            self._thread.start()
            try:
                await opened
            except asyncio.CancelledError:
                self._end()
                raise
        return self._is_wal

    async def call(self, operation: Operation) -> Any:
        """Carry out an operation in its turn and return its answer, or raise its error."""
        if self._settings.is_inline:
            self._commit([operation])
        else:
            assert self._loop is not None
            operation.future = self._loop.create_future()
            self._put(operation)
            return await operation.future
        if operation.error is not None:
            raise operation.error
        return operation.value

    def nudge(self) -> None:
        """Have the thread look at its timer anew."""
        if self._thread is not None:
            self._put(None)

    async def close(self) -> None:
        """Carry out what has been called, and close the file.

        If that takes too long, since somebody else keeps the file locked, the thread is left to do it alone.
        """
        if self._settings.is_inline:
            self._close_file()
            return
        if self._thread is None or self._closed is None:
            return
        self._end()
        if (await asyncio.wait([self._closed], timeout=CLOSE_PATIENCE_S))[1]:
            path = self._settings.where.path
            _log.warning(
                "%s is still busy, or locked by somebody else; it is closed as soon as it can be", path
            )
            return
        self._thread.join()

    @property
    def is_replaced(self) -> bool:
        """Whether the file at the path is no longer the one that was opened."""
        return self._committer.is_replaced

    def _end(self) -> None:
        """Have the thread carry out what has been called, close the file, and end."""
        self._is_ending = True
        self._put(None)

    def _put(self, operation: Operation | None) -> None:
        self._queue.put(operation)
        if self._bell is not None:
            self._bell.ring()

    @property
    def commits(self) -> int:
        """How many transactions have been committed."""
        return self._committer.commits

    # in the thread

    def _serve(self, strategy: str | None, opened: asyncio.Future[None]) -> None:
        try:
            self._open_file(strategy)
        except BaseException as error:  # noqa: BLE001 - it is the answer to whoever opened
            self._post(_set_exception, opened, error)
            return
        self._post(_set_result, opened)
        try:
            self._work()
        finally:
            self._close_file()
            if self._bell is not None:
                self._bell.close()
            if self._closed is not None:
                self._post(_set_result, self._closed)

    def _work(self) -> None:
        while not (self._is_ending and self._queue.empty()):
            batch = self._gather()
            if batch:
                self._commit(batch)
            self._keep_up(is_idle=not batch)

    def _gather(self) -> list[Operation]:
        """Wait for a call, for a touch of the file, or for the timer; return all that has gathered."""
        if self._queue.empty():
            self._sleep()
        batch: list[Operation] = []
        with suppress(Empty):
            while len(batch) < BATCH_LIMIT:
                operation = self._queue.get_nowait()
                if operation is not None:
                    batch.append(operation)
        return batch

    def _sleep(self) -> None:
        assert self._bell is not None
        watch = self._watch if self._settings.is_heard() else None
        was_touched = self._bell.sleep(
            self._pause_s(),
            is_called=lambda: not self._queue.empty(),
            for_touches=watch is not None and watch.wants_touches(self._clock.boottime()),
        )
        if was_touched and watch is not None:
            watch.touched(self._clock.boottime())

    def _commit(self, batch: Sequence[Operation]) -> None:
        try:
            hints = self._committer.commit(batch)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the thread must outlive it
            hints = set()
            for operation in batch:
                operation.error = operation.error or error
        if self._settings.is_inline:
            if hints and self._loop is not None:
                self._loop.call_soon(self._settings.tell, hints)
        else:
            self._post(self._deliver, batch, hints)
        self._worked_at = self._clock.boottime()
        if self._sql.total_changes - self._checkpointed >= WRITES_TO_CHECKPOINT:
            self._checkpoint()

    def _deliver(self, batch: Sequence[Operation], hints: Collection[Hint]) -> None:
        for operation in batch:
            operation.resolve()
        if hints:
            self._settings.tell(hints)

    def _post(self, call: Callable[..., None], *values: object) -> None:
        # A loop that has been closed meanwhile has nobody left who waits.
        with suppress(RuntimeError):
            assert self._loop is not None
            self._loop.call_soon_threadsafe(call, *values)

    # the timer

    def _pause_s(self) -> float | None:
        """Return how long the thread may sleep; None: until it is called."""
        pauses = [self.renewals.next_due_in_us()]
        if self._watch is not None and self._settings.is_heard():
            pauses.append(self._watch.next_in_us(self._clock.boottime()))
        if self._sql.total_changes != self._checkpointed:
            pauses.append(IDLE_CHECKPOINT_US)
        shortest = min((pause for pause in pauses if pause is not None), default=None)
        return None if shortest is None else shortest / 1_000_000

    def _keep_up(self, *, is_idle: bool) -> None:
        now = self._clock.boottime()
        due = self.renewals.due()
        if due:
            self._commit([Operation(lambda turn: [renew(turn, worker) for worker in due])])
        if self._watch is not None and self._settings.is_heard() and self._watch.has_news(now):
            self._post(self._settings.tell, self._watch.hints(self.renewals.workers))
        if (
            is_idle
            and now - self._worked_at >= IDLE_CHECKPOINT_US
            and self._sql.total_changes != self._checkpointed
        ):
            self._checkpoint()

    def _checkpoint(self) -> None:
        self._checkpointed = self._sql.total_changes
        self._committer.checkpoint()

    # the file

    def _open_file(self, strategy: str | None) -> None:
        where = self._settings.where
        room = Room(where.path, reserve_bytes=where.reserve_bytes)
        try:
            self._sql = open_writer(where, self._lock, strategy=strategy)
        except StoreUnavailable as error:
            # A full disk must not keep out those who finish what is there.
            if error.why != "full" or not room.give_up():
                raise
            self._sql = open_writer(where, self._lock, strategy=strategy)
        try:
            self._settle_in(room)
        except (OSError, sqlite3.Error) as error:
            self._close_file()
            if isinstance(error, StoreUnavailable):
                raise
            raise unusable(where.path, error) from error

    def _settle_in(self, room: Room) -> None:
        """Get what is needed beside the connection, which is open."""
        where = self._settings.where
        room.fill()
        self._is_wal = is_wal(self._sql)
        self._committer = Committer(
            self._sql, self._lock, room=room, path=where.path, clock=self._clock, specs=self._settings.specs
        )
        self._checkpointed = self._written = self._sql.total_changes
        if not self._settings.is_inline:
            self._watch_file()

    def _watch_file(self) -> None:
        """Have the thread sleep on what is written to the file, and on whoever calls."""
        path = self._settings.where.path
        watched = path.with_name(f"{path.name}-wal") if self._is_wal else path
        touches = touches_of(watched, probe=self._lock.path)
        try:
            self._bell = Doorbell(touches)
        except OSError:  # this process may open no more files
            if touches is not None:
                touches.close()
            raise
        self._watch = Watch(self._sql, self._bell, now=self._clock.boottime())
        self._committer.on_commit = self._committed

    def _committed(self) -> None:
        """Forget the touches of a commit of our own: while the lock is held, nobody else of ours writes."""
        written = self._sql.total_changes
        if written != self._written and self._watch is not None and self._settings.is_heard():
            self._watch.committed(self._clock.boottime())
        self._written = written

    def _close_file(self) -> None:
        # Whoever holds the lock has the file open, too: then closing here does not checkpoint, and may go on.
        try:
            with self._lock:
                self._sql.close()
        except BetimesError:
            self._sql.close()
        self._lock.close()


def _set_result(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _set_exception(future: asyncio.Future[None], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
