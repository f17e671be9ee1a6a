"""A token bucket as the witness reckons it: counted up and down, and known only between two bounds.

It is how far the bucket is from full, in microseconds of its filling. The bounds part where the store may
have noticed something or not: a clock that was set back, a claim of which nobody knows whether it began.
"""

from __future__ import annotations

from dataclasses import dataclass

from betimes.core.job import Micros


@dataclass(slots=True)
class Bucket:
    """One bucket.

    Attributes:
        every, burst: how long a token takes, and how many gather.
        at: by what instant it was reckoned last.
        least, most: how far it is from full.
        is_unheeded: a clock was set back, and the store may not have looked since: until then it may be as
            far from full as empty.
    """

    every: Micros
    burst: int
    at: Micros
    least: Micros = 0
    most: Micros = 0
    is_unheeded: bool = False

    @property
    def _deepest(self) -> Micros:
        return self.every * self.burst

    def pass_time(self, now: Micros) -> None:
        """Let it fill; after a clock was set back it may be as far from full as empty, and no further."""
        passed = max(0, now - self.at)
        self.is_unheeded |= now < self.at
        self.least = max(0, self.least - passed)
        self.most = self._deepest if self.is_unheeded else max(0, self.most - passed)
        self.at = now

    def set_clock(self, now: Micros, seconds: float) -> None:
        """The clock is about to be set: forward, and so much time passes; back, and all is uncertain."""
        self.pass_time(now)
        if seconds < 0:
            self.is_unheeded = True
            self.at = now + round(seconds * 1_000_000) - 1

    def heed(self, now: Micros) -> None:
        """The store has looked at the time."""
        self.pass_time(now)
        self.is_unheeded = False

    @property
    def may_pass(self) -> bool:
        """Whether it may hold a token."""
        return self.least <= self.every * (self.burst - 1)

    @property
    def must_pass(self) -> bool:
        """Whether it holds a token for sure."""
        return self.most <= self.every * (self.burst - 1)

    def charge(self) -> None:
        """Take a token."""
        self.least = min(self.least + self.every, self._deepest)
        self.most = min(self.most + self.every, self._deepest)

    def refund(self, *, is_sure: bool) -> None:
        """Put a token back, or perhaps."""
        self.least = max(0, self.least - self.every)
        if is_sure and not self.is_unheeded:
            self.most = max(0, self.most - self.every)

    def change(self, every: Micros, burst: int) -> None:
        """Go by other numbers: as many tokens are missing as were, if so many fit in at all."""
        self.least = min(self.least, self.every * burst) * every // self.every
        self.most = -(-min(self.most, self.every * burst) * every // self.every)
        self.every, self.burst = every, burst

    def empty(self) -> None:
        """Take all tokens."""
        self.least = self.most = self._deepest
        self.is_unheeded = False

    def has(self, missing: Micros) -> bool:
        """Say whether it can be so far from full."""
        return self.least <= min(max(missing, 0), self._deepest) <= self.most
