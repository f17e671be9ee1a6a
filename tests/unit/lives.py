"""Lives of single jobs, for the tests of the state machine."""

from __future__ import annotations

from betimes.core.events import (
    Claimed,
    DeadlinePassed,
    Errored,
    Event,
    GivenBack,
    Snoozed,
    Succeeded,
    Withdrawn,
    WorkerLost,
)
from betimes.core.job import ErrorInfo, Job, JobSpec
from betimes.core.lifecycle import decide, place
from betimes.core.transition import enter, violations

NOW = 1_800_000_000_000_000
SECOND = 1_000_000
BOOM = ErrorInfo(type="ValueError", message="boom")

ENDS_OF_AN_ATTEMPT: list[Event] = [
    Succeeded(NOW, b"1"),
    Errored(NOW, BOOM, retry_in_us=SECOND),
    DeadlinePassed(NOW, BOOM, retry_in_us=SECOND),
    Snoozed(NOW, SECOND),
    Withdrawn(NOW, "as told"),
    GivenBack(NOW),
    WorkerLost(NOW),
]


def ready(*, at_most_once: bool = False, run_at: int = NOW, expires_at: int | None = None) -> Job:
    spec = JobSpec(task="t", at_most_once=at_most_once)
    job = Job("a", spec, submitted_at=NOW, run_at=run_at, expires_at=expires_at)
    job.status = place(job, NOW)
    return job


def after(job: Job, *events: Event) -> Job:
    for event in events:
        enter(job, decide(job, event))
        assert violations(job) == []
    return job


def running(*, at_most_once: bool = False) -> Job:
    return after(ready(at_most_once=at_most_once), Claimed(NOW, "w"))


def fields(job: Job) -> dict[str, object]:
    return {name: getattr(job, name) for name in Job.__slots__ if name != "__weakref__"}


def label(event: Event) -> str:
    return type(event).__name__
