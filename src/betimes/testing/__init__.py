"""For tests of code that uses Betimes: your scheduler under test, virtual time, and an event loop on it.

Example:
    >>> import asyncio
    >>> clock = VirtualClock()
    >>> run_virtual(asyncio.sleep(3600), clock=clock)
    >>> clock.monotonic()
    3600.0
"""

from betimes.testing.clock import VirtualClock
from betimes.testing.inline import InlineCommandExecutor, InlineExecutor
from betimes.testing.inline_mode import inline_mode
from betimes.testing.jobs import Jobs
from betimes.testing.loop import VirtualLoop
from betimes.testing.recording import SubmittedCall
from betimes.testing.run import run_virtual
from betimes.testing.stuck import Deadlock, Livelock, LoopStuck, TimeLimitPassed

__all__ = [
    "Deadlock",
    "InlineCommandExecutor",
    "InlineExecutor",
    "Jobs",
    "Livelock",
    "LoopStuck",
    "SubmittedCall",
    "TimeLimitPassed",
    "VirtualClock",
    "VirtualLoop",
    "inline_mode",
    "run_virtual",
]
