"""`cron`: wall times by a cron expression, in a zone, by Debian's rules for changes of the clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import Any

from betimes.core.job import Micros
from betimes.core.triggers.cron_fields import Expression, read_expression
from betimes.core.triggers.cron_search import WallSearch
from betimes.core.triggers.cron_words import cron_hints, cron_sentence
from betimes.core.triggers.reckoned import FIRST_US, LAST_US, within
from betimes.core.triggers.wall_times import SECOND, WallTimesTrigger
from betimes.core.triggers.zones import Zone, zone_of
from betimes.core.wording import shown
from betimes.errors import InvalidTrigger

HORIZON_YEARS = 50

# No zone's clock has ever changed twice within four days: an offset that is the same after so short a time
# has been the same throughout.
_NEAR = timedelta(hours=12)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CronTrigger(WallTimesTrigger):
    """Fires at the wall times of a cron expression; made by `cron`.

    Attributes:
        expr: the expression.
        tz: the name of the zone.
        seconds: whether the expression has six fields, seconds first.
    """

    expr: str
    tz: str = field()
    seconds: bool
    _expression: Expression = field(init=False, compare=False)
    _search: WallSearch = field(init=False, compare=False)
    _zone: Zone = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.expr, str):
            read_expression(self.expr, seconds=False)  # raises; what is no text may not even have a hash
        expression, search = _prepared(self.expr, seconds=self.seconds)
        object.__setattr__(self, "expr", expression.text)
        object.__setattr__(self, "_expression", expression)
        object.__setattr__(self, "_search", search)
        object.__setattr__(self, "_zone", zone_of(self.tz))

    def next_us(self, after: Micros) -> Micros | None:
        """Return the first instant strictly later than `after`, both in microseconds since the epoch.

        None: nothing matches in the 50 years after it, or before the year 9999 is over.
        """
        if self._expression.follows_clock:
            return None if after > LAST_US else self._next_shown(max(after, FIRST_US))
        return WallTimesTrigger.next_us(self, after)

    def moved_from(self, at: Micros) -> str | None:
        """Return the skipped wall time for which the instant `at` stands: the first one of its gap."""
        return None if self._expression.follows_clock else WallTimesTrigger.moved_from(self, at)

    def sentence(self) -> str:
        """Return the rule in one line."""
        return cron_sentence(self._expression, self.tz, seconds=self.seconds)

    def hints(self) -> tuple[str, ...]:
        """Return what may surprise: steps that do not divide, days that are missing, changes of the clock."""
        return self.hints_after(FIRST_US)

    def hints_after(self, after: Micros) -> tuple[str, ...]:
        """Return the same, naming of the changes of the clock the first ones that lie ahead of an instant."""
        return cron_hints(self._expression, self._search, self._zone, seconds=self.seconds, after=after)

    def stored(self) -> dict[str, Any]:
        """Return the definition as plain JSON data."""
        seconds = {"seconds": True} if self.seconds else {}
        return {"kind": "cron", "expr": self.expr, "tz": self.tz, **seconds}

    def _its_zone(self) -> Zone:
        return self._zone

    def _later_wall(self, wall: datetime) -> datetime | None:
        return self._search.later(wall)

    def _next_shown(self, after: Micros) -> Micros | None:
        """By the clock as it goes: both passes of what occurs twice, nothing for what is skipped."""
        zone, later = self._zone, self._search.later
        seen = zone.local(after)
        wall = later(seen)
        if wall is not None and (ahead := wall - seen) <= _NEAR:
            near = after + ahead.seconds * 1_000_000 + ahead.microseconds
            if zone.local(near) == wall:  # The clock goes on evenly until then: the usual case.
                return within(near)
        overlap = zone.repeated(seen)
        if overlap is not None:
            start, end = overlap
            again = wall if seen.fold else later(start - SECOND)
            if (seen.fold or wall is None or wall >= end) and again is not None and again < end:
                return within(zone.second(again))
        while wall is not None and wall.year <= seen.year + HORIZON_YEARS:
            found = zone.shown_at(wall)
            if found is not None:
                return within(found)
            wall = later(zone.local(zone.gap_end(wall)) - SECOND)
        return None

    def __repr__(self) -> str:
        tz = "" if self.tz == "UTC" else f", tz={self.tz!r}"
        return f"cron({self.expr!r}{tz}{', seconds=True' if self.seconds else ''})"

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(CronTrigger, expr=self.expr, tz=self.tz, seconds=self.seconds), ()


def cron(expr: str, *, tz: str = "UTC", seconds: bool = False) -> CronTrigger:
    """Return a trigger that fires at the wall times of a cron expression.

    Five fields: minute, hour, day of the month, month, day of the week. A time that a change of the clock
    skips fires at the first instant after the gap, and one that occurs twice fires the first time only; but
    where minute or hour begins with `*`, the expression follows the clock: nothing for a gap, and both
    passes.

    Args:
        expr: the expression, or an alias such as `@daily`.
        tz: the IANA name of the zone whose wall clock counts.
        seconds: the expression has six fields, and seconds stand first.

    Raises:
        InvalidTrigger: the expression is wrong or never fires, or there is no such zone.

    Example:
        >>> cron("0 9 * * mon-fri", tz="Europe/Berlin").explain()
        'At 09:00 on Monday through Friday, Europe/Berlin time.'
    """
    if not isinstance(seconds, bool):
        raise InvalidTrigger(
            f"seconds must be True or False, not {shown(seconds)}",
            field="seconds",
            text=shown(seconds),
            allowed="True or False",
        )
    return CronTrigger(expr=expr, tz=tz, seconds=seconds)


@lru_cache(maxsize=1024)  # Many schedules share few expressions.
def _prepared(expr: str, *, seconds: bool) -> tuple[Expression, WallSearch]:
    expression = read_expression(expr, seconds=seconds)
    return expression, WallSearch(expression)
