"""`explain`: each reason once, in plain words, with what would change it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.lives import BOOM, NOW, SECOND, after, ready, running

from betimes.core.durations import from_us
from betimes.core.events import (
    CancelRequested,
    Claimed,
    DeadlinePassed,
    DependencyFailed,
    Errored,
    Event,
    Expired,
    GivenBack,
    Retried,
    Snoozed,
    Succeeded,
    Superseded,
)
from betimes.core.explain import Explanation, explain
from betimes.core.job import Job, JobSpec, JobStatus
from betimes.core.lifecycle import place
from betimes.core.queue_view import Pause
from betimes.core.reason import Reason, ReasonCode
from betimes.core.situation import Here, Occupant, OtherJob, Situation, WorkerSeen

MINUTE = 60 * SECOND
LANES = {"loop": 2, "thread": 1}

ME = WorkerSeen(id="w", queues=None, lease_us=30 * SECOND, is_alive=True)
OTHER = WorkerSeen(id="other", queues=None, lease_us=30 * SECOND, is_alive=True, host="ham", pid=7)


def here(**given: Any) -> Here:
    return Here(**{"worker": "w", "queues": None, "tasks": {"t"}, "slots": LANES, "concurrency": 2, **given})


def around(**given: Any) -> Situation:
    """The situation in which nothing is in a job's way, but for what is given."""
    return Situation(**{"now": NOW, "here": here(), "workers": (ME,), **given})


def in_flight(seq: int, lane: str = "loop", **given: Any) -> Occupant:
    shown: dict[str, Any] = {"job_id": f"job-{seq}", "task": "t", "attempt": 1, "since": NOW - MINUTE} | given
    return Occupant(seq=seq, lane=lane, **shown)


def blocked(*, run_at: int = NOW) -> Job:
    job = ready(run_at=run_at)
    job.unmet, job.depends_on = 1, ("x",)
    job.status = place(job, NOW)
    return job


def of_lane(lane: str, *, queue: str = "default", task: str = "t") -> Job:
    spec = JobSpec(task=task, queue=queue, lane=lane)
    return Job("a", spec, submitted_at=NOW, run_at=NOW)


def codes(explanation: Explanation) -> list[ReasonCode]:
    return [reason.code for reason in explanation.reasons]


def only(job: Job, situation: Situation, code: ReasonCode) -> Reason:
    """The one reason, which must be of this kind."""
    explanation = explain(job, situation)
    assert codes(explanation) == [code]
    (reason,) = explanation.reasons
    assert reason.text
    assert reason.change
    return reason


# --- nothing in the way


def test_a_job_with_nothing_in_its_way_is_expected_at_once() -> None:
    explanation = explain(ready(), around())
    assert explanation.codes == {ReasonCode.NOTHING_IN_THE_WAY}
    assert explanation.expected_start == from_us(NOW)
    assert (explanation.job_id, explanation.status) == ("a", JobStatus.READY)


def test_what_is_due_is_as_good_as_ready() -> None:
    job = ready(run_at=NOW + 5)
    only(job, around(now=NOW + 5), ReasonCode.NOTHING_IN_THE_WAY)


@pytest.mark.parametrize("mine", [None, here(queues=("x",)), here(is_stopping=True)])
def test_of_other_workers_only_what_can_be_seen_is_said(mine: Here | None) -> None:
    reason = only(ready(), around(here=mine, workers=(OTHER,)), ReasonCode.NOTHING_IN_THE_WAY)
    assert "can be seen from here" in reason.text
    assert "worker other" in reason.text


# --- time


def test_a_job_that_is_not_due_says_when() -> None:
    job = ready(run_at=NOW + 5 * MINUTE)
    reason = only(job, around(), ReasonCode.NOT_DUE)
    assert "2027-01-15 08:05:00 UTC (in 5m)" in reason.text
    assert reason.expected_at == from_us(NOW + 5 * MINUTE)
    assert reason.expected_at is not None
    assert reason.expected_at.utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (
            Errored(NOW, BOOM, retry_in_us=MINUTE),
            "Attempt 1 failed with ValueError: boom; the next one is due",
        ),
        (
            DeadlinePassed(NOW, BOOM, retry_in_us=MINUTE),
            "Attempt 1 timed out with ValueError: boom; the next",
        ),
    ],
)
def test_a_job_between_two_attempts_says_why_the_last_one_failed(event: Event, text: str) -> None:
    explanation = explain(after(running(), event), around())
    assert codes(explanation) == [ReasonCode.BACKING_OFF]
    assert text in str(explanation)
    assert explanation.expected_start == from_us(NOW + MINUTE)


