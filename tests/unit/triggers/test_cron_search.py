"""Days by cronsim and times of day by tables: what we rely on, the nearest weekday, and the horizon."""

from __future__ import annotations

import calendar
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from unittest.mock import patch

import pytest
from cronsim import CronSim

from betimes.core.triggers import cron
from betimes.core.triggers.cron_search import is_nearest_weekday
from betimes.errors import InvalidTrigger

START = datetime(2025, 1, 1, tzinfo=UTC)


def test_what_we_rely_on_in_cronsim() -> None:
    """A release of cronsim that changes one of these needs another `cron_search.py`."""
    start = datetime(2025, 1, 1, 12)  # noqa: DTZ001 - wall time
    search = CronSim("0 0 13,L 2-3 FRI", start)
    assert (search.dt, search.days, search.months) == (start, {13, CronSim.LAST}, {2, 3})
    before = {name: value for name, value in vars(search).items() if name != "dt"}
    again = object.__new__(CronSim)
    vars(again).update(vars(search))
    again.dt = datetime(2025, 2, 27, 23, 59, 59)  # noqa: DTZ001 - wall time
    assert [next(again) for _ in range(2)] == [
        datetime(2025, 2, 28),  # noqa: DTZ001 - wall time
        datetime(2025, 3, 7),  # noqa: DTZ001 - wall time
    ]
    assert search.dt == start
    assert {name: value for name, value in vars(again).items() if name != "dt"} == before
    assert CronSim("0 0 1 2 *", start).match_day(date(2025, 5, 1))  # months are left aside

    class Never(CronSim):
        def match_dom(self, d: date) -> bool:
            return False

    assert not Never("0 0 1 * *", start).match_day(date(2025, 1, 1))
    assert Never("0 0 1 * FRI", start).match_day(date(2025, 1, 3))


def nearest_by_its_wording(year: int, month: int, target: int) -> int | None:
    """The weekday of the month that is the fewest days away; it is never in another month."""
    last = calendar.monthrange(year, month)[1]
    days = [day for day in range(1, last + 1) if date(year, month, day).weekday() < 5]
    return min(days, key=lambda day: abs(day - target)) if target <= last else None


@pytest.mark.parametrize("year", [2023, 2024])
def test_the_nearest_weekday_is_the_fewest_days_away_within_its_month(year: int) -> None:
    for month in range(1, 13):
        for target in range(1, 32):
            found = [
                day
                for day in range(1, calendar.monthrange(year, month)[1] + 1)
                if is_nearest_weekday(date(year, month, day), frozenset({target}))
            ]
            expected = nearest_by_its_wording(year, month, target)
            assert found == ([] if expected is None else [expected]), (year, month, target)


def test_the_nearest_weekday_goes_with_other_days_and_weekdays() -> None:
    def days(expr: str) -> list[str]:
        at, found = datetime(2024, 5, 31, 12, tzinfo=UTC), []
        trigger = cron(expr)
        while (following := trigger.next(at)) is not None and following.month == 6:
            at = following
            found.append(at.day)
        return [str(day) for day in found]

    assert days("0 0 1W,15W,LW * *") == ["3", "14", "28"]  # 1 and 15 June 2024 are Saturdays
    assert days("0 0 5,15W * *") == ["5", "14"]
    assert days("0 0 15W * sun") == ["2", "9", "14", "16", "23", "30"]
    assert days("0 0 15W * */5") == ["14"]  # a Friday, and Sundays and Fridays are asked for


@pytest.mark.parametrize(
    "expr",
    [
        "0 0 30 2 *",
        "0 0 31 2 *",
        "0 0 31 11 *",
        "0 0 31 2,4,6,9,11 *",
        "0 0 31W 2,4,6,9,11 *",
        "0 0 LW * */6",  # never a Saturday or a Sunday
        "0 0 29W 2 */6",
    ],
)
def test_what_never_fires_is_refused(expr: str) -> None:
    with pytest.raises(InvalidTrigger, match="never fires") as caught:
        cron(expr)
    assert (caught.value.field, caught.value.text) == ("expr", expr)


@pytest.mark.parametrize(
    "expr", ["0 0 30 2 1", "0 0 31 2 sun#1", "0 0 29 2 *", "0 0 31W * *", "0 0 29 2 */7"]
)
def test_what_fires_now_and_then_is_accepted(expr: str) -> None:
    assert cron(expr).next(START) is not None


def kind_of(year: int) -> tuple[int, bool]:
    return date(year, 1, 1).weekday(), calendar.isleap(year)


