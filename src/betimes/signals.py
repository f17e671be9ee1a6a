"""Running a scheduler until a signal comes."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import TYPE_CHECKING

from betimes.blocking import run_on_own_loop
from betimes.errors import ConfigurationError

if TYPE_CHECKING:
    from betimes.scheduler import Scheduler

_log = logging.getLogger("betimes")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run_until_signal(
    scheduler: Scheduler, drain_s: float, work: Callable[[], Awaitable[object]] | None = None
) -> None:
    """Run a scheduler on a loop of its own until SIGINT or SIGTERM; then stop it within the time given.

    Args:
        scheduler: not open yet.
        drain_s: how long running attempts may take at the end.
        work: called once the scheduler is open: when what it returns has come to its end, so has the run.

    After the first signal the next has its default effect: it ends the process at once. What ran then goes
    back when the lease is over, as after any crash.

    Raises:
        ConfigurationError: called in another thread than the main one, which alone hears of signals; or
            where an event loop runs already.
    """
    if threading.current_thread() is not threading.main_thread():
        raise ConfigurationError(
            "run() hears of signals, and only the main thread does: use 'with scheduler.blocking():' here"
        )
    if asyncio._get_running_loop() is not None:  # noqa: SLF001 - documented, and does not raise
        raise ConfigurationError(
            "run() makes an event loop, and one runs here already: write 'async with scheduler:' instead"
        )
    run_on_own_loop(_serve(scheduler, drain_s, work))


async def _serve(scheduler: Scheduler, drain_s: float, work: Callable[[], Awaitable[object]] | None) -> None:
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()

    def hear(number: int, _frame: FrameType | None) -> None:
        # Not `loop.add_signal_handler`: while code blocks the loop, a second signal would then do nothing.
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        loop.call_soon_threadsafe(ask, number)

    def ask(number: int) -> None:
        _log.info(
            "%s: stopping within %g s; the next signal ends at once", signal.Signals(number).name, drain_s
        )
        asked.set()

    before = {number: signal.signal(number, hear) for number in _SIGNALS}
    try:
        async with scheduler:
            try:
                await _first(asked, work)
            finally:
                await scheduler.stop(timeout=drain_s)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def _first(asked: asyncio.Event, work: Callable[[], Awaitable[object]] | None) -> None:
    """Return when it is asked for, or when the work is done; what the work raises is raised."""
    if work is None:
        await asked.wait()
        return
    both = [asyncio.ensure_future(work()), asyncio.ensure_future(asked.wait())]
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in both:
            each.cancel()
        await asyncio.wait(both)
    if not both[0].cancelled():
        both[0].result()
