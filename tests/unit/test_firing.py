"""Planning: what is due of a schedule, what was missed, and what its policies make of that."""

from __future__ import annotations

import pytest
from tests.unit.plots import MINUTE, Listed, S, due_s, minutely, plan, record, told

from betimes.core.firing import LATE_US
from betimes.core.schedule import FireOutcome
from betimes.core.triggers import every

MERGED, MISSED, CATCH_UP = FireOutcome.MERGED, FireOutcome.MISSED, FireOutcome.CATCH_UP
LATE_S = LATE_US / S
POLICIES = [(missed, overlap) for missed in ("latest", "skip", "all") for overlap in ("skip", "allow")]


@pytest.mark.parametrize(("missed", "overlap"), POLICIES)
def test_an_instant_on_time_becomes_a_job_whatever_the_policies(missed: str, overlap: str) -> None:
    for late_s in (0, 1, LATE_S):
        advance = plan(minutely(), 60 + late_s, missed=missed, overlap=overlap).advance(record(60))
        assert due_s(advance) == [60]
        assert (advance.skips, advance.next_fire_at, advance.is_late) == ((), 2 * MINUTE, False)


def test_of_what_was_missed_the_latest_runs_for_all() -> None:
    advance = plan(minutely(), 3_645).advance(record(60))
    assert due_s(advance) == [3_600]
    assert told(advance.skips) == [(MERGED, 60, 3_540, 59)]
    assert (advance.next_fire_at, advance.is_late) == (61 * MINUTE, True)


def test_of_what_was_missed_nothing_runs_if_so_asked() -> None:
    advance = plan(minutely(), 3_645, missed="skip").advance(record(60))
    assert due_s(advance) == []
    assert told(advance.skips) == [(MISSED, 60, 3_600, 60)]
    assert (advance.next_fire_at, advance.is_late) == (61 * MINUTE, False)
    one = plan(minutely(), 100, missed="skip").advance(record(60))
    assert told(one.skips) == [(MISSED, 60, 60, 1)]


def test_an_instant_on_time_runs_though_those_before_it_were_missed_and_are_not_made_up_for() -> None:
    advance = plan(minutely(), 3_601, missed="skip").advance(record(60))
    assert due_s(advance) == [3_600]
    assert told(advance.skips) == [(MISSED, 60, 3_540, 59)]


def test_all_that_was_missed_runs_one_by_one_in_order() -> None:
    advance = plan(minutely(), 305, missed="all").advance(record(60))
    assert due_s(advance) == [60]
    assert (advance.skips, advance.next_fire_at, advance.is_late) == ((), 2 * MINUTE, True)
    last = plan(minutely(), 305, missed="all").advance(record(300))
    assert (due_s(last), last.next_fire_at, last.is_late) == ([300], 6 * MINUTE, False)


def test_all_that_was_missed_runs_at_once_where_runs_may_overlap() -> None:
    advance = plan(minutely(), 305, missed="all", overlap="allow").advance(record(60))
    assert due_s(advance) == [60, 120, 180, 240, 300]
    assert (advance.skips, advance.next_fire_at) == ((), 6 * MINUTE)


@pytest.mark.parametrize("overlap", ["skip", "queue_one", "replace"])
def test_what_is_older_than_the_newest_max_catchup_is_skipped(overlap: str) -> None:
    advance = plan(minutely(), 600, missed="all", overlap=overlap, max_catchup=3).advance(record(60))
    assert due_s(advance) == [480]
    assert told(advance.skips) == [(CATCH_UP, 60, 420, 7)]
    assert advance.next_fire_at == 9 * MINUTE


@pytest.mark.parametrize("max_catchup", [1, 5, 100, 1000])
def test_case_025_a_plan_never_makes_more_jobs_than_max_catchup(max_catchup: int) -> None:
    years_s = 10 * 365 * 86_400
    advance = plan(
        every(1).anchored(0), years_s, missed="all", overlap="allow", max_catchup=max_catchup
    ).advance(record(1))
    assert due_s(advance) == list(range(years_s - max_catchup + 1, years_s + 1))
    assert told(advance.skips) == [(CATCH_UP, 1, years_s - max_catchup, years_s - max_catchup)]
    assert advance.next_fire_at == (years_s + 1) * S


def test_a_count_that_is_not_exact_says_so() -> None:
    listed = Listed(range(1, 5_000))
    for missed, outcome in (("latest", MERGED), ("skip", MISSED), ("all", CATCH_UP)):
        advance = plan(listed, 6_000, missed=missed, max_catchup=1).advance(record(1))
        (skip,) = advance.skips
        assert (skip.outcome, skip.is_exact, skip.first_at) == (outcome, False, S)
        assert 1000 < skip.count < 5_000


def test_a_last_instant_leaves_none_to_come() -> None:
    advance = plan(Listed([60]), 60).advance(record(60))
    assert (due_s(advance), advance.next_fire_at) == ([60], None)


def test_the_end_bounds_what_is_made_up_for() -> None:
    advance = plan(minutely(), 3_600, ends_at=5 * MINUTE).advance(record(60))
    assert (due_s(advance), advance.next_fire_at) == ([300], None)


def test_an_instant_that_stands_for_a_skipped_wall_time_carries_it() -> None:
    advance = plan(Listed([60, 120], moved=[60]), 60).advance(record(60))
    assert advance.moved == {60 * S: "wall 60"}
    assert plan(Listed([60, 120], moved=[120]), 60).advance(record(60)).moved == {}


# ------------------------------------------------------------------------------------- fixed delay


@pytest.mark.parametrize("missed", ["latest", "skip", "all"])
def test_after_a_fixed_delay_one_run_comes_and_the_next_instant_is_not_known(missed: str) -> None:
    delayed = every("1m", after="finish")
    advance = plan(delayed, 60, missed=missed).advance(record(60, delay_us=MINUTE))
    assert (due_s(advance), advance.next_fire_at, advance.skips) == ([60], None, ())


def test_a_late_fixed_delay_runs_late_or_begins_anew() -> None:
    delayed, seen = every("1m", after="finish"), record(60, delay_us=MINUTE)
    for missed in ("latest", "all"):
        advance = plan(delayed, 3_600, missed=missed).advance(seen)
        assert (due_s(advance), advance.is_late) == ([60], True)
    advance = plan(delayed, 3_600, missed="skip").advance(seen)
    assert (due_s(advance), advance.next_fire_at) == ([], 61 * MINUTE)
    assert told(advance.skips) == [(MISSED, 60, 60, 1)]


def test_a_fixed_delay_that_begins_anew_stays_before_the_end() -> None:
    seen = record(60, delay_us=MINUTE, ends_at=3_630 * S)
    advance = plan(every("1m", after="finish"), 3_600, missed="skip").advance(seen)
    assert advance.next_fire_at is None
