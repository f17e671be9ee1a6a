"""A session: one connection, and the thread that it belongs to.

Calls gather while an answer is on its way; when it is there, those that have gathered are carried out
together. A connection that was lost is made anew by the next call; until that succeeds, calls fail at once
with `StoreUnavailable`, and whoever called decides when to try again.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from betimes.ports import Clock
from betimes.stores.postgres.reconnecting import LONGEST_S, Reconnecting
from betimes.stores.postgres.target import Target
from betimes.stores.postgres.watchman import DEADLINE_S
from betimes.stores.postgres.wire import Wire

_log = logging.getLogger("betimes")

Call = TypeVar("Call")

CLOSE_PATIENCE_S, CUT_PATIENCE_S = 3.0, 1.0
"""How long a close waits for calls that are still on their way, before and after the connection is cut."""

FAULT_PAUSE_S = 1.0
"""How long a thread rests that has met what nobody foresaw."""

BATCH_LIMIT = 1000
"""The most calls that are carried out together."""


class Session(ABC, Generic[Call]):
    """Carries calls out in a thread of its own, in order.

    Args:
        target: where to.
        clock: measures how long the server takes to answer.
        name: what the session is for; its thread is called so.
        longest_retry_s: the longest that it waits before it tries to connect again.
    """

    def __init__(
        self, target: Target, *, clock: Clock, name: str, longest_retry_s: float = LONGEST_S
    ) -> None:
        self._target = target
        self._clock = clock
        self._name = name
        self._queue: SimpleQueue[Call | None] = SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed: asyncio.Future[None] | None = None
        self._wire: Wire | None = None
        self._reconnecting = Reconnecting(clock.monotonic, longest_s=longest_retry_s)
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

    @property
    def deadline_s(self) -> float:
        """The longest that it waits for an answer of the server; from any thread."""
        return DEADLINE_S

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
            await asyncio.wait([self._closed], timeout=CUT_PATIENCE_S)
        self._thread = None

    @property
    def has_ended(self) -> bool:
        """Whether its thread has come to its end: one that connects just now may take longer than a close."""
        return self._closed is None or self._closed.done()

    # in the thread

    def _serve(self) -> None:
        try:
            while not (self._is_ending and self._queue.empty()):
                try:
                    self._serve_once()
                except Exception:  # noqa: BLE001 - without its thread, whoever calls would wait for ever
                    _log.exception("the session %r with PostgreSQL met a fault, and goes on", self._name)
                    self._disconnect()
                    threading.Event().wait(FAULT_PAUSE_S)
        finally:
            self._disconnect()
            if self._closed is not None:
                self._post(_set_done, self._closed)

    def _serve_once(self) -> None:
        batch = self._gather(self._pause_s())
        if batch:
            self._carry_out(batch)
        self._keep_up()

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
        if self._wire is not None and self._wire.has_hung_up():
            self._disconnect()
        if self._wire is None:
            self._reconnecting.check()
            try:
                self._wire = Wire(
                    self._target, monotonic=self._clock.monotonic, patience_s=self._connect_patience_s()
                )
            except BaseException as error:
                self._reconnecting.failed(error)
                raise
            self._reconnecting.succeeded()
        return self._wire

    def _connect_patience_s(self) -> float | None:
        """Return how long to wait for a server that does not answer at all; None: as the target says."""
        return None

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
