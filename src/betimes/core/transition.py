"""A transition as a value, and the one function that writes it into a job's record.

`lifecycle.decide` makes transitions; stores call `enter` with them under their guard. What must hold of any
record afterwards is `violations`.
"""

from __future__ import annotations

from collections.abc import Sequence

from betimes.core.job import TERMINAL, WAITING, AttemptOutcome, ErrorInfo, Job, JobEvent, JobStatus, Micros

ATTEMPTS_KEPT = 50
"""How many earlier attempts a job remembers; older ones are dropped, the numbers go on."""

READY, RUNNING, BLOCKED = JobStatus.READY, JobStatus.RUNNING, JobStatus.BLOCKED
COMPLETED, CANCELLED = JobStatus.COMPLETED, JobStatus.CANCELLED


class Transition:
    """What `enter` is to write: the status, and every value that changes with it.

    Not frozen, because one is made for each step of each job; nobody writes to it after `decide`.

    Attributes:
        before, after, at: the step.
        run_at: the next start, when it moves.
        result, error, reason: what ended the attempt or the job.
        note: what is remembered of the attempt besides, if not the reason.
        outcome: how the attempt is remembered when the job goes on; None: it is not an attempt's end.
        uses_attempt: whether the attempt counts; if not, its number is given to the next.
        worker: who holds the job from now on.
        parked: kept outside the claims' reach under this name.
        crashed: whether it uses the crash budget.
        raises_fence: whether what the holder may still report is to be refused.
    """

    __slots__ = (
        "after",
        "at",
        "before",
        "crashed",
        "error",
        "note",
        "outcome",
        "parked",
        "raises_fence",
        "reason",
        "result",
        "run_at",
        "uses_attempt",
        "worker",
    )

    def __init__(
        self,
        before: JobStatus,
        after: JobStatus,
        at: Micros,
        *,
        run_at: Micros | None = None,
        result: bytes | None = None,
        error: ErrorInfo | None = None,
        reason: str | None = None,
        outcome: str | None = None,
        uses_attempt: bool = True,
        worker: str | None = None,
        parked: str | None = None,
    ) -> None:
        self.before = before
        self.after = after
        self.at = at
        self.run_at = run_at
        self.result = result
        self.error = error
        self.reason = reason
        self.outcome = outcome
        self.uses_attempt = uses_attempt
        self.worker = worker
        self.parked = parked
        self.note: str | None = None
        self.crashed = False
        self.raises_fence = False


class Completion(Transition):
    """RUNNING → COMPLETED: the step of nearly every job; what all have in common stands on the class."""

    __slots__ = ()
    before = RUNNING
    after = COMPLETED
    run_at = error = reason = outcome = worker = parked = note = None
    uses_attempt = True
    crashed = raises_fence = False

    def __init__(self, at: Micros, result: bytes) -> None:
        self.at = at
        self.result = result


def enter(job: Job, step: Transition) -> None:
    """Write a transition into the job's record; the only writer of its state."""
    after = step.after
    if after is RUNNING:
        _enter_running(job, step)
    elif step.before is RUNNING:
        _leave_running(job, step)
    elif step.before in WAITING:
        _leave_waiting(job, step)
    else:
        _reopen(job, step)
    job.status = after
    if after in TERMINAL:
        job.finished_at = step.at


def _enter_running(job: Job, step: Transition) -> None:
    if step.before is READY:
        job.fence += 1
        job.attempt += 1
        job.started_at = step.at
        job.worker = step.worker
    elif step.reason is None:
        job.superseded = True
    else:
        job.cancel_requested = True
        job.reason = step.reason


def _leave_running(job: Job, step: Transition) -> None:
    if step.outcome is not None:
        _remember_attempt(job, step)
    if not step.uses_attempt:
        job.attempt -= 1
    if step.crashed:
        job.crashes += 1
    if step.raises_fence:
        job.fence += 1
    if step.run_at is not None:
        job.run_at = step.run_at
    job.worker = None
    job.parked = step.parked
    job.result = step.result
    job.error = step.error
    job.reason = step.reason


