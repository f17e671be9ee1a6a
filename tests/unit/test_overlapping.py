"""Settling a step: what becomes of it beside the jobs that are live, for each policy."""

from __future__ import annotations

import pytest
from tests.unit.plots import MINUTE, S, record, run, told

from betimes.core.job import Job, JobStatus, Micros
from betimes.core.overlapping import Settled, settle
from betimes.core.schedule import Advance, Fire, FireOutcome, Missed, Overlap

READY, RUNNING, BLOCKED = JobStatus.READY, JobStatus.RUNNING, JobStatus.BLOCKED
FIRED, OVERLAP, MERGED = FireOutcome.FIRED, FireOutcome.OVERLAP, FireOutcome.MERGED
NOW = 130 * S
EARLIER = Fire(at=60 * S, first_at=0, count=2, outcome=MERGED, decided_at=NOW)


def step(
    *due_s: float,
    overlap: str = "skip",
    missed: str = "latest",
    live: list[Job] | None = None,
    taken: tuple[float, ...] = (),
    skips: tuple[Fire, ...] = (),
    by_hand: bool = False,
    is_late: bool = False,
    moved: dict[Micros, str] | None = None,
    **fields: object,
) -> Settled:
    """A step of a schedule that was due at second 120, and is due again at 180."""
    live = live or []
    seen = record(120, jobs=tuple(job.seq for job in live), **fields)
    advance = Advance(
        record=seen,
        overlap=Overlap(overlap),
        missed=Missed(missed),
        due=tuple(run(at_s, by_hand=by_hand) for at_s in due_s),
        skips=skips,
        next_fire_at=None if seen.delay_us is not None else 180 * S,
        is_late=is_late,
        by_hand=by_hand,
        moved=moved or {},
    )
    return settle(advance, live=live, taken={round(each * S) for each in taken}, now=NOW)


def waits(settled: Settled) -> list[tuple[str, list[int]]]:
    """The jobs to keep, and whom they wait for."""
    return [(job.id, [other.seq for other in others]) for job, others in settled.runs]


running, waiting = run(60, seq=5, status=RUNNING), run(60, seq=6)


@pytest.mark.parametrize("overlap", list(Overlap))
def test_a_step_that_finds_nothing_in_its_way_fires(overlap: str) -> None:
    settled = step(120, overlap=overlap, skips=(EARLIER,))
    assert waits(settled) == [("new-120", [])]
    assert told(settled.fires) == [(MERGED, 0, 60, 2), (FIRED, 120, 120, 1)]
    assert [fire.job_id for fire in settled.fires] == ["new-120", "new-120"]
    stands = settled.record_with([9])
    assert (stands.version, stands.next_fire_at, stands.last_fire_at) == (2, 180 * S, 120 * S)
    assert (stands.fired, stands.skipped) == (1, 2)
    assert stands.jobs == (() if overlap == "allow" else (9,))


def test_p18_skip_skips_and_names_the_job_in_the_way() -> None:
    settled = step(120, live=[running], skips=(EARLIER,))
    assert (settled.runs, settled.cancels) == ((), ())
    # What was to be merged into this run has its fate.
    assert told(settled.fires) == [(OVERLAP, 0, 60, 2), (OVERLAP, 120, 120, 1)]
    assert {fire.job_id for fire in settled.fires} == {"job-5"}
    stands = settled.record_with([])
    assert (stands.jobs, stands.next_fire_at) == ((5,), 180 * S)
    assert (stands.fired, stands.skipped, stands.last_fire_at) == (0, 3, 120 * S)


def test_p18_skip_counts_a_job_that_waits_to_start_as_in_the_way() -> None:
    assert told(step(120, live=[waiting]).fires) == [(OVERLAP, 120, 120, 1)]


def test_p18_one_is_queued_and_the_next_is_skipped() -> None:
    first = step(120, overlap="queue_one", live=[running])
    assert waits(first) == [("new-120", [5])]
    assert first.record_with([9]).jobs == (5, 9)
    second = step(120, overlap="queue_one", live=[running, run(60, seq=9, status=BLOCKED)])
    assert second.runs == ()
    assert [(fire.outcome, fire.job_id) for fire in second.fires] == [(OVERLAP, "job-9")]


def test_p18_a_run_that_waits_to_be_tried_again_is_no_queued_one() -> None:
    retrying = run(60, seq=5)
    retrying.started_at = 61 * S
    assert waits(step(120, overlap="queue_one", live=[retrying])) == [("new-120", [5])]


def test_p18_replace_cancels_what_lives_and_waits_for_the_code_that_runs() -> None:
    blocked = run(60, seq=7, status=BLOCKED)
    settled = step(120, overlap="replace", live=[running, blocked])
    assert settled.cancels == (running, blocked)
    assert waits(settled) == [("new-120", [5])]
    assert settled.record_with([9]).jobs == (5, 9)
    assert told(settled.fires) == [(FIRED, 120, 120, 1)]


def test_p18_allow_runs_beside_the_others_and_remembers_none() -> None:
    settled = step(120, 121, overlap="allow", missed="all", live=[running], is_late=True)
    assert waits(settled) == [("new-120", []), ("new-121", [])]
    assert settled.record_with([8, 9]).jobs == ()
    assert settled.record_with([8, 9]).fired == 2


def test_p16_an_instant_that_was_decided_before_is_stepped_over() -> None:
    settled = step(120, taken=(120,), live=[running])
    assert (settled.runs, settled.fires) == ((), ())
    stands = settled.record_with([])
    assert (stands.version, stands.next_fire_at, stands.jobs) == (2, 180 * S, (5,))
    assert (stands.fired, stands.skipped, stands.last_fire_at) == (0, 0, None)


