"""What the rows with processes have run: module-level functions, found by name in a fresh process."""

from __future__ import annotations

import time

BURNT_NS = 1_000_000


def noop() -> None:
    """Do nothing."""


def burn() -> None:
    """Keep a processor busy for 1 ms of its time, however long that takes by the clock."""
    end = time.thread_time_ns() + BURNT_NS
    while time.thread_time_ns() < end:
        pass


def now() -> int:
    """Return the instant, by the clock that all processes of a machine share."""
    return time.perf_counter_ns()


WORK = {"noop": noop, "burn": burn, "now": now}
"""The functions by name, as the rows' parameters give them."""
