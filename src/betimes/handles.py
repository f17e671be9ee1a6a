"""Handles: how users follow one job, and what they are shown of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Generic, TypeVar, cast

import msgspec

from betimes.core.durations import duration_s, from_us
from betimes.core.job import AttemptOutcome, CancelReason, ErrorInfo, Job, JobStatus, Micros
from betimes.errors import JobCancelled, JobFailed, JobTimedOut, UnknownJob
from betimes.ports import CancelAnswer
from betimes.runtime.endings import Ending

if TYPE_CHECKING:
    from betimes.core.explain import Explanation
    from betimes.core.log import LogLine
    from betimes.scheduler import Scheduler
    from betimes.tasks import Duration

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptInfo:
    """How one attempt went.

    Attributes:
        attempt: its number, from 1; snoozed, given back and lost ones share it with the next.
        started_at, ended_at: aware, UTC; None where there is none.
        outcome: `completed`, `failed`, `timed_out`, `cancelled`, `snoozed`, `given_back`, `lost`, or
            `running`.
        error: what it raised, if it did.
        note: who asked for the job back after it, where somebody did; of a lost one, which worker it was,
            and what is known of its end.
    """

    attempt: int
    started_at: datetime | None
    ended_at: datetime | None
    outcome: str
    error: ErrorInfo | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInfo:
    """What is known of a job at one instant. Instants are aware, in UTC.

    Attributes:
        id, version: which job, and which version of its id.
        task, queue, priority, tags, key: as submitted.
        status: where it stands.
        attempt: the number of the attempt that runs or ran last; 0 before the first.
        attempts: how each attempt went, oldest first (the last 50).
        crashes: how many workers died holding it.
        submitted_at, run_at, started_at, finished_at, expires_at: the times; None where there is none.
        depends_on: ids of the jobs it waits or waited for.
        error: of the last failed attempt.
        reason: why it was cancelled, or failed without an error.
        worker: who holds it while it runs.
        fence: its fence.
        cancel_requested: whether the running attempt has been told to stop.
        schedule: id of the schedule that made it; None: no schedule did.
        scheduled_for: the instant of the schedule that it was made for.
    """

    id: str
    version: int
    task: str
    queue: str
    priority: int
    tags: tuple[str, ...]
    key: str | None
    status: JobStatus
    attempt: int
    attempts: tuple[AttemptInfo, ...]
    crashes: int
    submitted_at: datetime
    run_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    expires_at: datetime | None
    depends_on: tuple[str, ...]
    error: ErrorInfo | None
    reason: str | None
    worker: str | None
    fence: int
    cancel_requested: bool
    schedule: str | None = None
    scheduled_for: datetime | None = None

    @property
    def start_delay_s(self) -> float | None:
        """How long after its `run_at` its last attempt started, in seconds; None: it has not, since then."""
        if self.started_at is None or self.started_at < self.run_at:
            return None
        return (self.started_at - self.run_at).total_seconds()

    @classmethod
    def of(cls, job: Job) -> JobInfo:
        """Read it off a job's record."""
        spec = job.spec
        return cls(
            id=job.id,
            version=job.seq,
            task=spec.task,
            queue=spec.queue,
            priority=spec.priority,
            tags=spec.tags,
            key=job.key,
            status=job.status,
            attempt=job.attempt,
            attempts=_attempts(job),
            crashes=job.crashes,
            submitted_at=from_us(job.submitted_at),
            run_at=from_us(job.run_at),
            started_at=_instant(job.started_at),
            finished_at=_instant(job.finished_at),
            expires_at=_instant(job.expires_at),
            depends_on=job.depends_on,
            error=job.error,
            reason=job.reason,
            worker=job.worker,
            fence=job.fence,
            cancel_requested=job.cancel_requested,
            schedule=None if job.fire is None else job.fire.schedule,
            scheduled_for=None if job.fire is None else from_us(job.fire.at),
        )


def _instant(us: Micros | None) -> datetime | None:
    return None if us is None else from_us(us)


def _attempts(job: Job) -> tuple[AttemptInfo, ...]:
    outcomes = [_attempt(outcome) for outcome in job.attempts]
    is_running = job.status is JobStatus.RUNNING
    if is_running or (job.status.is_terminal and _was_claimed_since(job)):
        last = AttemptInfo(
            attempt=job.attempt,
            started_at=_instant(job.started_at),
            ended_at=None if is_running else _instant(job.finished_at),
            outcome=job.status.value,
            error=job.error,
        )
        outcomes.append(last)
    return tuple(outcomes)


def _was_claimed_since(job: Job) -> bool:
    """Whether an ended job was claimed after the last attempt in its history: its end is that claim's, then.

    Each claim raises the fence, and so does the loss of a worker.
    """
    if not job.attempts:
        return job.attempt > 0
    last = job.attempts[-1]
    return job.fence > last.fence + (last.outcome == "lost")


def _attempt(outcome: AttemptOutcome) -> AttemptInfo:
    return AttemptInfo(
        attempt=outcome.attempt,
        started_at=_instant(outcome.started_at),
        ended_at=from_us(outcome.ended_at),
        outcome=outcome.outcome,
        error=outcome.error,
        note=outcome.note,
    )


