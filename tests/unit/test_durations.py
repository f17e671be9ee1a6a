"""Durations and instants: every form that is accepted, and every one that is not, by the argument's name."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from betimes.core.durations import (
    MAX_DURATION_S,
    MAX_DURATION_US,
    duration_s,
    duration_us,
    from_us,
    instant_us,
)
from betimes.errors import ConfigurationError

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, SECOND),
        (90, 90 * SECOND),
        (0.25, 250_000),
        (1.5, 1_500_000),
        (0.1, 100_000),
        (timedelta(microseconds=1), 1),
        (timedelta(days=36_525), MAX_DURATION_US),
        (timedelta(days=2, seconds=3, microseconds=4), 172_803_000_004),
        ("90s", 90 * SECOND),
        ("250ms", 250_000),
        ("250us", 250),
        ("5m", 300 * SECOND),
        ("1h30m", 5_400 * SECOND),
        ("1.5h", 5_400 * SECOND),
        ("2d", 172_800 * SECOND),
        ("1w", 604_800 * SECOND),
        ("1w 2d 3h 4m 5s 6ms 7us", 788_645_006_007),
        (" 1 h 30 m ", 5_400 * SECOND),
        ("0.1s", 100_000),
        ("0h5m", 300 * SECOND),
        (36_525 * 86_400, MAX_DURATION_US),
    ],
)
def test_a_duration_is_seconds_a_timedelta_or_text(value: object, expected: int) -> None:
    assert duration_us(value, name="delay") == expected
    assert duration_s(value, name="delay") == expected / SECOND


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1 / 128, 7_812), (3 / 128, 23_438), ("1.5us", 2), ("2.5us", 2), (1e-9, 1), ("0.0001us", 1)],
)
def test_microseconds_are_rounded_and_what_is_positive_stays_so(value: object, expected: int) -> None:
    assert duration_us(value, name="delay") == expected


def test_seconds_given_as_a_number_are_not_rounded() -> None:
    assert duration_s(1 / 3, name="delay") == 1 / 3
    assert duration_s(1e-300, name="delay") == 1e-300
    assert isinstance(duration_s(3, name="delay"), float)


@pytest.mark.parametrize("value", [0, 0.0, -0.0, "0s", "0.0h0m", timedelta(0)])
def test_zero_is_taken_only_where_it_is_allowed(value: object) -> None:
    assert duration_us(value, name="delay", allow_zero=True) == 0
    assert duration_s(value, name="delay", allow_zero=True) == 0
    for convert in (duration_s, duration_us):
        with pytest.raises(ConfigurationError, match=r"^timeout must be more than zero"):
            convert(value, name="timeout")


@pytest.mark.parametrize("value", [-1, -0.001, timedelta(microseconds=-1), -math.pi])
def test_a_negative_duration_is_refused_by_name(value: object) -> None:
    with pytest.raises(ConfigurationError, match=r"^timeout must not be negative"):
        duration_s(value, name="timeout", allow_zero=True)


@pytest.mark.parametrize(
    "value", [3_155_760_001, 1e18, "5300w", timedelta.max, 10**400, pytest.param(10**5_000, id="long")]
)
def test_more_than_a_hundred_years_is_absurd(value: object) -> None:
    assert MAX_DURATION_S == 3_155_760_000.0
    for convert in (duration_s, duration_us):
        with pytest.raises(ConfigurationError, match=r"^keep must be at most 100 years"):
            convert(value, name="keep")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_case_160_only_none_switches_a_limit_off(value: float) -> None:
    with pytest.raises(ConfigurationError, match=r"^timeout must be finite.*None"):
        duration_s(value, name="timeout")


@pytest.mark.parametrize(
    "value", ["", " ", "90", "1.5", "h", "-5s", "5s ago", "5 minutes", "30m1h", "1s1s", "1H", "PT5M", "1e3s",
              "٣s", "1_000s", ".5s", "5.s", "nan", "1h\x00", "1" * 200 + "s", "1\u00a0h"]
)  # fmt: skip
def test_other_text_is_refused_with_the_forms_that_are_allowed(value: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^delay=.* is no duration: .*timedelta.*1h30m"):
        duration_us(value, name="delay")


@pytest.mark.parametrize("value", [True, None, b"5s", [5], Decimal(5), 1j, datetime(2026, 1, 1, tzinfo=UTC)])
def test_other_types_are_refused_with_the_forms_that_are_allowed(value: object) -> None:
    with pytest.raises(ConfigurationError, match=r"^delay must be seconds, a timedelta, or text"):
        duration_us(value, name="delay")


def test_text_made_to_be_slow_is_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match="no duration"):
        duration_us("1w" + " " * 95 + "x", name="delay")


def test_an_instant_is_exact_to_the_microsecond() -> None:
    assert instant_us(datetime(1970, 1, 1, tzinfo=UTC), name="run_at") == 0
    assert (
        instant_us(datetime(2026, 3, 1, 12, 0, 0, 123_457, tzinfo=UTC), name="run_at")
        == 1_772_366_400_123_457
    )
    assert instant_us(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), name="run_at") == -1
    ahead = timezone(timedelta(hours=14))
    assert instant_us(datetime(1, 1, 1, tzinfo=ahead), name="run_at") == -62_135_647_200 * SECOND


def test_a_repeated_hour_is_two_instants() -> None:
    first = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    assert (
        instant_us(first.replace(fold=1), name="run_at") - instant_us(first, name="run_at") == 3_600 * SECOND
    )


def test_a_naive_datetime_is_refused_by_name() -> None:
    class NoOffset(tzinfo):
        def utcoffset(self, moment: datetime | None) -> None:
            return None

        dst = tzname = utcoffset

    for naive in (datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=NoOffset())):  # noqa: DTZ001
        with pytest.raises(
            ConfigurationError, match=r"^run_at must be an aware datetime, and 2026-01-01T00:00:00"
        ):
            instant_us(naive, name="run_at")


@pytest.mark.parametrize("value", [None, 0, 1.5, "2026-01-01T00:00:00Z", date(2026, 1, 1)])
def test_only_a_datetime_is_an_instant(value: object) -> None:
    with pytest.raises(ConfigurationError, match=r"^expires must be an aware datetime, not "):
        instant_us(value, name="expires")


def test_back_from_microseconds() -> None:
    assert from_us(1_772_366_400_123_457) == datetime(2026, 3, 1, 12, 0, 0, 123_457, tzinfo=UTC)
    assert from_us(-1).tzinfo is UTC
    for outside in (10**18, -(10**18), 10**30):
        with pytest.raises(ConfigurationError, match="outside the years"):
            from_us(outside)
