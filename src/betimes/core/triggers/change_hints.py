"""Hints on wall times that a change of the clock skips or repeats.

They look at the years 2024 to 2037, since nothing here knows what year it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import TypeAlias

from betimes.core.job import Micros
from betimes.core.triggers.reckoned import FIRST_US
from betimes.core.triggers.zones import Change, Zone, changes_of

LaterWall: TypeAlias = Callable[[datetime], datetime | None]
"""Answers the first of a trigger's wall times that is later than a given one."""

_SECOND = timedelta(seconds=1)


def hints_on_changes(
    later_wall: LaterWall, zone: Zone, *, follows_clock: bool, after: Micros = FIRST_US
) -> Iterator[str]:
    """Say of the first gap, and of the first overlap, that a wall time lies in what becomes of it.

    Args:
        later_wall: the trigger's wall times.
        zone: whose clock it is.
        follows_clock: fires at each pass and never for a gap; otherwise by the fixed-time rule.
        after: only changes that are over later than this instant.
    """
    seen = zone.local(after).replace(fold=0)
    gap = _first_hit(later_wall, zone, seen, is_gap=True)
    if gap is not None:
        end = f"{gap.until:%H:%M}"
        does = "nothing fires" if follows_clock else f"it then fires once, at {end}"
        yield f"in {zone.name}, the clock skips {gap.since:%H:%M}–{end} on {gap.until:%Y-%m-%d}; {does}."
    overlap = _first_hit(later_wall, zone, seen, is_gap=False)
    if overlap is not None:
        does = "it fires in both passes" if follows_clock else "it fires in the first pass only"
        span = f"{overlap.since:%H:%M}–{overlap.until:%H:%M}"
        yield f"in {zone.name}, the clock shows {span} twice on {overlap.since:%Y-%m-%d}; {does}."


def _first_hit(later_wall: LaterWall, zone: Zone, seen: datetime, *, is_gap: bool) -> Change | None:
    """The first change of this kind, not over by `seen`, in which one of the wall times lies."""
    for change in changes_of(zone):
        if change.is_gap == is_gap and change.until > seen:
            wall = later_wall(change.since - _SECOND)
            if wall is not None and wall < change.until:
                return change
    return None
