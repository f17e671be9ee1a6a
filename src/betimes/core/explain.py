"""Why has this job not run? The answer, from the predicates that the claim itself uses, in words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from betimes.core.claiming import is_waiting_for_claim
from betimes.core.durations import from_us
from betimes.core.job import CancelReason, Job, JobStatus
from betimes.core.obstacles import (
    OBSTACLES,
    QUEUEING,
    Finder,
    expired,
    nobody_serves,
    queue_paused,
    serves,
    will_expire,
)
from betimes.core.reason import Reason, ReasonCode
from betimes.core.situation import Situation, WorkerSeen
from betimes.core.wording import listed, moment, span


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a job has not started, what it is doing, or how it ended; `str()` gives it as text.

    Attributes:
        job_id: the job's id.
        status: where it stands.
        reasons: the reasons, the most important first, a note last; never empty.

    Example:
        print(await handle.explain())
    """

    job_id: str
    status: JobStatus
    reasons: tuple[Reason, ...]

    @property
    def codes(self) -> frozenset[ReasonCode]:
        """The reasons' kinds."""
        return frozenset(reason.code for reason in self.reasons)

    @property
    def expected_start(self) -> datetime | None:
        """When it is expected to start (aware, UTC); None: that cannot be said, or it has started.

        It is said only where each reason in the way ends by itself, at a known instant, before it expires.
        """
        start = 0
        for reason in self.reasons:
            at = reason.expected_at_us
            if at is None:
                return None
            if reason.code is ReasonCode.WILL_EXPIRE:
                return from_us(start) if start < at else None
            start = max(start, at)
        return from_us(start)

    def __str__(self) -> str:
        lines = [f"Job {self.job_id} is {self.status.name}."]
        lines += [f"- {reason}" for reason in self.reasons]
        start = self.expected_start
        if start is not None:
            lines.append(f"Expected start: {start:%Y-%m-%d %H:%M:%S} UTC.")
        return "\n".join(lines)


def explain(job: Job, situation: Situation) -> Explanation:
    """Say why the job does not run, what it is doing, or how it ended.

    Args:
        job: as it stands in the store.
        situation: what is known around it, at the same time.
    """
    status = job.status
    if status.is_terminal:
        reasons = [_finished(job, situation)]
    elif status is JobStatus.RUNNING:
        reasons = _running(job, situation)
    else:
        reasons = _waiting(job, situation)
    return Explanation(job_id=job.id, status=status, reasons=tuple(reasons))


ONCE_TAKEN_BACK: tuple[Finder, ...] = (queue_paused, nobody_serves)
"""What will keep a job whose worker is lost from starting again when it has been taken back."""


def _waiting(job: Job, s: Situation) -> list[Reason]:
    over = expired(job, s)
    if over is not None:
        return [over]
    reasons = _found(OBSTACLES, job, s)
    if not reasons:
        assert is_waiting_for_claim(job, s.now), "what nothing keeps back can be claimed"
        reasons = _found(QUEUEING, job, s) or [_nothing(job, s)]
    return reasons + _found((will_expire,), job, s)


def _found(finders: tuple[Finder, ...], job: Job, s: Situation) -> list[Reason]:
    return [reason for find in finders if (reason := find(job, s)) is not None]


def _nothing(job: Job, s: Situation) -> Reason:
    queue = job.spec.queue
    text = "Nothing is in its way."
    if s.here is None or not serves(s.here, queue):
        others = listed([worker.id for worker in s.serving_elsewhere(queue)])
        text = (
            f"Nothing that can be seen from here is in its way; it waits for a free slot of worker {others}."
        )
    return Reason(
        code=ReasonCode.NOTHING_IN_THE_WAY,
        text=text,
        change="It starts at the next turn of a worker.",
        expected_at_us=s.now,
    )


def _running(job: Job, s: Situation) -> list[Reason]:
    holder = s.holder(job.worker)
    if holder is None or not holder.is_alive:
        return [_holder_lost(job), *_found(ONCE_TAKEN_BACK, job, s)]
    is_here = s.here is not None and s.here.worker == holder.id
    if holder.is_gone and not is_here:
        return [_holder_gone(job, s, holder), *_found(ONCE_TAKEN_BACK, job, s)]
    reasons = [_runs(job, s, holder)]
    if holder.is_silent and not is_here:
        reasons.insert(0, _holder_silent(s, holder))
    if job.cancel_requested:
        reasons.append(_cancel_requested(job))
    return reasons


