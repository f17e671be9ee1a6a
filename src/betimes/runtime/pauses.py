"""How long a worker leaves a store alone that has failed: longer each time, with jitter."""

from __future__ import annotations

from random import Random

FIRST_S, LONGEST_S = 0.05, 5.0


class Pauses:
    """Counts the failures in a row, and says until when to wait after each.

    Attributes:
        failures: how often in a row the store has failed.
    """

    def __init__(self, rng: Random) -> None:
        """Start without failures."""
        self._rng = rng
        self._until = 0.0
        self.failures = 0

    def begin(self, now: float) -> float:
        """Count a failure, and return when to try again, on the same clock."""
        self.failures += 1
        cap = min(LONGEST_S, FIRST_S * 2 ** min(self.failures, 20))
        self._until = now + self._rng.uniform(cap / 2, cap)
        return self._until

    def is_on(self, now: float) -> bool:
        """Say whether the last failure is too fresh to try again."""
        return self.failures > 0 and now < self._until

    def end(self) -> None:
        """Note that the store answers again."""
        self.failures = 0
