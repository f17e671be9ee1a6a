"""For tests of code that uses Betimes: virtual time, and an event loop that runs on it.

Example:
    >>> import asyncio
    >>> clock = VirtualClock()
    >>> run_virtual(asyncio.sleep(3600), clock=clock)
    >>> clock.monotonic()
    3600.0
"""

from betimes.testing.clock import VirtualClock
from betimes.testing.inline import InlineExecutor
from betimes.testing.loop import VirtualLoop
from betimes.testing.run import run_virtual
from betimes.testing.stuck import Deadlock, Livelock, LoopStuck, TimeLimitPassed

__all__ = [
    "Deadlock",
    "InlineExecutor",
    "Livelock",
    "LoopStuck",
    "TimeLimitPassed",
    "VirtualClock",
    "VirtualLoop",
    "run_virtual",
]