def test_an_attempt_may_have_failed_without_an_error_on_record() -> None:
    job = after(running(), Errored(NOW, BOOM, retry_in_us=MINUTE))
    (last,) = job.attempts
    object.__setattr__(last, "error", None)
    assert "Attempt 1 failed; the next" in only(job, around(), ReasonCode.BACKING_OFF).text


def test_a_snoozed_job_says_that_it_asked_for_it() -> None:
    job = after(running(), Snoozed(NOW, MINUTE))
    reason = only(job, around(), ReasonCode.SNOOZED)
    assert "asked to run again later" in reason.text
    assert reason.expected_at == from_us(NOW + MINUTE)


def test_a_ready_job_is_not_called_early_after_the_clock_went_back() -> None:
    only(ready(), around(now=NOW - MINUTE), ReasonCode.NOTHING_IN_THE_WAY)


# --- expiry


def test_an_expired_job_will_not_start_and_nothing_else_matters() -> None:
    job = ready(expires_at=NOW)
    reason = only(job, around(here=None, workers=(), paused={"default": Pause()}), ReasonCode.EXPIRED)
    assert "2027-01-15 08:00:00 UTC" in reason.text


def test_a_job_that_may_expire_says_until_when_it_waits() -> None:
    explanation = explain(ready(expires_at=NOW + MINUTE), around())
    assert codes(explanation) == [ReasonCode.NOTHING_IN_THE_WAY, ReasonCode.WILL_EXPIRE]
    assert explanation.expected_start == from_us(NOW), "the note is about later"
    assert explanation.reasons[1].expected_at == from_us(NOW + MINUTE)
    assert "(in 1m), it ends CANCELLED" in str(explanation)


def test_a_job_that_expires_before_it_is_due_is_told_so() -> None:
    explanation = explain(ready(run_at=NOW + 5 * MINUTE, expires_at=NOW + MINUTE), around())
    assert codes(explanation) == [ReasonCode.NOT_DUE, ReasonCode.WILL_EXPIRE]
    assert "which is before it is due" in str(explanation)
    assert explanation.expected_start is None, "it never will"


def test_a_job_that_has_started_once_does_not_expire() -> None:
    job = after(running(), GivenBack(NOW))
    job.expires_at = NOW - 1
    only(job, around(), ReasonCode.NOTHING_IN_THE_WAY)


# --- other jobs


def test_a_blocked_job_names_what_it_waits_for() -> None:
    others = (
        OtherJob(job_id="x", status=JobStatus.RUNNING, started_at=NOW - MINUTE, worker="w"),
        OtherJob(job_id="y", status=JobStatus.DELAYED),
        OtherJob(job_id="z", status=JobStatus.COMPLETED),
        OtherJob(job_id="gone", status=None),
    )
    explanation = explain(blocked(), around(dependencies=others))
    assert codes(explanation) == [ReasonCode.WAITING_FOR_JOBS]
    text = explanation.reasons[0].text
    assert "Of the 4 jobs it depends on, 2 have not ended" in text
    assert "x (RUNNING for 1m on worker w) and y (DELAYED)" in text
    assert explanation.expected_start is None


def test_a_blocked_job_whose_dependencies_have_just_ended_says_so() -> None:
    done = (OtherJob(job_id="x", status=JobStatus.COMPLETED),)
    assert "just ended" in only(blocked(), around(dependencies=done), ReasonCode.WAITING_FOR_JOBS).text


def test_a_blocked_job_that_is_not_due_either_says_both() -> None:
    others = (OtherJob(job_id="x", status=JobStatus.READY),)
    explanation = explain(blocked(run_at=NOW + MINUTE), around(dependencies=others))
    assert codes(explanation) == [ReasonCode.WAITING_FOR_JOBS, ReasonCode.NOT_DUE]
    assert explanation.expected_start is None, "one of the two cannot be said"


