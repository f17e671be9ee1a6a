"""What a test wants to know afterwards: which jobs were made, in what order, and which attempts failed."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from betimes.core.durations import from_us
from betimes.core.job import ErrorInfo, FireKey, Job, JobEvent, JobSpec, JobStatus, Micros
from betimes.core.schedule import Advance, Fired
from betimes.core.task import Registry, TaskDefinition
from betimes.errors import BetimesError
from betimes.ports import ClaimRequest, Clock, Exchange, Report
from betimes.runtime.attempt import Attempt
from betimes.stores.memory import MemoryStore

FAILED_KEPT = 1000
FAILED_ENDS = frozenset({JobStatus.FAILED, JobStatus.TIMED_OUT})


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedCall:
    """One job that was made. Instants are aware, in UTC.

    Attributes:
        task: the task's name.
        arguments: by the parameters' names, each of its annotated type, as the job gets them; those that the
            call left out are not there.
        job_id: the job's id.
        queue, priority, tags: as submitted.
        submitted_at, run_at: when it was made, and its earliest start.
        schedule: id of the schedule that made it; None: it was submitted.
        scheduled_for: the instant of the schedule that it was made for.

    Example:
        >>> scheduler = Scheduler()
        >>> @scheduler.task
        ... def send(user: str) -> None: ...
        >>> with Jobs(scheduler) as jobs:
        ...     job = jobs.submit(send, "ada")
        ...     [call.arguments for call in jobs.submitted(send)]
        [{'user': 'ada'}]
    """

    task: str
    arguments: dict[str, Any]
    job_id: str
    queue: str
    priority: int
    tags: tuple[str, ...]
    submitted_at: datetime
    run_at: datetime
    schedule: str | None
    scheduled_for: datetime | None

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        origin = f", by schedule {self.schedule}" if self.schedule else ""
        later = f", to run at {self.run_at}" if self.run_at > self.submitted_at else ""
        return f"{self.task}({arguments})  at {self.submitted_at}{later}{origin}"


@dataclass(frozen=True, slots=True)
class MadeJob:
    """What is kept of a job that was made: not the record, so that a year of runs is not held in memory."""

    id: str
    spec: JobSpec
    payload: bytes
    submitted_at: Micros
    run_at: Micros
    fire: FireKey | None


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """An attempt that raised or was late.

    Attributes:
        job: its job.
        attempt: the attempt's number.
        after: where the job stood then: FAILED, TIMED_OUT, or DELAYED before the next attempt.
        error: what it raised, if it did.
        reason: what ended it otherwise.
    """

    job: Job
    attempt: int
    after: JobStatus
    error: ErrorInfo | None
    reason: str | None

    def __str__(self) -> str:
        why = str(self.error) if self.error else self.reason or "no reason was recorded"
        traceback = self.error.traceback.rstrip() if self.error and self.error.traceback else ""
        head = f"{self.job.spec.task}, job {self.job.id}, attempt {self.attempt}: {self.after.name}: {why}"
        return f"{head}\n{traceback}" if traceback else head


class RecordingStore(MemoryStore):
    """A memory store that remembers what was made and what failed.

    Attributes:
        made: every job that was kept, by a submit or by a schedule, in order.
        failed: the last 1,000 attempts that raised or were late, in order.
    """

    def __init__(self, *, clock: Clock) -> None:
        """Start empty."""
        super().__init__(clock=clock)
        self.made: list[MadeJob] = []
        self.failed: deque[FailedAttempt] = deque(maxlen=FAILED_KEPT)

    async def submit(self, jobs: Sequence[Job]) -> tuple[list[Job], Sequence[JobEvent]]:
        """Keep new jobs, and record those that are new indeed: a key may have found an older one."""
        kept, changes = await super().submit(jobs)
        self._record(job for job, one in zip(jobs, kept, strict=True) if job is one)
        return kept, changes

    async def fire(self, advances: Sequence[Advance]) -> tuple[list[Fired | None], Sequence[JobEvent]]:
        """Carry out steps of schedules, and record the jobs they made."""
        fired, changes = await super().fire(advances)
        self._record(job for each in fired if each is not None for job in each.jobs)
        return fired, changes

    async def exchange(
        self, reports: Sequence[Report], claim: ClaimRequest | None, returned: Sequence[tuple[int, int]] = ()
    ) -> Exchange:
        """Take reports, and record the attempts that failed."""
        exchange = await super().exchange(reports, claim, returned)
        for report, step in zip(reports, exchange.steps, strict=True):
            if step is not None and (step.error is not None or step.after in FAILED_ENDS):
                attempt = report.number if isinstance(report, Attempt) else report.job.attempt
                failed = FailedAttempt(report.job, attempt, step.after, step.error, step.reason)
                self.failed.append(failed)
        return exchange

    def _record(self, jobs: Iterable[Job]) -> None:
        self.made += [
            MadeJob(job.id, job.spec, job.payload, job.submitted_at, job.run_at, job.fire) for job in jobs
        ]


def call_of(made: MadeJob, tasks: Registry) -> SubmittedCall:
    """Show a job that was made, its arguments decoded as far as its task is known."""
    task = tasks.get(made.spec.task)
    raw = msgspec.json.decode(made.payload)
    return SubmittedCall(
        task=made.spec.task,
        arguments=raw if task is None else _arguments(task, made.payload, raw),
        job_id=made.id,
        queue=made.spec.queue,
        priority=made.spec.priority,
        tags=made.spec.tags,
        submitted_at=from_us(made.submitted_at),
        run_at=from_us(made.run_at),
        schedule=None if made.fire is None else made.fire.schedule,
        scheduled_for=None if made.fire is None else from_us(made.fire.at),
    )


def _arguments(task: TaskDefinition, payload: bytes, raw: dict[str, Any]) -> dict[str, Any]:
    try:
        return task.signature.arguments(payload)
    except BetimesError:
        return raw


class SameCall:
    """Whether stored calls of one task are the same as one of them, defaults filled in.

    Two are the same if their JSON is, or if their values are: a set has no order, but its JSON does.
    """

    def __init__(self, task: TaskDefinition, payload: bytes) -> None:
        """Compare with this call."""
        self._signature = task.signature
        self._defaults = {
            one.name: one.default
            for one in inspect.signature(task.fn).parameters.values()
            if one.default is not one.empty and one.name != task.signature.context_parameter
        }
        self._payload = payload
        self._full = self._signature.filled_in(payload, self._defaults)

    def __call__(self, payload: bytes) -> bool:
        """Compare another call with it."""
        if payload == self._payload:
            return True
        full = self._signature.filled_in(payload, self._defaults)
        if msgspec.json.decode(full) == msgspec.json.decode(self._full):
            return True
        return self._signature.arguments(full) == self._signature.arguments(self._full)
