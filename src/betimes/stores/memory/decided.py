"""Which instants of a schedule have been decided, when what became of them is forgotten.

The memory of fires is bounded, and a clock may be set back by more than it holds. So that no instant is
fired twice then, the forgotten ones are remembered as stretches of time, of which there are few: instants
are decided in order, and only a clock that is set ends a stretch.
"""

from __future__ import annotations

from betimes.core.job import Micros
from betimes.core.schedule import Fire

MOST_STRETCHES = 100
"""How many stretches are remembered of one schedule."""

LONGEST_MERGED_US = 60_000_000
"""Instants that shared their fate over a longer span may be those that a wrong clock has passed over."""


class Decided:
    """The stretches of time in which every instant of a schedule has been decided.

    Example:
        >>> from betimes.core.schedule import FireOutcome
        >>> decided = Decided()
        >>> for at in (10, 20, 30):
        ...     decided.add(Fire(at=at, first_at=at, outcome=FireOutcome.FIRED, decided_at=at))
        >>> 20 in decided, 40 in decided
        (True, False)
    """

    __slots__ = ("_stretches",)

    def __init__(self) -> None:
        """Start with none."""
        self._stretches: list[tuple[Micros, Micros]] = []

    def add(self, fire: Fire) -> None:
        """Add instants; those of one schedule come in the order in which they were decided."""
        since, until = self._stretches[-1] if self._stretches else (fire.at, fire.at)
        if fire.at < until or fire.at - fire.first_at > LONGEST_MERGED_US:
            # The clock was set back, or had been set forward over instants that may still come.
            self._stretches.append((fire.at, fire.at))
            del self._stretches[:-MOST_STRETCHES]
        else:
            self._stretches[-1:] = [(since, fire.at)]

    def __contains__(self, at: Micros) -> bool:
        """Say whether the instant was decided."""
        return any(since <= at <= until for since, until in self._stretches)