def test_a_replacement_waits_for_the_older_version() -> None:
    older = (OtherJob(job_id="a", status=JobStatus.RUNNING, started_at=NOW - MINUTE, worker="w"),)
    reason = only(blocked(), around(older=older), ReasonCode.OLDER_VERSION_RUNNING)
    assert "a (RUNNING for 1m on worker w)" in reason.text


def test_a_replacement_may_wait_for_dependencies_too() -> None:
    older = (OtherJob(job_id="a", status=JobStatus.RUNNING),)
    others = (OtherJob(job_id="x", status=JobStatus.READY),)
    explanation = explain(blocked(), around(older=older, dependencies=others))
    assert codes(explanation) == [ReasonCode.OLDER_VERSION_RUNNING, ReasonCode.WAITING_FOR_JOBS]
    assert "a (RUNNING)" in str(explanation)


# --- queues and workers


def test_a_paused_queue_is_named_with_the_way_out() -> None:
    reason = only(ready(), around(paused={"default": Pause()}), ReasonCode.QUEUE_PAUSED)
    assert reason.change == "await scheduler.resume_queue('default')"


def test_a_paused_queue_says_since_when_and_by_whom() -> None:
    pause = Pause(at=NOW - MINUTE, by="ops, for the move")
    reason = only(ready(), around(paused={"default": pause}), ReasonCode.QUEUE_PAUSED)
    assert reason.text == (
        "Queue 'default' is paused since 2027-01-15 07:59:00 UTC (1m ago), by ops, for the move."
    )


def test_without_any_worker_nothing_runs() -> None:
    dead = WorkerSeen(id="dead", queues=None, lease_us=SECOND, is_alive=False)
    for workers in ((), (dead,)):
        reason = only(ready(), around(here=None, workers=workers), ReasonCode.NO_WORKER)
        assert "client" in reason.text


@pytest.mark.parametrize(
    ("mine", "workers", "served"),
    [
        (here(queues=("b", "a")), (ME,), "'a' and 'b'"),
        (None, (WorkerSeen(id="o", queues=("c",), lease_us=1, is_alive=True),), "'c'"),
        (here(queues=("b",), is_stopping=True), (), "none"),
    ],
)
def test_a_queue_that_nobody_serves_is_named_with_those_that_are(
    mine: Here | None, workers: tuple[WorkerSeen, ...], served: str
) -> None:
    workers = tuple(worker for worker in workers if worker is not ME)
    reason = only(ready(), around(here=mine, workers=workers), ReasonCode.QUEUE_NOT_SERVED)
    assert f"served are: {served}." in reason.text


def test_a_stopping_worker_claims_nothing_more() -> None:
    only(ready(), around(here=here(is_stopping=True)), ReasonCode.WORKER_STOPPING)


def test_another_worker_that_serves_the_queue_is_enough() -> None:
    only(ready(), around(here=here(queues=()), workers=(ME, OTHER)), ReasonCode.NOTHING_IN_THE_WAY)


# --- tasks and lanes


@pytest.mark.parametrize(
    ("parked", "code"),
    [("task:gone", ReasonCode.TASK_UNKNOWN), ("lane:process", ReasonCode.LANE_NOT_SERVED)],
)
@pytest.mark.parametrize("mine", [None, here()])
def test_what_nobody_could_run_is_put_aside(parked: str, code: ReasonCode, mine: Here | None) -> None:
    job = ready()
    job.parked = parked
    reason = only(job, around(here=mine, workers=(ME, OTHER)), code)
    assert repr(parked.partition(":")[2]) in reason.text
    assert "Start a worker" in reason.change


@pytest.mark.parametrize(
    ("parked", "code"), [("task:t", ReasonCode.TASK_UNKNOWN), ("lane:loop", ReasonCode.LANE_NOT_SERVED)]
)
def test_what_this_worker_can_run_after_all_it_takes_back(parked: str, code: ReasonCode) -> None:
    job = ready()
    job.parked = parked
    assert "at its next look" in only(job, around(), code).change


def test_a_job_may_be_put_aside_under_any_name() -> None:
    job = ready()
    job.parked = "permit:printer"
    assert "'permit:printer'" in only(job, around(), ReasonCode.PARKED).text


