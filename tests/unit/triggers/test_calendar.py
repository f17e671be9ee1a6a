"""`calendar`: steps counted from the anchor, at a wall time, through changes of the clock."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests.unit.triggers.sequences import following

from betimes.core.durations import instant_us
from betimes.core.triggers import CalendarTrigger, calendar
from betimes.core.triggers.trigger import Trigger
from betimes.errors import InvalidTrigger


def fires(trigger: Trigger, start: str, number: int) -> list[str]:
    return [f"{at:%Y-%m-%dT%H:%M}" for at in following(trigger, datetime.fromisoformat(start), number)]


def us(text: str) -> int:
    return instant_us(datetime.fromisoformat(text), name="text")


def test_days_and_weeks_add_up_and_so_do_months_and_years() -> None:
    anchor = date(2025, 1, 1)
    assert fires(calendar(days=3, weeks=1, anchor=anchor), "2025-01-01T00:00Z", 2) == [
        "2025-01-11T00:00",
        "2025-01-21T00:00",
    ]
    assert fires(calendar(months=1, years=1, anchor=anchor), "2025-01-01T00:00Z", 2) == [
        "2026-02-01T00:00",
        "2027-03-01T00:00",
    ]


def test_the_first_occurrence_is_on_the_anchor_itself() -> None:
    trigger = calendar(weeks=2, at="09:00", anchor=date(2025, 1, 6))
    assert fires(trigger, "2020-01-01T00:00Z", 2) == ["2025-01-06T09:00", "2025-01-20T09:00"]
    assert fires(trigger, "2025-01-20T08:59Z", 1) == ["2025-01-20T09:00"]
    assert fires(trigger, "2025-01-20T09:00Z", 1) == ["2025-02-03T09:00"]


def test_the_wall_time_stays_when_the_offset_changes() -> None:
    trigger = calendar(days=1, at="09:00", tz="Europe/Berlin", anchor=date(2025, 3, 29))
    assert fires(trigger, "2025-03-29T00:00Z", 2) == ["2025-03-29T08:00", "2025-03-30T07:00"]


def test_a_time_in_a_gap_comes_right_after_it_and_one_that_comes_twice_the_first_time() -> None:
    trigger = calendar(days=1, at="02:30", tz="Europe/Berlin", anchor=date(2025, 1, 1))
    assert fires(trigger, "2025-03-29T12:00Z", 2) == ["2025-03-30T01:00", "2025-03-31T00:30"]
    assert fires(trigger, "2025-10-25T12:00Z", 2) == ["2025-10-26T00:30", "2025-10-27T01:30"]
    assert fires(trigger, "2025-10-26T01:15Z", 1) == ["2025-10-27T01:30"]
    assert trigger.moved_from(us("2025-03-30T01:00Z")) == "2025-03-30T02:30[Europe/Berlin]"
    assert trigger.moved_from(us("2025-03-31T00:30Z")) is None


def test_a_day_that_a_zone_leaves_out_makes_no_run_of_its_own() -> None:
    trigger = calendar(days=1, at="00:00", tz="Pacific/Apia", anchor=date(2011, 12, 1))
    assert fires(trigger, "2011-12-28T12:00Z", 3) == [
        "2011-12-29T10:00",
        "2011-12-30T10:00",  # both 30 December, which is left out, and 31 December
        "2011-12-31T10:00",
    ]
    assert trigger.moved_from(us("2011-12-30T10:00Z")) is None  # 31 December is due by itself
    later = calendar(days=1, at="09:00:30", tz="Pacific/Apia", anchor=date(2011, 12, 1))
    assert later.moved_from(us("2011-12-30T10:00Z")) == "2011-12-30T09:00:30[Pacific/Apia]"


def test_without_an_anchor_it_counts_from_the_day_it_is_added() -> None:
    trigger = calendar(months=1, at="10:00", tz="Asia/Tokyo")
    added = us("2025-01-30T16:00Z")  # 31 January in Tokyo
    anchored = trigger.anchored(added)
    assert anchored == calendar(months=1, at="10:00", tz="Asia/Tokyo", anchor=date(2025, 1, 31))
    assert anchored.anchored(0) is anchored
    assert trigger.next_us(added) == anchored.next_us(added) == us("2025-01-31T01:00Z")
    assert trigger.moved_from(added) is None


def test_the_wall_time_is_that_of_the_anchor_unless_it_is_given() -> None:
    anchor = datetime(2025, 1, 31, 10, 15, tzinfo=ZoneInfo("Asia/Tokyo"))
    assert fires(calendar(days=1, anchor=anchor), "2025-01-01T00:00Z", 1) == ["2025-01-31T01:15"]
    assert fires(calendar(days=1, at="09:00", anchor=anchor), "2025-01-01T00:00Z", 1) == ["2025-01-31T09:00"]
    assert fires(calendar(days=1), "2025-01-01T00:00Z", 1) == ["2025-01-02T00:00"]
    assert calendar(days=1, at=time(9, 0, 30)) == calendar(days=1, at="09:00:30")


def test_many_steps_are_reckoned_at_once() -> None:
    trigger = calendar(days=1, anchor=date(1, 1, 2))
    assert fires(trigger, "9999-12-29T23:00Z", 3) == ["9999-12-30T00:00"]
    assert fires(calendar(months=1, anchor=date(9999, 12, 15)), "9999-12-15T00:00Z", 1) == []
    assert fires(calendar(days=40, anchor=date(9999, 12, 15)), "9999-12-15T00:00Z", 1) == []


@pytest.mark.parametrize("tz", ["UTC", "America/New_York", "Pacific/Kiritimati"])
def test_the_ends_of_the_calendar_are_no_errors(tz: str) -> None:
    for trigger in (calendar(days=1, tz=tz), calendar(months=7, tz=tz, anchor=date(2024, 2, 29))):
        assert trigger.next(datetime.min.replace(tzinfo=UTC)) is not None
        assert trigger.next(datetime.max.replace(tzinfo=UTC)) is None


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "days"),
        ({"days": 1, "months": 1}, "days"),
        ({"weeks": 1, "years": 1}, "days"),
        ({"days": -1}, "days"),
        ({"days": 1.0}, "days"),
        ({"months": True}, "months"),
        ({"years": 40_000}, "years"),
        ({"weeks": "1"}, "weeks"),
        ({"days": 1, "at": "9:00"}, "at"),
        ({"days": 1, "at": "24:00"}, "at"),
        ({"days": 1, "at": "09:60"}, "at"),
        ({"days": 1, "at": "09:00:00.5"}, "at"),
        ({"days": 1, "at": "noon"}, "at"),
        ({"days": 1, "at": 9}, "at"),
        ({"days": 1, "at": time(9, tzinfo=UTC)}, "at"),
        ({"days": 1, "at": time(9, 0, 0, 5)}, "at"),
        ({"days": 1, "at": "\N{ARABIC-INDIC DIGIT ONE}\N{ARABIC-INDIC DIGIT ONE}:00"}, "at"),
        ({"days": 1, "anchor": datetime(2025, 1, 1)}, "anchor"),  # noqa: DTZ001 - refused
        ({"days": 1, "anchor": datetime(2025, 1, 1, 0, 0, 0, 5, tzinfo=UTC)}, "anchor"),
        ({"days": 1, "anchor": "2025-01-01"}, "anchor"),
        ({"days": 1, "tz": "Foo/Bar"}, "tz"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_name(arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidTrigger) as caught:
        calendar(**arguments)
    assert caught.value.field == field
    assert caught.value.allowed


@pytest.mark.parametrize(
    ("trigger", "text", "said"),
    [
        (calendar(days=1, at="09:00"), "calendar(days=1, at='09:00')", "Every day at 09:00, UTC."),
        (calendar(days=14), "calendar(days=14, at='00:00')", "Every 2 weeks at 00:00, UTC."),
        (calendar(days=3, weeks=1), "calendar(days=3, weeks=1, at='00:00')", "Every 10 days at 00:00, UTC."),
        (
            calendar(months=1, at="10:00:30", tz="Asia/Tokyo", anchor=date(2025, 1, 31)),
            "calendar(months=1, at='10:00:30', tz='Asia/Tokyo', anchor=datetime.date(2025, 1, 31))",
            (
                "Every month at 10:00:30, Asia/Tokyo time, counted from 2025-01-31.\n"
                "Note: where a month has no day 31, its last day is taken."
            ),
        ),
        (calendar(years=1), "calendar(years=1, at='00:00')", "Every year at 00:00, UTC."),
        (
            calendar(months=6, years=1),
            "calendar(months=6, years=1, at='00:00')",
            "Every 18 months at 00:00, UTC.",
        ),
        (
            calendar(days=1, anchor=date(2025, 1, 31)),
            "calendar(days=1, at='00:00', anchor=datetime.date(2025, 1, 31))",
            "Every day at 00:00, UTC, counted from 2025-01-31.",
        ),
    ],
)
def test_it_says_what_it_is(trigger: CalendarTrigger, text: str, said: str) -> None:
    assert repr(trigger) == text
    assert trigger.explain() == said
    assert trigger.tz == ("Asia/Tokyo" if "Tokyo" in text else "UTC")


def test_february_gets_what_is_left() -> None:
    trigger = calendar(months=1, anchor=date(2023, 12, 31))
    found = fires(trigger, "2023-12-31T00:00Z", 14)
    assert [text[5:10] for text in found] == [
        *("01-31", "02-29", "03-31", "04-30", "05-31", "06-30", "07-31", "08-31", "09-30", "10-31", "11-30"),
        *("12-31", "01-31", "02-28"),
    ]
    assert calendar(months=1, anchor=date(2024, 2, 28)).hints() == ()


def test_times_that_a_change_of_the_clock_hits_are_hinted_at() -> None:
    gap = "in Europe/Berlin, the clock skips 02:00–03:00 on 2024-03-31; it then fires once, at 03:00."
    overlap = (
        "in Europe/Berlin, the clock shows 02:00–03:00 twice on 2024-10-27; it fires in the first pass only."
    )
    assert calendar(days=1, at="02:30", tz="Europe/Berlin").hints() == (gap, overlap)
    assert calendar(weeks=1, at="02:30", tz="Europe/Berlin", anchor=date(2024, 1, 7)).hints() == (
        gap,
        overlap,
    )
    assert calendar(weeks=1, at="02:30", tz="Europe/Berlin", anchor=date(2024, 1, 8)).hints() == ()
    assert calendar(weeks=1, at="02:30", tz="Europe/Berlin").hints() == ()
    assert calendar(days=1, at="03:30", tz="Europe/Berlin").hints() == ()
    assert calendar(days=1, at="02:30").hints() == ()
