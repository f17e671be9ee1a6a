"""A schedule's values: what an end does to it, when a step still counts, what a fire's outcome means."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.unit.plots import MINUTE, S, record

from betimes.core.schedule import Advance, FireOutcome, ScheduleRecord, delayed, followed


def test_the_end_of_a_job_lets_go_of_what_is_held() -> None:
    after = followed(record(held_at=120 * S, jobs=(5,)), 5, 130 * S)
    assert after is not None
    assert (after.next_fire_at, after.held_at, after.version) == (120 * S, None, 2)


def test_the_end_of_the_job_waited_for_sets_the_next_fire() -> None:
    after = followed(record(awaits=5, delay_us=MINUTE), 5, 130 * S)
    assert after is not None
    assert (after.next_fire_at, after.awaits, after.version) == (190 * S, None, 2)


def test_an_end_so_late_that_the_schedule_is_over_sets_no_next_fire() -> None:
    for ends_s, next_s in ((190, 190), (189, None)):
        after = followed(record(awaits=5, delay_us=MINUTE, ends_at=ends_s * S), 5, 130 * S)
        assert after is not None
        assert (after.next_fire_at, after.awaits) == (None if next_s is None else next_s * S, None)


@pytest.mark.parametrize(
    "stands",
    [
        record(120, jobs=(5,)),
        record(awaits=6, delay_us=MINUTE),
        record(120, delay_us=MINUTE, jobs=(5,)),
        record(awaits=5),  # it was a fixed delay when that job was made
    ],
)
def test_other_ends_change_nothing(stands: ScheduleRecord) -> None:
    assert followed(stands, 5, 130 * S) is None


def test_a_delay_ends_with_the_schedule() -> None:
    assert delayed(record(delay_us=MINUTE), S) == 61 * S
    assert delayed(record(delay_us=MINUTE, ends_at=61 * S), S) == 61 * S
    assert delayed(record(delay_us=MINUTE, ends_at=60 * S), S) is None


def test_p16_a_step_counts_only_if_the_schedule_stands_as_it_was_seen() -> None:
    seen = record(120)
    step = Advance(record=seen)
    assert step.stands(replace(seen, error="what else changes does not matter"))
    assert not step.stands(None)
    for other in (replace(seen, version=2), replace(seen, next_fire_at=180 * S), replace(seen, paused=True)):
        assert not step.stands(other)


def test_a_run_by_hand_counts_also_while_it_is_paused() -> None:
    seen = record(120, paused=True)
    assert Advance(record=seen, by_hand=True).stands(seen)
    assert not Advance(record=seen).stands(seen)


def test_all_outcomes_but_two_are_skips() -> None:
    made = {outcome for outcome in FireOutcome if not outcome.is_skip}
    assert made == {FireOutcome.FIRED, FireOutcome.BY_HAND}


def test_a_schedule_is_due_after_an_end_if_it_holds_an_instant_or_waits_for_a_run() -> None:
    assert record(held_at=S).is_due_after_an_end
    assert record(awaits=5).is_due_after_an_end
    assert not record(120).is_due_after_an_end
