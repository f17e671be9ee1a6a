"""For how long a process that runs jobs is kept: what leaks is given back when it ends."""

from __future__ import annotations

from dataclasses import dataclass

from betimes.core.wording import shown
from betimes.errors import ConfigurationError

JOBS_KEPT, AT_LEAST_S = 1000, 60.0
"""Unless it is said otherwise: so many jobs, and at least so long, since a start takes its time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recycle:
    """When a process of `executor="process"` is replaced by a fresh one, between two jobs.

    Attributes:
        jobs: after so many jobs; None: after a thousand, if they took more than a minute.
        memory: after a job that leaves it with more bytes than this in memory (resident); None: never.

    Raises:
        ConfigurationError: one is no whole number of at least 1.

    Example:
        >>> Recycle(jobs=100, memory=500_000_000).jobs
        100
    """

    jobs: int | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        for name in ("jobs", "memory"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise ConfigurationError(
                    f"Recycle: {name} is {shown(value)}; it is a whole number from 1, or None"
                )

    def is_due(self, *, jobs: int, age_s: float) -> bool:
        """Say whether a process that has had so many jobs, and is so old, gets no more."""
        if self.jobs is not None:
            return jobs >= self.jobs
        return jobs >= JOBS_KEPT and age_s >= AT_LEAST_S
