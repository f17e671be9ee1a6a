"""Every pair of state and event: refused with the record unchanged, or legal with the invariants intact."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest

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
from betimes.core.job import TERMINAL, WAITING, ErrorInfo, Job, JobSpec, JobStatus
from betimes.core.lifecycle import CRASH_BUDGET, LEGAL, decide
from betimes.core.transition import enter, violations
from betimes.errors import IllegalTransition

NOW = 1_800_000_000_000_000
SECOND = 1_000_000
BOOM = ErrorInfo(type="ValueError", message="boom")

BLOCKED, DELAYED, READY, RUNNING = JobStatus.BLOCKED, JobStatus.DELAYED, JobStatus.READY, JobStatus.RUNNING
COMPLETED, CANCELLED = JobStatus.COMPLETED, JobStatus.CANCELLED

EVENTS: list[Event] = [
    Released(NOW),
    DependencyFailed(NOW, "parent"),
    Promoted(NOW),
    Claimed(NOW, "worker-2"),
    Succeeded(NOW, b"1"),
    Errored(NOW, BOOM),
    Errored(NOW, BOOM, retry_in_us=0),
    Errored(NOW, BOOM, retry_in_us=5 * SECOND),
    DeadlinePassed(NOW, BOOM),
    DeadlinePassed(NOW, BOOM, retry_in_us=0),
    DeadlinePassed(NOW, BOOM, retry_in_us=5 * SECOND),
    Snoozed(NOW, 0),
    Snoozed(NOW, 5 * SECOND),
    Withdrawn(NOW),
    Withdrawn(NOW, "its own words"),
    GivenBack(NOW),
    GivenBack(NOW, parked="task"),
    WorkerLost(NOW),
    CancelRequested(NOW),
    CancelRequested(NOW, "not wanted", abandon=True),
    Superseded(NOW),
    Expired(NOW),
    Unparked(NOW),
    Retried(NOW, "ops"),
]

Option = Callable[[Job], None]


def at_most_once(job: Job) -> None:
    job.spec = JobSpec(task="t", at_most_once=True)


def setting(**values: Any) -> Option:
    def set_them(job: Job) -> None:
        for name, value in values.items():
            setattr(job, name, value)

    return set_them


ANYWHERE: dict[str, Option] = {
    "plain": setting(),
    "at most once": at_most_once,
    "one crash left": setting(crashes=CRASH_BUDGET - 1),
    "run_at ahead": setting(run_at=NOW + SECOND),
    "expired": setting(expires_at=NOW),
    "expires later": setting(expires_at=NOW + 1),
    "expired, but started": setting(expires_at=NOW, started_at=NOW - SECOND, fence=4, attempt=2),
    "failed before": setting(error=BOOM, started_at=NOW - SECOND, fence=4, attempt=2),
}
ONLY_IN: dict[JobStatus, dict[str, Option]] = {
    BLOCKED: {"waits for two": setting(unmet=2)},
    READY: {"parked": setting(parked="task")},
    RUNNING: {
        "cancel requested": setting(cancel_requested=True, reason="not wanted"),
        "superseded": setting(superseded=True),
        "both": setting(cancel_requested=True, reason="not wanted", superseded=True),
    },
    **{status: {"superseded": setting(superseded=True)} for status in TERMINAL},
}
ONLY_IN[CANCELLED] = {
    **ONLY_IN[CANCELLED],
    "cancelled before its first start": setting(attempt=0, started_at=None),
}


def sound_job(status: JobStatus, option: Option) -> Job:
    """A record that could stand in this status."""
    job = Job("a", JobSpec(task="t"), submitted_at=NOW - 60 * SECOND, run_at=NOW - 60 * SECOND)
    job.seq = 7
    job.status = status
    if status is BLOCKED:
        job.unmet = 1
    elif status is RUNNING:
        job.worker = "worker-1"
    if status not in WAITING:
        job.fence, job.attempt, job.started_at = 3, 2, NOW - 2 * SECOND
    if status in TERMINAL:
        job.finished_at = NOW - SECOND
    if status is COMPLETED:
        job.result = b"0"
    elif status is CANCELLED:
        job.reason = "requested"
    elif status in TERMINAL:
        job.error = BOOM
    option(job)
    assert violations(job) == []
    return job


def options_of(status: JobStatus) -> dict[str, Option]:
    return {**ANYWHERE, **ONLY_IN.get(status, {})}


def fields(job: Job) -> dict[str, object]:
    return {name: getattr(job, name) for name in Job.__slots__ if name != "__weakref__"}


def cases(status: JobStatus, kind: type[Event]) -> Iterator[tuple[str, Job, Event]]:
    for (name, option), event in product(options_of(status).items(), EVENTS):
        if type(event) is kind:
            yield f"{name}, {event}", sound_job(status, option), event


def may_refuse(job: Job, event: Event) -> bool:
    """Whether the event, in its place by the table, comes too early (or too late) for this very record."""
    if isinstance(event, Promoted):
        return job.run_at > event.at
    if isinstance(event, Expired):
        return job.expires_at is None or job.expires_at > event.at or job.started_at is not None
    return isinstance(event, Claimed) and job.parked is not None


PAIRS = list(product(JobStatus, LEGAL))


def pair_id(value: JobStatus | type[Event]) -> str:
    return value.name if isinstance(value, JobStatus) else value.__name__


def test_the_events_below_are_all_there_are() -> None:
    assert {type(event) for event in EVENTS} == set(LEGAL)


@pytest.mark.parametrize(("status", "kind"), PAIRS, ids=pair_id)
def test_p10_an_event_is_refused_without_a_trace_or_leads_where_the_table_says(
    status: JobStatus, kind: type[Event]
) -> None:
    for name, job, event in cases(status, kind):
        untouched = fields(job)
        if status not in LEGAL[kind] or may_refuse(job, event):
            with pytest.raises(IllegalTransition) as caught:
                decide(job, event)
            assert (caught.value.status, caught.value.event) == (status.value, kind.__name__), name
            assert fields(job) == untouched, name
            continue
        step = decide(job, event)
        assert fields(job) == untouched, f"{name}: decide() wrote to the record"
        assert step.before is status, name
        assert step.after in LEGAL[kind][status], name
        enter(job, step)
        assert job.status is step.after, name
        assert violations(job) == [], name
        assert (job.finished_at == NOW) == (job.status in TERMINAL), name


def expected_numbers(before: Job, after: JobStatus, event: Event) -> tuple[int, int, int]:
    """Fence, attempt and crashes after a legal event, from the rules in words."""
    fence, attempt, crashes = before.fence, before.attempt, before.crashes
    goes_on = after in WAITING
    match event:
        case Claimed():
            return fence + 1, attempt + 1, crashes
        case Snoozed() | GivenBack() if goes_on:
            return fence, attempt - 1, crashes
        case WorkerLost():
            return fence + 1, attempt - 1 if goes_on else attempt, crashes + 1
        case CancelRequested(abandon=True) if before.status is RUNNING:
            return fence + 1, attempt, crashes
        case Retried():
            return fence, 0, 0
        case _:
            return fence, attempt, crashes


@pytest.mark.parametrize(("status", "kind"), [(s, k) for s, k in PAIRS if s in LEGAL[k]], ids=pair_id)
def test_p06_fence_attempt_and_crashes_move_as_the_rules_say(status: JobStatus, kind: type[Event]) -> None:
    seen = 0
    for name, job, event in cases(status, kind):
        if may_refuse(job, event):
            continue
        before = job.copy()
        enter(job, decide(job, event))
        numbers = (job.fence, job.attempt, job.crashes)
        assert numbers == expected_numbers(before, job.status, event), name
        seen += 1
    assert seen > 0


def test_p10_every_way_in_the_table_is_taken_by_some_case() -> None:
    table = {(k, before, after) for k, ways in LEGAL.items() for before in ways for after in ways[before]}
    taken = {
        (kind, status, decide(job, event).after)
        for status, kind in PAIRS
        if status in LEGAL[kind]
        for _, job, event in cases(status, kind)
        if not may_refuse(job, event)
    }
    assert taken == table


def test_p09_nothing_but_a_retry_leads_out_of_a_terminal_status() -> None:
    ways_out = {kind for kind, ways in LEGAL.items() for status in ways if status.is_terminal}
    assert ways_out == {Retried}


@pytest.mark.parametrize("status", list(JobStatus), ids=pair_id)
def test_every_live_status_can_still_end(status: JobStatus) -> None:
    reached = {status}
    for _ in JobStatus:
        reached |= {
            after for ways in LEGAL.values() for before in ways if before in reached for after in ways[before]
        }
    assert reached >= TERMINAL
