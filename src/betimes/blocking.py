"""The bridge between threads and an event loop: a loop in a thread of its own, and calls into it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from betimes.errors import ConfigurationError

R = TypeVar("R")


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
        return call_from_thread(self._loop, coroutine)


def call_from_thread(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine on a loop that runs in another thread, and wait for its result.

    Raises:
        ConfigurationError: called on that very loop, which the wait would block for ever.
    """
    try:
        is_same = asyncio.get_running_loop() is loop
    except RuntimeError:
        is_same = False
    if is_same:
        coroutine.close()
        raise ConfigurationError(
            "a blocking call on the scheduler's own event loop would block it for ever: await the call "
            "instead"
        )
    return asyncio.run_coroutine_threadsafe(coroutine, loop).result()
