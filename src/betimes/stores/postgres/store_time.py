"""The store's time: the server's, as each transaction hears it, and in between as this process counts on."""

from __future__ import annotations

from betimes.core.job import Micros
from betimes.ports import Clock


class StoreTime:
    """Knows how far the server's clock is from this process's.

    Args:
        clock: counts on between two answers of the server.
        goes_by_clock: have `clock` itself say what time it is.
    """

    __slots__ = ("_ahead_us", "_clock", "goes_by_clock")

    def __init__(self, clock: Clock, *, goes_by_clock: bool) -> None:
        self._clock = clock
        self.goes_by_clock = goes_by_clock
        self._ahead_us: Micros | None = None

    def see(self, server: Micros) -> Micros:
        """Take note of what the server's clock shows, and return the store's time; from any thread."""
        if self.goes_by_clock:
            return self._clock.now()
        self._ahead_us = server - self._counted()
        return server

    def now(self) -> Micros:
        """Return the store's time; from any thread."""
        if self.goes_by_clock or self._ahead_us is None:
            return self._clock.now()
        return self._counted() + self._ahead_us

    def monotonic(self) -> float:
        """Return seconds on a clock that never jumps."""
        return self._clock.monotonic()

    def for_leases(self, now: Micros) -> Micros:
        """Return the time by which leases go, given the store's."""
        return self._clock.boottime() if self.goes_by_clock else now

    def _counted(self) -> Micros:
        return round(self._clock.monotonic() * 1_000_000)
