"""The fixed-time rule: what a trigger needs that names wall times, each to happen once.

Stated by Debian's cron(8): a wall time that occurs twice counts in its first pass only, and one that is
skipped counts at the first instant after the gap; several that one gap swallows make one instant.
"""

from __future__ import annotations

from abc import abstractmethod
from datetime import datetime, timedelta

from betimes.core.job import Micros
from betimes.core.triggers.reckoned import FIRST_US, LAST_US, ReckonedTrigger, within
from betimes.core.triggers.zones import Zone

SECOND = timedelta(seconds=1)


class WallTimesTrigger(ReckonedTrigger):
    """A trigger that yields wall times of a zone, in order; the instants follow by the fixed-time rule."""

    __slots__ = ()

    @abstractmethod
    def _its_zone(self) -> Zone:
        """The zone whose wall clock counts."""

    @abstractmethod
    def _later_wall(self, wall: datetime) -> datetime | None:
        """The first of the trigger's wall times that is later than `wall`; None: there is none."""

    def next_us(self, after: Micros) -> Micros | None:
        """Return the first instant strictly later than `after`, both in microseconds since the epoch."""
        if after > LAST_US:
            return None
        zone = self._its_zone()
        seen = zone.local(max(after, FIRST_US))
        if seen.fold:  # In a second pass: its wall times have all been seen, up to the end of the first one.
            overlap = zone.repeated(seen)
            seen = seen if overlap is None else overlap[1] - SECOND
        wall = self._later_wall(seen)
        return None if wall is None else within(zone.first(wall))

    def moved_from(self, at: Micros) -> str | None:
        """Return the skipped wall time for which the instant `at` stands: the first one of its gap."""
        zone = self._its_zone()
        gap = zone.gap_before(at)
        if gap is None or self._later_wall(gap[1] - SECOND) == gap[1]:
            return None
        wall = self._later_wall(gap[0] - SECOND)
        if wall is None or wall >= gap[1]:
            return None
        text = wall.replace(tzinfo=None).isoformat(timespec="seconds" if wall.second else "minutes")
        return f"{text}[{zone.name}]"
