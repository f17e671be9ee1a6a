"""The settings of one scheduler's engine, checked and in raw numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the worker and its chores go by.

    Attributes:
        concurrency: the most attempts in flight.
        queues: the queues served; None: all.
        shares: the share of dispatches of each of them; None: the strategy's order alone decides.
        lease_us: how long a silent worker keeps its jobs.
        grace_s: how long code that was told to stop, and listeners, are waited for at the end.
        keep_us: how long finished jobs stay.
        poll_s: how long the worker sleeps at most before it looks for work nobody told it of.
        stall_s: how long the loop may be blocked before the watchdog names the culprit; None: no watchdog.
    """

    concurrency: int
    queues: tuple[str, ...] | None
    shares: Mapping[str, int] | None
    lease_us: int
    grace_s: float
    keep_us: int
    poll_s: float
    stall_s: float | None