class JobHandle(Generic[R]):
    """One version of one job. A handle keeps its version: a replacement has a handle of its own."""

    # Slots: one is made for each submit.
    __slots__ = ("_job", "_scheduler")

    payload_hint = "pass its `.id`, and name the job in `depends_on`"

    def __init__(self, scheduler: Scheduler, job: Job) -> None:
        self._scheduler = scheduler
        self._job = job

    @property
    def id(self) -> str:
        """The job's id."""
        return self._job.id

    def __repr__(self) -> str:
        return f"<JobHandle {self._job.id} ({self._job.spec.task})>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobHandle) and (other.id, other._job.seq) == (self.id, self._job.seq)

    def __hash__(self) -> int:
        return hash((self._job.id, self._job.seq))

    def _is_of(self, scheduler: Scheduler) -> bool:
        return self._scheduler._store is scheduler._store  # noqa: SLF001

    async def _found(self) -> Job:
        found = await self._scheduler._get(self._job)  # noqa: SLF001
        if found is None:
            raise UnknownJob(f"job {self.id} has been pruned", job_id=self.id)
        return found

    async def status(self) -> JobStatus:
        """Return where the job stands now.

        Raises:
            UnknownJob: it has been pruned.
            SchedulerClosed: the scheduler is not open.
        """
        return (await self._found()).status

    async def info(self) -> JobInfo:
        """Return what is known of the job now; errors as `status`."""
        return JobInfo.of(await self._found())

    async def wait(self, timeout: Duration | None = None) -> JobStatus:  # noqa: ASYNC109 - the API's word
        """Wait for the job's end and return its final status.

        Args:
            timeout: the most to wait; None: as long as it takes.

        Raises:
            TimeoutError: the time is over; the job goes on.
            SchedulerClosed: the scheduler is not open, or was stopped first.
        """
        return (await self._ending(timeout)).status

    async def result(self, timeout: Duration | None = None) -> R:  # noqa: ASYNC109 - the API's word
        """Wait for the job's end and return its value, decoded into the task's return annotation.

        Args:
            timeout: the most to wait; None: as long as it takes.

        Raises:
            JobFailed, JobTimedOut, JobCancelled: it ended otherwise.
            TimeoutError: the time is over; the job goes on.
            SchedulerClosed: the scheduler is not open, or was stopped first.
            UnknownJob: it has been pruned.
        """
        ending = await self._ending(timeout)
        if ending.status is not JobStatus.COMPLETED:
            raise self._error_of(ending)
        payload = ending.result or b"null"
        task = self._scheduler._definitions.get(self._job.spec.task)  # noqa: SLF001
        value = msgspec.json.decode(payload) if task is None else task.signature.decode_result(payload)
        return cast("R", value)

    async def _ending(self, timeout: Duration | None) -> Ending:  # noqa: ASYNC109 - as above
        if timeout is None:
            return await self._end()
        seconds = duration_s(timeout, name="timeout", allow_zero=True)
        try:
            async with asyncio.timeout(seconds):
                return await self._end()
        except TimeoutError:
            raise TimeoutError(f"job {self.id} has not ended within {seconds:g} s; it goes on") from None

    async def _end(self) -> Ending:
        return await self._scheduler._wait(self._job)  # noqa: SLF001

    def _error_of(self, ending: Ending) -> Exception:
        if ending.status is JobStatus.TIMED_OUT:
            return JobTimedOut(f"job {self.id}: {_text(ending)}", job_id=self.id)
        if ending.status is JobStatus.CANCELLED:
            reason = ending.reason or CancelReason.REQUESTED.value
            return JobCancelled(f"job {self.id} was cancelled: {reason}", job_id=self.id, reason=reason)
        error = ending.error
        return JobFailed(
            f"job {self.id} failed: {_text(ending)}",
            job_id=self.id,
            error_type=error.type if error else "",
            error_message=error.message if error else ending.reason or "",
            traceback=error.traceback if error else "",
        )

    async def cancel(self, abandon: bool = False) -> CancelAnswer:
        """Cancel this version of the job, and answer what happened.

        Args:
            abandon: end a running job at once, and leave its code to itself: its slot stays taken, and
                counted as stuck, until the code returns.
        """
        return await self._scheduler._cancel(self._job, abandon=abandon)  # noqa: SLF001

    async def explain(self) -> Explanation:
        """Say why the job has not started, or how it ended.

        Raises:
            UnknownJob: it has been pruned.
        """
        return await self._scheduler._explain(self._job)  # noqa: SLF001

    async def log(self, *, after: int = 0, limit: int = 1000) -> list[LogLine]:
        """Return the job's log, oldest line first: what `ctx.log` and its process or command have written.

        What a loop or thread job prints is not in it: its stdout is the whole scheduler's.

        Of a job that runs, the lines are there within a second; of one that has ended, all of them. Of a job
        the newest 1,000 lines are kept, 2,000 characters of each.

        Args:
            after: only lines whose `number` is larger: the next page, or what is new.
            limit: the most to return, 1 to 1,000.

        Raises:
            ConfigurationError: an argument is wrong.
            SchedulerClosed: the scheduler is not open.

        Example:
            for line in await job.log():
                print(line.at, line.source, line.text)
        """
        return await self._scheduler._log(self._job, after=after, limit=limit)  # noqa: SLF001

    async def progress(self) -> tuple[float, float | None] | None:
        """Return the last `(done, total)` that the job's code gave; None before the first.

        Known in the process that runs the job, while it runs.
        """
        return self._scheduler._progress(self._job)  # noqa: SLF001


def _text(ending: Ending) -> str:
    return str(ending.error) if ending.error else ending.reason or "no reason was recorded"