def test_a_job_whose_row_is_damaged_says_what_is_wrong_with_it() -> None:
    job = ready()
    job.parked = "row:the column rare cannot be read"
    assert "the column rare cannot be read" in only(job, around(), ReasonCode.PARKED).text


def test_a_task_that_the_only_worker_does_not_know_is_named() -> None:
    job = of_lane("loop", task="unheard")
    assert "'unheard'" in only(job, around(), ReasonCode.TASK_UNKNOWN).text
    only(job, around(workers=(ME, OTHER)), ReasonCode.NOTHING_IN_THE_WAY)


def test_a_lane_that_the_only_worker_does_not_have_is_named() -> None:
    job = of_lane("process")
    assert "'process'" in only(job, around(), ReasonCode.LANE_NOT_SERVED).text
    only(job, around(workers=(ME, OTHER)), ReasonCode.NOTHING_IN_THE_WAY)


def test_what_other_workers_say_they_know_is_looked_at() -> None:
    job = of_lane("process", task="unheard")
    knows = replace(OTHER, tasks=("unheard",), lanes=("process",))
    only(job, around(workers=(ME, knows)), ReasonCode.NOTHING_IN_THE_WAY)
    another = replace(OTHER, tasks=("t",), lanes=("loop",))
    reason = only(job, around(workers=(ME, another)), ReasonCode.TASK_UNKNOWN)
    assert "None of the workers that serve its queue has one." in reason.text
    only(job, around(workers=(ME, replace(another, tasks=None))), ReasonCode.LANE_NOT_SERVED)
    reason = only(job, around(here=None, workers=(another,)), ReasonCode.TASK_UNKNOWN)
    assert "The only worker that serves its queue has none." in reason.text
    only(job, around(here=here(queues=()), workers=(ME, another)), ReasonCode.TASK_UNKNOWN)
    halves = (replace(another, lanes=("process",)), replace(another, id="third", tasks=("unheard",)))
    reason = only(job, around(here=None, workers=halves), ReasonCode.TASK_UNKNOWN)
    assert "has both it and an executor for lane 'process'." in reason.text
    only(job, around(here=here(is_stopping=True), workers=(ME, another)), ReasonCode.TASK_UNKNOWN)


def test_a_worker_whose_process_has_ended_serves_nobody() -> None:
    only(ready(), around(here=None, workers=(replace(OTHER, is_gone=True),)), ReasonCode.NO_WORKER)


# --- slots


def test_code_that_still_runs_keeps_the_next_attempt_waiting() -> None:
    job = after(running(), DeadlinePassed(NOW, BOOM, retry_in_us=0))
    stuck = in_flight(job.seq, job_id=job.id, lane="thread", is_stuck=True)
    reason = only(job, around(here=here(occupants=(stuck,))), ReasonCode.CODE_STILL_RUNNING)
    assert "The code of attempt 1 still runs here (lane 'thread', for 1m)" in reason.text


def test_code_that_still_runs_here_keeps_no_other_worker_from_it() -> None:
    job = ready()
    stuck = in_flight(job.seq + 1, job_id=job.id, is_stuck=True)
    mine = here(occupants=(stuck,))
    only(job, around(here=mine, workers=(ME, OTHER)), ReasonCode.NOTHING_IN_THE_WAY)
    for unable in (replace(OTHER, tasks=("u",)), replace(OTHER, lanes=("process",))):
        only(job, around(here=mine, workers=(ME, unable)), ReasonCode.CODE_STILL_RUNNING)


def test_the_code_of_an_older_version_keeps_the_newer_one_waiting() -> None:
    job = ready()
    stuck = in_flight(job.seq + 1, job_id=job.id, is_stuck=True)
    reason = only(job, around(here=here(occupants=(stuck,))), ReasonCode.CODE_STILL_RUNNING)
    assert "The code of attempt 1 of an older version still runs here" in reason.text


@pytest.mark.parametrize(
    "mine",
    [
        here(occupants=(in_flight(0),)),  # its outcome is on the way to the store, or back
        here(occupants=(in_flight(5, is_stuck=True),)),  # another job's code
    ],
)
def test_other_attempts_in_flight_do_not_keep_it_waiting(mine: Here) -> None:
    only(ready(), around(here=mine), ReasonCode.NOTHING_IN_THE_WAY)


