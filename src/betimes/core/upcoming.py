"""The next instants of a grid, as people are shown them."""

from __future__ import annotations

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from betimes.core.durations import from_us
from betimes.core.grid import Grid, TriggerFailed
from betimes.core.job import Micros
from betimes.core.schedule_reason import NextFire


def next_fires(grid: Grid, after: Micros, count: int) -> list[NextFire]:
    """Return the first instants later than `after`, at most `count`; none if the trigger fails."""
    zone = _zone(grid.tz())
    found: list[NextFire] = []
    try:
        while len(found) < count and (following := grid.next(after)) is not None:
            instant = from_us(following)
            found.append(
                NextFire(
                    at=instant,
                    local=None if zone is None else instant.astimezone(zone),
                    moved_from=grid.moved_from(following),
                )
            )
            after = following
    except TriggerFailed:
        return []
    return found


def _zone(name: str | None) -> ZoneInfo | None:
    """Return the zone in which fires are shown; None: UTC, or a zone that is not known here."""
    try:
        return None if name in (None, "UTC") else ZoneInfo(str(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
