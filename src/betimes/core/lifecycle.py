"""The state machine: one table of legal transitions, and one function that decides.

The rules, in words:

1. A job enters BLOCKED, DELAYED or READY by `place`, and moves only along `LEGAL`.
2. `decide(job, event)` is pure: it reads the job as it stands in the store, under the store's guard, and
   answers with a `Transition`, or raises `IllegalTransition`. The store calls it in the very step that
   writes, so flags that others have set meanwhile (`cancel_requested`, `superseded`) always count.
3. What a worker reports about an attempt carries the attempt's fence; a store drops a report whose fence is
   not the job's (`is_current`), whole: no result, no dependents, no counters.
4. A cancelled attempt ends CANCELLED however its code returns; a superseded one is never run again, nor is
   one that may start at most once and has failed, run late or lost its worker.
5. An attempt is used by an error or a timeout only. A snooze, a give-back and a crash leave the number as
   it was; crashes have a budget of their own.
6. Invariants (`transition.violations`): worker ⇔ RUNNING, finished_at ⇔ terminal, unmet > 0 ⇔ BLOCKED,
   parked ⇒ READY, result ⇒ COMPLETED, cancel_requested or superseded ⇒ RUNNING or terminal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from betimes.core.claiming import is_due, is_expired
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
from betimes.core.job import (
    TERMINAL,
    CancelReason,
    ErrorInfo,
    Job,
    JobStatus,
    Micros,
)
from betimes.core.transition import Completion, Transition
from betimes.errors import IllegalTransition

CRASH_BUDGET = 3
"""How many workers may die holding a job before it fails as a poison pill."""

BLOCKED, DELAYED, READY, RUNNING = JobStatus.BLOCKED, JobStatus.DELAYED, JobStatus.READY, JobStatus.RUNNING
COMPLETED, FAILED = JobStatus.COMPLETED, JobStatus.FAILED
TIMED_OUT, CANCELLED = JobStatus.TIMED_OUT, JobStatus.CANCELLED


LEGAL: dict[type[Event], dict[JobStatus, frozenset[JobStatus]]] = {
    Released: {BLOCKED: frozenset({DELAYED, READY})},
    DependencyFailed: {BLOCKED: frozenset({CANCELLED})},
    Promoted: {DELAYED: frozenset({READY})},
    Claimed: {READY: frozenset({RUNNING})},
    Succeeded: {RUNNING: frozenset({COMPLETED, CANCELLED})},
    Errored: {RUNNING: frozenset({DELAYED, READY, FAILED, CANCELLED})},
    DeadlinePassed: {RUNNING: frozenset({DELAYED, READY, TIMED_OUT, CANCELLED})},
    Snoozed: {RUNNING: frozenset({DELAYED, READY, CANCELLED})},
    Withdrawn: {RUNNING: frozenset({CANCELLED})},
    GivenBack: {RUNNING: frozenset({READY, CANCELLED})},
    WorkerLost: {RUNNING: frozenset({READY, FAILED, CANCELLED})},
    CancelRequested: {
        BLOCKED: frozenset({CANCELLED}),
        DELAYED: frozenset({CANCELLED}),
        READY: frozenset({CANCELLED}),
        RUNNING: frozenset({RUNNING, CANCELLED}),
    },
    Superseded: {
        BLOCKED: frozenset({CANCELLED}),
        DELAYED: frozenset({CANCELLED}),
        READY: frozenset({CANCELLED}),
        RUNNING: frozenset({RUNNING}),
    },
    Expired: {
        BLOCKED: frozenset({CANCELLED}),
        DELAYED: frozenset({CANCELLED}),
        READY: frozenset({CANCELLED}),
    },
    Unparked: {READY: frozenset({READY})},
    Retried: {status: frozenset({READY}) for status in TERMINAL},
}
"""Event → status before → the statuses it may lead to. The diagram in the docs is drawn from it."""


def place(job: Job, now: Micros) -> JobStatus:
    """Say where a job waits that has just been submitted or released."""
    if job.unmet:
        return BLOCKED
    return DELAYED if job.run_at > now else READY


def is_current(job: Job, fence: int) -> bool:
    """Say whether a report under this fence speaks of the attempt that holds the job now."""
    return job.status is RUNNING and job.fence == fence


def is_repeated(job: Job, fence: int) -> bool:
    """Say whether a report under this fence was written before, and only its reply was lost."""
    return job.status is not RUNNING and job.fence == fence and fence > 0


def decide(job: Job, event: Event) -> Transition:
    """Answer what the event does to the job.

    Raises:
        IllegalTransition: the event does not apply in the job's status; nothing has changed.
    """
    kind = type(event)
    if job.status not in LEGAL[kind]:
        raise IllegalTransition(
            f"{kind.__name__} does not apply to a job that is {job.status.name}",
            status=job.status.value,
            event=kind.__name__,
        )
    return _DECIDE[kind](job, event)


def _released(job: Job, event: Released) -> Transition:
    # What it waited for is over: from here on the earliest start is now, so that schedule lag counts from
    # now.
    if job.run_at > event.at:
        return Transition(BLOCKED, DELAYED, event.at)
    return Transition(BLOCKED, READY, event.at, run_at=event.at)


def _dependency_failed(_job: Job, event: DependencyFailed) -> Transition:
    reason = f"{CancelReason.DEPENDENCY.value}: {event.dependency}"
    return Transition(BLOCKED, CANCELLED, event.at, reason=reason)


def _promoted(job: Job, event: Promoted) -> Transition:
    if not is_due(job, event.at):
        raise IllegalTransition("Promoted before run_at", status=job.status.value, event="Promoted")
    return Transition(DELAYED, READY, event.at)


def _claimed(job: Job, event: Claimed) -> Transition:
    if job.parked is not None:
        raise IllegalTransition("Claimed while parked", status=job.status.value, event="Claimed")
    return Transition(READY, RUNNING, event.at, worker=event.worker)


def _succeeded(job: Job, event: Succeeded) -> Transition:
    if job.cancel_requested:
        return _withdraw(job, event.at)
    return Completion(event.at, event.result)


def _errored(job: Job, event: Errored) -> Transition:
    return _end_attempt(job, event, FAILED)


def _deadline_passed(job: Job, event: DeadlinePassed) -> Transition:
    return _end_attempt(job, event, TIMED_OUT)


def _end_attempt(job: Job, event: Errored | DeadlinePassed, final: JobStatus) -> Transition:
    if job.cancel_requested:
        return _withdraw(job, event.at)
    if event.retry_in_us is None or job.superseded or job.spec.at_most_once:
        return Transition(RUNNING, final, event.at, error=event.error, reason=event.reason)
    return _again(event.at, event.retry_in_us, outcome=final.value, error=event.error)


def _again(
    at: Micros, delay_us: int, *, outcome: str, error: ErrorInfo | None = None, uses_attempt: bool = True
) -> Transition:
    after = DELAYED if delay_us > 0 else READY
    return Transition(
        RUNNING, after, at, run_at=at + delay_us, outcome=outcome, error=error, uses_attempt=uses_attempt
    )


def _snoozed(job: Job, event: Snoozed) -> Transition:
    if job.cancel_requested or job.superseded:
        return _withdraw(job, event.at)
    return _again(event.at, event.delay_us, outcome="snoozed", uses_attempt=False)


def _withdrawn(job: Job, event: Withdrawn) -> Transition:
    if job.cancel_requested:
        return _withdraw(job, event.at)  # who asked said why; the code that obeyed does not know it
    return Transition(RUNNING, CANCELLED, event.at, reason=event.reason)


def _withdraw(job: Job, at: Micros) -> Transition:
    reason = job.reason or (CancelReason.REQUESTED if job.cancel_requested else CancelReason.REPLACED)
    return Transition(RUNNING, CANCELLED, at, reason=reason)


def _given_back(job: Job, event: GivenBack) -> Transition:
    if job.cancel_requested or job.superseded:
        return _withdraw(job, event.at)
    return Transition(RUNNING, READY, event.at, outcome="given_back", uses_attempt=False, parked=event.parked)


def _worker_lost(job: Job, event: WorkerLost) -> Transition:
    if job.cancel_requested or job.superseded:
        step = _withdraw(job, event.at)
    elif job.spec.at_most_once:
        reason = _told("the job may start only once", event.how or "its worker was lost")
        step = Transition(RUNNING, FAILED, event.at, reason=reason)
    elif job.crashes + 1 >= CRASH_BUDGET:
        reason = _told(f"poison pill: {CRASH_BUDGET} workers died holding it", event.how)
        step = Transition(RUNNING, FAILED, event.at, reason=reason)
    else:
        step = Transition(RUNNING, READY, event.at, outcome="lost", uses_attempt=False)
    step.note = event.how
    step.crashed = step.raises_fence = True
    return step


def _told(reason: str, how: str | None) -> str:
    return reason if how is None else f"{reason}; {how}"


def _cancel_requested(job: Job, event: CancelRequested) -> Transition:
    if job.status is RUNNING and not event.abandon:
        return Transition(RUNNING, RUNNING, event.at, reason=event.reason, worker=job.worker)
    step = Transition(job.status, CANCELLED, event.at, reason=event.reason)
    # The abandoned code may still report: the fence it ran under must not be the job's any more.
    step.raises_fence = job.status is RUNNING
    return step


def _superseded(job: Job, event: Superseded) -> Transition:
    if job.status is RUNNING:
        return Transition(RUNNING, RUNNING, event.at, worker=job.worker)
    return Transition(job.status, CANCELLED, event.at, reason=CancelReason.REPLACED)


def _expired(job: Job, event: Expired) -> Transition:
    if not is_expired(job, event.at):
        raise IllegalTransition(
            "Expired before expires_at, or after the first start", status=job.status.value, event="Expired"
        )
    return Transition(job.status, CANCELLED, event.at, reason=CancelReason.EXPIRED)


def _unparked(_job: Job, event: Unparked) -> Transition:
    return Transition(READY, READY, event.at)


def _retried(job: Job, event: Retried) -> Transition:
    return Transition(job.status, READY, event.at, run_at=event.at, reason=f"retried by {event.by}")


_DECIDE: dict[type[Event], Callable[[Job, Any], Transition]] = {
    Released: _released,
    DependencyFailed: _dependency_failed,
    Promoted: _promoted,
    Claimed: _claimed,
    Succeeded: _succeeded,
    Errored: _errored,
    DeadlinePassed: _deadline_passed,
    Snoozed: _snoozed,
    Withdrawn: _withdrawn,
    GivenBack: _given_back,
    WorkerLost: _worker_lost,
    CancelRequested: _cancel_requested,
    Superseded: _superseded,
    Expired: _expired,
    Unparked: _unparked,
    Retried: _retried,
}
