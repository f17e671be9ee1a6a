"""Triggers made of triggers: the union of several, and one without certain dates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Any

from betimes.core.job import Micros
from betimes.core.triggers.reckoned import FIRST_US, LAST_US, ReckonedTrigger
from betimes.core.triggers.trigger import Trigger
from betimes.core.triggers.zones import Zone, zone_of
from betimes.core.wording import listed, shown
from betimes.errors import ConfigurationError, InvalidTrigger

MAX_DATES = 2_000
"""The most dates of one exclusion: each may cost a step, and an answer must be quick."""

MAX_PARTS = 100

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class UnionTrigger(ReckonedTrigger):
    """Fires whenever one of its parts does, and once where several do; made by `|`.

    Attributes:
        parts: two triggers or more, none of them a union.
    """

    parts: tuple[Trigger, ...]

    def next_us(self, after: Micros) -> Micros | None:
        """Return the first instant strictly later than `after`, both in microseconds since the epoch."""
        found = [at for part in self.parts if (at := part.next_us(after)) is not None]
        return min(found, default=None)

    def moved_from(self, at: Micros) -> str | None:
        """Return the skipped wall time for which the instant stands, unless some part has it as it is."""
        moves = [part.moved_from(at) for part in self.parts if part.next_us(at - 1) == at]
        return None if None in moves or not moves else moves[0]

    def anchored(self, at: Micros) -> Trigger:
        """Return the union of its anchored parts."""
        parts = tuple(part.anchored(at) for part in self.parts)
        return self if parts == self.parts else _union(parts)

    @property
    def tz(self) -> str | None:
        """The name of the zone that all its parts share; None: they share none."""
        names = {part.tz for part in self.parts}
        return names.pop() if len(names) == 1 else None

    def sentence(self) -> str:
        """Return the rule in one line."""
        return " Also: ".join(part.sentence() for part in self.parts)

    def hints(self) -> tuple[str, ...]:
        """Return what may surprise, each once."""
        return tuple(dict.fromkeys(hint for part in self.parts for hint in part.hints()))

    def stored(self) -> dict[str, Any] | None:
        """Return the definition as plain JSON data; None: a part cannot be stored."""
        parts = [part.stored() for part in self.parts]
        return None if None in parts else {"kind": "union", "parts": parts}

    def __repr__(self) -> str:
        return " | ".join(repr(part) for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExclusionTrigger(ReckonedTrigger):
    """Fires when its inner trigger does, but not on certain dates; made by `excluding`.

    Attributes:
        inner: what fires otherwise.
        dates: the days that are left out, in order.
        day_tz: the name of the zone in which they are days.
    """

    inner: Trigger
    dates: tuple[date, ...]
    day_tz: str
    _zone: Zone = field(init=False, compare=False)
    _run_ends: dict[date, date] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_zone", zone_of(self.day_tz))
        object.__setattr__(self, "_run_ends", _run_ends(self.dates))

    def next_us(self, after: Micros) -> Micros | None:
        """Return the first instant strictly later than `after`, both in microseconds since the epoch."""
        inner = self.inner.anchored(
            after
        )  # A grid of its own, where it has none: leaving out must not shift it.
        left_out: date | None = None
        while (found := inner.next_us(after)) is not None and FIRST_US <= found <= LAST_US:
            if found <= after:
                raise ConfigurationError(
                    f"next() of {type(inner).__name__} must return an instant later than it is given"
                )
            last_day = self._run_ends.get(self._zone.local(found).date())
            if last_day is None:
                return found
            # The first time a step is cheaper than a jump, and enough where little fires.
            after = self._last_before(last_day, found) if last_day == left_out else found
            left_out = last_day
        return found

    def moved_from(self, at: Micros) -> str | None:
        """Return the skipped wall time for which the instant `at` stands."""
        return self.inner.moved_from(at)

    def anchored(self, at: Micros) -> ExclusionTrigger:
        """Return the same with the inner trigger anchored."""
        return replace(self, inner=self.inner.anchored(at))

    @property
    def tz(self) -> str | None:
        """The name of the inner trigger's zone, where it has one."""
        return self.inner.tz

    def sentence(self) -> str:
        """Return the rule in one line."""
        days = listed([str(day) for day in self.dates])
        return f"{self.inner.sentence().removesuffix('.')}; not on {days} ({self.day_tz})."

    def hints(self) -> tuple[str, ...]:
        """Return what may surprise about the inner trigger."""
        return self.inner.hints()

    def stored(self) -> dict[str, Any] | None:
        """Return the definition as plain JSON data; None: the inner trigger cannot be stored."""
        inner = self.inner.stored()
        dates = [day.isoformat() for day in self.dates]
        return (
            None if inner is None else {"kind": "exclusion", "of": inner, "dates": dates, "tz": self.day_tz}
        )

    def _last_before(self, last_day: date, found: Micros) -> Micros:
        """The instant from which the search goes on after `found`, which falls on an excluded day.

        That is the end of the run of excluded days; except where a change of the clock comes back over
        midnight: the next day has begun then before the last hour of the day before is shown once more.
        """
        zone = self._zone
        seen = zone.local(found)
        overlap = zone.repeated(seen)
        evening = datetime(last_day.year, last_day.month, last_day.day, 23, 59, 59, tzinfo=zone.info)
        end = LAST_US if last_day >= date.max - _DAY else zone.first(evening + timedelta(seconds=1)) - 1
        if end < found:
            return zone.second(evening) + 999_999
        if overlap is not None and not seen.fold:
            return min(end, zone.second(overlap[0]) - 1)
        return end

    def __repr__(self) -> str:
        inner = f"({self.inner!r})" if isinstance(self.inner, UnionTrigger) else repr(self.inner)
        tz = "" if self.day_tz == (self.inner.tz or "UTC") else f", tz={self.day_tz!r}"
        return f"{inner}.excluding({', '.join(map(repr, self.dates))}{tz})"


