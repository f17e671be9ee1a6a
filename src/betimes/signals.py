"""Running a scheduler until a signal comes."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from typing import TYPE_CHECKING

from betimes.errors import ConfigurationError

if TYPE_CHECKING:
    from betimes.scheduler import Scheduler

_log = logging.getLogger("betimes")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run_until_signal(scheduler: Scheduler, drain_s: float) -> None:
    """Run a scheduler on a loop of its own until SIGINT or SIGTERM; then stop it within the time given.

    After the first signal the next has its default effect: it ends the process at once. What ran then goes
    back when the lease is over, as after any crash.

    Raises:
        ConfigurationError: called in another thread than the main one, which alone hears of signals.
    """
    if threading.current_thread() is not threading.main_thread():
        raise ConfigurationError(
            "run() hears of signals, and only the main thread does: use 'with scheduler.blocking():' here"
        )
    asyncio.run(_serve(scheduler, drain_s))


async def _serve(scheduler: Scheduler, drain_s: float) -> None:
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()

    def ask(number: int) -> None:
        _log.info(
            "%s: stopping within %g s; the next signal ends at once", signal.Signals(number).name, drain_s
        )
        for each in _SIGNALS:
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)
        asked.set()

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number in _SIGNALS:
        loop.add_signal_handler(number, ask, number)
    try:
        async with scheduler:
            await asked.wait()
            await scheduler.stop(timeout=drain_s)
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