def test_p16_of_several_instants_only_those_decided_before_are_stepped_over() -> None:
    settled = step(119, 120, 121, overlap="allow", missed="all", taken=(120,))
    assert waits(settled) == [("new-119", []), ("new-121", [])]


def test_p18_what_is_not_made_up_for_is_no_overlap() -> None:
    missed = Fire(at=60 * S, first_at=0, count=2, outcome=FireOutcome.MISSED, decided_at=NOW)
    assert step(120, live=[running], skips=(missed,)).fires[0] is missed


def test_the_newest_instant_is_the_last_one_also_after_the_clock_was_set_back() -> None:
    assert step(120, last_fire_at=500 * S).record.last_fire_at == 500 * S


def test_a_moved_instant_is_remembered_with_its_wall_time() -> None:
    moved = {120 * S: "2025-03-30T02:30[Europe/Berlin]"}
    for live in ([], [running]):
        (fire,) = step(120, moved=moved, live=live).fires
        assert fire.moved_from == "2025-03-30T02:30[Europe/Berlin]"


# ------------------------------------------------------------------------------------ missed="all"


@pytest.mark.parametrize("overlap", ["skip", "queue_one", "replace"])
def test_p18_an_instant_that_was_missed_is_held_until_the_run_before_it_has_ended(overlap: str) -> None:
    catch_up = Fire(at=60 * S, first_at=0, count=2, outcome=FireOutcome.CATCH_UP, decided_at=NOW)
    settled = step(
        120, overlap=overlap, missed="all", live=[running], is_late=True, skips=(catch_up,), fired=7
    )
    assert (settled.runs, settled.cancels, settled.fires) == ((), (), (catch_up,))
    stands = settled.record_with([])
    assert (stands.held_at, stands.next_fire_at, stands.jobs) == (120 * S, None, (5,))
    assert (stands.fired, stands.skipped, stands.version) == (7, 2, 2)
    assert stands.is_due_after_an_end


def test_p18_an_instant_on_time_is_held_while_an_earlier_run_has_not_started() -> None:
    held = step(120, missed="all", live=[running, waiting])
    assert held.record.held_at == 120 * S
    skipped = step(120, missed="all", live=[running])
    assert told(skipped.fires) == [(OVERLAP, 120, 120, 1)]


def test_p18_an_instant_that_waited_behind_others_is_held_also_if_it_is_hardly_late() -> None:
    """Else the last of those that are caught up with would be skipped for the one before it."""
    for began_s, held_at in ((121, 120 * S), (120, 120 * S), (119, None)):
        began = run(began_s, seq=5, status=RUNNING)
        assert step(120, missed="all", live=[began]).record.held_at == held_at


def test_what_is_held_is_let_go_by_the_step_that_fires_it() -> None:
    assert step(120, missed="all", held_at=120 * S).record.held_at is None


# ---------------------------------------------------------------------------------------- by hand


@pytest.mark.parametrize("missed", ["latest", "all"])
def test_a_run_by_hand_waits_for_what_lives_and_moves_nothing(missed: str) -> None:
    for overlap in ("skip", "queue_one"):
        settled = step(
            130, overlap=overlap, missed=missed, live=[running, waiting], by_hand=True, fired=3, held_at=S,
            taken=(130,), awaits=5,
        )  # fmt: skip
        assert waits(settled) == [("new-130", [5, 6])]
        assert [(fire.outcome, fire.at) for fire in settled.fires] == [(FireOutcome.BY_HAND, 130 * S)]
        stands = settled.record_with([9])
        assert (stands.next_fire_at, stands.held_at, stands.awaits) == (120 * S, S, 5)
        assert (stands.fired, stands.skipped, stands.last_fire_at) == (3, 0, None)
        assert stands.jobs == (5, 6, 9)


def test_a_run_by_hand_replaces_or_runs_beside_as_the_policy_says() -> None:
    replaced = step(130, overlap="replace", live=[running], by_hand=True)
    assert (replaced.cancels, waits(replaced)) == ((running,), [("new-130", [5])])
    beside = step(130, overlap="allow", live=[running], by_hand=True)
    assert (beside.cancels, waits(beside)) == ((), [("new-130", [])])


def test_a_run_by_hand_does_not_set_the_next_fire_of_a_fixed_delay() -> None:
    settled = step(130, by_hand=True, delay_us=MINUTE, awaits=5)
    assert settled.record_with([9]).awaits == 5


# ------------------------------------------------------------------------------------- fixed delay


@pytest.mark.parametrize("overlap", ["skip", "allow"])
def test_after_a_run_a_fixed_delay_waits_for_its_end(overlap: str) -> None:
    stands = step(120, overlap=overlap, delay_us=MINUTE).record_with([9])
    assert (stands.awaits, stands.next_fire_at) == (9, None)


def test_a_fixed_delay_that_is_skipped_waits_for_the_job_in_the_way() -> None:
    stands = step(120, delay_us=MINUTE, live=[running]).record_with([])
    assert (stands.awaits, stands.next_fire_at) == (5, None)


def test_a_fixed_delay_that_has_nothing_to_wait_for_goes_by_time() -> None:
    stands = step(120, taken=(120,), delay_us=MINUTE).record_with([])
    assert (stands.awaits, stands.next_fire_at) == (None, NOW + MINUTE)
    over = step(120, taken=(120,), delay_us=MINUTE, ends_at=NOW + MINUTE - 1).record_with([])
    assert (over.awaits, over.next_fire_at) == (None, None)


def test_a_job_that_names_no_fire_is_no_job_of_a_schedule() -> None:
    stray = Advance(record=record(120), due=(Job("stray", record().spec),))
    with pytest.raises(AssertionError, match="names its fire"):
        settle(stray, live=[], taken=(), now=NOW)
