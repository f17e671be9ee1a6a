"""Stored definitions of triggers, read back strictly: what is not understood whole is refused, not guessed.

The form is plain JSON, tagged by `kind`. It is small and has no version: a newer release may add a kind or
a field, and an older one then says so instead of leaving it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from betimes.core.durations import MAX_DURATION_US, from_us
from betimes.core.job import Micros
from betimes.core.triggers.calendar_trigger import calendar
from betimes.core.triggers.combine import MAX_DATES, MAX_PARTS, exclusion_of, union_of
from betimes.core.triggers.cron_trigger import cron
from betimes.core.triggers.interval import MIN_PERIOD_US, IntervalTrigger
from betimes.core.triggers.once import MAX_INSTANTS, at
from betimes.core.triggers.trigger import Trigger
from betimes.core.wording import shown
from betimes.errors import ConfigurationError, InvalidTrigger


class _Stored(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """A definition; its tag is its kind."""


class _Cron(_Stored, frozen=True, tag="cron"):
    expr: str
    tz: str
    seconds: bool = False

    def trigger(self) -> Trigger:
        return cron(self.expr, tz=self.tz, seconds=self.seconds)


class _Every(_Stored, frozen=True, tag="every"):
    period_us: Annotated[Micros, msgspec.Meta(ge=MIN_PERIOD_US, le=MAX_DURATION_US)]
    align_us: Micros | None = None
    anchor_us: Micros | None = None
    after: Literal["start", "finish"] = "start"

    def trigger(self) -> Trigger:
        given = [at for at in (self.align_us, self.anchor_us) if at is not None]
        if len(given) > (self.after == "start"):
            raise _refused("every", "has more than one of align_us, anchor_us and after='finish'")
        return IntervalTrigger(
            period_us=self.period_us,
            origin=given[0] if given else None,
            is_aligned=self.align_us is not None,
            is_after_finish=self.after == "finish",
        )


class _Calendar(_Stored, frozen=True, tag="calendar"):
    at: str
    tz: str
    days: int = 0
    weeks: int = 0
    months: int = 0
    years: int = 0
    anchor: date | None = None

    def trigger(self) -> Trigger:
        return calendar(
            days=self.days,
            weeks=self.weeks,
            months=self.months,
            years=self.years,
            at=self.at,
            tz=self.tz,
            anchor=self.anchor,
        )


class _At(_Stored, frozen=True, tag="at"):
    at_us: Annotated[list[Micros], msgspec.Meta(min_length=1, max_length=MAX_INSTANTS)]

    def trigger(self) -> Trigger:
        try:
            return at(*(from_us(each) for each in self.at_us))
        except ConfigurationError as error:
            raise _refused("at", f"is wrong: {error}") from None


class _Union(_Stored, frozen=True, tag="union"):
    parts: Annotated[list[_Definition], msgspec.Meta(min_length=2, max_length=MAX_PARTS)]

    def trigger(self) -> Trigger:
        first, *rest = (part.trigger() for part in self.parts)
        for part in rest:
            first = union_of(first, part)
        return first


class _Exclusion(_Stored, frozen=True, tag="exclusion"):
    of: _Definition
    dates: Annotated[list[date], msgspec.Meta(min_length=1, max_length=MAX_DATES)]
    tz: str

    def trigger(self) -> Trigger:
        return exclusion_of(self.of.trigger(), self.dates, self.tz)


_Definition: TypeAlias = _Cron | _Every | _Calendar | _At | _Union | _Exclusion
_decode = msgspec.json.Decoder(_Definition).decode

REMEMBERED_BYTES = 512
"""A definition that is longer is read anew each time: what is remembered must stay small."""


def trigger_from_stored(definition: Mapping[str, Any]) -> Trigger:
    """Return the trigger of a stored definition: `Trigger.stored` backwards.

    Args:
        definition: plain JSON data, such as `{"kind": "cron", "expr": "0 9 * * *", "tz": "UTC"}`.

    Raises:
        InvalidTrigger: it is broken, or something in it is not known here: a kind, a field, a zone.

    Example:
        >>> trigger_from_stored({"kind": "every", "period_us": 60_000_000})
        every('1m')
    """
    try:
        text = msgspec.json.encode(dict(definition))
        return _read(text) if len(text) <= REMEMBERED_BYTES else _decode(text).trigger()
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        if isinstance(error, InvalidTrigger):
            raise
        raise _refused(shown(definition), f"cannot be read: {error}") from None
    except RecursionError:
        raise _refused(shown(definition), "is nested too deep") from None


@lru_cache(maxsize=1024)  # Triggers are values, and many schedules share few of them.
def _read(text: bytes) -> Trigger:
    return _decode(text).trigger()


def _refused(which: str, what: str) -> InvalidTrigger:
    return InvalidTrigger(
        f"the stored trigger {which} {what}; add the schedule again, or use the release that wrote it",
        field="definition",
        text=which,
        allowed="a definition as Trigger.stored() returns it",
    )