def union_of(one: Trigger, other: Trigger) -> Trigger:
    """Return the union of two triggers; unions are taken apart, and what is there twice counts once.

    Raises:
        InvalidTrigger: one of them waits for the finish of runs, or there are too many.
    """
    parts = (*_parts_of(one), *_parts_of(other))
    for part in parts:
        _refuse_after_finish(part, "union")
    return _union(parts)


def _union(parts: tuple[Trigger, ...]) -> Trigger:
    different = tuple(dict.fromkeys(parts))
    if len(different) > MAX_PARTS:
        raise InvalidTrigger(
            f"a union has at most {MAX_PARTS} triggers: use several schedules",
            field="parts",
            text=str(len(different)),
            allowed=f"at most {MAX_PARTS}",
        )
    return different[0] if len(different) == 1 else UnionTrigger(parts=different)


def exclusion_of(inner: Trigger, dates: Iterable[date], tz: str | None) -> ExclusionTrigger:
    """Return a trigger without what falls on these dates.

    Raises:
        InvalidTrigger: it waits for the finish of runs; no dates, something else, or too many; an unknown
        zone.
    """
    _refuse_after_finish(inner, "exclusion")
    days = tuple(dates)
    for day in days:
        if isinstance(day, datetime) or not isinstance(day, date):
            raise InvalidTrigger(
                f"excluding() takes dates, not {shown(day)}: of a datetime, pass its .date()",
                field="dates",
                text=shown(day),
                allowed="datetime.date",
            )
    if not 0 < len(days) <= MAX_DATES:
        raise InvalidTrigger(
            f"excluding() takes 1 to {MAX_DATES:,} dates, and was given {len(days):,}",
            field="dates",
            text=str(len(days)),
            allowed=f"1 to {MAX_DATES:,} dates",
        )
    name = zone_of((inner.tz or "UTC") if tz is None else tz).name
    return ExclusionTrigger(inner=inner, dates=tuple(sorted(set(days))), day_tz=name)


def _parts_of(trigger: Trigger) -> tuple[Trigger, ...]:
    return trigger.parts if isinstance(trigger, UnionTrigger) else (trigger,)


def _refuse_after_finish(trigger: Trigger, what: str) -> None:
    if trigger.delay_after_finish_us is not None:
        raise InvalidTrigger(
            f"a delay after the finish of a run cannot be part of a {what}: give it a schedule of its own, "
            "or use after='start'",
            field="after",
            text=shown(trigger),
            allowed="after='start'",
        )


def _run_ends(dates: tuple[date, ...]) -> dict[date, date]:
    """For each excluded date the last one of the run of days that it is in."""
    ends: dict[date, date] = {}
    for day in reversed(dates):
        ends[day] = ends.get(day + _DAY, day) if day < date.max else day
    return ends