def test_a_stuck_attempt_here_is_nothing_to_a_worker_elsewhere() -> None:
    mine = here(queues=(), occupants=(in_flight(0, is_stuck=True),))
    only(ready(), around(here=mine, workers=(ME, OTHER)), ReasonCode.NOTHING_IN_THE_WAY)


def test_a_full_pool_is_counted() -> None:
    mine = here(occupants=(in_flight(5), in_flight(6, lane="thread")))
    reason = only(ready(), around(here=mine), ReasonCode.NO_FREE_SLOT)
    assert reason.text == "No slot is free here: 2 of 2 attempts are in flight."


def test_a_full_lane_is_counted_and_its_stuck_attempts_are_named() -> None:
    unknown = Occupant(seq=6, job_id="job-6", task="t", lane="thread", attempt=1, since=None, is_stuck=True)
    for occupant, text in ((in_flight(6, lane="thread", is_stuck=True), ", for 1m"), (unknown, "")):
        reason = only(of_lane("thread"), around(here=here(occupants=(occupant,))), ReasonCode.NO_FREE_SLOT)
        assert "No slot of lane 'thread' is free here: 1 of 1 attempts are in flight; stuck" in reason.text
        assert reason.text.endswith(f": job-6 (t{text}).")


def test_a_full_pool_here_is_not_the_last_word_if_another_worker_serves_the_queue() -> None:
    mine = here(occupants=(in_flight(5), in_flight(6)))
    reason = only(ready(), around(here=mine, workers=(ME, OTHER)), ReasonCode.NO_FREE_SLOT)
    assert reason.text.endswith("Another worker serves its queue too.")


def test_a_pool_that_has_locked_itself_up_is_named() -> None:
    parents = (in_flight(5, is_waiting=True), in_flight(6, is_waiting=True))
    mine = here(occupants=parents, starved={0})
    explanation = explain(ready(), around(here=mine))
    assert codes(explanation) == [ReasonCode.SLOTS_DEADLOCKED, ReasonCode.NO_FREE_SLOT]
    assert "job-5 and job-6" in explanation.reasons[0].text
    assert "depends_on" in explanation.reasons[0].change


@pytest.mark.parametrize(
    ("ahead", "text"),
    [
        (2, "2 jobs go before it in queue 'default', lane 'loop'."),
        (1000, "At least 1000 jobs go before it in queue 'default', lane 'loop'."),
    ],
)
def test_jobs_that_go_before_it_are_counted(ahead: int, text: str) -> None:
    assert only(ready(), around(ahead=ahead), ReasonCode.BEHIND_OTHERS).text == text


def test_as_many_as_have_room_go_together() -> None:
    only(ready(), around(ahead=1), ReasonCode.NOTHING_IN_THE_WAY)
    busy = here(occupants=(in_flight(5),))
    assert only(ready(), around(ahead=1, here=busy), ReasonCode.BEHIND_OTHERS).text.startswith("1 job goes")


def test_behind_jobs_of_a_full_pool_both_are_said() -> None:
    mine = here(occupants=(in_flight(5), in_flight(6)))
    explanation = explain(ready(), around(ahead=3, here=mine))
    assert codes(explanation) == [ReasonCode.NO_FREE_SLOT, ReasonCode.BEHIND_OTHERS]


def test_for_workers_elsewhere_any_job_before_it_counts() -> None:
    only(ready(), around(ahead=1, here=None, workers=(OTHER,)), ReasonCode.BEHIND_OTHERS)


def test_what_is_kept_back_anyway_is_not_told_of_slots() -> None:
    mine = here(occupants=(in_flight(5), in_flight(6)))
    only(ready(run_at=NOW + 1), around(ahead=9, here=mine), ReasonCode.NOT_DUE)


# --- running


def test_a_running_job_says_since_when_and_where() -> None:
    mine = here(occupants=(in_flight(0),))
    explanation = explain(running(), around(now=NOW + MINUTE, here=mine))
    assert codes(explanation) == [ReasonCode.RUNNING]
    text = explanation.reasons[0].text
    assert "Attempt 1 runs since 2027-01-15 08:00:00 UTC (1m ago), in this process (worker w)." in text
    assert explanation.expected_start is None
    assert "Should that process die" not in str(explanation)


