"""The next wall time of a cron expression: days by cronsim, times of day by three small tables.

cronsim searches on naive dates only, so that none of its own zone rules come into play. What we rely on
that it does not document, and what `test_what_we_rely_on_in_cronsim` guards: an instance keeps its position
in `dt` and what it has read in other attributes, none of which a search changes; `days` and `months` are
sets; `match_day(date)` asks `match_dom(date)`, which may be overridden, and `match_dow(date)`, and leaves
months aside.
"""

from __future__ import annotations

import calendar
from datetime import date, datetime

from cronsim import CronSim, CronSimError

from betimes.core.triggers.cron_fields import Expression
from betimes.core.wording import shown
from betimes.errors import InvalidTrigger

# Years of every kind: leap or not, and each weekday as the first of January. A day that matches in none of
# them matches in no year at all; one that matches in some comes at least every 40 years, which is within
# the 50 that cronsim looks ahead.
_YEARS_OF_EVERY_KIND = (2001, 2002, 2003, 2006, 2007, 2009, 2010, 2000, 2004, 2008, 2012, 2016, 2020, 2024)

_ANY_START = datetime(2000, 1, 1)  # noqa: DTZ001 - cronsim searches on wall time
_NONE = -1


class _Days(CronSim):
    """The days of an expression that has `nW`, which cronsim does not know."""

    nearest: frozenset[int] = frozenset()

    def match_dom(self, d: date) -> bool:
        """Return whether the day of the month matches."""
        return super().match_dom(d) or is_nearest_weekday(d, self.nearest)


class WallSearch:
    """Finds the wall times of one expression. It never changes, and any number of threads may ask it.

    A plain class with slots, since its tables are made once and read at every search.
    """

    __slots__ = ("_days", "_hours", "_is_any_day", "_minutes", "_seconds")

    def __init__(self, expression: Expression) -> None:
        self._days = _days_of(expression)
        self._is_any_day = expression.parts[3] == expression.parts[5] == "*"
        self._hours = _table(expression.hours, 24)
        self._minutes = _table(expression.minutes, 60)
        self._seconds = _table(expression.seconds, 60)

    def later(self, wall: datetime) -> datetime | None:
        """Return the first match later than `wall`, to the second and in the same zone; None: there is none.

        None means that no day matches in the 50 years after that of `wall`, or before the year 10,000.
        """
        days = self._days
        if wall.month in days.months and (self._is_any_day or days.match_day(wall)):
            found = self._later_that_day(wall)
            if found is not None:
                return found
        return self._first_of_a_later_day(wall)

    def _later_that_day(self, wall: datetime) -> datetime | None:
        hours, minutes, seconds = self._hours, self._minutes, self._seconds
        hour, minute, second = wall.hour, wall.minute, _NONE
        if hours[hour] == hour:
            if minutes[minute] == minute:
                second = seconds[wall.second + 1]
            if second == _NONE:
                minute, second = minutes[minute + 1], seconds[0]
        if _NONE in (minute, second):
            hour, minute, second = hours[hour + 1], minutes[0], seconds[0]
        if hour == _NONE:
            return None
        return datetime(wall.year, wall.month, wall.day, hour, minute, second, 0, wall.tzinfo)

    def _first_of_a_later_day(self, wall: datetime) -> datetime | None:
        search = object.__new__(type(self._days))
        search.__dict__.update(self._days.__dict__)
        search.dt = wall.replace(hour=23, minute=59, second=59, microsecond=0, fold=0, tzinfo=None)
        try:
            day = next(search)
        except (StopIteration, OverflowError):
            return None
        return day.replace(
            hour=self._hours[0], minute=self._minutes[0], second=self._seconds[0], tzinfo=wall.tzinfo
        )


def is_nearest_weekday(day: date, targets: frozenset[int]) -> bool:
    """Return whether `day` is the weekday (Monday to Friday) nearest to one of these days, within its month.

    Example:
        >>> is_nearest_weekday(date(2024, 6, 14), frozenset({15}))  # the 15th is a Saturday
        True
    """
    weekday = day.weekday()
    if weekday > calendar.FRIDAY:
        return False
    last = calendar.monthrange(day.year, day.month)[1]
    candidates = {day.day}
    if weekday == calendar.FRIDAY:
        candidates.add(day.day + 1)  # the Saturday that it stands for,
        if day.day + 2 == last:
            candidates.add(last)  # and the Sunday that has no Monday after it in its month
    if weekday == calendar.MONDAY:
        candidates.add(day.day - 1)
        if day.day == 3:  # noqa: PLR2004 - Saturday the first has no Friday before it in its month
            candidates.add(1)
    return any(target in candidates for target in targets if target <= last)


def _days_of(expression: Expression) -> CronSim:
    _, _, _, day, month, weekday = expression.parts
    kind = _Days if expression.nearest else CronSim
    try:
        days = kind(f"0 0 {day or 'L'} {month} {weekday}".upper(), _ANY_START)
    except (
        CronSimError
    ):  # The grammar has been checked: this is cronsim's way to say that no month has such a day.
        raise _never(expression) from None
    if isinstance(days, _Days):
        days.nearest = expression.nearest
        days.days = days.days if day else set()
    if not _ever_matches(days):
        raise _never(expression)
    return days


def _ever_matches(days: CronSim) -> bool:
    return any(
        days.match_day(date(year, month, day))
        for year in _YEARS_OF_EVERY_KIND
        for month in days.months
        for day in range(1, calendar.monthrange(year, month)[1] + 1)
    )


def _never(expression: Expression) -> InvalidTrigger:
    return InvalidTrigger(
        f"the cron expression {shown(expression.text)} never fires: no date matches its day-of-month, month "
        "and day-of-week; correct one of them",
        field="expr",
        text=expression.text,
        allowed="an expression that matches at least one date",
    )


def _table(values: tuple[int, ...], size: int) -> tuple[int, ...]:
    """For each number up to `size`: the smallest value from it on, or -1."""
    table = [_NONE] * (size + 1)
    start = 0
    for value in values:
        table[start : value + 1] = [value] * (value + 1 - start)
        start = value + 1
    return tuple(table)
