"""A cron expression in English, and what may surprise about it.

The sentence is cronsim's; `nW`, which cronsim does not know, goes through it in the shape of `LW`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache

from cronsim import CronSim

from betimes.core.job import Micros
from betimes.core.triggers.change_hints import hints_on_changes
from betimes.core.triggers.cron_fields import DAY, FIELDS, MONTH, Expression, Field
from betimes.core.triggers.cron_search import WallSearch
from betimes.core.triggers.reckoned import FIRST_US
from betimes.core.triggers.zones import Zone, zone_in_words
from betimes.core.wording import listed

_ANY_START = datetime(2000, 1, 1)  # noqa: DTZ001 - cronsim explains the expression only
_LONGEST_MONTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_TH = re.compile(r"\b([0-9]+)th\b")
_LEAP_DAY = 29
_FEBRUARY = 2


@lru_cache(maxsize=1024)  # Many schedules share few expressions, and whoever lists them asks for each.
def cron_sentence(expression: Expression, tz: str, *, seconds: bool) -> str:
    """Return what the expression means, in one sentence."""
    second, minute, hour, day, month, weekday = expression.parts
    if expression.nearest:
        others = [item for item in day.split(",") if item not in {"", "lw"}]
        day = ",".join([*others, "lw"])
    fields = [*([second] if seconds else []), minute, hour, day, month, weekday]
    text = CronSim(" ".join(fields).upper(), _ANY_START).explain()
    if expression.nearest:
        text = text.replace("the last weekday", _nearest_in_words(expression))
    return f"{_TH.sub(_ordinal, text)}, {zone_in_words(tz)}."


def cron_hints(
    expression: Expression, search: WallSearch, zone: Zone, *, seconds: bool, after: Micros = FIRST_US
) -> tuple[str, ...]:
    """Return what may surprise about the expression in this zone after an instant, a sentence each."""
    return (
        *(["of the six fields, the first is seconds."] if seconds else []),
        *_hints_on_stars(expression, seconds=seconds),
        *_hints_on_steps(expression),
        *_hints_on_days(expression),
        *_hints_on_clock(expression, search, zone, after),
    )


def _ordinal(match: re.Match[str]) -> str:
    """21th is 21st; cronsim has a word for each number up to nine, and `th` for all others."""
    number = int(match[1])
    ending = "th" if number // 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _nearest_in_words(expression: Expression) -> str:
    days = listed([f"day {day}" for day in sorted(expression.nearest)], most=31)
    last = "the last weekday and " if "lw" in expression.parts[3].split(",") else ""
    return f"{last}the weekday nearest to {days}"


def _hints_on_stars(expression: Expression, *, seconds: bool) -> Iterator[str]:
    """`* 9 * * *` is often meant as `0 9 * * *`."""
    second, minute, hour, *_ = expression.parts
    if minute == "*" and hour != "*":
        yield "* in the minute field is every minute of those hours; write 0 to fire once an hour."
    if seconds and second == "*" and minute != "*":
        yield "* in the second field is every second of those minutes; write 0 to fire once a minute."


def _hints_on_steps(expression: Expression) -> Iterator[str]:
    """Steps that do not divide their field are shorter where the field starts again."""
    for field, part in zip(FIELDS, expression.parts, strict=True):
        for item in part.split(","):
            step = int(item.removeprefix("*/")) if item.startswith("*/") else 1
            if field is DAY and step > 1:
                yield f"{item} in the day-of-month field starts again at day 1 of each month."
            elif _size(field) % step:
                yield (
                    f"{item} in the {field.name} field is {_steps_in_words(field, step)}, "
                    f"and then from {field.low} again: the last step is shorter."
                )


def _steps_in_words(field: Field, step: int) -> str:
    return listed([str(value) for value in range(field.low, field.low + _size(field), step)], most=8)


def _size(field: Field) -> int:
    """How many values the field has; the two Sundays are one."""
    return min(field.high, 6) - field.low + 1 if field is FIELDS[-1] else field.high - field.low + 1


def _hints_on_days(expression: Expression) -> Iterator[str]:
    _, _, _, day, month, weekday = expression.parts
    is_any_day = day == "*" and not expression.nearest
    if not is_any_day and weekday != "*":
        both = day.startswith("*") or weekday.startswith("*")
        yield (
            "a day must match both day-of-month and day-of-week, since one of them begins with *."
            if both
            else "a day matches by its day-of-month or by its day-of-week; either is enough."
        )
    months = _values(MONTH, month)
    asked = _values(DAY, day) | expression.nearest
    lacking = [each for each in sorted(asked) if any(_LONGEST_MONTHS[of - 1] < each for of in months)]
    if lacking and not day.startswith("*"):
        days = listed([str(each) for each in lacking])
        yield f"months without a day {days} are left out; L is the last day."
    if _LEAP_DAY in asked and _FEBRUARY in months and not day.startswith("*"):
        yield "29 February comes in leap years only."


def _values(field: Field, part: str) -> frozenset[int]:
    """The plain numbers that a checked part of an expression means."""
    values: set[int] = set()
    for item in part.split(","):
        span, _, step = item.partition("/")
        first, _, last = span.partition("-")
        if span == "*":
            values.update(range(field.low, field.high + 1, int(step or 1)))
        elif first.isdecimal():
            values.update(range(int(first), int(last or first) + 1, int(step or 1)))
    return frozenset(values)


def _hints_on_clock(expression: Expression, search: WallSearch, zone: Zone, after: Micros) -> Iterator[str]:
    """Times that are skipped or occur twice; an expression that simply follows the clock surprises nobody."""
    if not expression.parts[2].startswith("*"):
        yield from hints_on_changes(search.later, zone, follows_clock=expression.follows_clock, after=after)
