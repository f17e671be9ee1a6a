"""Unions and exclusions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests.unit.triggers.sequences import following

from betimes.core.durations import instant_us
from betimes.core.triggers import ExclusionTrigger, Trigger, UnionTrigger, at, calendar, cron, every
from betimes.errors import ConfigurationError, InvalidTrigger

CHRISTMAS = date(2025, 12, 25)
START = datetime(2025, 12, 24, tzinfo=UTC)
HOUR = 3_600_000_000


class Hourly(Trigger):
    """A user's own rule."""

    def next(self, after: datetime) -> datetime | None:
        return (after + timedelta(hours=1)).replace(minute=0, second=0, microsecond=0)


class Stuck(Trigger):
    """A user's own rule that is wrong."""

    def next(self, after: datetime) -> datetime | None:
        return datetime(2025, 12, 25, tzinfo=UTC)


def fires(trigger: Trigger, start: datetime, number: int) -> list[str]:
    return [f"{at:%m-%d %H:%M}" for at in following(trigger, start, number)]


def us(text: str) -> int:
    return instant_us(datetime.fromisoformat(text), name="text")


def test_a_union_fires_when_either_does_and_once_where_both_do() -> None:
    trigger = cron("0 6,12 * * *") | cron("0 12,18 * * *")
    assert fires(trigger, START, 4) == ["12-24 06:00", "12-24 12:00", "12-24 18:00", "12-25 06:00"]
    assert fires(at(START + timedelta(days=1)) | at(START), START - timedelta(days=1), 5) == [
        "12-24 00:00",
        "12-25 00:00",
    ]
    assert at(START) | at(START) == at(START)
    assert (every("1h") | every("1h").anchored(5)).anchored(5) == every("1h").anchored(5)


def test_unions_of_unions_are_one_and_a_part_counts_once() -> None:
    one, two, three = cron("0 1 * * *"), cron("0 2 * * *"), cron("0 3 * * *")
    trigger = (one | two) | (two | three)
    assert isinstance(trigger, UnionTrigger)
    assert trigger.parts == (one, two, three)
    assert trigger == one | two | three
    assert hash(trigger) == hash(one | two | three)


def test_a_union_takes_triggers_only() -> None:
    with pytest.raises(TypeError):
        cron("0 9 * * *") | "0 10 * * *"  # type: ignore[operator]


def test_a_union_has_at_most_a_hundred_parts() -> None:
    trigger: Trigger = at(START)
    for day in range(1, 100):
        trigger |= at(START + timedelta(days=day))
    with pytest.raises(InvalidTrigger, match="at most 100"):
        trigger |= at(START + timedelta(days=100))


def test_what_waits_for_the_finish_of_runs_cannot_be_combined() -> None:
    later = every("5m", after="finish")
    makers: list[Callable[[], Trigger]] = [
        lambda: later | cron("0 9 * * *"),
        lambda: cron("0 9 * * *") | later,
        lambda: later.excluding(CHRISTMAS),
    ]
    for make in makers:
        with pytest.raises(InvalidTrigger, match="schedule of its own") as caught:
            make()
        assert caught.value.field == "after"


def test_anchoring_anchors_the_parts() -> None:
    trigger = every("1h") | cron("0 9 * * *")
    assert trigger.anchored(5) == every("1h").anchored(5) | cron("0 9 * * *")
    assert trigger.anchored(5).anchored(7) == trigger.anchored(5)
    assert trigger.excluding(CHRISTMAS).anchored(5) == trigger.anchored(5).excluding(CHRISTMAS)
    fixed = cron("0 9 * * *") | cron("0 10 * * *")
    assert fixed.anchored(5) is fixed


def test_the_zone_of_a_union_is_the_one_its_parts_share() -> None:
    berlin, tokyo = cron("0 9 * * *", tz="Europe/Berlin"), cron("0 9 * * *", tz="Asia/Tokyo")
    assert (berlin | cron("0 8 * * *", tz="Europe/Berlin")).tz == "Europe/Berlin"
    assert (berlin | tokyo).tz is None
    assert (berlin | every("1h")).tz is None
    assert (berlin | tokyo).excluding(CHRISTMAS).tz is None
    assert berlin.excluding(CHRISTMAS).tz == "Europe/Berlin"


