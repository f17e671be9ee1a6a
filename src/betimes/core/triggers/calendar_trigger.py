"""`calendar`: days, weeks, months or years at a wall time, counted from an anchor.

The k-th occurrence is reckoned from the anchor itself, never from the occurrence before: so the 31st of
January is followed by the 28th of February and then by the 31st of March, and the 29th of February by four
anniversaries.
"""

from __future__ import annotations

import calendar as months_of
import re
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from typing import Any

from betimes.core.job import Micros
from betimes.core.triggers.change_hints import hints_on_changes
from betimes.core.triggers.reckoned import FIRST_US, LAST_US
from betimes.core.triggers.wall_times import WallTimesTrigger
from betimes.core.triggers.zones import Zone, zone_in_words, zone_of
from betimes.core.wording import shown
from betimes.errors import InvalidTrigger

MAX_STEP = 36_525
"""The largest number of days, weeks, months or years."""

_IN_EVERY_MONTH = 28
_ANY_DAY = date(2024, 1, 1)

_TIME = re.compile(r"([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?")
_TIME_FORM = 'whole seconds of a day, as "09:00", "09:00:30" or a datetime.time without a zone'
_UNITS = ("days", "weeks", "months", "years")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CalendarTrigger(WallTimesTrigger):
    """Fires at a wall time of every so many days or months; made by `calendar`.

    Attributes:
        days, weeks, months, years: as the user gave them; days and weeks add up, and so do months and years.
        at: the wall time.
        tz: the name of the zone.
        anchor: the date of the first occurrence; None: not fixed yet.
    """

    days: int = 0
    weeks: int = 0
    months: int = 0
    years: int = 0
    at: time
    tz: str = field()
    anchor: date | None = None
    _zone: Zone = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_zone", zone_of(self.tz))

    def next_us(self, after: Micros) -> Micros | None:
        """Return the first instant strictly later than `after`, both in microseconds since the epoch.

        Without an anchor it counts from the date of `after`.
        """
        if self.anchor is None:
            return self.anchored(after).next_us(after)
        return WallTimesTrigger.next_us(self, after)

    def moved_from(self, at: Micros) -> str | None:
        """Return the skipped wall time for which the instant `at` stands."""
        return None if self.anchor is None else WallTimesTrigger.moved_from(self, at)

    def anchored(self, at: Micros) -> CalendarTrigger:
        """Return this trigger counted from the date of `at` in its zone, unless the user gave an anchor."""
        if self.anchor is not None:
            return self
        return replace(self, anchor=self._zone.local(min(max(at, FIRST_US), LAST_US)).date())

    def sentence(self) -> str:
        """Return the rule in one line."""
        small, large = ("day", "week") if self._by_days() else ("month", "year")
        size = 7 if self._by_days() else 12
        step = self._by_days() or self._by_months()
        count, unit = (step // size, large) if step % size == 0 else (step, small)
        text = unit if count == 1 else f"{count} {unit}s"
        since = "" if self.anchor is None else f", counted from {self.anchor}"
        return f"Every {text} at {self._time_text()}, {zone_in_words(self.tz)}{since}."

    def hints(self) -> tuple[str, ...]:
        """Return what may surprise: months that are too short, and changes of the clock."""
        if self.anchor is None:  # Then the days are not known, unless it is every day.
            return replace(self, anchor=_ANY_DAY).hints() if self._by_days() == 1 else ()
        changes = hints_on_changes(self._later_wall, self._zone, follows_clock=False)
        if self._by_days() or self.anchor.day <= _IN_EVERY_MONTH:
            return tuple(changes)
        return (f"where a month has no day {self.anchor.day}, its last day is taken.", *changes)

    def stored(self) -> dict[str, Any]:
        """Return the definition as plain JSON data."""
        counts = {unit: count for unit in _UNITS if (count := getattr(self, unit))}
        anchor = {} if self.anchor is None else {"anchor": self.anchor.isoformat()}
        return {"kind": "calendar", **counts, "at": self._time_text(), "tz": self.tz, **anchor}

    def _its_zone(self) -> Zone:
        return self._zone

    def _later_wall(self, wall: datetime) -> datetime | None:
        assert self.anchor is not None
        steps = max(0, self._steps_until(wall.date()))
        day = self._day(self.anchor, steps)
        if day is not None and datetime.combine(day, self.at, tzinfo=wall.tzinfo) <= wall:
            day = self._day(self.anchor, steps + 1)
        return None if day is None else datetime.combine(day, self.at, tzinfo=wall.tzinfo)

    def _steps_until(self, day: date) -> int:
        """How many whole steps lie between the anchor's day (or month) and this one."""
        anchor = self.anchor
        assert anchor is not None
        if by_days := self._by_days():
            return (day - anchor).days // by_days
        return ((day.year - anchor.year) * 12 + day.month - anchor.month) // self._by_months()

    def _day(self, anchor: date, steps: int) -> date | None:
        """The date of the occurrence after this many steps; None: beyond the year 9999."""
        if by_days := self._by_days():
            ordinal = anchor.toordinal() + steps * by_days
            return date.fromordinal(ordinal) if ordinal <= date.max.toordinal() else None
        year, month = divmod(anchor.year * 12 + anchor.month - 1 + steps * self._by_months(), 12)
        if year > date.max.year:
            return None
        last = months_of.monthrange(year, month + 1)[1]
        return date(year, month + 1, min(anchor.day, last))

    def _by_days(self) -> int:
        return self.days + 7 * self.weeks

    def _by_months(self) -> int:
        return self.months + 12 * self.years

    def _time_text(self) -> str:
        return self.at.isoformat(timespec="seconds" if self.at.second else "minutes")

    def __repr__(self) -> str:
        counts = [f"{unit}={count}" for unit in _UNITS if (count := getattr(self, unit))]
        tz = [] if self.tz == "UTC" else [f"tz={self.tz!r}"]
        anchor = [] if self.anchor is None else [f"anchor={self.anchor!r}"]
        return f"calendar({', '.join([*counts, f'at={self._time_text()!r}', *tz, *anchor])})"


def calendar(
    *,
    days: int = 0,
    weeks: int = 0,
    months: int = 0,
    years: int = 0,
    at: str | time | None = None,
    tz: str = "UTC",
    anchor: date | datetime | None = None,
) -> CalendarTrigger:
    """Return a trigger that fires every so many days, weeks, months or years at a wall time.

    Give days and weeks (which add up) or months and years (which add up), not both. The first occurrence is
    on the date of the anchor; each further one is counted from there. Where a month is too short, its last
    day is taken. A time that is skipped or occurs twice is treated as for `cron` with a fixed time.

    Args:
        days: the step, or a part of it.
        weeks: likewise.
        months: likewise.
        years: likewise.
        at: the wall time, such as `"09:00"` or `"09:00:30"`; default: that of the anchor, else midnight.
        tz: the IANA name of the zone.
        anchor: a date, or an aware datetime; default: the date on which the schedule is added.

    Raises:
        InvalidTrigger: no step or a mixed one, no time of day, a naive datetime, or no such zone.

    Example:
        >>> from datetime import UTC
        >>> monthly = calendar(months=1, at="10:00", anchor=date(2025, 1, 31))
        >>> monthly.next(datetime(2025, 2, 1, tzinfo=UTC)).isoformat()
        '2025-02-28T10:00:00+00:00'
    """
    _check_step({"days": days, "weeks": weeks, "months": months, "years": years})
    day, wall_time = _anchor_of(anchor, zone_of(tz))
    return CalendarTrigger(
        days=days,
        weeks=weeks,
        months=months,
        years=years,
        at=wall_time if at is None else _time_of(at),
        tz=tz,
        anchor=day,
    )


def _check_step(counts: dict[str, int]) -> None:
    for unit, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MAX_STEP:
            raise _refused(unit, count, f"a whole number from 0 to {MAX_STEP:,}")
    by_days, by_months = counts["days"] or counts["weeks"], counts["months"] or counts["years"]
    if bool(by_days) == bool(by_months):
        given = ", ".join(f"{unit}={count}" for unit, count in counts.items() if count) or "none"
        raise InvalidTrigger(
            f"calendar() takes days and weeks, or months and years, as its step, and was given {given}",
            field="days",
            text=given,
            allowed="days and weeks, or months and years",
        )


def _anchor_of(anchor: object, zone: Zone) -> tuple[date | None, time]:
    if anchor is None:
        return None, time()
    if isinstance(anchor, datetime):
        if anchor.utcoffset() is None or anchor.microsecond:
            raise _refused("anchor", anchor, "a date, or an aware datetime of whole seconds")
        wall = zone.at(anchor)
        return wall.date(), wall.time().replace(fold=0)
    if isinstance(anchor, date):
        return anchor, time()
    raise _refused("anchor", anchor, "a date, or an aware datetime of whole seconds")


def _time_of(at: object) -> time:
    if isinstance(at, time) and at.tzinfo is None and not at.microsecond:
        return at.replace(fold=0)
    match = _TIME.fullmatch(at) if isinstance(at, str) else None
    if match is None:
        raise _refused("at", at, _TIME_FORM)
    try:
        hour, minute, second = (int(part or 0) for part in match.groups())
        return time(hour, minute, second)
    except ValueError:
        raise _refused("at", at, _TIME_FORM) from None


def _refused(name: str, value: object, allowed: str) -> InvalidTrigger:
    return InvalidTrigger(
        f"{name} must be {allowed}, not {shown(value)}", field=name, text=shown(value), allowed=allowed
    )
