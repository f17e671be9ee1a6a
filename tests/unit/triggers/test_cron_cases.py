"""What users of other schedulers reported: every instant that was collected, and the reports."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.triggers.sequences import following

from betimes.core.triggers import at, calendar, cron, every
from betimes.errors import InvalidTrigger

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "data" / "cron_cases.json").read_text("utf-8")
)
BY_ID = {case["id"]: case for case in CASES}


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def check(case: dict[str, Any]) -> None:
    expected = [instant(text) for text in case["expected"]]
    trigger = cron(case["expr"], tz=case["tz"])
    assert following(trigger, instant(case["start"]), len(expected)) == expected, case["note"]


@pytest.mark.parametrize("case", CASES, ids=list(BY_ID))
def test_every_instant_of_the_collected_cases(case: dict[str, Any]) -> None:
    check(case)


def test_the_collected_cases_are_all_there() -> None:
    assert len(CASES) == len(BY_ID) == 62


@pytest.mark.parametrize("name", [name for name in BY_ID if "-fwd-" in name])
def test_case_001_a_target_in_a_gap_ends_the_search(name: str) -> None:
    check(BY_ID[name])


def test_case_003_a_daily_job_runs_once_in_autumn() -> None:
    trigger = cron("30 2 * * *", tz="Europe/Berlin")
    found = following(trigger, instant("2025-10-25T12:00Z"), 2)
    assert found == [instant("2025-10-26T00:30Z"), instant("2025-10-27T01:30Z")]
    # After a restart between the two passes the last fire is known, and it does not come again.
    assert trigger.next(instant("2025-10-26T00:30Z")) == instant("2025-10-27T01:30Z")
    assert trigger.next(instant("2025-10-26T00:45Z")) == instant("2025-10-27T01:30Z")


def test_from_within_the_second_pass_its_end_is_found() -> None:
    trigger = cron("0 3 * * *", tz="Europe/Berlin")
    assert trigger.next(instant("2025-10-26T01:30Z")) == instant("2025-10-26T02:00Z")


@pytest.mark.parametrize("expr", ["30 1 * * *", "*/20 1 * * *", "0 * * * *", "59 0-2 * * *"])
def test_case_005_next_is_later_wherever_it_starts_around_a_change(expr: str) -> None:
    trigger = cron(expr, tz="America/New_York")
    start = instant("2026-11-01T03:00Z")
    for step in range(0, 6 * 60, 7):
        found = trigger.next(start + step * timedelta(minutes=1))
        assert found is not None
        assert found > start + step * timedelta(minutes=1)


def test_case_007_the_wait_over_a_change_is_a_real_one() -> None:
    asked = instant("2025-03-08T21:04Z")
    found = cron("4 16 * * *", tz="America/New_York").next(asked)
    assert found == instant("2025-03-09T20:04Z")
    assert (found - asked).total_seconds() == 82_800


def test_case_009_the_search_passes_the_change() -> None:
    check(BY_ID["dst-back-brussels-list"])


@pytest.mark.parametrize("name", [name for name in BY_ID if name.startswith("dow-")])
def test_case_011_sunday_is_0_and_7(name: str) -> None:
    check(BY_ID[name])
    sundays = [
        following(cron(f"0 0 * * {day}"), instant("2026-01-01T00:00Z"), 5) for day in ("0", "7", "Sun")
    ]
    assert sundays[0] == sundays[1] == sundays[2]
    assert {day.isoweekday() for day in sundays[0]} == {7}


def test_case_013_leap_days_are_found_over_a_century_without_one() -> None:
    check(BY_ID["feb29"])
    assert cron("0 9 29 2 *").next(instant("2096-03-01T00:00Z")) == instant("2104-02-29T09:00Z")
    assert cron("0 9 29 2 */7").next(instant("2088-03-01T00:00Z")) == instant("2128-02-29T09:00Z")


@pytest.mark.parametrize("text", ["*/60", "*/90", "5-5/0", "*/0"])
def test_case_015_a_step_out_of_range_is_our_own_error(text: str) -> None:
    with pytest.raises(InvalidTrigger) as caught:
        cron(f"{text} * * * *")
    assert (caught.value.field, caught.value.text, caught.value.allowed) == ("minute", text, "0-59")


def test_case_015_a_step_that_does_not_divide_is_accepted_with_a_hint() -> None:
    check(BY_ID["step-45"])
    assert any("*/45" in hint for hint in cron("*/45 * * * *").hints())


def test_case_017_six_fields_only_with_seconds() -> None:
    with pytest.raises(InvalidTrigger, match="seconds=True"):
        cron("0 0 12 * * 1")
    monday_noon = cron("0 0 12 * * 1", seconds=True).next(instant("2025-01-01T00:00Z"))
    assert monday_noon == instant("2025-01-06T12:00:00Z")


def test_case_019_months_count_from_the_anchor() -> None:
    monthly = calendar(months=1, anchor=instant("2025-01-31T10:00Z"))
    found = following(monthly, instant("2025-01-01T00:00Z"), 5)
    assert [f"{day:%m-%d %H}" for day in found] == [
        "01-31 10",
        "02-28 10",
        "03-31 10",
        "04-30 10",
        "05-31 10",
    ]
    yearly = calendar(years=1, anchor=date(2024, 2, 29))
    found = following(yearly, instant("2024-01-01T00:00Z"), 5)
    assert [str(day.date()) for day in found] == [
        "2024-02-29",
        "2025-02-28",
        "2026-02-28",
        "2027-02-28",
        "2028-02-29",
    ]


def test_case_021_a_restart_does_not_shift_the_grid() -> None:
    trigger = every("6h").anchored(0)
    restarts = [datetime(1970, 1, 1, hour, 1, tzinfo=UTC) for hour in (0, 4, 8, 12, 16)]
    found = [trigger.next(again) for again in restarts]
    assert [at.hour for at in found if at is not None] == [6, 6, 12, 18, 18]


def test_case_023_a_run_in_between_does_not_shift_the_grid() -> None:
    trigger = every("24h", align=instant("2025-01-01T01:00Z"))
    assert trigger.next(instant("2025-03-05T11:30Z")) == instant("2025-03-06T01:00Z")


def test_case_025_ten_years_of_seconds_are_counted_without_stepping() -> None:
    ten_years = 315_576_000 * 1_000_000
    assert every("1s").anchored(0).count(0, ten_years) == 315_576_000


def test_case_031_the_zone_is_kept_from_run_to_run() -> None:
    trigger = cron("1 12 * * *", tz="Europe/Berlin")
    found = following(trigger, instant("2025-07-01T00:00Z"), 3)
    assert [f"{day:%d %H:%M}" for day in found] == ["01 10:01", "02 10:01", "03 10:01"]


def test_an_instant_that_was_given_twice_comes_once() -> None:
    when = instant("2025-01-01T00:00Z")
    assert following(at(when, when), when - timedelta(days=1), 5) == [when]
