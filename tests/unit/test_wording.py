"""Values, lengths of time, instants and lists, as messages show them."""

from __future__ import annotations

import pytest

from betimes.core.wording import listed, moment, sized, span

SECOND = 1_000_000
NOW = 1_800_000_000 * SECOND


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "0s"),
        (999, "0s"),
        (1000, "1ms"),
        (1500 * 1000, "1s 500ms"),
        (90 * SECOND, "1m 30s"),
        (3600 * SECOND, "1h"),
        (3600 * SECOND + 5 * SECOND, "1h"),
        (26 * 3600 * SECOND, "1d 2h"),
        (-90 * SECOND, "1m 30s"),
    ],
)
def test_a_span_is_shown_in_its_two_largest_units(us: int, text: str) -> None:
    assert span(us) == text


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (NOW, "2027-01-15 08:00:00 UTC (now)"),
        (NOW + 60 * SECOND, "2027-01-15 08:01:00 UTC (in 1m)"),
        (NOW - 60 * SECOND, "2027-01-15 07:59:00 UTC (1m ago)"),
    ],
)
def test_a_moment_is_shown_with_its_distance(at: int, text: str) -> None:
    assert moment(at, NOW) == text


def test_a_moment_that_no_calendar_knows_is_shown_as_a_number() -> None:
    assert moment(10**18, NOW).startswith("1000000000000000000 µs after 1970 (in ")


@pytest.mark.parametrize(
    ("names", "most", "text"),
    [
        ([], 3, ""),
        (["a"], 3, "a"),
        (["a", "b"], 3, "a and b"),
        (["a", "b", "c"], 3, "a, b and c"),
        (["a", "b", "c", "d"], 3, "a, b, c and 1 more"),
    ],
)
def test_names_are_listed_as_in_a_sentence(names: list[str], most: int, text: str) -> None:
    assert listed(names, most=most) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (5 * 1024**4, "5.0 TiB"), (5 * 1024**5, "5120.0 TiB")],
)
def test_a_number_of_bytes_is_shown_in_its_largest_unit(count: int, text: str) -> None:
    assert sized(count) == text
