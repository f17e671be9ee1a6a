"""The reader: a connection of its own in a thread of its own, so that looking never waits for the writer.

A look begins after it was called for, and so after every commit that was acknowledged before: it sees them
all.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from betimes.stores.relational.looks import Look
from betimes.stores.relational.rows import Specs
from betimes.stores.sqlite.failures import translated
from betimes.stores.sqlite.opening import Location, open_reader
from betimes.stores.sqlite.statements import SqliteSql

T = TypeVar("T")


class Reader:
    """Owns the looking connection; `call` is its door."""

    def __init__(self, where: Location, specs: Specs, *, is_inline: bool) -> None:
        self._where = where
        self._specs = specs
        self._is_inline = is_inline
        self._queue: SimpleQueue[tuple[Callable[[Look], Any], asyncio.Future[Any]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed: asyncio.Future[None] | None = None
        self._sql: sqlite3.Connection | None = None

    async def open(self, *, is_wal: bool) -> None:
        """Open the file for looking; the writer has opened it before."""
        self._loop = asyncio.get_running_loop()
        self._sql = open_reader(self._where, is_wal=is_wal)
        if not self._is_inline:
            self._closed = self._loop.create_future()
            self._thread = threading.Thread(target=self._serve, name="betimes-sqlite-reader", daemon=True)
            self._thread.start()

    async def call(self, look: Callable[[Look], T]) -> T:
        """Return what the look sees."""
        if self._is_inline:
            return self._look(look)
        assert self._loop is not None
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.put((look, future))
        return await future

    async def close(self) -> None:
        """Answer what has been asked, and close the file."""
        if self._thread is not None and self._closed is not None:
            self._queue.put(None)
            await self._closed
            self._thread.join()
            self._thread = None
        if self._sql is not None:
            self._sql.close()
            self._sql = None

    def _serve(self) -> None:
        while (asked := self._queue.get()) is not None:
            look, future = asked
            answer: Any = None
            error: BaseException | None = None
            try:
                answer = self._look(look)
            except BaseException as raised:  # noqa: BLE001 - it is the answer to whoever called
                error = raised
            self._post(_resolve, future, answer, error)
        if self._closed is not None:
            self._post(_resolve, self._closed, None, None)

    def _post(self, call: Callable[..., None], *values: object) -> None:
        # A loop that has been closed meanwhile has nobody left who waits.
        with suppress(RuntimeError):
            assert self._loop is not None
            self._loop.call_soon_threadsafe(call, *values)

    def _look(self, look: Callable[[Look], T]) -> T:
        """Look within one transaction: a job that moves meanwhile is seen once, before or after."""
        sql = self._sql
        assert sql is not None
        try:
            sql.execute("BEGIN")
            try:
                return look(Look(SqliteSql(sql), self._specs))
            finally:
                sql.execute("COMMIT")
        except sqlite3.Error as error:
            raise translated(error, self._where.path) from error


def _resolve(future: asyncio.Future[Any], answer: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(answer)
