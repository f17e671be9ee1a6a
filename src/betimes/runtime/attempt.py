"""One attempt of a job in this process: what the executor runs, and what the worker knows of it."""

from __future__ import annotations

import logging
from contextvars import Context as Variables
from random import Random
from typing import Any

from betimes.core.events import DeadlinePassed, Errored, Event, GivenBack, Succeeded
from betimes.core.job import EMPTY_PAYLOAD, ErrorInfo, Job, Micros
from betimes.core.log import INFO
from betimes.core.outcome import HOPELESS, AskedToCancel, AskedToSnooze, Outcome, Raised, outcome_of
from betimes.core.remote import Answer, Call, Returned, Threw, WantsCancel, WantsSnooze
from betimes.core.retry import class_name
from betimes.core.task import TaskDefinition
from betimes.errors import CommandFailed, JobTimedOut, ProcessDied
from betimes.ports import Report
from betimes.runtime.context import Context, current_attempt
from betimes.runtime.logbook import LogBook

_log = logging.getLogger("betimes")

STOPPED = "the scheduler was stopped"
"""Why a worker usually lets go of what it runs."""


class Refusal(Report):
    """A claimed job that goes back without having been started.

    Attributes:
        number: the attempt that did not come about.
    """

    __slots__ = ("number",)
    has_begun = False

    def __init__(self, job: Job, event: Event) -> None:
        """Send the job back with this event."""
        super().__init__(job, job.fence, event)
        self.number = job.attempt


