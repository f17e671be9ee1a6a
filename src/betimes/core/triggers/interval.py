"""`every`: a fixed rate on a grid that never drifts, or a fixed delay after the end of each run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from betimes.core.durations import Duration, duration_us, from_us, instant_us
from betimes.core.job import Micros
from betimes.core.triggers.reckoned import LAST_US, ReckonedTrigger, within
from betimes.core.wording import shown
from betimes.errors import ConfigurationError, InvalidTrigger

MIN_PERIOD_US = 1000
"""The shortest period: one millisecond."""

_UNITS_US = (
    ("day", "d", 86_400_000_000),
    ("hour", "h", 3_600_000_000),
    ("minute", "m", 60_000_000),
    ("second", "s", 1_000_000),
    ("millisecond", "ms", 1000),
    ("microsecond", "us", 1),
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IntervalTrigger(ReckonedTrigger):
    """Fires once per period; made by `every`.

    Without an origin its grid is not fixed yet, and it answers `after` + period.

    Attributes:
        period_us: the period.
        origin: an instant that its grid goes through; None: not fixed yet.
        is_aligned: the user fixed the grid: it has no beginning. Otherwise the origin is its first instant.
        is_after_finish: the period is counted from the end of each run, and there is no grid.
    """

    period_us: Micros
    origin: Micros | None = None
    is_aligned: bool = False
    is_after_finish: bool = False

    def next_us(self, after: Micros) -> Micros | None:
        """Return the first instant strictly later than `after`, both in microseconds since the epoch."""
        if self.origin is None:
            return within(after + self.period_us)
        steps = (after - self.origin) // self.period_us + 1
        if steps < 0 and not self.is_aligned:
            steps = 0
        return within(self.origin + steps * self.period_us)

    def count(self, after: Micros, until: Micros) -> int | None:
        """Return how many instants lie in (after, until]; None after a finish, since runs decide."""
        if self.is_after_finish:
            return None
        first = self.next_us(after)
        until = min(until, LAST_US)
        return 0 if first is None or first > until else (until - first) // self.period_us + 1

    def anchored(self, at: Micros) -> IntervalTrigger:
        """Return this trigger with the grid at + k × period, k ≥ 0, unless it is fixed or there is none."""
        if self.origin is not None or self.is_after_finish:
            return self
        return replace(self, origin=at)

    @property
    def delay_after_finish_us(self) -> Micros | None:
        """The delay after the end of a run; None: runs do not matter."""
        return self.period_us if self.is_after_finish else None

    def sentence(self) -> str:
        """Return the rule in one line."""
        period = _in_words(self.period_us)
        if self.is_after_finish:
            return f"{period[0].upper()}{period[1:]} after each run has ended."
        if self.origin is None:
            return f"Every {_without_one(period)}."
        through = from_us(self.origin).isoformat().replace("+00:00", "Z")
        return f"Every {_without_one(period)}, on the grid through {through}."

    def stored(self) -> dict[str, Any]:
        """Return the definition as plain JSON data."""
        definition: dict[str, Any] = {"kind": "every", "period_us": self.period_us}
        if self.is_after_finish:
            return {**definition, "after": "finish"}
        if self.origin is None:
            return definition
        return {**definition, "align_us" if self.is_aligned else "anchor_us": self.origin}

    def __repr__(self) -> str:
        period = repr(_as_text(self.period_us))
        if self.is_after_finish:
            return f"every({period}, after='finish')"
        if self.origin is None:
            return f"every({period})"
        if self.is_aligned:
            return f"every({period}, align={True if self.origin == 0 else from_us(self.origin)!r})"
        return f"every({period}).anchored({self.origin})"


def every(period: Duration, *, align: datetime | bool | None = None, after: str = "start") -> IntervalTrigger:
    """Return a trigger that fires once per period, on a grid that never drifts.

    The grid begins where the schedule is added, unless `align` fixes it.

    Args:
        period: seconds, a `timedelta`, or text such as `"5m"`; at least one millisecond.
        align: an aware datetime that the grid goes through, or True for 1970-01-01T00:00Z: with it, every 15
            minutes is on the quarter hours of UTC.
        after: `"start"`: a fixed rate; `"finish"`: the period is the delay between the end of a run and the
            next.

    Raises:
        InvalidTrigger: no duration, or too short; a naive datetime; `align` together with `after="finish"`.

    Example:
        >>> from datetime import UTC
        >>> every("15m", align=True).next(datetime(2025, 1, 1, 12, 20, tzinfo=UTC)).isoformat()
        '2025-01-01T12:30:00+00:00'
    """
    if not isinstance(after, str) or after not in {"start", "finish"}:
        raise InvalidTrigger(
            f"after must be 'start' or 'finish', not {shown(after)}",
            field="after",
            text=shown(after),
            allowed="'start' or 'finish'",
        )
    origin = _origin_of(align)
    if after == "finish" and origin is not None:
        raise InvalidTrigger(
            "a delay after the finish of a run has no grid: leave align out, or use after='start'",
            field="align",
            text=shown(align),
            allowed="None with after='finish'",
        )
    return IntervalTrigger(
        period_us=_period_of(period),
        origin=origin,
        is_aligned=origin is not None,
        is_after_finish=after == "finish",
    )


def _period_of(period: object) -> Micros:
    allowed = "at least 1 ms, at most 100 years"
    try:
        period_us = duration_us(period, name="period")
    except ConfigurationError as error:
        raise InvalidTrigger(str(error), field="period", text=shown(period), allowed=allowed) from None
    if period_us < MIN_PERIOD_US:
        raise InvalidTrigger(
            f"period must be {allowed}, and is {shown(period)}",
            field="period",
            text=shown(period),
            allowed=allowed,
        )
    return period_us


def _origin_of(align: datetime | bool | None) -> Micros | None:
    if align is None or align is False:
        return None
    if align is True:
        return 0
    try:
        return instant_us(align, name="align")
    except ConfigurationError as error:
        raise InvalidTrigger(
            str(error), field="align", text=shown(align), allowed="an aware datetime, True or None"
        ) from None


def _parts(us: Micros) -> list[tuple[int, str, str]]:
    parts = []
    for name, unit, size in _UNITS_US:
        amount, us = divmod(us, size)
        if amount:
            parts.append((amount, name, unit))
    return parts


def _as_text(us: Micros) -> str:
    """A duration as `every` takes it, to the microsecond."""
    return "".join(f"{amount}{unit}" for amount, _, unit in _parts(us))


def _in_words(us: Micros) -> str:
    return " ".join(f"{amount} {name}{'s' * (amount > 1)}" for amount, name, _ in _parts(us))


def _without_one(period: str) -> str:
    """`every 1 hour` is `every hour`."""
    return period.removeprefix("1 ") if period.count(" ") == 1 else period