def test_a_moved_instant_is_one_only_if_no_part_has_it_as_it_is() -> None:
    moved = cron("30 2 * * *", tz="Europe/Berlin")
    at_three = cron("0 3 * * *", tz="Europe/Berlin")
    gap_end = us("2025-03-30T01:00Z")
    assert (moved | cron("0 12 * * *")).moved_from(gap_end) == "2025-03-30T02:30[Europe/Berlin]"
    assert (moved | at_three).moved_from(gap_end) is None
    assert (cron("0 12 * * *") | cron("0 13 * * *")).moved_from(gap_end) is None
    assert moved.excluding(CHRISTMAS).moved_from(gap_end) == "2025-03-30T02:30[Europe/Berlin]"


def test_an_excluded_date_has_no_instant() -> None:
    trigger = cron("0 */8 * * *").excluding(CHRISTMAS, date(2025, 12, 26))
    assert fires(trigger, START, 4) == ["12-24 08:00", "12-24 16:00", "12-27 00:00", "12-27 08:00"]


def test_a_date_is_one_in_the_zone_of_the_trigger_or_in_another() -> None:
    trigger = cron(
        "0 */8 * * *", tz="Asia/Tokyo"
    )  # 09:00, 17:00 and 01:00 in Tokyo are 00:00, 08:00, 16:00 UTC
    assert fires(trigger.excluding(CHRISTMAS), START, 4) == [
        "12-24 07:00",
        "12-25 15:00",
        "12-25 23:00",
        "12-26 07:00",
    ]
    assert fires(trigger.excluding(CHRISTMAS, tz="UTC"), START, 4) == [
        "12-24 07:00",
        "12-24 15:00",
        "12-24 23:00",
        "12-26 07:00",
    ]


def test_leaving_out_days_does_not_shift_a_grid_that_is_not_fixed_yet() -> None:
    trigger = every("5h").excluding(CHRISTMAS)
    assert fires(trigger.anchored(us("2025-12-24T12:00Z")), START + timedelta(hours=12), 4) == [
        "12-24 17:00",
        "12-24 22:00",
        "12-26 04:00",
        "12-26 09:00",
    ]
    assert trigger.next(START + timedelta(hours=22)) == datetime(2025, 12, 26, 4, tzinfo=UTC)


def test_a_day_whose_end_comes_twice_is_left_out_whole() -> None:
    # In Cairo the clock goes back from 24:00 to 23:00 on 31 October 2024: that hour comes twice on that day.
    trigger = cron("*/30 * * * *", tz="Africa/Cairo").excluding(date(2024, 10, 31))
    assert trigger.next(datetime(2024, 10, 30, 20, 30, tzinfo=UTC)) == datetime(2024, 10, 31, 22, tzinfo=UTC)
    # In St John's it went from 00:01 on 7 November 2010 back to 23:01 on the 6th.
    trigger = cron("*/30 * * * *", tz="America/St_Johns").excluding(date(2010, 11, 6))
    assert fires(trigger, datetime(2010, 11, 6, 2, tzinfo=UTC), 3) == [
        "11-07 02:30",  # 00:00 on the 7th, a minute before the clock goes back to the 6th
        "11-07 03:30",  # 00:00 once more; 23:30 on the 6th, for the second time, is left out
        "11-07 04:00",
    ]
    trigger = cron("*/30 * * * *", tz="America/St_Johns").excluding(date(2010, 11, 7))
    assert fires(trigger, datetime(2010, 11, 7, 2, tzinfo=UTC), 2) == ["11-07 03:00", "11-08 03:30"]


def test_the_last_days_of_the_calendar_may_be_left_out() -> None:
    trigger = cron("0 9 * * *").excluding(date(9999, 12, 30), date.max)
    assert trigger.next(datetime(9999, 12, 29, 10, tzinfo=UTC)) is None
    last = at(datetime(9999, 12, 31, 12, tzinfo=UTC)).excluding(date.max)
    assert last.next(START) == datetime(9999, 12, 31, 12, tzinfo=UTC)  # beyond what has a date in every zone