class Attempt(Report):
    """A claimed job's run.

    Mutable: the worker alone writes to it, on the loop. It keeps its own copy of the numbers it was claimed
    with, since the job's record may move on.

    Attributes:
        job, seq, fence, number, lane, worker, claimed_at: what was claimed, and when by the store's clock.
        event: how it ended; until it is known, that it was given back.
        task: the task's definition here.
        book: where the lines of its log are gathered.
        context: the context variables its code sees: none but `current_attempt`.
        handle: the executor's own.
        timeout_s: its timeout; None: none.
        deadline_number: its entry among the watched deadlines; 0: it has none.
        started: when it was started, on the loop's clock.
        is_reported: its outcome is known, and on its way to the store.
        is_told: its code has been told to stop (`Context.cancelled`).
        is_recorded: its outcome is in the store, or is no longer wanted there.
        has_returned: its code has ended.
        progress: the last `(done, total)` its code gave.
    """

    # What most attempts never change stands on the class: no slots here, since few live at once.
    handle: object = None
    event: Event = GivenBack(0)
    deadline_number = 0
    is_told = False
    is_reported = False
    is_recorded = False
    has_returned = False
    progress: tuple[float, float | None] | None = None

    def __init__(self, job: Job, task: TaskDefinition, started: float, book: LogBook) -> None:
        """Begin the attempt that was claimed with this record."""
        self.book = book
        spec = job.spec
        self.job = job
        self.seq = job.seq
        self.fence = job.fence
        self.number = job.attempt
        self.claimed_at = job.started_at
        self.worker = job.worker
        self.task = task
        self.lane = task.spec.lane
        self.context = Variables()
        self.started = started
        self.timeout_s = task.timeout_s if spec.timeout_s is None else task.timeout_of(spec)

    def invoke(self) -> Any:
        """Decode the arguments and call the task's function; in the attempt's own context."""
        current_attempt.set(self)
        task = self.task
        if not task.takes_context:
            if self.job.payload == EMPTY_PAYLOAD:
                return task.fn()
            args, kwargs = task.signature.decode(self.job.payload)
        else:
            args, kwargs = task.signature.decode(self.job.payload, Context(self))
        return task.fn(*args, **kwargs)

    def returned(self, value: object) -> Outcome:
        """Encode a return value; one that cannot be stored is a failure."""
        try:
            return Succeeded(0, self.task.signature.encode_result(value))
        except Exception as error:  # noqa: BLE001 - whatever a user's type raises while it is encoded
            close = getattr(value, "close", None)
            if hasattr(value, "__await__") and close is not None:
                close()
            return self.raised(error)

    def raised(self, error: BaseException) -> Outcome:
        """Turn an exception into an outcome that keeps nothing of it alive."""
        if isinstance(error, CommandFailed) and (error.exit_code or 0) < 0:
            self._tell_of_death(str(error).partition(";")[0])  # without its stderr, which is in the job's log
        return self._may_snooze(outcome_of(error, self.task.policy_of(self.job.spec), self.number))

    def _may_snooze(self, outcome: Outcome) -> Outcome:
        if isinstance(outcome, AskedToSnooze) and self.job.spec.at_most_once:
            message = "the job may start only once (delivery='at_most_once'), so it cannot run again later"
            error = ErrorInfo(type="betimes.errors.Snooze", message=message)
            return Raised(error, may_retry=False, is_hopeless=True)
        return outcome

    @property
    def job_id(self) -> str:
        """The job's id."""
        return self.job.id

    @property
    def task_name(self) -> str:
        """The task's registered name."""
        return self.task.name

    @property
    def fire_at(self) -> Micros | None:
        """The instant of the fire that made the job, if one did."""
        fire = self.job.fire
        return None if fire is None else fire.at

    @property
    def deadline(self) -> Micros | None:
        """When its timeout is over, if it has one."""
        if self.timeout_s is None or self.claimed_at is None:
            return None
        return self.claimed_at + round(self.timeout_s * 1_000_000)

    def call(self) -> Call:
        """Return what another process needs to run the code."""
        fn, job = self.task.fn, self.job
        return Call(
            module=fn.__module__,
            qualname=fn.__qualname__,
            payload=job.payload,
            job_id=job.id,
            task=self.task.name,
            attempt=self.number,
            fence=self.fence,
            scheduled_for=self.fire_at,
            deadline=self.deadline,
        )

    def answered(self, answer: Answer) -> Outcome:
        """Turn what another process says of the end of the code into an outcome."""
        policy = self.task.policy_of(self.job.spec)
        if isinstance(answer, Returned):
            return Succeeded(0, answer.result)
        if isinstance(answer, Threw):
            is_hopeless = any(class_name(kind) in answer.classes for kind in HOPELESS)
            return Raised(answer.error, policy.should_retry_named(answer.classes, self.number), is_hopeless)
        if isinstance(answer, WantsSnooze):
            return self._may_snooze(AskedToSnooze(answer.delay_us))
        if isinstance(answer, WantsCancel):
            return AskedToCancel(answer.reason)
        self._tell_of_death(answer.how)
        return self.raised(ProcessDied(answer.how))

    def _tell_of_death(self, how: str) -> None:
        """Log it, with the reason where there is one, in the only line in which all of it stands together."""
        is_late = isinstance(self.event, DeadlinePassed)
        why = f"{self.event.error.message}; " if isinstance(self.event, DeadlinePassed) else ""
        level = logging.WARNING if is_late or not self.is_told else logging.INFO
        text = "job %s (%s), attempt %d, worker %s: %s%s"
        _log.log(level, text, self.job.id, self.task.name, self.number, self.worker, why, how)

    def progressed(self, done: float, total: float | None) -> None:
        """Note how far the code says it is."""
        self.progress = (done, total)

    def write_log(self, text: str, *, source: str = "log", level: int = INFO) -> None:
        """Add lines to the job's log; from any thread."""
        self.book.write(self, text, source=source, level=level)

    def back_off_us(self, rng: Random) -> int:
        """Draw how long the job waits for its next attempt after this one has failed."""
        return round(self.task.policy_of(self.job.spec).delay(self.number, rng) * 1_000_000)

    def late(self, now: Micros, rng: Random) -> Event:
        """Say that the timeout is over, and when the job is tried again, if it is."""
        error = JobTimedOut(f"the attempt passed its timeout of {self.timeout_s:g} s", job_id=self.job.id)
        may_retry = self.task.policy_of(self.job.spec).should_retry(error, self.number)
        info = ErrorInfo(type="betimes.errors.JobTimedOut", message=str(error))
        return DeadlinePassed(now, info, self.back_off_us(rng) if may_retry else None)

    def given_back(self, now: Micros, why: str) -> Event:
        """Say that the worker lets the job go, although its code has started."""
        if not self.job.spec.at_most_once:
            return GivenBack(now)
        message = f"{why} before the attempt ended, and the job may start only once"
        return Errored(now, ErrorInfo(type="betimes.errors.SchedulerClosed", message=message))

    def __repr__(self) -> str:
        return f"<Attempt {self.number} of {self.job.id} ({self.task.name})>"