def test_a_running_job_shows_progress_and_deadline() -> None:
    for progress, shown in (((3.0, 4.0), "done: 3 of 4;"), ((3.0, None), "done: 3;")):
        mine = here(occupants=(in_flight(0, progress=progress),))
        text = only(running(), around(here=mine, deadline=NOW + MINUTE), ReasonCode.RUNNING).text
        assert shown in text
        assert "its timeout is over at 2027-01-15 08:01:00 UTC (in 1m)" in text


@pytest.mark.parametrize("mine", [None, here(worker="me")])
def test_a_job_that_runs_elsewhere_names_the_worker_and_its_lease(mine: Here | None) -> None:
    job = after(ready(), Claimed(NOW, "other"))
    reason = only(job, around(here=mine, workers=(OTHER,)), ReasonCode.RUNNING)
    assert "on ham, pid 7 (worker other)" in reason.text
    assert "any other within 30s" in reason.change


def test_a_job_may_run_on_an_unknown_host_and_since_an_unknown_instant() -> None:
    job = after(ready(), Claimed(NOW, "o"))
    job.started_at = None
    worker = WorkerSeen(id="o", queues=None, lease_us=SECOND, is_alive=True)
    assert "Attempt 1 runs, on another host" in only(job, around(workers=(worker,)), ReasonCode.RUNNING).text


def test_a_superseded_job_says_that_it_is_the_last_time() -> None:
    job = after(running(), Superseded(NOW))
    assert "will not be retried" in only(job, around(), ReasonCode.RUNNING).text


@pytest.mark.parametrize(
    ("lane", "means"),
    [
        ("loop", "CancelledError"),
        ("thread", "ctx.cancelled"),
        ("process", "its process has been sent SIGTERM"),
        ("command", "its processes have been sent SIGTERM"),
        ("quantum", "'quantum'"),
    ],
)
def test_a_cancelled_job_that_runs_on_says_what_it_takes(lane: str, means: str) -> None:
    job = after(of_lane(lane), Claimed(NOW, "w"), CancelRequested(NOW))
    explanation = explain(job, around())
    assert codes(explanation) == [ReasonCode.RUNNING, ReasonCode.CANCEL_REQUESTED]
    assert means in explanation.reasons[1].change


@pytest.mark.parametrize("workers", [(), (WorkerSeen(id="w", queues=None, lease_us=SECOND, is_alive=False),)])
def test_a_job_whose_worker_is_gone_waits_for_its_rescue(workers: tuple[WorkerSeen, ...]) -> None:
    reason = only(running(), around(workers=workers), ReasonCode.HOLDER_LOST)
    assert "Worker w" in reason.text
    assert "'t'" in reason.change


def test_a_job_of_a_process_that_has_ended_waits_for_its_lease_or_a_neighbour() -> None:
    job = after(ready(), Claimed(NOW, "other"))
    gone = replace(OTHER, is_gone=True, left_us=20 * SECOND)
    reason = only(job, around(workers=(ME, gone)), ReasonCode.HOLDER_SILENT)
    assert "its process (ham, pid 7) has ended; its lease is not over before 2027-01-15 08:00:20" in (
        reason.text
    )
    assert "within two seconds" in reason.change
    assert explain(job, around(workers=(gone,))).expected_start == reason.expected_at


@pytest.mark.parametrize("is_over", [False, True], ids=["its process has ended", "its lease is over"])
def test_what_will_keep_a_job_of_a_lost_worker_from_starting_again_is_named_too(is_over: bool) -> None:
    job = after(ready(), Claimed(NOW, "other"))
    lost = replace(OTHER, is_gone=True, is_alive=not is_over, left_us=0 if is_over else 20 * SECOND)
    first = ReasonCode.HOLDER_LOST if is_over else ReasonCode.HOLDER_SILENT
    paused = explain(job, around(workers=(ME, lost), paused={job.spec.queue: Pause()}))
    assert codes(paused) == [first, ReasonCode.QUEUE_PAUSED]
    alone = explain(job, around(workers=(lost,), here=None))
    assert codes(alone) == [first, ReasonCode.NO_WORKER]
    assert (paused.expected_start, alone.expected_start) == (None, None)


