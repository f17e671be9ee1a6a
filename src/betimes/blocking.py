"""The bridge between threads and an event loop: a loop in a thread of its own, and calls from others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, wait
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from betimes.errors import ConfigurationError, SchedulerClosed

R = TypeVar("R")

LOOK_EVERY_S = 1.0
"""How often a call that waits looks whether the loop is still there."""


END_WITHIN_S = 1.0
"""How long what is left on a loop of ours may take to end, once it has been cancelled."""


def run_on_own_loop(main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine on a new event loop, and end what it leaves there.

    As `asyncio.run` does; but that waits for ever for code that swallows its cancellation, and a job's may.
    """
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    task = loop.create_task(main)
    try:
        loop.run_until_complete(task)
    finally:
        try:
            loop.run_until_complete(_end_all_but_me(task))
        finally:
            asyncio.set_event_loop(None)
            loop.close()


async def _end_all_but_me(main: asyncio.Task[None]) -> None:
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    if not main.done():
        await asyncio.wait([main])
    if rest:
        await asyncio.wait(rest, timeout=END_WITHIN_S)
    await asyncio.get_running_loop().shutdown_asyncgens()


class LoopThread:
    """An event loop that runs in a thread of its own while its `with` block lasts."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="betimes-loop", daemon=True)

    def _serve(self) -> None:
        run_on_own_loop(self._main())

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
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


def call_without_loop(coroutine: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine that waits for nothing, here and now.

    Raises:
        ConfigurationError: it does wait for something, which takes a loop.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        return cast("R", end.value)
    coroutine.close()
    raise ConfigurationError("conn is an asynchronous connection: await the submit on its own event loop")


def _loop_is_gone() -> SchedulerClosed:
    return SchedulerClosed("the scheduler's event loop has ended: start the scheduler (again) first")