def test_many_dates_in_a_row_are_passed_at_once() -> None:
    days = [date(2025, 1, 1) + timedelta(days=n) for n in range(2_000)]
    asked: list[datetime] = []

    class Counted(Hourly):
        def next(self, after: datetime) -> datetime | None:
            asked.append(after)
            return super().next(after)

    trigger = Counted().excluding(*days)
    assert trigger.next(datetime(2024, 12, 31, 23, 30, tzinfo=UTC)) == datetime(2030, 6, 24, tzinfo=UTC)
    assert len(asked) == 3
    with pytest.raises(InvalidTrigger, match="1 to 2,000"):
        Hourly().excluding(*days, date(2031, 1, 1))


def test_an_inner_trigger_that_does_not_advance_is_an_error_and_no_endless_loop() -> None:
    with pytest.raises(ConfigurationError, match="Stuck must return an instant later"):
        Stuck().excluding(CHRISTMAS).next(START)


@pytest.mark.parametrize("day", [datetime(2025, 12, 25, tzinfo=UTC), "2025-12-25", None, 5])
def test_only_dates_are_left_out(day: Any) -> None:
    with pytest.raises(InvalidTrigger, match="takes dates") as caught:
        cron("0 9 * * *").excluding(day)
    assert caught.value.field == "dates"


def test_at_least_one_date_is_left_out_and_the_zone_is_known() -> None:
    with pytest.raises(InvalidTrigger, match="1 to 2,000"):
        cron("0 9 * * *").excluding()
    with pytest.raises(InvalidTrigger, match="Europe/Berlin"):
        cron("0 9 * * *").excluding(CHRISTMAS, tz="Berlin")


def test_the_order_of_the_dates_does_not_matter() -> None:
    days = [date(2025, 12, 26), CHRISTMAS, CHRISTMAS]
    one, other = cron("0 9 * * *").excluding(*days), cron("0 9 * * *").excluding(*sorted(set(days)))
    assert isinstance(one, ExclusionTrigger)
    assert one == other
    assert hash(one) == hash(other)


def test_they_say_what_they_are() -> None:
    union = cron("0 9 * * *") | calendar(days=2)
    assert repr(union) == "cron('0 9 * * *') | calendar(days=2, at='00:00')"
    assert union.explain() == "At 09:00 every day, UTC. Also: Every 2 days at 00:00, UTC."
    without = union.excluding(CHRISTMAS)
    assert repr(without) == f"({union!r}).excluding(datetime.date(2025, 12, 25))"
    assert without.explain().endswith("Every 2 days at 00:00, UTC; not on 2025-12-25 (UTC).")
    elsewhere = cron("0 9 * * *").excluding(CHRISTMAS, tz="Asia/Tokyo")
    assert repr(elsewhere) == "cron('0 9 * * *').excluding(datetime.date(2025, 12, 25), tz='Asia/Tokyo')"


def test_hints_of_the_parts_come_once_each() -> None:
    surprising = cron("0 0 31 * *") | cron("0 1 31 * *")
    assert surprising.hints() == cron("0 0 31 * *").hints()
    assert surprising.excluding(CHRISTMAS).hints() == surprising.hints()


def test_a_day_whose_last_hour_comes_back_after_midnight_is_left_out_whole() -> None:
    """At 00:01 the clock goes back to 23:01: the day that is left out is shown once more."""
    zone = ZoneInfo("America/St_Johns")
    day = date(2010, 11, 6)
    every_ten = every("10m", align=True)
    start = datetime(2010, 11, 6, tzinfo=UTC)
    expected = [
        moment
        for moment in (start + timedelta(minutes=10 * n) for n in range(1, 6 * 30))
        if moment.astimezone(zone).date() != day
    ]
    found: list[datetime] = []
    trigger = every_ten.excluding(day, tz="America/St_Johns")
    next_one = trigger.next(start)
    while next_one is not None and next_one <= expected[-1]:
        found.append(next_one)
        next_one = trigger.next(next_one)
    assert found == expected
    around = [moment for moment in expected if moment.hour < 4 and moment.day == 7]
    assert len(around) < 4 * 6, "some of the next day's first minutes come before that hour"
    for moment in (start + timedelta(minutes=7 * n) for n in range(250)):
        assert trigger.next(moment) == next(each for each in expected if each > moment)
