"""Deadlines of running attempts: one heap and one timer for all of them.

Not `asyncio.timeout` around each: that costs half the rate, and does not hold against code that swallows
`CancelledError`. Here the deadline is ours, whatever the code does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count

from betimes.core.heap import LazyHeap
from betimes.runtime.attempt import Attempt


class Deadlines:
    """Calls `late(attempt)` for each watched attempt when its timeout is over, unless discarded before."""

    def __init__(self, loop: asyncio.AbstractEventLoop, late: Callable[[Attempt], None]) -> None:
        """Use this loop's clock and timers."""
        self._loop = loop
        self._late = late
        self._heap: LazyHeap[float, Attempt] = LazyHeap()
        self._numbers = count(1)
        self._timer: asyncio.TimerHandle | None = None

    def add(self, attempt: Attempt, timeout_s: float) -> None:
        """Watch an attempt from now on; O(log n)."""
        attempt.deadline_number = number = next(self._numbers)
        deadline = self._loop.time() + timeout_s
        self._heap.push(deadline, number, attempt)
        if self._timer is None or deadline < self._timer.when():
            self._arm(deadline)

    def discard(self, attempt: Attempt) -> None:
        """Watch an attempt no more; O(1), and nothing if it is not watched."""
        if attempt.deadline_number:
            self._heap.discard(attempt.deadline_number)
            attempt.deadline_number = 0

    def _arm(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._ring)

    def _ring(self) -> None:
        self._timer = None
        now = self._loop.time()
        while (entry := self._heap.pop_due(now)) is not None:
            entry[2].deadline_number = 0
            self._late(entry[2])
        head = self._heap.peek()
        if head is not None:
            self._arm(head[0])

    def close(self) -> None:
        """Ring no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
