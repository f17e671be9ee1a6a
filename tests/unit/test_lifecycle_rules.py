"""The rules that open `lifecycle`, one by one, on single jobs."""

from __future__ import annotations

import pytest
from tests.unit.lives import BOOM, ENDS_OF_AN_ATTEMPT, NOW, SECOND, after, label, ready, running

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
    lost_worker,
)
from betimes.core.job import AttemptOutcome, Job, JobStatus
from betimes.core.lifecycle import CRASH_BUDGET, decide, is_current, is_repeated, place
from betimes.core.transition import ATTEMPTS_KEPT, enter, event_of
from betimes.errors import IllegalTransition

# Rule 1: where a job enters


def test_a_job_with_unmet_dependencies_is_blocked_whatever_its_run_at() -> None:
    job = ready(run_at=NOW + SECOND)
    job.unmet = 1
    assert place(job, NOW) is JobStatus.BLOCKED


def test_a_job_is_delayed_until_the_very_microsecond_of_its_run_at() -> None:
    job = ready(run_at=NOW + 1)
    assert place(job, NOW) is JobStatus.DELAYED
    assert place(job, NOW + 1) is JobStatus.READY


def test_a_released_job_whose_time_has_come_counts_its_lag_from_now() -> None:
    job = ready(run_at=NOW)
    job.unmet, job.status = 1, JobStatus.BLOCKED
    after(job, Released(NOW + 5 * SECOND))
    assert (job.status, job.run_at, job.unmet) == (JobStatus.READY, NOW + 5 * SECOND, 0)


def test_a_released_job_still_waits_for_its_run_at() -> None:
    job = ready(run_at=NOW + 9 * SECOND)
    job.unmet, job.status = 1, JobStatus.BLOCKED
    after(job, Released(NOW + 5 * SECOND))
    assert (job.status, job.run_at) == (JobStatus.DELAYED, NOW + 9 * SECOND)


def test_p14_nothing_is_promoted_before_its_run_at() -> None:
    job = ready(run_at=NOW + 1)
    with pytest.raises(IllegalTransition, match="before run_at") as caught:
        decide(job, Promoted(NOW))
    assert (caught.value.status, caught.value.event) == ("delayed", "Promoted")
    assert after(job, Promoted(NOW + 1)).status is JobStatus.READY


def test_p28_a_parked_job_is_not_claimed() -> None:
    job = after(running(), GivenBack(NOW, parked="unknown task"))
    assert (job.status, job.parked) == (JobStatus.READY, "unknown task")
    with pytest.raises(IllegalTransition, match="parked"):
        decide(job, Claimed(NOW, "w"))
    after(job, Unparked(NOW))
    assert job.parked is None
    assert after(job, Claimed(NOW, "w")).status is JobStatus.RUNNING


# Rule 2: decide() reads the record as it stands, flags included


def test_decide_writes_nothing() -> None:
    job = running()
    decide(job, Succeeded(NOW, b"1"))
    assert (job.status, job.result, job.worker) == (JobStatus.RUNNING, None, "w")


def test_a_refusal_names_event_and_status() -> None:
    with pytest.raises(IllegalTransition, match="Succeeded does not apply to a job that is READY"):
        decide(ready(), Succeeded(NOW, b"1"))


def test_what_is_claimed_is_marked_with_worker_fence_attempt_and_start() -> None:
    job = running()
    assert (job.worker, job.fence, job.attempt, job.started_at) == ("w", 1, 1, NOW)


# Rule 3: fences


def test_p07_a_report_counts_only_under_the_fence_of_the_attempt_that_runs() -> None:
    job = running()
    assert is_current(job, 1)
    assert not is_current(job, 0)
    assert not is_current(job, 2)
    assert not is_current(ready(), 0)


def test_a_repeated_report_is_told_from_a_stale_one() -> None:
    job = running()
    assert not is_repeated(job, 1), "it has not been written yet"
    after(job, Succeeded(NOW, b"1"))
    assert is_repeated(job, 1)
    assert not is_repeated(job, 2)
    assert not is_repeated(ready(), 0), "a job that never ran has no report to repeat"


