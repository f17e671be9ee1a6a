"""A queue as a store shows it: what is paused, what stands first, what waits at which gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from betimes.core.job import Job, Micros


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Since when a queue is paused, and by whom.

    Attributes:
        at: since when; None: by a version of Betimes that did not keep it.
        by: who asked for it, in their own words; None: nobody said.
    """

    at: Micros | None = None
    by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    """One queue at one instant.

    Attributes:
        heads: the first job of each lane, in the order of claims, that no closed gate keeps back.
        gates: keys of the gates at which READY jobs of the queue wait, a bounded number.
        parked: how many READY jobs are put aside, by the name they are under.
        next_due_at: the earliest `run_at` of its DELAYED jobs, as far as a bounded look tells; None: none.
    """

    heads: tuple[Job, ...] = ()
    gates: tuple[str, ...] = ()
    parked: Mapping[str, int] = field(default_factory=dict)
    next_due_at: Micros | None = None
