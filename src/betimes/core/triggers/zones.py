"""Wall clocks and instants: what a zone's clock shows, and when it first shows a time.

Two questions are asked of a zone. `local` says what its clock shows at an instant. `first` goes the other
way and answers the first instant at which the clock shows a wall time *or more*: for a time that occurs
twice its first occurrence, for a time that was skipped the first instant after the gap. So defined, a later
wall time never has an
earlier instant, and a search in wall time finds the next instant of all: that is the fixed-time rule of
    Debian's
cron(8), for shifts of any size.

Edges of gaps and overlaps are found by bisection on the zone's offset, to the second; no list of changes is
read, because `zoneinfo` shows none. The zone is always one of the IANA database, by name; the host's own
never matters.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from betimes.core.durations import instant_us
from betimes.core.job import Micros
from betimes.core.triggers.reckoned import FIRST_US, LAST_US
from betimes.core.wording import listed, shown
from betimes.errors import InvalidTrigger

_MICRO = timedelta(microseconds=1)
_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)
_SECOND_US = 1_000_000
_DAY_US = 86_400 * _SECOND_US
_DAYS_LOOKED_AT = 14 * 365 + 4
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{0,30}(/[A-Za-z0-9_+-]{1,30}){0,3}")
# "local" and its like are the host's zone; those of "right" count leap seconds, and "posix" are doubles.
_NOT_IANA = frozenset({"local", "localtime", "posixrules", "posix", "right", "factory"})
_ALLOWED = 'an IANA zone name such as "Europe/Berlin" or "UTC"'


class Zone:
    """The wall clock of one IANA zone.

    A plain class with slots, and mutable like any: it is asked twice at each search, and nobody changes it.

    Attributes:
        name: the zone's name, such as `Europe/Berlin`.
        info: the zone of the standard library.
    """

    __slots__ = ("_epoch", "_from_utc", "info", "name")

    def __init__(self, info: ZoneInfo) -> None:
        self.info = info
        self.name = info.key
        self._epoch = datetime(1970, 1, 1, tzinfo=info)
        self._from_utc = info.fromutc

    def __reduce__(self) -> tuple[Any, ...]:
        return zone_of, (self.name,)

    def local(self, at: Micros) -> datetime:
        """Return what the zone's clock shows at an instant, aware, with `fold` set in a second pass."""
        return self._from_utc(self._epoch + timedelta(0, 0, at))

    def at(self, when: datetime) -> datetime:
        """Return what the zone's clock shows at an aware datetime."""
        return when.astimezone(self.info)

    def first(self, wall: datetime) -> Micros:
        """Return the first instant at which the clock shows `wall`, or more where `wall` is skipped."""
        before, after = self._offsets(wall)
        if before < after:
            return self.gap_end(wall)
        return (wall - self._epoch - before) // _MICRO

    def second(self, wall: datetime) -> Micros:
        """Return the last instant at which the clock shows `wall`, which is not skipped."""
        return (wall - self._epoch - self._offsets(wall)[1]) // _MICRO

    def shown_at(self, wall: datetime) -> Micros | None:
        """Return the first instant at which the clock shows exactly `wall`; None: it is skipped."""
        before, after = self._offsets(wall)
        return None if before < after else (wall - self._epoch - before) // _MICRO

    def gap_end(self, wall: datetime) -> Micros:
        """Return the first instant after the gap that `wall` lies in."""
        before, after = self._offsets(wall)
        naive = wall - self._epoch
        low, high = (naive - after) // _SECOND, (naive - before) // _SECOND
        bare = wall.replace(tzinfo=None)
        while high - low > 1:
            middle = (low + high) // 2
            if self.local(middle * _SECOND_US).replace(tzinfo=None) > bare:
                high = middle
            else:
                low = middle
        return high * _SECOND_US

    def gap_before(self, at: Micros) -> tuple[datetime, datetime] | None:
        """Return the wall time [from, to) that is skipped just before this instant; None: nothing is."""
        if at % _SECOND_US or not FIRST_US < at <= LAST_US:
            return None
        until = self.local(at)
        since = self.local(at - _SECOND_US).replace(fold=0) + _SECOND
        return (since, until) if since < until else None

    def repeated(self, wall: datetime) -> tuple[datetime, datetime] | None:
        """Return the wall time [from, to) around `wall` that is shown twice; None: it is shown once."""
        before, after = self._offsets(wall)
        if before <= after:
            return None
        naive = wall.replace(microsecond=0) - self._epoch
        low, high = (naive - before) // _SECOND, (naive - after) // _SECOND
        while high - low > 1:
            middle = (low + high) // 2
            if self.local(middle * _SECOND_US).utcoffset() == before:
                low = middle
            else:
                high = middle
        change = self._epoch + timedelta(seconds=high)
        return change + after, change + before

    def _offsets(self, wall: datetime) -> tuple[timedelta, timedelta]:
        """The offsets that hold at a wall time before and after a change: equal if it is there once."""
        other = wall.replace(fold=1 - wall.fold).utcoffset()
        before, after = (other, wall.utcoffset()) if wall.fold else (wall.utcoffset(), other)
        assert before is not None
        assert after is not None
        return before, after


