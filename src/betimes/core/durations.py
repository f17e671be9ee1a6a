"""Durations and instants as people write them, turned into numbers without losing a microsecond.

Text is one or more amounts, each with its unit, the largest unit first and each unit once: `1h30m`, `250ms`,
`1.5h`, `2d`, `1w`. Blanks between them are fine. A bare `"90"` is refused, since it does not say of what.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from betimes.core.job import EPOCH, Micros
from betimes.core.wording import shown
from betimes.errors import ConfigurationError

Duration: TypeAlias = float | timedelta | str
"""What is accepted wherever a duration is asked for: seconds, a `timedelta`, or text such as `"1h30m"`."""

_UNITS_US = {
    "w": 604_800_000_000,
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
    "us": 1,
}
_SECOND_US = 1_000_000
_PART = r"[0-9]{1,18}(?:\.[0-9]{1,18})?"
_TEXT = re.compile("".join(f"(?:({_PART}) *{unit} *)?" for unit in _UNITS_US))
_MAX_TEXT = 100  # Longer text is no duration, and its digits need not be read.

MAX_DURATION_US = 36_525 * _UNITS_US["d"]  # 100 years of 365.25 days
MAX_DURATION_S = float(MAX_DURATION_US // _SECOND_US)

_FORMS = 'seconds, a timedelta, or text such as "250ms", "90s", "1h30m" or "2d"'


def duration_us(value: object, *, name: str, allow_zero: bool = False) -> Micros:
    """Return a duration in whole microseconds, or refuse it by its argument's name.

    A `timedelta` is exact. Seconds and text are rounded to the nearest microsecond (halves to even), and what
    is positive stays positive: at least one microsecond.

    Args:
        value: seconds (`int` or `float`), a `timedelta`, or text.
        name: the argument it was given as; it begins the message.
        allow_zero: whether 0 is a fine answer.

    Raises:
        ConfigurationError: another type or form, NaN, negative, zero where that is no duration, or more than
            100 years.

    Example:
        >>> duration_us("1h30m", name="delay")
        5400000000
    """
    if type(value) is int and 0 < value <= MAX_DURATION_US // _SECOND_US:
        return value * _SECOND_US
    exact = _exact_us(value, name)
    _check_range(exact, value, name, allow_zero=allow_zero)
    return _rounded(*exact) or int(exact[0] > 0)


def duration_s(value: object, *, name: str, allow_zero: bool = False) -> float:
    """Return a duration in seconds, or refuse it by its argument's name.

    Numbers are taken as they are; a `timedelta` and text come out as the nearest float.

    Args:
        value: seconds (`int` or `float`), a `timedelta`, or text.
        name: the argument it was given as; it begins the message.
        allow_zero: whether 0 is a fine answer.

    Raises:
        ConfigurationError: as for `duration_us`.

    Example:
        >>> duration_s("250ms", name="timeout")
        0.25
    """
    if type(value) is float and 0 < value <= MAX_DURATION_S:
        return value
    exact = _exact_us(value, name)
    _check_range(exact, value, name, allow_zero=allow_zero)
    return exact[0] / (exact[1] * _SECOND_US)


def instant_us(value: object, *, name: str) -> Micros:
    """Return an aware datetime as microseconds since the epoch, or refuse it by its argument's name.

    Exact integer arithmetic; `fold` and the zone's rules decide which instant a local time means.

    Raises:
        ConfigurationError: not a datetime, or a naive one.

    Example:
        >>> from datetime import UTC
        >>> instant_us(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), name="run_at")
        1000000
    """
    if not isinstance(value, datetime):
        raise ConfigurationError(f"{name} must be an aware datetime, not {shown(value)}")
    if value.utcoffset() is None:
        raise ConfigurationError(
            f"{name} must be an aware datetime, and {value.isoformat()} has no time zone: "
            "add one, such as tzinfo=datetime.UTC"
        )
    since = value - EPOCH
    return (since.days * 86_400 + since.seconds) * _SECOND_US + since.microseconds


def from_us(us: Micros) -> datetime:
    """Return the aware UTC datetime of an instant in microseconds since the epoch: `instant_us` backwards.

    Raises:
        ConfigurationError: the instant lies outside the years 1…9999.

    Example:
        >>> from_us(1_000_000).isoformat()
        '1970-01-01T00:00:01+00:00'
    """
    try:
        return EPOCH + timedelta(microseconds=us)
    except OverflowError:
        raise ConfigurationError(f"{us} µs since 1970 lies outside the years 1…9999") from None


def _exact_us(value: object, name: str) -> tuple[int, int]:
    """The exact amount in microseconds as numerator and denominator, its sign and size not yet judged."""
    if isinstance(value, timedelta):
        return (value.days * 86_400 + value.seconds) * _SECOND_US + value.microseconds, 1
    if isinstance(value, str):
        return _text_us(value, name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigurationError(f"{name} must be {_FORMS}; not {shown(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigurationError(
            f"{name} must be finite, not {value}; where it can be switched off, None does so"
        )
    numerator, denominator = value.as_integer_ratio()
    return numerator * _SECOND_US, denominator


def _text_us(text: str, name: str) -> tuple[int, int]:
    exact = _parsed(text) if len(text) <= _MAX_TEXT else None
    if exact is None:
        raise ConfigurationError(
            f"{name}={shown(text)} is no duration: write {_FORMS}; "
            f"the units are {', '.join(_UNITS_US)}, the largest first, each once"
        )
    return exact


@lru_cache(maxsize=256)  # Programs write few durations, and write them at every submit.
def _parsed(text: str) -> tuple[int, int] | None:
    match = _TEXT.fullmatch(text.strip())
    if match is None or match.lastindex is None:
        return None
    amounts = zip(match.groups(), _UNITS_US.values(), strict=True)
    return sum(
        (Fraction(amount) * unit for amount, unit in amounts if amount), Fraction(0)
    ).as_integer_ratio()


def _check_range(exact: tuple[int, int], value: object, name: str, *, allow_zero: bool) -> None:
    numerator, denominator = exact
    if numerator < 0:
        raise ConfigurationError(f"{name} must not be negative, and is {shown(value)}")
    if numerator == 0 and not allow_zero:
        raise ConfigurationError(f"{name} must be more than zero, and is {shown(value)}")
    if numerator > MAX_DURATION_US * denominator:
        raise ConfigurationError(f"{name} must be at most 100 years, and is {shown(value)}")


def _rounded(numerator: int, denominator: int) -> int:
    """The nearest whole number, halves to even."""
    whole, rest = divmod(numerator, denominator)
    return whole + (2 * rest + (whole & 1) > denominator)