@pytest.mark.parametrize(
    "event", [WorkerLost(NOW), CancelRequested(NOW, abandon=True)], ids=["rescue", "abandonment"]
)
def test_p07_after_a_rescue_and_an_abandonment_the_holders_report_is_stale(event: Event) -> None:
    job = after(running(), event)
    assert not is_current(job, 1)
    assert not is_repeated(job, 1)


def test_abandoning_a_job_that_waits_leaves_the_fence_alone() -> None:
    assert after(ready(), CancelRequested(NOW, abandon=True)).fence == 0


# Rule 4: cancelled and superseded attempts


@pytest.mark.parametrize("event", ENDS_OF_AN_ATTEMPT, ids=label)
def test_a_cancelled_attempt_ends_cancelled_however_its_code_returns(event: Event) -> None:
    job = after(running(), CancelRequested(NOW, "not wanted"))
    assert (job.status, job.cancel_requested, job.worker) == (JobStatus.RUNNING, True, "w")
    after(job, event)
    assert (job.status, job.reason, job.result) == (JobStatus.CANCELLED, "not wanted", None)


def test_the_last_word_on_why_a_job_is_cancelled_counts() -> None:
    job = after(
        running(), CancelRequested(NOW, "first"), CancelRequested(NOW, "second"), Succeeded(NOW, b"1")
    )
    assert job.reason == "second"


@pytest.mark.parametrize(
    ("event", "status"),
    [
        (Succeeded(NOW, b"1"), JobStatus.COMPLETED),
        (Errored(NOW, BOOM, retry_in_us=SECOND), JobStatus.FAILED),
        (DeadlinePassed(NOW, BOOM, retry_in_us=SECOND), JobStatus.TIMED_OUT),
        (Snoozed(NOW, SECOND), JobStatus.CANCELLED),
        (Withdrawn(NOW), JobStatus.CANCELLED),
        (GivenBack(NOW), JobStatus.CANCELLED),
        (WorkerLost(NOW), JobStatus.CANCELLED),
    ],
)
def test_a_superseded_attempt_is_the_last_one(event: Event, status: JobStatus) -> None:
    job = after(running(), Superseded(NOW))
    assert (job.status, job.superseded) == (JobStatus.RUNNING, True)
    assert after(job, event).status is status


@pytest.mark.parametrize("event", [Snoozed(NOW, SECOND), GivenBack(NOW), WorkerLost(NOW)], ids=label)
def test_a_superseded_attempt_that_wanted_to_go_on_is_replaced(event: Event) -> None:
    assert after(running(), Superseded(NOW), event).reason == "replaced"


def test_an_attempt_both_cancelled_and_superseded_says_why_it_was_cancelled() -> None:
    job = after(running(), Superseded(NOW), CancelRequested(NOW, "not wanted"), GivenBack(NOW))
    assert (job.status, job.reason) == (JobStatus.CANCELLED, "not wanted")


def test_a_version_that_has_not_started_is_replaced_at_once() -> None:
    job = after(ready(), Superseded(NOW))
    assert (job.status, job.reason, job.superseded) == (JobStatus.CANCELLED, "replaced", False)


def test_a_job_that_cancels_itself_gives_its_own_reason() -> None:
    job = after(running(), Withdrawn(NOW, "nothing to do"))
    assert (job.status, job.reason) == (JobStatus.CANCELLED, "nothing to do")


def test_p13_an_abandoned_job_is_cancelled_while_its_code_goes_on() -> None:
    job = after(running(), CancelRequested(NOW, "stuck", abandon=True))
    assert (job.status, job.reason, job.worker) == (JobStatus.CANCELLED, "stuck", None)


# Rule 5: what uses an attempt


def outcomes(job: Job) -> list[tuple[int, int, str]]:
    return [(one.attempt, one.fence, one.outcome) for one in job.attempts]


