"""How long a worker leaves a store alone that has failed: longer each time, with jitter.

What is wrong is said when it begins, when it changes and when it is over, not at each try.
"""

from __future__ import annotations

import logging
from random import Random

from betimes.errors import StoreUnavailable

_log = logging.getLogger("betimes")

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
        self._told: tuple[type[Exception], str] | None = None
        self.failures = 0

    def begin(self, now: float, error: Exception) -> float:
        """Count a failure, and return when to try again, on the same clock."""
        self.failures += 1
        self._tell(error)
        cap = min(LONGEST_S, FIRST_S * 2 ** min(self.failures, 20))
        self._until = now + self._rng.uniform(cap / 2, cap)
        return self._until

    def is_on(self, now: float) -> bool:
        """Say whether the last failure is too fresh to try again."""
        return self.failures > 0 and now < self._until

    def end(self) -> None:
        """Note that the store answers."""
        if self.failures:
            _log.warning("the store answers again (try %d)", self.failures + 1)
            self.failures = 0
            self._told = None

    def _tell(self, error: Exception) -> None:
        known = isinstance(error, StoreUnavailable)
        what = type(error), (error.why if isinstance(error, StoreUnavailable) else "") or str(error)
        if what != self._told:
            self._told = what
            text = "the store failed (try %d), and is tried again until it answers: %s"
            _log.warning(text, self.failures, error, exc_info=None if known else error)