def test_a_year_of_every_kind_comes_within_forty_years() -> None:
    """So no day that exists lies beyond the 50 years that cronsim looks ahead. Years repeat after 400."""
    kinds = {kind_of(year) for year in range(2000, 2400)}
    assert len(kinds) == 14
    longest = 0
    for kind in kinds:
        years = [year for year in range(2000, 2801) if kind_of(year) == kind]
        longest = max(longest, *(later - year for year, later in pairwise(years)))
    assert longest == 40


@pytest.mark.parametrize(("first", "day"), [("*/7", 7), ("*/6", 6)])
def test_a_leap_day_on_a_weekday_is_found_over_forty_years(first: str, day: int) -> None:
    trigger = cron(f"0 0 29 2 {first}")
    at, found = datetime(2000, 1, 1, tzinfo=UTC), []
    while (following := trigger.next(at)) is not None and following.year < 2400:
        at = following
        found.append(at.year)
    wanted = {0, day % 7}
    leap_days = [date(year, 2, 29) for year in range(2000, 2400) if calendar.isleap(year)]
    assert found == [leap.year for leap in leap_days if leap.isoweekday() % 7 in wanted]


@pytest.mark.parametrize(
    ("expr", "tz", "start"),
    [
        ("0 0 29 2 */7", "Europe/Berlin", datetime(2088, 3, 1, tzinfo=UTC)),
        ("0 0 29W 2 */5", "UTC", datetime(2088, 3, 1, tzinfo=UTC)),
        ("*/10 2 * 3 7L", "Europe/Berlin", START),
        ("59 23 31 12 *", "Asia/Tokyo", START),
        ("* * 29 2 */6", "Africa/Cairo", datetime(2088, 3, 1, tzinfo=UTC)),
    ],
)
def test_a_search_looks_at_few_days(expr: str, tz: str, start: datetime) -> None:
    looked_at: list[date] = []
    ask = CronSim.match_day

    def counted(self: CronSim, d: date) -> bool:
        looked_at.append(d)
        return ask(self, d)

    trigger = cron(expr, tz=tz)
    with patch.object(CronSim, "match_day", counted):
        trigger.next(start)
    assert 0 < len(looked_at) < 4_000


def test_what_always_falls_into_a_gap_ends_at_the_horizon() -> None:
    """Each of these times is skipped each year, as long as the zone's rules hold."""
    assert cron("*/10 2 * 3 7L", tz="Europe/Berlin").next(START) is None
    assert cron("*/10 2 * 3 7L", tz="UTC").next(START) == datetime(2025, 3, 30, 2, tzinfo=UTC)


def test_the_last_days_of_the_calendar_end_the_sequence() -> None:
    trigger = cron("0 9 * * *")
    assert trigger.next(datetime(9999, 12, 30, 8, tzinfo=UTC)) == datetime(9999, 12, 30, 9, tzinfo=UTC)
    assert trigger.next(datetime(9999, 12, 30, 9, tzinfo=UTC)) is None
    assert trigger.next(datetime(9999, 12, 31, 23, tzinfo=UTC)) is None
    assert cron("0 9 29 2 *").next(datetime(9996, 3, 1, tzinfo=UTC)) is None
    assert cron("* * * * *").next(datetime(9999, 12, 31, 23, tzinfo=UTC)) is None
    assert cron("* * 31 12 *").next(datetime(9999, 12, 30, 23, tzinfo=UTC)) is None


@pytest.mark.parametrize("tz", ["UTC", "America/New_York", "Pacific/Kiritimati", "Pacific/Apia"])
@pytest.mark.parametrize("expr", ["0 9 * * *", "*/5 * * * *", "0 0 29 2 *", "0 0 1W * *"])
def test_the_ends_of_the_calendar_are_no_errors(expr: str, tz: str) -> None:
    trigger = cron(expr, tz=tz)
    first = trigger.next(datetime.min.replace(tzinfo=UTC))
    assert first is not None
    assert first > datetime.min.replace(tzinfo=UTC) + timedelta(hours=23)
    assert trigger.next(datetime.max.replace(tzinfo=UTC)) is None


def test_seconds_are_searched_as_minutes_are() -> None:
    trigger = cron("*/20,59 30 2 * * *", tz="Europe/Berlin", seconds=True)
    at, found = datetime(2025, 3, 29, tzinfo=UTC), []
    for _ in range(6):
        following = trigger.next(at)
        assert following is not None
        at = following
        found.append(f"{at:%d %H:%M:%S}")
    # Four on the 29th; on the 30th, 02:30 is skipped, and its four times make one instant.
    assert found == [
        "29 01:30:00",
        "29 01:30:20",
        "29 01:30:40",
        "29 01:30:59",
        "30 01:00:00",
        "31 00:30:00",
    ]