def test_errors_and_timeouts_use_attempts_and_nothing_else_does() -> None:
    job = after(
        ready(),
        *(Claimed(NOW, "w"), Errored(NOW, BOOM, retry_in_us=0)),
        *(Claimed(NOW, "w"), Snoozed(NOW, 0)),
        *(Claimed(NOW, "w"), GivenBack(NOW)),
        *(Claimed(NOW, "w"), WorkerLost(NOW)),
        *(Claimed(NOW, "w"), DeadlinePassed(NOW, BOOM, retry_in_us=0)),
        *(Claimed(NOW, "w"), Succeeded(NOW, b"1")),
    )
    assert outcomes(job) == [
        (1, 1, "failed"),
        (2, 2, "snoozed"),
        (2, 3, "given_back"),
        (2, 4, "lost"),
        (2, 6, "timed_out"),  # the rescue raised the fence as well
    ]
    assert (job.status, job.attempt, job.fence, job.crashes) == (JobStatus.COMPLETED, 3, 7, 1)


def test_an_attempt_is_remembered_with_its_own_error_only() -> None:
    job = after(ready(), Claimed(NOW, "w"), Errored(NOW + 1, BOOM, retry_in_us=0))
    assert job.error == BOOM
    after(job, Claimed(NOW + 2, "w"), Snoozed(NOW + 3, 0))
    assert job.attempts == (
        AttemptOutcome(attempt=1, fence=1, started_at=NOW, ended_at=NOW + 1, outcome="failed", error=BOOM),
        AttemptOutcome(attempt=2, fence=2, started_at=NOW + 2, ended_at=NOW + 3, outcome="snoozed"),
    )


@pytest.mark.parametrize(
    ("event", "status", "run_at"),
    [
        (Errored(NOW, BOOM, retry_in_us=0), JobStatus.READY, NOW),
        (Errored(NOW, BOOM, retry_in_us=SECOND), JobStatus.DELAYED, NOW + SECOND),
        (DeadlinePassed(NOW, BOOM, retry_in_us=SECOND), JobStatus.DELAYED, NOW + SECOND),
        (Snoozed(NOW, 0), JobStatus.READY, NOW),
        (Snoozed(NOW, SECOND), JobStatus.DELAYED, NOW + SECOND),
    ],
)
def test_a_further_attempt_waits_for_its_delay(event: Event, status: JobStatus, run_at: int) -> None:
    job = after(running(), event)
    assert (job.status, job.run_at) == (status, run_at)


@pytest.mark.parametrize(
    ("event", "status"),
    [(Errored(NOW, BOOM), JobStatus.FAILED), (DeadlinePassed(NOW, BOOM), JobStatus.TIMED_OUT)],
)
def test_without_a_retry_the_last_error_is_the_jobs(event: Event, status: JobStatus) -> None:
    job = after(running(), event)
    assert (job.status, job.error, job.finished_at, job.attempts) == (status, BOOM, NOW, ())


def test_p11_a_job_whose_workers_die_is_given_up_as_a_poison_pill() -> None:
    job = ready()
    for _ in range(CRASH_BUDGET - 1):
        after(job, Claimed(NOW, "w"), WorkerLost(NOW))
        assert (job.status, job.attempt) == (JobStatus.READY, 0)
    after(job, Claimed(NOW, "w"), WorkerLost(NOW))
    assert (job.status, job.attempt, job.crashes) == (JobStatus.FAILED, 1, CRASH_BUDGET)
    assert job.reason is not None
    assert "poison pill" in job.reason


@pytest.mark.parametrize(
    ("pid", "is_gone", "story"),
    [
        (7, True, "worker w (pid 7 on host) was lost: its process is gone"),
        (7, False, "worker w (pid 7 on host) was lost: it did not prolong its lease in time"),
        (0, False, "worker w was lost: it did not prolong its lease in time"),
    ],
)
def test_case_149_the_history_says_which_worker_was_lost_and_how(pid: int, is_gone: bool, story: str) -> None:
    lost = lost_worker(NOW, worker="w", pid=pid, host="host", is_gone=is_gone)
    job = after(ready(), Claimed(NOW, "w"), lost)
    assert [attempt.note for attempt in job.attempts] == [story]
    assert job.reason is None
    after(job, Claimed(NOW, "w"), lost, Claimed(NOW, "w"), lost)
    assert job.status is JobStatus.FAILED
    assert job.reason == f"poison pill: {CRASH_BUDGET} workers died holding it; {story}"