def zone_in_words(name: str) -> str:
    """Return the zone as sentences name it: `UTC`, or `Europe/Berlin time`."""
    return name if name == "UTC" else f"{name} time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of the clock: the span of wall time [since, until) that it skips or repeats."""

    is_gap: bool
    since: datetime
    until: datetime


@lru_cache(maxsize=64)  # It takes a few milliseconds, and a program uses few zones.
def changes_of(zone: Zone) -> tuple[Change, ...]:
    """Return the changes of a zone's clock in the years 2024 to 2037, in order.

    Found day by day, so that two changes within a day would go unseen: for hints, not for rules.
    """
    found: list[Change] = []
    at = instant_us(datetime(2024, 1, 1, tzinfo=UTC), name="at")
    before = zone.local(at)
    for _ in range(_DAYS_LOOKED_AT):
        after = zone.local(at + _DAY_US)
        if shift := (after - before) - _DAY:
            found.append(_change_within(zone, at, shift))
        at, before = at + _DAY_US, after
    return tuple(found)


def _change_within(zone: Zone, start: Micros, shift: timedelta) -> Change:
    """The one change in the day after an instant."""
    before = zone.local(start).replace(fold=0)
    low, high = 0, _DAY_US // _SECOND_US
    while high - low > 1:
        middle = (low + high) // 2
        if zone.local(start + middle * _SECOND_US) - before == timedelta(seconds=middle):
            low = middle
        else:
            high = middle
    old = before + timedelta(seconds=high)
    new = old + shift
    return Change(is_gap=old < new, since=min(old, new), until=max(old, new))


def zone_of(name: str) -> Zone:
    """Return the zone of this name.

    Raises:
        InvalidTrigger: no text, or no zone of the IANA database; the nearest names are proposed.
    """
    if not isinstance(name, str):
        key = name.key if isinstance(name, ZoneInfo) else None
        raise _refused(name, f"write {_ALLOWED}" if key is None else f'write its IANA zone name, "{key}"')
    return _loaded(name)


@lru_cache(maxsize=1024)  # There are about 600.
def _loaded(name: str) -> Zone:
    if not _may_be_name(name):
        raise _refused(name, _proposal(name))
    try:
        return Zone(ZoneInfo(name))
    except (KeyError, ValueError, OSError):  # no such zone, no zone file, a directory
        raise _refused(name, _proposal(name)) from None


def _may_be_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and name.partition("/")[0].lower() not in _NOT_IANA


def _refused(name: object, proposal: str) -> InvalidTrigger:
    return InvalidTrigger(
        f"tz={shown(name)} is no time zone of the IANA database: {proposal}",
        field="tz",
        text=name if isinstance(name, str) else shown(name),
        allowed=_ALLOWED,
    )


def _proposal(name: str) -> str:
    """What to write instead: the names that look most like it, its last part first."""
    if name.lower().startswith("local"):
        return 'write the zone itself, such as "Europe/Berlin": the host\'s own differs from host to host'
    known = {key.lower(): key for key in available_timezones() if _may_be_name(key)}
    asked = name[:60].lower().replace(" ", "_")
    last = asked.rpartition("/")[2]
    near = [key for low, key in sorted(known.items()) if last and low.rpartition("/")[2] == last][:3]
    near = near or [known[low] for low in difflib.get_close_matches(asked, known, n=3, cutoff=0.6)]
    return f"did you mean {listed(near)}?" if near else f"write {_ALLOWED}"
