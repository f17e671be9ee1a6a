"""A session: one connection, and the thread that it belongs to.

Calls gather while an answer is on its way; when it is there, those that have gathered are carried out
together. A connection that was lost is made anew by the next call; until that succeeds, calls fail at once
with `StoreUnavailable`, and whoever called decides when to try again.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from betimes.ports import Clock
from betimes.stores.postgres.target import Target
from betimes.stores.postgres.wire import Wire

Call = TypeVar("Call")

CLOSE_PATIENCE_S = 5.0
"""How long a close waits for calls that are still on their way, before the connection is cut."""

BATCH_LIMIT = 1000
"""The most calls that are carried out together."""


class Session(ABC, Generic[Call]):
    """Carries calls out in a thread of its own, in order.

    Args:
        target: where to.
        clock: measures how long the server takes to answer.
        name: what the session is for; its thread is called so.
    """

    def __init__(self, target: Target, *, clock: Clock, name: str) -> None:
        self._target = target
        self._clock = clock
        self._name = name
        self._queue: SimpleQueue[Call | None] = SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed: asyncio.Future[None] | None = None
        self._wire: Wire | None = None
        self._is_ending = False

    # on the loop

    async def open(self) -> None:
        """Start the thread; it connects when it is called."""
        self._loop = asyncio.get_running_loop()
        self._closed = self._loop.create_future()
        self._thread = threading.Thread(
            target=self._serve, name=f"betimes-postgres-{self._name}", daemon=True
        )
        self._thread.start()

    def put(self, call: Call | None) -> None:
        """Have a call carried out; None: only have the thread look up."""
        self._queue.put(call)

    def waits_for(self) -> float:
        """Return for how many seconds it has waited for an answer of the server; from any thread."""
        wire = self._wire
        return 0.0 if wire is None else wire.waits_for()

    def cut(self) -> None:
        """Have what is on its way fail at once; from any thread."""
        wire = self._wire
        if wire is not None:
            wire.cut()

    async def close(self) -> None:
        """Carry out what has been called, and close the connection; what takes too long is cut off."""
        if self._thread is None or self._closed is None:
            return
        self._is_ending = True
        self.put(None)
        if (await asyncio.wait([self._closed], timeout=CLOSE_PATIENCE_S))[1]:
            self.cut()
            await asyncio.wait([self._closed], timeout=CLOSE_PATIENCE_S)
        self._thread = None

    # in the thread

    def _serve(self) -> None:
        try:
            while not (self._is_ending and self._queue.empty()):
                batch = self._gather(self._pause_s())
                if batch:
                    self._carry_out(batch)
                self._keep_up()
        finally:
            self._disconnect()
            if self._closed is not None:
                self._post(_set_done, self._closed)

    def _gather(self, pause_s: float | None) -> list[Call]:
        """Wait for a call, or for the timer; return all that has gathered."""
        batch: list[Call] = []
        with suppress(Empty):
            first = self._queue.get(timeout=pause_s)
            if first is not None:
                batch.append(first)
            while len(batch) < BATCH_LIMIT:
                call = self._queue.get_nowait()
                if call is not None:
                    batch.append(call)
        return batch

    def _pause_s(self) -> float | None:
        """Return how long the thread may sleep; None: until it is called."""
        return None

    def _keep_up(self) -> None:
        """Do what is due by the thread's own timer."""

    @abstractmethod
    def _carry_out(self, batch: list[Call]) -> None:
        """Carry calls out and see to their answers; whatever happens, it does not raise."""

    def _connected(self) -> Wire:
        """Return the connection, made anew if it was lost.

        Raises:
            StoreUnavailable, ConfigurationError: it cannot be made.
        """
        if self._wire is None or not self._wire.is_usable:
            self._wire = None
            self._wire = Wire(self._target, monotonic=self._clock.monotonic)
        return self._wire

    def _disconnect(self) -> None:
        """Close the connection; the next call makes another."""
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()

    def _post(self, call: Callable[..., None], *values: object) -> None:
        # A loop that has been closed meanwhile has nobody left who waits.
        with suppress(RuntimeError):
            assert self._loop is not None
            self._loop.call_soon_threadsafe(call, *values)


def _set_done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