def _runs(job: Job, s: Situation, holder: WorkerSeen) -> Reason:
    is_here = s.here is not None and s.here.worker == holder.id
    where = "in this process" if is_here else f"on {holder.host or 'another host'}, pid {holder.pid}"
    since = "" if job.started_at is None else f" since {moment(job.started_at, s.now)}"
    details = f"{_progress(job, s)}{_deadline(s)}"
    replaced = "; a newer version of its id waits for it, so it will not be retried" if job.superseded else ""
    lost = (
        " Should that process die, a worker of its machine takes the job back within two seconds, any other "
        f"within {span(holder.lease_us)}."
    )
    return Reason(
        code=ReasonCode.RUNNING,
        text=f"Attempt {job.attempt} runs{since}, {where} (worker {holder.id}){details}{replaced}.",
        change=f"It ends when its code does; cancel() asks it to stop.{'' if is_here else lost}",
    )


def _progress(job: Job, s: Situation) -> str:
    occupant = None if s.here is None else s.here.occupant(job.seq)
    if occupant is None or occupant.progress is None:
        return ""
    done, total = occupant.progress
    return f"; done: {done:g}" if total is None else f"; done: {done:g} of {total:g}"


def _deadline(s: Situation) -> str:
    return "" if s.deadline is None else f"; its timeout is over at {moment(s.deadline, s.now)}"


def _cancel_requested(job: Job) -> Reason:
    means = {
        "loop": "a loop job gets CancelledError, and may clean up first",
        "thread": "a thread cannot be killed: its function has to look at ctx.cancelled",
        "process": "its process has been sent SIGTERM, and is killed when grace= is over",
        "command": "its processes have been sent SIGTERM, and are killed when grace= is over",
    }
    how = means.get(job.spec.lane, f"it has been told as lane {job.spec.lane!r} does")
    return Reason(
        code=ReasonCode.CANCEL_REQUESTED,
        text=f"It has been told to stop ({job.reason}), and its code has not returned yet.",
        change=f"It is over when the code returns: {how}. cancel(abandon=True) records CANCELLED at once.",
    )


def _holder_gone(job: Job, s: Situation, holder: WorkerSeen) -> Reason:
    return Reason(
        code=ReasonCode.HOLDER_SILENT,
        text=f"Worker {holder.id} held it, and its process ({holder.host}, pid {holder.pid}) has ended; its "
        f"lease is not over before {_lease_end(s, holder)}.",
        change=f"A worker of the same machine that knows task {job.spec.task!r} takes it back within two "
        "seconds, one elsewhere when the lease is over; start one if none runs.",
        expected_at_us=s.now + (holder.left_us or 0),
    )


def _holder_silent(s: Situation, holder: WorkerSeen) -> Reason:
    return Reason(
        code=ReasonCode.HOLDER_SILENT,
        text=f"Worker {holder.id} ({holder.host or 'another host'}, pid {holder.pid}), which runs it, has "
        f"been silent for {span(holder.lease_us - (holder.left_us or 0))}; its lease is over at "
        f"{_lease_end(s, holder)}.",
        change="Unless that process comes back before, the job is taken back then, and another runs it.",
        expected_at_us=s.now + (holder.left_us or 0),
    )


def _lease_end(s: Situation, holder: WorkerSeen) -> str:
    return moment(s.now + (holder.left_us or 0), s.now)


def _holder_lost(job: Job) -> Reason:
    return Reason(
        code=ReasonCode.HOLDER_LOST,
        text=f"Worker {job.worker} held it and has lost its lease: its process is dead, or was cut off.",
        change=f"A worker that knows task {job.spec.task!r} takes it back at its next look; start one.",
    )


def _finished(job: Job, s: Situation) -> Reason:
    at = job.finished_at or s.now
    tries = f"in attempt {job.attempt}" if job.attempt else "before its first attempt"
    earlier = f" after {len(job.attempts)} earlier one(s)" if job.attempts else ""
    return Reason(
        code=ReasonCode.FINISHED,
        text=f"It ended {job.status.name} at {moment(at, s.now)}, {tries}{earlier}{_how(job)}.",
        change=f"It stays so, unless somebody calls scheduler.retry({job.id!r}) or submits it again.",
    )


_WHY_CANCELLED: dict[str, str] = {
    CancelReason.REQUESTED: "somebody asked for it",
    CancelReason.REPLACED: "a newer version of its id replaced it",
    CancelReason.EXPIRED: "it had not started in the time that expires= gave it",
    CancelReason.STOPPED: "the scheduler was stopped with cancel_running=True",
}


def _how(job: Job) -> str:
    if job.status is JobStatus.CANCELLED and job.reason is not None:
        name, _, which = job.reason.partition(": ")
        if name == CancelReason.DEPENDENCY:
            return f": job {which}, which it depends on, did not complete"
        return f": {_WHY_CANCELLED.get(job.reason, job.reason)}"
    if job.status is JobStatus.COMPLETED:
        return ""
    return "".join(f": {why}" for why in (job.error, job.reason) if why is not None)
