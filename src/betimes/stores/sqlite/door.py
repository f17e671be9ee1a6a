"""The door of the store: opens and closes the file, and passes calls to the writer and the reader."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from betimes.core.job import Micros
from betimes.core.vitals import Trouble, Vitals
from betimes.errors import ConfigurationError, SchedulerClosed, SchemaMismatch, StoreUnavailable
from betimes.ports import Clock, Hint, WorkerInfo
from betimes.stores.relational.looks import Look
from betimes.stores.relational.operation import Operation
from betimes.stores.relational.rows import Specs
from betimes.stores.relational.store import RelationalStore
from betimes.stores.relational.upkeep import Renewals
from betimes.stores.sqlite.opening import location
from betimes.stores.sqlite.reader import Reader
from betimes.stores.sqlite.room import RESERVE_BYTES, DiskFacts, disk_facts
from betimes.stores.sqlite.survey import log_of, survey, tidy
from betimes.stores.sqlite.writer import Writer, WriterSettings

T = TypeVar("T")


def _never_gone(_worker: WorkerInfo) -> bool:
    return False


class Door(RelationalStore):
    """The part of the store that owns the file's two connections; see `SqliteStore` for its arguments."""

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
        reserve_bytes: int = RESERVE_BYTES,
    ) -> None:
        """Remember where the file is to be; nothing is opened yet."""
        super().__init__(is_gone=is_gone)
        self._clock = clock
        self._inline = inline
        self._max_stall_us = max_stall_us
        self._where = location(
            path, busy_timeout_s=busy_timeout_s, journal=journal, reserve_bytes=reserve_bytes
        )
        self._specs = Specs()
        self._writer: Writer | None = None
        self._reader: Reader | None = None
        self._leaves_no_log = False
        self._pid = 0

    async def open(self, *, strategy: str | None) -> None:
        """Open the file, creating what an empty one needs."""
        if self._reader is not None:
            raise ConfigurationError(f"the store {self._where.path} is open already: close it first")
        is_inline = self._is_inline()
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

    async def look(self) -> None:
        """Open the file for looking only."""
        if self._reader is not None:
            raise ConfigurationError(f"the store {self._where.path} is open already: close it first")
        is_inline = self._is_inline()
        vitals = await self.vitals()
        file = vitals.file
        if file is None or vitals.trouble is not None:
            raise StoreUnavailable(f"{vitals.problem}; nothing can be looked at")
        if file.schema != file.newest_schema:
            raise SchemaMismatch(
                f"{self._where.path} has schema version {file.schema or 0}; open it with a scheduler, which "
                f"carries it over to version {file.newest_schema}",
                found=file.schema or 0,
                expected=file.newest_schema,
            )
        self._leaves_no_log = not log_of(self._where.path).exists()
        reader = Reader(self._where, self._specs, is_inline=is_inline)
        await reader.open(is_wal=file.journal_mode == "wal")
        self._pid = os.getpid()
        self._reader = reader

    async def vitals(self, *, full: bool = False) -> Vitals:
        """Say what can be said of the file."""
        writer, path = self._writer, self._where.path
        if writer is not None and writer.is_replaced:
            problem = f"{path} is not the file any more that this process has opened"
            return Vitals(
                kind="sqlite", is_durable=True, place=str(path), trouble=Trouble.REPLACED, problem=problem
            )
        if self._is_inline():
            return survey(self._where, full=full)
        return await asyncio.to_thread(survey, self._where, full=full)

    def _is_inline(self) -> bool:
        # A loop that jumps from timer to timer does not wait for what a thread has not answered yet.
        return self._inline or getattr(asyncio.get_running_loop(), "is_virtual", False)

    async def close(self) -> None:
        """Finish what has been called, and close the file; what was acknowledged stays."""
        reader, self._reader = self._reader, None
        writer, self._writer = self._writer, None
        if os.getpid() != self._pid:
            return  # a forked child has neither the threads nor the locks
        is_replaced = writer is not None and writer.is_replaced
        if writer is not None and is_replaced:
            # Who closes last deletes the log by its name, and another file may go by that name now. The
            # reader closes without a trace, so it is the one to be last.
            await writer.close()
        if reader is not None:
            await reader.close()
        if writer is not None:
            if not is_replaced:
                await writer.close()
        elif reader is not None and self._leaves_no_log:
            tidy(self._where)

    def now(self) -> Micros:
        """Return the wall clock's time: SQLite has no clock of its own."""
        return self._clock.now()

    @property
    def commits(self) -> int:
        """How many transactions this store has committed since it was opened."""
        return self._open_writer().commits

    @property
    def is_replaced(self) -> bool:
        """Whether the file at the path is no longer the one that was opened; then nothing is written."""
        return self._open_writer().is_replaced

    def disk(self) -> DiskFacts:
        """Look at the disk that the file is on.

        Raises:
            OSError: its folder is not there.
        """
        return disk_facts(self._where.path, reserve_bytes=self._where.reserve_bytes)

    def subscribe(self, hear: Callable[[Hint], None]) -> Callable[[], None]:
        """Have `hear` called on the event loop after commits, this process's and others'."""
        stop = super().subscribe(hear)
        if self._writer is not None:
            self._writer.nudge()
        return stop

    def _open_writer(self) -> Writer:
        writer, _ = self._writer, self._open_reader()
        if writer is None:
            raise ConfigurationError(
                f"the store {self._where.path} is open for looking only: nothing can be changed"
            )
        return writer

    def _open_reader(self) -> Reader:
        reader = self._reader
        if reader is None:
            raise SchedulerClosed(f"the store {self._where.path} is not open: open it first")
        if os.getpid() != self._pid:
            raise ConfigurationError(
                f"the store {self._where.path} was opened before this process was forked: open it after "
                "the fork only, or start this process afresh"
            )
        return reader

    @property
    def _renewals(self) -> Renewals:
        return self._open_writer().renewals

    def _lease_time(self) -> tuple[Micros, str]:
        return self._clock.boottime(), self._clock.boot_id()

    async def _call(self, operation: Operation) -> Any:
        return await self._open_writer().call(operation)

    async def _read(self, look: Callable[[Look], T]) -> T:
        return await self._open_reader().call(look)