def test_case_149_an_event_speaks_of_the_attempt_that_was_left_and_says_why() -> None:
    job = after(ready(), Claimed(NOW, "w"))
    step = decide(job, lost_worker(NOW, worker="w", pid=0, host="", is_gone=True))
    enter(job, step)
    event = event_of(job, step)
    assert (event.before, event.after, event.attempt) == (JobStatus.RUNNING, JobStatus.READY, 1)
    assert event.error == "worker w was lost: its process is gone"
    assert job.attempt == 0
    step = decide(after(job, Claimed(NOW, "w")), Errored(NOW, BOOM))
    enter(job, step)
    assert (event_of(job, step).attempt, event_of(job, step).error) == (1, str(BOOM))


@pytest.mark.parametrize(
    ("event", "status"),
    [
        (WorkerLost(NOW), JobStatus.FAILED),
        (Errored(NOW, BOOM, retry_in_us=SECOND), JobStatus.FAILED),
        (DeadlinePassed(NOW, BOOM, retry_in_us=SECOND), JobStatus.TIMED_OUT),
    ],
)
def test_p12_what_may_start_once_is_not_started_again(event: Event, status: JobStatus) -> None:
    assert after(running(at_most_once=True), event).status is status


def test_only_so_many_attempts_are_remembered_and_the_numbers_go_on() -> None:
    job = ready()
    for _ in range(ATTEMPTS_KEPT + 5):
        after(job, Claimed(NOW, "w"), Errored(NOW, BOOM, retry_in_us=0))
    assert [one.attempt for one in job.attempts] == list(range(6, ATTEMPTS_KEPT + 6))


# Expiry, dependencies, an operator's retry


def test_a_job_expires_at_the_very_instant_and_not_before() -> None:
    job = ready(expires_at=NOW + 1)
    with pytest.raises(IllegalTransition, match="expires_at"):
        decide(job, Expired(NOW))
    assert after(job, Expired(NOW + 1)).reason == "expired"


def test_a_job_that_has_started_once_never_expires() -> None:
    job = after(ready(expires_at=NOW + 1), Claimed(NOW, "w"), Snoozed(NOW, 0))
    with pytest.raises(IllegalTransition, match="first start"):
        decide(job, Expired(NOW + SECOND))


def test_a_job_without_an_end_never_expires() -> None:
    with pytest.raises(IllegalTransition):
        decide(ready(), Expired(NOW))


def test_a_lost_dependency_is_named() -> None:
    job = ready()
    job.unmet, job.status = 2, JobStatus.BLOCKED
    after(job, DependencyFailed(NOW, "parent"))
    assert (job.status, job.reason, job.unmet) == (JobStatus.CANCELLED, "dependency: parent", 0)


def test_p09_an_operators_retry_starts_afresh_and_is_recorded_with_who_asked() -> None:
    job = after(
        ready(expires_at=NOW + SECOND),
        *(Claimed(NOW, "w"), WorkerLost(NOW), Claimed(NOW, "w"), Superseded(NOW)),
        *(Errored(NOW, BOOM), Retried(NOW + 9, "ops")),
    )
    assert (job.status, job.run_at, job.expires_at, job.finished_at) == (JobStatus.READY, NOW + 9, None, None)
    assert (job.attempt, job.crashes, job.fence, job.superseded) == (0, 0, 3, False)
    assert (job.error, job.reason, job.result) == (None, None, None)
    last = job.attempts[-1]
    assert (last.attempt, last.outcome, last.error, last.note) == (1, "failed", BOOM, "retried by ops")


def test_p06_after_an_operators_retry_the_fence_goes_on() -> None:
    job = after(running(), Succeeded(NOW, b"1"), Retried(NOW, "ops"), Claimed(NOW, "w"))
    assert (job.fence, job.attempt) == (2, 1)
