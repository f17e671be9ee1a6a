"""When a lost connection is made anew: later each time, with jitter, lest a fleet come at once."""

from __future__ import annotations

from collections.abc import Callable

from betimes.errors import StoreUnavailable

FIRST_S, LONGEST_S = 0.05, 1.0


class Reconnecting:
    """Counts the vain attempts of one session, and says when the next may come.

    Args:
        monotonic: seconds on a clock that never jumps.
        longest_s: the longest that it waits between two attempts.

    Attributes:
        next_at: when the next attempt may come, on that clock.
    """

    def __init__(self, monotonic: Callable[[], float], *, longest_s: float = LONGEST_S) -> None:
        self._monotonic = monotonic
        self._longest_s = longest_s
        self._failures = 0
        self._last: BaseException | None = None
        self.next_at = 0.0

    def check(self) -> None:
        """Refuse an attempt that comes too early.

        Raises:
            StoreUnavailable: what the last attempt failed with.
        """
        if isinstance(self._last, StoreUnavailable) and self._monotonic() < self.next_at:
            raise StoreUnavailable(str(self._last), why=self._last.why)

    def failed(self, error: BaseException) -> None:
        """Note that an attempt was in vain."""
        self._failures += 1
        self._last = error
        cap = min(self._longest_s, FIRST_S * 2 ** min(self._failures, 20))
        now = self._monotonic()
        share = now * 1_000_000 % 1000 / 1000  # the last digits of its clock are any machine's own
        self.next_at = now + cap * (1 + share) / 2

    def succeeded(self) -> None:
        """Note that the connection was made."""
        self._failures = 0
        self._last = None
        self.next_at = 0.0
