"""A worker as the command line runs it: it says what it does on stderr, and knows when to end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from betimes.cli.exits import Exit, Failure
from betimes.core.wording import listed
from betimes.operating import until_idle
from betimes.scheduler import Scheduler
from betimes.signals import run_until_signal

_log = logging.getLogger("betimes.worker")

LEFT_S = 7.0
"""How much longer than its drain a process may take to end, before its lifeline kills it."""

MOST_NAMED = 10
"""The most tasks that are named when a worker starts."""


def log_to_stderr(level: str) -> None:
    """Show what is logged on stderr, unless the program, imported before, has set up its own logging."""
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s"))
    root.addHandler(handler)
    root.setLevel(level.upper())


class Lifeline:
    """Has this process stop when whoever started it lets go of its stdin, or is gone.

    What has not ended by then, since code holds it up, is killed: nobody is left who would do that.

    Args:
        drain_s: how long this process may take to finish.
    """

    def __init__(self, drain_s: float) -> None:
        self._patience_s = drain_s + LEFT_S
        self._lock = threading.Lock()
        self._is_cut = False
        self._tell: Callable[[], object] | None = None

    def watch(self) -> None:
        """Begin to watch."""
        threading.Thread(target=self._watch, name="betimes-stdin", daemon=True).start()

    def say_up(self) -> None:
        """Tell whoever holds the other end that this process is up, if that end hears."""
        with suppress(OSError):  # a pipe takes nothing; and nobody may be there any more
            os.write(sys.stdin.fileno(), b"+")

    async def cut(self) -> None:
        """Return when the other end is gone."""
        loop, is_cut = asyncio.get_running_loop(), asyncio.Event()
        with self._lock:
            self._tell = lambda: loop.call_soon_threadsafe(is_cut.set)
            if self._is_cut:
                return
        await is_cut.wait()

    def _watch(self) -> None:
        with suppress(OSError):  # such as: the connection was reset
            while os.read(sys.stdin.fileno(), 1024):
                pass
        with self._lock:
            self._is_cut = True
            if self._tell is not None:
                with suppress(RuntimeError):  # the loop is closed: it ends already
                    self._tell()
        threading.Event().wait(self._patience_s)
        os.kill(os.getpid(), signal.SIGKILL)


def refuse_memory(scheduler: Scheduler) -> None:
    """Refuse a store that other processes cannot share.

    Raises:
        Failure: it is in this process's memory.
    """
    if not scheduler._store.is_durable:  # noqa: SLF001 - the command line is part of the package
        raise Failure(
            "its jobs are in memory, which each process has for itself: several workers need a store in a "
            'file, as Scheduler("jobs.db"), or on a server; leave --processes out, and concurrency= decides '
            "how many jobs run at once",
            Exit.SETTINGS,
        )


def work(
    scheduler: Scheduler, *, drain_s: float, soon_s: float | None, lifeline: Lifeline | None = None
) -> None:
    """Run jobs until a signal comes, or, with `soon_s`, until nothing is left to do now or so soon.

    Args:
        scheduler: the program's.
        drain_s: how long running attempts may take at the end.
        soon_s: set: end when nothing is left.
        lifeline: end when it is cut, too.

    Raises:
        Failure: the worker has ended by itself; the log says why.
    """
    engine = scheduler._engine  # noqa: SLF001 - the command line is part of the package
    has_ended = False

    async def while_open() -> None:
        nonlocal has_ended
        _tell_of_start(scheduler, is_burst=soon_s is not None)
        worker = engine.worker
        assert worker is not None
        if lifeline is not None:
            lifeline.say_up()
        if soon_s is not None:
            await until_idle(scheduler, soon_s=soon_s)
        while soon_s is None and not worker.is_over:
            worker.progress.clear()
            await worker.progress.wait()
        has_ended = worker.is_over
        if not has_ended:
            _log.info("nothing is left to do")

    async def while_held() -> None:
        if lifeline is None:
            await while_open()
        elif await either(while_open(), lifeline.cut()):
            _log.info("whoever started this process has let go of it: stopping within %g s", drain_s)

    run_until_signal(scheduler, drain_s, while_held)
    _tell_of_end(scheduler)
    if has_ended:
        raise Failure("the worker has ended by itself: what it logged above says why", Exit.NO)


async def either(work: Coroutine[Any, Any, None], end: Coroutine[Any, Any, None]) -> bool:
    """Return when one of two has ended: True if it is the second; what the first raises is raised."""
    both = [asyncio.ensure_future(work), asyncio.ensure_future(end)]
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in both:
            each.cancel()
        await asyncio.wait(both)
    if not both[0].cancelled():
        both[0].result()
    return both[0].cancelled()


def _tell_of_start(scheduler: Scheduler, *, is_burst: bool) -> None:
    settings, names = scheduler._parts.settings, sorted(scheduler._definitions)  # noqa: SLF001 - as above
    most = settings.concurrency
    _log.info("started: process %d, at most %s at once", os.getpid(), _counted(most, "job"))
    queues = settings.queues
    _log.info(
        "serving %s", "every queue" if queues is None else f"the queues {listed(queues, most=MOST_NAMED)}"
    )
    _log.info("knowing %s: %s", _counted(len(names), "task"), listed(names, most=MOST_NAMED) or "none")
    if not scheduler._store.is_durable:  # noqa: SLF001 - as above
        _log.warning(
            "its jobs are in the memory of this process, so only its own schedules and jobs bring any; with "
            'a store in a file, as Scheduler("jobs.db"), other processes can submit'
        )
    _log.info("running %s", "what there is" if is_burst else "until SIGINT or SIGTERM")


def _tell_of_end(scheduler: Scheduler) -> None:
    counters = scheduler._engine.journal.counters  # noqa: SLF001 - as above
    ends = ", ".join(
        f"{number} {status.value.replace('_', ' ')}" for status, number in counters.ended.items()
    )
    _log.info("finished: %s", ends)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
