"""What runs with processes share: windows of calls, and the time from a call to its first line elsewhere."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager

from bench.clockwork import IDLE_S, Stopwatch
from bench.limits.in_process import IN_FLIGHT

Call = Callable[[], Awaitable[int]]
"""Has `process_work.now` called in another process, and returns what it returns."""
Opened = Callable[[], AbstractAsyncContextManager[Call]]
"""Opens what runs calls elsewhere, and closes it in the end."""


async def in_windows(begin: Callable[[], Awaitable[object]], jobs: int, window: int = IN_FLIGHT) -> None:
    """Begin so many calls, a window at a time, and wait for all of a window before the next."""
    for left in range(jobs, 0, -window):
        await asyncio.gather(*(begin() for _ in range(min(left, window))))


async def rate_in_windows(
    begin: Callable[[], Awaitable[object]], jobs: int, *, warm_up: int, window: int = IN_FLIGHT
) -> dict[str, float]:
    """Return how many calls a second come to their end in windows, after some that warm up."""
    await in_windows(begin, warm_up, window)
    watch = Stopwatch()
    await in_windows(begin, jobs, window)
    return watch.figures(jobs)


def _figures(taken: Iterable[float]) -> dict[str, float]:
    ordered = sorted(taken)
    assert ordered[0] > 0, "the clock of the other process is not ours"
    return {"p50_us": statistics.median(ordered), "p90_us": ordered[len(ordered) * 9 // 10]}


async def _warm_starts(call: Call, jobs: int) -> dict[str, float]:
    """Make one call at a time to a process that is there and idle; the first tenth warms up."""
    taken = []
    for _ in range(jobs):
        await asyncio.sleep(IDLE_S)
        began = time.perf_counter_ns()
        taken.append((await call() - began) / 1000)
    return _figures(taken[jobs // 10 :])


async def _cold_starts(opened: Opened, jobs: int) -> dict[str, float]:
    """Open something and make the first call to it, as often as asked: the time from before the opening."""
    taken = []
    for _ in range(jobs):
        began = time.perf_counter_ns()
        async with opened() as call:
            taken.append((await call() - began) / 1000)
    return _figures(taken)


async def starts(opened: Opened, jobs: int, *, is_cold: bool) -> dict[str, float]:
    """Return how long calls take to their first line: each to something just opened, or all to one."""
    if is_cold:
        return await _cold_starts(opened, jobs)
    async with opened() as call:
        return await _warm_starts(call, jobs)
