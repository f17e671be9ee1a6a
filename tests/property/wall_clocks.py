"""Twenty zones, the changes of their clocks, and what fires around them by stepping every minute of UTC."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)

ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Europe/Dublin",  # its winter time is the "daylight saving" one, and negative
    "Australia/Lord_Howe",  # half an hour
    "Antarctica/Troll",  # two hours
    "Pacific/Apia",  # a whole day, 2011-12-30
    "America/Sao_Paulo",  # at midnight
    "America/Santiago",  # at midnight
    "Asia/Beirut",  # at midnight
    "America/Havana",  # at midnight, and back to midnight
    "Asia/Amman",
    "Africa/Cairo",  # back over midnight
    "Africa/Casablanca",  # off during Ramadan
    "America/St_Johns",  # at 00:01, until 2011
    "Europe/Moscow",
    "Asia/Tehran",  # half-hour offset, at midnight
    "Asia/Pyongyang",  # half an hour, for good
    "America/Caracas",  # half an hour, for good
    "Pacific/Chatham",  # quarter-hour offset
)


@cache
def changes(tz: str) -> tuple[datetime, ...]:
    """The first instants after each change of the clock in the years 2006 to 2018."""
    info = ZoneInfo(tz)
    at = datetime(2006, 1, 1, tzinfo=UTC)
    found = []
    while at.year < 2019:
        if offset(at, info) != offset(at + DAY, info):
            low, high = at, at + DAY
            while high - low > timedelta(seconds=1):
                middle = low + timedelta(seconds=(high - low) // timedelta(seconds=2))
                low, high = (middle, high) if offset(middle, info) == offset(at, info) else (low, middle)
            found.append(high)
        at += DAY
    return tuple(found)


def offset(at: datetime, info: ZoneInfo) -> timedelta | None:
    return at.astimezone(info).utcoffset()


def wall_at(at: datetime, info: ZoneInfo) -> datetime:
    """What the clock shows, without a zone."""
    return at.astimezone(info).replace(tzinfo=None, fold=0)


Matches = Callable[[datetime], bool]


def shown(matches: Matches, info: ZoneInfo, since: datetime, until: datetime) -> list[datetime]:
    """The minutes in (since, until] at which the clock shows a matching time."""
    return [at for at in _minutes(since, until) if matches(wall_at(at, info))]


def first_reached(matches: Matches, info: ZoneInfo, since: datetime, until: datetime) -> list[datetime]:
    """The minutes in (since, until] at which the clock first reaches a matching time, or jumps over it.

    It remembers the furthest time the clock has shown; no rule of the library is used.
    """
    furthest = max(wall_at(at, info) for at in _minutes(since - 2 * DAY, since))
    fires = []
    for at in _minutes(since, until):
        now = wall_at(at, info)
        steps = (now - furthest) // MINUTE
        if any(matches(furthest + step * MINUTE) for step in range(1, steps + 1)):
            fires.append(at)
        furthest = max(furthest, now)
    return fires


def _minutes(since: datetime, until: datetime) -> Iterator[datetime]:
    at = since.replace(second=0, microsecond=0)
    while (at := at + MINUTE) <= until:
        yield at


@dataclass(frozen=True, slots=True)
class Part:
    """One field of an expression: its text, and the numbers that it means."""

    text: str
    values: frozenset[int]


@dataclass(frozen=True, slots=True)
class Written:
    """An expression of five fields that knows what it means."""

    minute: Part
    hour: Part
    day: Part
    month: Part
    weekday: Part

    def __str__(self) -> str:
        parts = (self.minute, self.hour, self.day, self.month, self.weekday)
        return " ".join(part.text for part in parts)

    @property
    def follows_clock(self) -> bool:
        return self.minute.text.startswith("*") or self.hour.text.startswith("*")

    @property
    def needs_both_days(self) -> bool:
        return self.day.text.startswith("*") or self.weekday.text.startswith("*")

    def matches(self, wall: datetime) -> bool:
        if wall.minute not in self.minute.values or wall.hour not in self.hour.values:
            return False
        by_day, by_weekday = wall.day in self.day.values, wall.isoweekday() % 7 in self.weekday.values
        is_day = by_day and by_weekday if self.needs_both_days else by_day or by_weekday
        return is_day and wall.month in self.month.values


def parts(low: int, high: int, *, stars: bool | None = None, fixed: bool = True) -> st.SearchStrategy[Part]:
    """Fields from `low` to `high`; `stars` decides whether they begin with one (None: either)."""
    every = st.integers(1, high - low).map(lambda step: _stepped(low, high, step))
    numbers = st.integers(low, high)
    some = st.lists(numbers, min_size=1, max_size=4).map(_listed)
    span = st.tuples(numbers, numbers).filter(lambda ends: ends[0] < ends[1])
    spans = span.map(lambda ends: Part(f"{ends[0]}-{ends[1]}", frozenset(range(ends[0], ends[1] + 1))))
    starred = st.one_of(st.just(_stepped(low, high, 1)), every)
    plain = st.one_of(some, spans)
    if stars is None:
        return st.one_of(starred, plain) if fixed else starred
    return starred if stars else plain


def _stepped(low: int, high: int, step: int) -> Part:
    text = "*" if step == 1 else f"*/{step}"
    return Part(text, frozenset(range(low, high + 1, step)))


def _listed(numbers: list[int]) -> Part:
    return Part(",".join(str(number) for number in numbers), frozenset(numbers))


def _either(star: Part, others: st.SearchStrategy[Part]) -> st.SearchStrategy[Part]:
    return st.one_of(st.just(star), others)


ANY_DAY, ANY_MONTH, ANY_WEEKDAY = _stepped(1, 31, 1), _stepped(1, 12, 1), _stepped(0, 6, 1)


@st.composite
def expressions(draw: st.DrawFn, *, follows_clock: bool | None = None) -> Written:
    """Expressions; most of them fire on most days, so that something happens around a change."""
    if follows_clock is None:
        follows_clock = draw(st.booleans())
    star_minute = draw(st.booleans()) if follows_clock else False
    minute = draw(parts(0, 59, stars=star_minute))
    hour = draw(parts(0, 23, stars=None if star_minute else follows_clock))
    return Written(
        minute,
        hour,
        draw(_either(ANY_DAY, parts(1, 31))),
        draw(_either(ANY_MONTH, parts(1, 12, stars=True))),
        draw(_either(ANY_WEEKDAY, parts(0, 6))),
    )


def hours_of_changes() -> st.SearchStrategy[Part]:
    """Hours in which clocks are changed."""
    return st.lists(st.sampled_from([0, 1, 2, 3, 4, 23]), min_size=1, max_size=3).map(_listed)


def minutes_of_changes() -> st.SearchStrategy[Part]:
    """Minutes at which clocks are changed, and others."""
    return st.lists(st.sampled_from([0, 0, 1, 15, 30, 45, 59]), min_size=1, max_size=3).map(_listed)


@st.composite
def around_changes(draw: st.DrawFn) -> tuple[str, datetime]:
    """A zone, and an instant within three hours of a change of its clock (where it has any)."""
    tz = draw(st.sampled_from(ZONES))
    change = draw(st.sampled_from(changes(tz) or (datetime(2012, 3, 1, tzinfo=UTC),)))
    return tz, change + draw(st.timedeltas(timedelta(hours=-3), timedelta(hours=3)))
