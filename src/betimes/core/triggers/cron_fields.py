"""The grammar of cron expressions: five fields (six with seconds), checked here, each error by its field.

What is accepted: `*`, `a`, `a-b`, each with a step as `*/n` or `a-b/n`, and lists of them; names of months
and weekdays in any case; 0 and 7 are Sunday; `L` (the last day), `LW` (the last weekday, Monday to Friday),
`nW` (the weekday nearest to day n, within its month), `d#n` (the n-th of a weekday) and `dL` (the last of a
weekday); the aliases. What other programs take in two ways is refused with the unambiguous text to write
instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from betimes.core.wording import shown
from betimes.errors import InvalidTrigger

MAX_TEXT = 256
"""How long an expression may be."""

ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

_PRINTABLE = re.compile(r"[ -~\t]*")
_DIGITS = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """What may stand in one field.

    Attributes:
        name: as messages and errors call it.
        low, high: the smallest and the largest number.
        names: what may be written instead of numbers, from `low` on.
        forms: what else the field takes, in words.
    """

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    forms: str = ""

    @property
    def allowed(self) -> str:
        """What may stand here, in words."""
        names = f", {self.names[0]}-{self.names[-1]}" if self.names else ""
        return f"{self.low}-{self.high}{names}{self.forms}"


SECOND = Field(name="second", low=0, high=59)
MINUTE = Field(name="minute", low=0, high=59)
HOUR = Field(name="hour", low=0, high=23)
DAY = Field(name="day-of-month", low=1, high=31, forms=", L, LW, 1W-31W")
MONTH = Field(name="month", low=1, high=12, names=MONTH_NAMES)
WEEKDAY = Field(name="day-of-week", low=0, high=7, names=DAY_NAMES, forms=", 1#1-7#5, 0L-7L")

FIELDS = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A cron expression that has been read and found right.

    Attributes:
        text: as the user wrote it, single blanks between the fields.
        parts: its six fields in lower case, aliases and names replaced, `nW` taken out.
        seconds, minutes, hours: the values that match, in order.
        nearest: the days of `nW`.
        follows_clock: minute or hour begins with `*`, so it simply follows the clock.
    """

    text: str
    parts: tuple[str, str, str, str, str, str]
    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    nearest: frozenset[int]
    follows_clock: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """One item of a list: how cronsim writes it (None: it does not), and the plain numbers it means."""

    text: str | None
    values: tuple[int, ...] = ()
    nearest: int | None = None


def read_expression(expr: str, *, seconds: bool) -> Expression:
    """Return the expression, checked field by field.

    Args:
        expr: the text.
        seconds: whether it has six fields, seconds first.

    Raises:
        InvalidTrigger: with the field, the text in it that is wrong, and what is allowed there.
    """
    texts = _split(expr, seconds=seconds)
    fields = [_read_list(field, text) for field, text in zip(FIELDS, texts, strict=True)]
    second, minute, hour, day, month, weekday = (
        ",".join(item.text for item in items if item.text) for items in fields
    )
    return Expression(
        text=" ".join(expr.split()),
        parts=(second, minute, hour, day, month, weekday),
        seconds=_numbers(fields[0]),
        minutes=_numbers(fields[1]),
        hours=_numbers(fields[2]),
        nearest=frozenset(item.nearest for item in fields[3] if item.nearest is not None),
        follows_clock=minute.startswith("*") or hour.startswith("*"),
    )


def _numbers(items: list[_Item]) -> tuple[int, ...]:
    return tuple(sorted({value for item in items for value in item.values}))


def _split(expr: str, *, seconds: bool) -> list[str]:
    """The texts of the six fields, in lower case."""
    if not isinstance(expr, str):
        raise _wrong(expr, "must be text")
    if len(expr) > MAX_TEXT:
        raise _wrong(expr, f"is longer than {MAX_TEXT} characters")
    if strange := _PRINTABLE.sub("", expr, count=1):
        raise _wrong(expr, f"has {shown(strange[0])}, which no field takes: write one line of ASCII")
    text = expr.strip(" \t").lower()
    if text.startswith("@"):
        return ["0", *_alias(text).split()]
    fields = text.split()
    if len(fields) != 5 + seconds:
        raise _wrong_count(expr, len(fields), seconds=seconds)
    return fields if seconds else ["0", *fields]


def _alias(text: str) -> str:
    if text in ALIASES:
        return ALIASES[text]
    raise InvalidTrigger(
        f"{text} is no alias of a cron expression: write one of {', '.join(ALIASES)}, or the five fields",
        field="expr",
        text=text,
        allowed=", ".join(ALIASES),
    )


def _wrong(expr: object, what: str) -> InvalidTrigger:
    return InvalidTrigger(
        f"a cron expression such as '0 9 * * mon-fri' was expected, and {shown(expr)} {what}",
        field="expr",
        text=expr if isinstance(expr, str) else shown(expr),
        allowed="five fields: minute hour day-of-month month day-of-week",
    )


