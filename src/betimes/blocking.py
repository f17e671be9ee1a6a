"""The bridge between threads and an event loop: a loop in a thread of its own, and calls from others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, wait
from types import TracebackType
from typing import Any, Self, TypeVar

from betimes.errors import ConfigurationError, SchedulerClosed

R = TypeVar("R")

LOOK_EVERY_S = 1.0
"""How often a call that waits looks whether the loop is still there."""


class LoopThread:
    """An event loop that runs in a thread of its own while its `with` block lasts."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="betimes-loop", daemon=True)

    def _serve(self) -> None:
        with asyncio.Runner() as runner:
            self._loop = runner.get_loop()
            runner.run(self._main())

    async def _main(self) -> None:
        self._stop = asyncio.Event()
        self._is_ready.set()
        await self._stop.wait()

    def __enter__(self) -> Self:
        self._thread.start()
        self._is_ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def call(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine on the loop and wait for its result."""
        assert self._loop is not None
        assert self._thread.ident is not None
        return call_from_thread(self._loop, self._thread.ident, coroutine)


def call_from_thread(
    loop: asyncio.AbstractEventLoop, loop_thread: int, coroutine: Coroutine[Any, Any, R]
) -> R:
    """Run a coroutine on a loop that runs in another thread, and wait for its result.

    Args:
        loop: the loop.
        loop_thread: the identity of the thread it runs in.
        coroutine: what to run there.

    Raises:
        ConfigurationError: called in that very thread, which the wait would block for ever.
        SchedulerClosed: the loop has ended.
    """
    if threading.get_ident() == loop_thread:
        coroutine.close()
        raise ConfigurationError(
            "a blocking call in the thread of the scheduler's own event loop would block it for ever: await "
            "the call instead"
        )
    try:
        future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    except RuntimeError:
        coroutine.close()
        raise _loop_is_gone() from None
    # A call that reaches a loop in its very last turn is never answered.
    while not wait([future], timeout=LOOK_EVERY_S).done:
        if loop.is_closed():
            raise _loop_is_gone()
    try:
        return future.result()
    except CancelledError:  # by a loop that ends
        raise _loop_is_gone() from None


def _loop_is_gone() -> SchedulerClosed:
    return SchedulerClosed("the scheduler's event loop has ended: start the scheduler (again) first")
