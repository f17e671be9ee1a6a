"""What one process counts of a task's attempts: whether retries are within their budget, whether to trip.

Counts lie in a fixed number of slices of the window, so that they are bounded and old ones fall away; the
window is then right to within one slice.
"""

from __future__ import annotations

from fractions import Fraction

from betimes.core.job import Micros
from betimes.core.restraints import CircuitBreaker, RetryBudget

SLICES = 60


class Sliding:
    """Counts over a sliding window, in slices (mutable: each event is counted).

    Example:
        >>> counts = Sliding(60_000_000)
        >>> counts.add(0); counts.add(1_000_000); counts.total(59_000_000), counts.total(60_500_000)
        (2, 1)
    """

    __slots__ = ("_counts", "_newest", "_slice_us", "_total")

    def __init__(self, window_us: int) -> None:
        """Count over this window."""
        self._slice_us = max(1, -(-window_us // SLICES))
        self._counts = [0] * SLICES
        self._newest = 0
        self._total = 0

    def add(self, now: Micros) -> None:
        """Count one."""
        self._move_on(now)
        self._counts[self._newest % SLICES] += 1
        self._total += 1

    def total(self, now: Micros) -> int:
        """Return how many were counted within the window."""
        self._move_on(now)
        return self._total

    def clear(self) -> None:
        """Forget them all."""
        self._counts = [0] * SLICES
        self._total = 0

    def _move_on(self, now: Micros) -> None:
        """Let go of the slices that the window has left behind.

        A clock that is set back ages nothing; its slices take the places of those that were, or they would
        stay for as long as it was set back.
        """
        newest = now // self._slice_us
        if newest < self._newest:
            by = (self._newest - newest) % SLICES
            self._counts = self._counts[by:] + self._counts[:by]
            self._newest = newest
            return
        for number in range(self._newest + 1, min(newest, self._newest + SLICES) + 1):
            self._total -= self._counts[number % SLICES]
            self._counts[number % SLICES] = 0
        self._newest = newest


class Guard:
    """Watches over one task in one process (mutable: it counts).

    Args:
        budget: the task's retry budget; None: retries are not limited.
        breaker: its circuit breaker; None: it has none.

    Attributes:
        denied: how many retries the budget has refused.
    """

    __slots__ = ("_breaker", "_budget", "_failures", "_retries", "_share", "_starts", "_tripped_at", "denied")

    def __init__(self, budget: RetryBudget | None, breaker: CircuitBreaker | None) -> None:
        """Start with nothing counted."""
        self._budget = budget
        self._breaker = breaker
        # The shortest decimal that means this float is what was meant: 0.29 of 100 starts are 29 retries.
        self._share = Fraction(repr(budget.ratio if budget else 1.0)).as_integer_ratio()
        self._starts = Sliding(budget.window_us if budget else 1)
        self._retries = Sliding(budget.window_us if budget else 1)
        self._failures = Sliding(breaker.window_us if breaker else 1)
        self._tripped_at: Micros = -1
        self.denied = 0

    def started(self, now: Micros) -> None:
        """Count an attempt that starts."""
        if self._budget is not None:
            self._starts.add(now)

    def may_retry(self, now: Micros) -> bool:
        """Say whether one more retry is within the budget, and count it if it is."""
        if self._budget is None:
            return True
        retries, share, whole = self._retries.total(now) + 1, *self._share
        if retries * whole > max(whole, share * self._starts.total(now)):
            self.denied += 1
            return False
        self._retries.add(now)
        return True

    def failed(self, now: Micros, claimed_at: Micros) -> bool:
        """Count an attempt that failed; say whether this is what opens the circuit.

        What was claimed before the last trip is not counted: it says what that trip has said already.
        """
        breaker = self._breaker
        self._tripped_at = min(self._tripped_at, now)  # a clock may have been set back
        if breaker is None or claimed_at <= self._tripped_at:
            return False
        self._failures.add(now)
        if self._failures.total(now) < breaker.failures:
            return False
        self._failures.clear()
        self._tripped_at = now
        return True