def _wrong_count(expr: str, found: int, *, seconds: bool) -> InvalidTrigger:
    names = [field.name for field in FIELDS[not seconds :]]
    form = f"{len(names)} fields ({' '.join(names)})"
    text = f"a cron expression has {form}, and {shown(expr)} has {found}"
    if found == len(FIELDS):
        text += (
            ": if its first field is meant to be seconds, say so with seconds=True, else leave one field out"
        )
    elif seconds and found:
        text += ": with seconds=True, seconds stand first"
    return InvalidTrigger(text, field="expr", text=expr, allowed=form)


def _read_list(field: Field, text: str) -> list[_Item]:
    items = text.split(",")
    if "" in items:
        _refuse(field, text, "there is a comma too many")
    return [_read_item(field, item) for item in items]


def _read_item(field: Field, item: str) -> _Item:
    return _special(field, item) or _plain(field, item)


def _special(field: Field, item: str) -> _Item | None:
    """`L`, `LW`, `nW`, `d#n`, `dL`; None for anything else."""
    if field is DAY and item in {"l", "lw"}:
        return _Item(text=item)
    if field is DAY and item.endswith("w"):
        return _Item(text=None, nearest=_number(field, item[:-1], item))
    if field is WEEKDAY and "#" in item:
        day, _, nth = item.partition("#")
        if nth not in {"1", "2", "3", "4", "5"}:
            _refuse(field, item, "after # stands which one of the month it is, 1-5")
        return _Item(text=f"{_number(field, day, item)}#{nth}")
    if field is WEEKDAY and item.endswith("l") and item != "l":
        return _Item(text=f"{_number(field, item[:-1], item)}l")
    return None


def _plain(field: Field, item: str) -> _Item:
    """`*`, `a`, `a-b`, and steps of them."""
    span, slash, step_text = item.partition("/")
    if span == "*":
        first, last, text = field.low, field.high, "*"
    elif "-" in span:
        first, last = (_number(field, end, item) for end in span.split("-", 1))
        text = f"{first}-{last}"
    else:
        first = last = _number(field, span, item)
        text = str(first)
        if slash:
            highest = 6 if field is WEEKDAY else field.high
            _refuse(
                field, item, f"write {first}-{highest}/{step_text} if the steps go on to the end of the field"
            )
    if last < first:
        _refuse(field, item, f"a range cannot wrap around; write {_unwrapped(field, first, last, step_text)}")
    step = _step(field, item, step_text, last - first) if slash else 1
    values = tuple(range(first, last + 1, step))
    if first == last:
        return _Item(text=str(first), values=values)
    return _Item(text=f"{text}/{step}" if step > 1 else text, values=values)


def _number(field: Field, text: str, item: str) -> int:
    if text in field.names:
        return field.low + field.names.index(text)
    if text == "":
        _refuse(field, item, f"a number is missing; write {field.allowed}")
    if not _DIGITS.fullmatch(text):
        _refuse(field, item, _advice(field, text))
    value = int(text)
    if not field.low <= value <= field.high:
        _refuse(field, item, f"{value} is not in {field.low}-{field.high}")
    return value


def _advice(field: Field, text: str) -> str:
    if text == "?":
        return "write * instead of ?"
    if field is DAY and text == "l":
        return "L and LW stand alone; counting back from the last day is not supported"
    if field is WEEKDAY and text == "l":
        return "write sat for Saturdays, or satL for the last Saturday of the month"
    if field.names:
        return (
            f"{shown(text)} is neither a number {field.low}-{field.high} nor one of {', '.join(field.names)}"
        )
    return f"{shown(text)} is no number {field.low}-{field.high}"


def _step(field: Field, item: str, text: str, width: int) -> int:
    step = int(text) if _DIGITS.fullmatch(text) else 0
    if step < 1:
        _refuse(field, item, "after / stands a whole number from 1 on")
    if step > width:
        _refuse(
            field, item, f"the step {step} is larger than what it steps through; write the one value it means"
        )
    return step


def _unwrapped(field: Field, first: int, last: int, step_text: str) -> str:
    """The same range in two pieces, as in `22,23,0-5`; with a step, its values one by one."""
    size = 7 if field is WEEKDAY else field.high - field.low + 1
    step = int(step_text) if _DIGITS.fullmatch(step_text) and int(step_text) else 1
    values = [field.low + (value - field.low) % size for value in range(first, last + size + 1, step)]
    if step > 1:
        return ",".join(_named(field, value) for value in values)
    turn = values.index(field.low)
    return ",".join(_short(field, piece) for piece in (values[:turn], values[turn:]) if piece)


def _short(field: Field, values: list[int]) -> str:
    if len(values) > 2:  # noqa: PLR2004 - of three on, a range is shorter
        return f"{_named(field, values[0])}-{_named(field, values[-1])}"
    return ",".join(_named(field, value) for value in values)


def _named(field: Field, value: int) -> str:
    return field.names[value - field.low] if field.names else str(value)


def _refuse(field: Field, item: str, advice: str) -> NoReturn:
    raise InvalidTrigger(
        f"the {field.name} field ({field.low}-{field.high}) of a cron expression cannot be {shown(item)}: "
        f"{advice}",
        field=field.name,
        text=item,
        allowed=field.allowed,
    )
