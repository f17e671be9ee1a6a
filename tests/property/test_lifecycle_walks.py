"""Random lives of one job: whatever happens to it, the invariants hold and its numbers only grow."""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from betimes.core.events import (
    CancelRequested,
    Claimed,
    DeadlinePassed,
    DependencyFailed,
    Errored,
    Event,
    Expired,
    GivenBack,
    Promoted,
    Released,
    Retried,
    Snoozed,
    Succeeded,
    Superseded,
    Unparked,
    Withdrawn,
    WorkerLost,
)
from betimes.core.job import ErrorInfo, Job, JobSpec, JobStatus
from betimes.core.lifecycle import CRASH_BUDGET, LEGAL, decide, place
from betimes.core.transition import ATTEMPTS_KEPT, enter, violations
from betimes.errors import IllegalTransition

START = 1_800_000_000_000_000
BOOM = ErrorInfo(type="ValueError", message="boom")
delays = st.integers(0, 20)


Life: TypeAlias = tuple[int, list[tuple[Event | None, Job]]]


@st.composite
def new_jobs(draw: st.DrawFn) -> Job:
    job = Job(
        "a",
        JobSpec(task="t", at_most_once=draw(st.booleans())),
        submitted_at=START,
        run_at=START + draw(delays),
        expires_at=draw(st.none() | delays.map(lambda us: START + us)),
    )
    job.unmet = draw(st.sampled_from([0, 0, 1, 2]))
    job.status = place(job, START)
    return job


def draw_event(draw: st.DrawFn, job: Job, at: int, max_attempts: int) -> Event:
    """An event that the table allows here; a retry only within the attempts that the policy grants."""
    kind = draw(st.sampled_from([kind for kind in LEGAL if job.status in LEGAL[kind]]))
    may_retry = job.attempt < max_attempts
    retry_in_us = draw(st.none() | delays) if may_retry else None
    made: dict[type[Event], Event] = {
        Released: Released(at),
        DependencyFailed: DependencyFailed(at, "parent"),
        Promoted: Promoted(at),
        Claimed: Claimed(at, draw(st.sampled_from(["w1", "w2"]))),
        Succeeded: Succeeded(at, b"1"),
        Errored: Errored(at, BOOM, retry_in_us),
        DeadlinePassed: DeadlinePassed(at, BOOM, retry_in_us),
        Snoozed: Snoozed(at, draw(delays)),
        Withdrawn: Withdrawn(at),
        GivenBack: GivenBack(at, draw(st.none() | st.just("task"))),
        WorkerLost: WorkerLost(at),
        CancelRequested: CancelRequested(at, abandon=draw(st.booleans())),
        Superseded: Superseded(at),
        Expired: Expired(at),
        Unparked: Unparked(at),
        Retried: Retried(at, "ops"),
    }
    return made[kind]


@st.composite
def lives(draw: st.DrawFn) -> Life:
    """The attempts that are granted, and the states of a job, each with the event that led there."""
    job, max_attempts, at = draw(new_jobs()), draw(st.integers(1, 3)), START
    states: list[tuple[Event | None, Job]] = [(None, job.copy())]
    for _ in range(draw(st.integers(0, 30))):
        at += draw(delays)
        event = draw_event(draw, job, at, max_attempts)
        try:
            enter(job, decide(job, event))
        except IllegalTransition:
            continue  # too early or too late for this very record
        states.append((event, job.copy()))
    return max_attempts, states


@given(lives())
def test_p10_the_invariants_hold_in_every_state_and_the_budgets_too(life: Life) -> None:
    max_attempts, states = life
    for event, job in states:
        assert violations(job) == [], event
        assert len(job.attempts) <= ATTEMPTS_KEPT
        assert job.attempt <= max_attempts
        assert job.crashes <= CRASH_BUDGET
        assert job.crashes < CRASH_BUDGET or job.status.is_terminal


@given(lives())
def test_p06_fences_only_grow_and_p09_terminal_is_final_and_told_to_stop_is_cancelled(life: Life) -> None:
    for (_, before), (event, after) in pairwise(life[1]):
        assert after.fence >= before.fence + isinstance(event, Claimed)
        assert not before.status.is_terminal or isinstance(event, Retried)
        if before.cancel_requested and before.status is JobStatus.RUNNING:
            assert after.status in {JobStatus.RUNNING, JobStatus.CANCELLED}


@given(lives())
def test_p12_p14_starts_are_never_early_and_what_may_start_once_is_not_started_again_unasked(
    life: Life,
) -> None:
    may_start = True
    for event, job in life[1]:
        if isinstance(event, Claimed):
            assert event.at >= job.run_at
            assert may_start or not job.spec.at_most_once
            may_start = False
        elif isinstance(event, Snoozed | GivenBack | Retried):
            may_start = True
