"""A worker as the command line runs it: it says what it does on stderr, and knows when to end."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading

from betimes.cli.exits import Exit, Failure
from betimes.core.wording import listed
from betimes.operating import until_idle
from betimes.scheduler import Scheduler
from betimes.signals import run_until_signal

_log = logging.getLogger("betimes.worker")

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


def stop_when_stdin_ends() -> None:
    """Have this process stop, as by SIGTERM, when whoever started it and holds its stdin is gone."""

    def watch() -> None:
        while os.read(sys.stdin.fileno(), 1024):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="betimes-stdin", daemon=True).start()


def work(scheduler: Scheduler, *, drain_s: float, soon_s: float | None) -> None:
    """Run jobs until a signal comes, or, with `soon_s`, until nothing is left to do now or so soon.

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
        if soon_s is not None:
            await until_idle(scheduler, soon_s=soon_s)
        while soon_s is None and not worker.is_over:
            worker.progress.clear()
            await worker.progress.wait()
        has_ended = worker.is_over
        if not has_ended:
            _log.info("nothing is left to do")

    run_until_signal(scheduler, drain_s, while_open)
    _tell_of_end(scheduler)
    if has_ended:
        raise Failure("the worker has ended by itself: what it logged above says why", Exit.NO)


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
