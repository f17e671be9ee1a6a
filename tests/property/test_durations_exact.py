"""Durations and instants keep every microsecond."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from betimes.core.durations import MAX_DURATION_US, duration_s, duration_us, from_us, instant_us
from betimes.errors import ConfigurationError

UNITS = {
    "w": 604_800_000_000,
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
    "us": 1,
}

FIRST = instant_us(datetime.min.replace(tzinfo=UTC), name="first")
LAST = instant_us(datetime.max.replace(tzinfo=UTC), name="last")


@given(st.integers(0, MAX_DURATION_US))
@example(MAX_DURATION_US)
def test_a_timedelta_is_exact(us: int) -> None:
    assert duration_us(timedelta(microseconds=us), name="d", allow_zero=True) == us
    assert duration_s(timedelta(microseconds=us), name="d", allow_zero=True) == us / 1_000_000


@given(
    st.dictionaries(st.sampled_from(list(UNITS)), st.integers(0, 999), min_size=1), st.sampled_from(["", " "])
)
def test_text_is_the_sum_of_its_parts(amounts: dict[str, int], blank: str) -> None:
    parts = {unit: amounts[unit] for unit in UNITS if unit in amounts}
    text = blank.join(f"{amount}{blank}{unit}" for unit, amount in parts.items())
    assert duration_us(text, name="d", allow_zero=True) == sum(n * UNITS[unit] for unit, n in parts.items())


@given(st.floats(0, MAX_DURATION_US / 1_000_000))
@example(0.0000005)
@example(5e-324)
def test_seconds_are_rounded_to_the_nearest_microsecond_and_never_to_nothing(seconds: float) -> None:
    us = duration_us(seconds, name="d", allow_zero=True)
    assert abs(us - Fraction(seconds) * 1_000_000) <= Fraction(1, 2) or us == 1
    assert (us == 0) == (seconds == 0)
    assert duration_s(seconds, name="d", allow_zero=True) == seconds


@given(st.text(max_size=12) | st.text("0123456789.wdhmsu ", max_size=12))
def test_any_other_text_is_refused_and_nothing_else_is_raised(text: str) -> None:
    with suppress(ConfigurationError):
        assert duration_us(text, name="d", allow_zero=True) >= 0
        assert any(unit in text for unit in UNITS)


@given(st.integers(FIRST, LAST))
@example(FIRST)
@example(LAST)
@example(-1)
def test_an_instant_comes_back_to_the_microsecond(us: int) -> None:
    assert instant_us(from_us(us), name="run_at") == us


@given(st.datetimes(timezones=st.timezones()), st.integers(0, 1))
def test_an_instant_is_its_local_time_less_its_offset(local: datetime, fold: int) -> None:
    moment = local.replace(fold=fold)
    offset = moment.utcoffset()
    assert offset is not None
    naive = moment.replace(tzinfo=UTC)
    assert instant_us(moment, name="run_at") == instant_us(naive, name="run_at") - offset // timedelta(
        microseconds=1
    )


@given(st.fractions(0, 1_000, max_denominator=1_000).filter(lambda one: 1_000 % one.denominator == 0))
def test_text_is_rounded_to_even(us: Fraction) -> None:
    text = f"{us.numerator * (1_000 // us.denominator) / 1_000:.3f}us"
    assert duration_us(text, name="d", allow_zero=True) == (round(us) or (us > 0))
