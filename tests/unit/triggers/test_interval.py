"""`every`: the grid, the delay after a finish, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from betimes.core.triggers import IntervalTrigger, every
from betimes.core.triggers.reckoned import LAST_US
from betimes.errors import InvalidTrigger

SECOND = 1_000_000
HOUR = 3600 * SECOND


def test_without_an_anchor_the_next_instant_is_one_period_on() -> None:
    assert every("6h").next_us(5) == 5 + 6 * HOUR
    assert every(timedelta(hours=6)).next_us(5) == 5 + 6 * HOUR


def test_an_anchored_grid_begins_at_its_anchor() -> None:
    trigger = every("1h").anchored(7)
    assert [trigger.next_us(at) for at in (-(10**15), 6, 7, 7 + HOUR - 1, 7 + HOUR)] == [
        *[7] * 2,
        *[7 + HOUR] * 2,
        7 + 2 * HOUR,
    ]


def test_an_aligned_grid_has_no_beginning() -> None:
    through = datetime(2025, 1, 1, 0, 5, tzinfo=UTC)
    trigger = every("15m", align=through)
    assert trigger.next(datetime(1980, 6, 1, 12, 51, tzinfo=UTC)) == datetime(1980, 6, 1, 13, 5, tzinfo=UTC)
    quarter = every("15m", align=True)
    assert quarter.next(datetime(2025, 1, 1, 12, 15, tzinfo=UTC)) == datetime(2025, 1, 1, 12, 30, tzinfo=UTC)
    assert quarter.next(datetime(1969, 1, 1, 12, 20, tzinfo=UTC)) == datetime(1969, 1, 1, 12, 30, tzinfo=UTC)


def test_a_grid_that_is_fixed_stays() -> None:
    for trigger in (every("1h").anchored(7), every("1h", align=True), every("1h", after="finish")):
        assert trigger.anchored(99) is trigger
    assert every("1h", align=False) == every("1h", align=None) == every("1h")


def test_a_delay_after_the_finish_counts_from_there() -> None:
    trigger = every("5m", after="finish")
    assert trigger.delay_after_finish_us == 300 * SECOND
    assert trigger.next_us(11) == 11 + 300 * SECOND
    assert trigger.count(0, HOUR) is None
    assert every("5m").delay_after_finish_us is None


@pytest.mark.parametrize(
    ("trigger", "after", "until", "expected"),
    [
        (every("1s").anchored(0), 0, 0, 0),
        (every("1s").anchored(0), 5, 3, 0),
        (every("1s").anchored(0), 0, SECOND - 1, 0),
        (every("1s").anchored(0), 0, SECOND, 1),
        (every("1s").anchored(0), -HOUR, 3 * SECOND, 4),
        (every("1s", align=True), -3 * SECOND, 0, 3),
        (every("1s"), 1, 3 * SECOND, 2),
        (every("1s").anchored(0), LAST_US - SECOND, LAST_US + 10 * SECOND, 1),
        (every("1s").anchored(0), LAST_US, LAST_US + SECOND, 0),
    ],
)
def test_instants_are_counted_without_stepping(
    trigger: IntervalTrigger, after: int, until: int, expected: int
) -> None:
    assert trigger.count(after, until) == expected


def test_nothing_fires_after_the_last_instant() -> None:
    assert every("1d").next_us(LAST_US) is None
    assert every("1d", align=True).next_us(LAST_US + 10**20) is None


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"period": 0}, "period"),
        ({"period": -1}, "period"),
        ({"period": "5"}, "period"),
        ({"period": "1us"}, "period"),
        ({"period": 0.0009}, "period"),
        ({"period": "200000d"}, "period"),
        ({"period": None}, "period"),
        ({"period": "5m", "align": datetime(2025, 1, 1)}, "align"),  # noqa: DTZ001 - refused
        ({"period": "5m", "align": 1}, "align"),
        ({"period": "5m", "align": "12:00"}, "align"),
        ({"period": "5m", "after": "end"}, "after"),
        ({"period": "5m", "after": None}, "after"),
        ({"period": "5m", "after": ["finish"]}, "after"),
        ({"period": "5m", "after": "finish", "align": True}, "align"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_name(arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidTrigger) as caught:
        every(**arguments)
    assert caught.value.field == field
    assert caught.value.allowed


def test_a_millisecond_is_the_shortest_period() -> None:
    assert every("1ms").next_us(0) == 1000


@pytest.mark.parametrize(
    ("trigger", "text", "said"),
    [
        (every(90), "every('1m30s')", "Every 1 minute 30 seconds."),
        (every("1h"), "every('1h')", "Every hour."),
        (every("2d"), "every('2d')", "Every 2 days."),
        (every(0.0015), "every('1ms500us')", "Every 1 millisecond 500 microseconds."),
        (every("1h", after="finish"), "every('1h', after='finish')", "1 hour after each run has ended."),
        (
            every("1h", align=True),
            "every('1h', align=True)",
            "Every hour, on the grid through 1970-01-01T00:00:00Z.",
        ),
        (
            every("1h", align=datetime(2025, 1, 1, 0, 5, tzinfo=UTC)),
            "every('1h', align=datetime.datetime(2025, 1, 1, 0, 5, tzinfo=datetime.timezone.utc))",
            "Every hour, on the grid through 2025-01-01T00:05:00Z.",
        ),
        (
            every("1h").anchored(5),
            "every('1h').anchored(5)",
            "Every hour, on the grid through 1970-01-01T00:00:00.000005Z.",
        ),
    ],
)
def test_it_says_what_it_is(trigger: IntervalTrigger, text: str, said: str) -> None:
    assert repr(trigger) == text
    assert trigger.explain() == said
