"""Listeners: each hears every transition, in order, from a buffer of its own.

A plain function is called in a thread of its own, so that a slow one holds up neither the loop nor the other
listeners; a coroutine function is awaited in a task of its own. A full buffer drops the oldest events and
counts them; an exception is logged (once for each kind) and counted.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from contextvars import Context
from queue import SimpleQueue
from typing import Any, TypeAlias, cast

from betimes.core.job import JobEvent
from betimes.core.wording import shown
from betimes.errors import ConfigurationError

_log = logging.getLogger("betimes")

BUFFER = 100_000
"""Events a listener may be behind before the oldest are dropped."""

Listener: TypeAlias = Callable[[JobEvent], object]


class _Thread(Executor):
    """One daemon thread that calls what it is given, in order; it never holds up the interpreter's exit."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threading.Thread(target=self._serve, name="betimes-listener", daemon=True).start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def call() -> None:
            if future.set_running_or_notify_cancel():
                future.set_result(fn(*args, **kwargs))

        self._calls.put(call)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        del wait, cancel_futures
        self._calls.put(None)

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


class _Ear:
    """One listener, its buffer, and the task that empties it."""

    def __init__(self, listener: Listener, buffer: int, loop: asyncio.AbstractEventLoop) -> None:
        self.listener = listener
        self.events: deque[JobEvent] = deque(maxlen=buffer)
        self.dropped = 0
        self.errors = 0
        self._seen: set[type[BaseException]] = set()
        self._loop = loop
        self._thread = None if _is_async(listener) else _Thread()
        self._wake = asyncio.Event()
        self._is_closing = False
        self._task = loop.create_task(self._serve(), context=Context(), name="betimes-listener")

    def hear(self, events: Iterable[JobEvent]) -> None:
        for event in events:
            if len(self.events) == self.events.maxlen:
                self.dropped += 1
            self.events.append(event)
        self._wake.set()

    async def _serve(self) -> None:
        while self.events or not self._is_closing:
            if not self.events:
                self._wake.clear()
                await self._wake.wait()
            elif self._thread is None:
                await self._await_all()
            else:
                await self._loop.run_in_executor(self._thread, self._call_all)

    def _call_all(self) -> None:
        while self.events:
            try:
                self.listener(self.events.popleft())
            except BaseException as error:  # noqa: BLE001 - nothing a listener raises may end its thread
                self._note(error)

    async def _await_all(self) -> None:
        while self.events:
            try:
                await cast("Awaitable[object]", self.listener(self.events.popleft()))
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                if self._task.cancelling():  # It is the task itself that is to end.
                    raise
                self._note(error)

    def _note(self, error: BaseException) -> None:
        self.errors += 1
        if type(error) not in self._seen:
            self._seen.add(type(error))
            _log.error(
                "listener %r raised; the scheduler goes on, and further errors of this kind are only counted",
                self.listener,
                exc_info=error,
            )

    async def finish(self, timeout_s: float) -> None:
        """Deliver what is buffered for at most this long, then end."""
        self._is_closing = True
        self._wake.set()
        _, pending = await asyncio.wait([self._task], timeout=timeout_s)
        if pending:
            self.dropped += len(self.events)
            _log.warning(
                "listener %r is too slow: %d events were not delivered", self.listener, len(self.events)
            )
            self.events.clear()
            self._task.cancel()
            await asyncio.wait([self._task], timeout=timeout_s)
        if self._thread is not None:
            self._thread.shutdown()


class Listeners:
    """All listeners of one scheduler. They can be added at any time, and hear what comes while it runs.

    Attributes:
        are_there: whether anybody hears now; events need not be made when nobody does.
    """

    def __init__(self) -> None:
        """Start without listeners."""
        self._listeners: list[Listener] = []
        self._ears: list[_Ear] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self.are_there = False
        self._dropped = 0
        self._errors = 0

    def add(self, listener: Listener, *, buffer: int = BUFFER) -> None:
        """Have a function called with every event from now on.

        Raises:
            ConfigurationError: it cannot be called.
        """
        if not callable(listener):
            raise ConfigurationError(f"listen() takes a function of one event, not {shown(listener)}")
        self._listeners.append(listener)
        if self._loop is not None:
            self._attach(listener, buffer)

    def __iter__(self) -> Iterator[Listener]:
        return iter(tuple(self._listeners))

    def _attach(self, listener: Listener, buffer: int = BUFFER) -> None:
        loop = self._loop
        assert loop is not None
        self._ears.append(_Ear(listener, buffer, loop))
        self.are_there = True

    def _retire(self, ear: _Ear) -> None:
        self._dropped += ear.dropped
        self._errors += ear.errors

    @property
    def dropped(self) -> int:
        """Events lost to full buffers."""
        return self._dropped + sum(ear.dropped for ear in self._ears)

    @property
    def errors(self) -> int:
        """Exceptions raised by listeners."""
        return self._errors + sum(ear.errors for ear in self._ears)

    def open(self) -> None:
        """Begin to deliver, on the running loop."""
        self._loop = asyncio.get_running_loop()
        for listener in self._listeners:
            self._attach(listener)

    def tell(self, events: Iterable[JobEvent]) -> None:
        """Put events into every buffer."""
        for ear in self._ears:
            ear.hear(events)

    async def close(self, timeout_s: float) -> None:
        """Deliver what is buffered, for at most this long; then deliver no more."""
        ears, self._ears, self._loop = self._ears, [], None
        self.are_there = False
        await asyncio.gather(*(ear.finish(timeout_s) for ear in ears))
        for ear in ears:
            self._retire(ear)


def _is_async(listener: Listener) -> bool:
    call = getattr(listener, "__call__", listener)  # noqa: B004 - an object with an async __call__ is async, too
    return inspect.iscoroutinefunction(listener) or inspect.iscoroutinefunction(call)