def test_a_silent_worker_is_named_before_what_it_runs() -> None:
    job = after(ready(), Claimed(NOW, "other"))
    silent = replace(OTHER, left_us=14 * SECOND)
    explanation = explain(job, around(workers=(ME, silent)))
    assert codes(explanation) == [ReasonCode.HOLDER_SILENT, ReasonCode.RUNNING]
    text = explanation.reasons[0].text
    assert "has been silent for 16s; its lease is over at 2027-01-15 08:00:14 UTC (in 14s)" in text
    assert explanation.expected_start is None
    only(job, around(workers=(ME, replace(OTHER, left_us=15 * SECOND))), ReasonCode.RUNNING)


def test_the_worker_of_this_process_is_never_called_silent_or_gone() -> None:
    for mine in (replace(ME, left_us=1), replace(ME, is_gone=True, left_us=None)):
        only(running(), around(workers=(mine,)), ReasonCode.RUNNING)


# --- finished


@pytest.mark.parametrize(
    ("job", "text"),
    [
        (
            after(running(), Succeeded(NOW, b"1")),
            "COMPLETED at 2027-01-15 08:00:00 UTC (now), in attempt 1.",
        ),
        (after(running(), Errored(NOW, BOOM)), "in attempt 1: ValueError: boom."),
        (after(running(), DeadlinePassed(NOW, BOOM)), "TIMED_OUT at"),
        (after(ready(), CancelRequested(NOW)), "before its first attempt: somebody asked for it."),
        (after(ready(), CancelRequested(NOW, "no use")), ": no use."),
        (after(ready(), Superseded(NOW)), "a newer version of its id replaced it."),
        (after(ready(expires_at=NOW), Expired(NOW)), "it had not started in the time that expires= gave it."),
        (after(blocked(), DependencyFailed(NOW, "x")), "job x, which it depends on, did not complete."),
        (
            after(running(), Errored(NOW, BOOM), Retried(NOW, "me"), Claimed(NOW, "w"), Succeeded(NOW, b"1")),
            "in attempt 1 after 1 earlier one(s).",
        ),
    ],
)
def test_a_finished_job_says_how_it_ended(job: Job, text: str) -> None:
    explanation = explain(job, around())
    assert codes(explanation) == [ReasonCode.FINISHED]
    assert text in explanation.reasons[0].text
    assert "retry('a')" in explanation.reasons[0].change
    assert explanation.expected_start is None


def test_a_cancelled_retry_gives_the_reason_of_the_cancel_and_not_the_old_error() -> None:
    job = after(running(), Errored(NOW, BOOM, retry_in_us=MINUTE), CancelRequested(NOW))
    assert "boom" not in only(job, around(), ReasonCode.FINISHED).text


def test_a_job_can_have_failed_for_a_reason_without_an_error() -> None:
    job = running()
    job.status, job.worker, job.reason, job.finished_at = JobStatus.FAILED, None, "worker lost", NOW
    assert only(job, around(), ReasonCode.FINISHED).text.endswith("in attempt 1: worker lost.")


# --- as text


def test_an_explanation_reads_as_text() -> None:
    job = ready(run_at=NOW + 90 * SECOND)
    assert str(explain(job, around(paused={"default": Pause()}))).splitlines() == [
        "Job a is DELAYED.",
        "- It is not due before 2027-01-15 08:01:30 UTC (in 1m 30s).",
        "  It becomes ready by itself then; to start it sooner, cancel it and submit it again.",
        "- Queue 'default' is paused.",
        "  await scheduler.resume_queue('default')",
    ]
    assert str(explain(ready(run_at=NOW + 90 * SECOND), around())).splitlines()[-1] == (
        "Expected start: 2027-01-15 08:01:30 UTC."
    )


def test_a_reason_that_cannot_say_when_says_none() -> None:
    reason = only(ready(), around(here=None, workers=()), ReasonCode.NO_WORKER)
    assert reason.expected_at is None
    assert str(reason) == f"{reason.text}\n  {reason.change}"
