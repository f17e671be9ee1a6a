"""Running coroutines for code without a loop, on a loop of this very thread."""

from __future__ import annotations

import asyncio
import threading
from asyncio import _get_running_loop, _set_running_loop
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from betimes.blocking import call_from_thread
from betimes.errors import ConfigurationError

R = TypeVar("R")


def run_here(
    loop: asyncio.AbstractEventLoop,
    thread: int,
    coroutine: Coroutine[Any, Any, R],
    run: Callable[[Coroutine[Any, Any, R]], R] | None = None,
) -> R:
    """Run a coroutine on a loop that belongs to a thread, and return its result.

    Args:
        loop: the loop.
        thread: the identity of its thread.
        coroutine: what to run.
        run: runs it when the loop stands still; None: that loop is somebody else's to run.

    Raises:
        ConfigurationError: it is called on a running loop, which it would block, or by a job that runs inline
            and would have to wait.
    """
    if threading.get_ident() != thread or (run is None and not loop.is_running()):
        return call_from_thread(loop, thread, coroutine)
    running = _get_running_loop()
    if running is loop:
        return call_from_thread(loop, thread, coroutine)  # which refuses, and says why
    if loop.is_running():
        return step_through(loop, coroutine)
    if running is not None:
        coroutine.close()
        raise ConfigurationError(
            "another event loop is running here, and the scheduler's own cannot run within it: make the test "
            "a plain 'def', and run its coroutines with jobs.run(…)"
        )
    assert run is not None
    return run(coroutine)


def step_through(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine from within a callback of its loop, as long as it waits for nothing.

    So a function that runs inline in place of a thread can submit jobs. It must not wait for one: the loop
    which would run that stands still meanwhile.

    Raises:
        ConfigurationError: the coroutine has to wait.
    """
    _set_running_loop(loop)
    try:
        while coroutine.send(None) is None:
            pass  # it only offered to let others run
    except StopIteration as end:
        result: R = end.value
        return result
    else:
        raise ConfigurationError(
            "a thread job runs inline in a test, and cannot wait for what the event loop does: let it submit "
            "jobs and return, or use depends_on for what is to come after them"
        )
    finally:
        coroutine.close()
        _set_running_loop(None)
