"""The door of the store: opens and closes the file, and passes calls to the writer and the reader."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeVar

from betimes.core.job import Micros
from betimes.errors import ConfigurationError, SchedulerClosed
from betimes.ports import Clock, Hint, Store, WorkerInfo
from betimes.stores.sqlite.looks import Look
from betimes.stores.sqlite.opening import location
from betimes.stores.sqlite.operation import Operation
from betimes.stores.sqlite.reader import Reader
from betimes.stores.sqlite.rows import Specs
from betimes.stores.sqlite.turn import Turn
from betimes.stores.sqlite.writer import Writer, WriterSettings

T = TypeVar("T")


def _never_gone(_worker: WorkerInfo) -> bool:
    return False


class Door(Store):
    """The part of the store that owns the file's two connections; see `SqliteStore` for its arguments."""

    is_durable = True

    def __init__(
        self,
        path: str | Path,
        *,
        clock: Clock,
        inline: bool = False,
        is_gone: Callable[[WorkerInfo], bool] = _never_gone,
        max_stall_us: Micros = 300_000_000,
        busy_timeout_s: float = 10.0,
        journal: str | None = None,
    ) -> None:
        """Remember where the file is to be; nothing is opened yet."""
        self._clock = clock
        self._inline = inline
        self._is_gone = is_gone
        self._max_stall_us = max_stall_us
        self._where = location(path, busy_timeout_s=busy_timeout_s, journal=journal)
        self._specs = Specs()
        self._subscribers: list[Callable[[Hint], None]] = []
        self._writer: Writer | None = None
        self._reader: Reader | None = None
        self._pid = 0

    async def open(self, *, strategy: str | None) -> None:
        """Open the file, creating what an empty one needs."""
        if self._writer is not None:
            raise ConfigurationError(f"the store {self._where.path} is open already: close it first")
        # A loop that jumps from timer to timer does not wait for what a thread has not answered yet.
        is_inline = self._inline or getattr(asyncio.get_running_loop(), "is_virtual", False)
        writer = Writer(
            WriterSettings(
                where=self._where,
                clock=self._clock,
                specs=self._specs,
                max_stall_us=self._max_stall_us,
                tell=self._tell,
                is_heard=lambda: bool(self._subscribers),
                is_inline=is_inline,
            )
        )
        is_wal = await writer.open(strategy=strategy)
        reader = Reader(self._where, self._specs, is_inline=is_inline)
        try:
            await reader.open(is_wal=is_wal)
        except BaseException:
            await writer.close()
            raise
        self._pid = os.getpid()
        self._writer, self._reader = writer, reader

    async def close(self) -> None:
        """Finish what has been called, and close the file; what was acknowledged stays."""
        reader, self._reader = self._reader, None
        writer, self._writer = self._writer, None
        if os.getpid() != self._pid:
            return  # a forked child has neither the threads nor the locks
        if reader is not None:
            await reader.close()
        if writer is not None:
            await writer.close()

    def now(self) -> Micros:
        """Return the wall clock's time: SQLite has no clock of its own."""
        return self._clock.now()

    @property
    def commits(self) -> int:
        """How many transactions this store has committed since it was opened."""
        return self._open_writer().commits

    def subscribe(self, hear: Callable[[Hint], None]) -> Callable[[], None]:
        """Have `hear` called on the event loop after commits, this process's and others'."""
        self._subscribers.append(hear)
        if self._writer is not None:
            self._writer.nudge()

        def stop() -> None:
            if hear in self._subscribers:
                self._subscribers.remove(hear)

        return stop

    def _tell(self, hints: Collection[Hint]) -> None:
        for hint in Hint:
            if hint in hints:
                for hear in tuple(self._subscribers):
                    hear(hint)

    def _open_writer(self) -> Writer:
        writer = self._writer
        if writer is None:
            raise SchedulerClosed(f"the store {self._where.path} is not open: open it first")
        if os.getpid() != self._pid:
            raise ConfigurationError(
                f"the store {self._where.path} was opened before this process was forked; open another here"
            )
        return writer

    async def _write(
        self, run: Callable[[Turn], T], *, finish: Callable[[T], T] | None = None, is_guarded: bool = False
    ) -> T:
        operation = Operation(run, is_guarded=is_guarded)
        if finish is not None:
            operation.finish = finish
        answer: T = await self._open_writer().call(operation)
        return answer

    async def _read(self, look: Callable[[Look], T]) -> T:
        self._open_writer()
        assert self._reader is not None
        return await self._reader.call(look)