def _leave_waiting(job: Job, step: Transition) -> None:
    job.unmet = 0
    job.parked = None
    job.reason = step.reason
    if step.run_at is not None:
        job.run_at = step.run_at


def _reopen(job: Job, step: Transition) -> None:
    """Take a finished job back: with a fresh budget of attempts and crashes, and its past remembered."""
    _remember_attempt(job, step)
    job.attempt = job.crashes = 0
    job.run_at = step.at
    job.started_at = job.finished_at = job.expires_at = None
    job.cancel_requested = job.superseded = False
    job.result = job.error = job.reason = None


def _remember_attempt(job: Job, step: Transition) -> None:
    outcome = AttemptOutcome(
        attempt=job.attempt,
        fence=job.fence,
        started_at=job.started_at,
        ended_at=step.at,
        outcome=step.outcome or step.before.value,
        # While it runs, the record still holds the error of an earlier attempt: not this one's.
        error=step.error if step.before is RUNNING else job.error,
        note=step.note or step.reason,
    )
    job.attempts = (*job.attempts[1 - ATTEMPTS_KEPT :], outcome)


def event_of(job: Job, step: Transition) -> JobEvent:
    """Return a step that was just entered into the job's record, as listeners see it."""
    text = step.reason or (str(step.error) if step.error else step.note)
    event = JobEvent(job, step.before, step.after, at_us=step.at, error=text)
    if not step.uses_attempt:
        event.attempt += 1  # it speaks of the attempt that was left, which does not count
    return event


def claim(jobs: Sequence[Job], worker: str, at: Micros) -> None:
    """Enter RUNNING: what `enter(job, decide(job, Claimed(at, worker)))` does, on every job's path.

    The caller has taken the jobs from among the claimable; a test holds the two forms equal.
    """
    for job in jobs:
        job.fence += 1
        job.attempt += 1
        job.started_at = at
        job.worker = worker
        job.status = RUNNING


def complete(job: Job, at: Micros, result: bytes) -> Transition:
    """Enter COMPLETED: what `enter(job, decide(job, Succeeded(at, result)))` does, on every job's path.

    The caller knows that the report is current and that no cancel was requested; a test holds the two equal.
    """
    job.worker = job.error = job.reason = None
    job.result = result
    job.finished_at = at
    job.status = COMPLETED
    return Completion(at, result)


def repeated(job: Job) -> Transition:
    """Say again what a report did that had been written before, and whose reply was lost."""
    return Transition(
        RUNNING,
        job.status,
        job.finished_at or job.run_at,
        result=job.result,
        error=job.error or (job.attempts[-1].error if job.attempts else None),
        reason=job.reason,
    )


def violations(job: Job) -> list[str]:
    """Name each invariant of rule 6 that the record breaks; empty for a sound one."""
    status = job.status
    rules = {
        "worker ⇔ RUNNING": (job.worker is not None) == (status is RUNNING),
        "finished_at ⇔ terminal": (job.finished_at is not None) == (status in TERMINAL),
        "unmet > 0 ⇔ BLOCKED": (job.unmet > 0) == (status is BLOCKED),
        "parked ⇒ READY": job.parked is None or status is READY,
        "result ⇒ COMPLETED": job.result is None or status is COMPLETED,
        "COMPLETED ⇒ result": status is not COMPLETED or job.result is not None,
        "cancel requested ⇒ RUNNING or CANCELLED": not job.cancel_requested or status in (RUNNING, CANCELLED),
        "superseded ⇒ RUNNING or terminal": not job.superseded or status is RUNNING or status in TERMINAL,
        "attempt ≥ 1 while RUNNING": status is not RUNNING or job.attempt >= 1,
        "fence ≥ attempt": job.fence >= job.attempt >= 0,
    }
    return [rule for rule, holds in rules.items() if not holds]
