"""One attempt of a job in this process: what the executor runs, and what the worker knows of it."""

from __future__ import annotations

from contextvars import Context as Variables
from typing import Any
from betimes.core.events import Event, GivenBack, Succeeded
from betimes.core.job import EMPTY_PAYLOAD, Job
from betimes.core.outcome import Outcome, outcome_of
from betimes.core.task import TaskDefinition
from betimes.ports import Report
from betimes.runtime.context import Context, current_attempt


_NOT_ENDED: Event = GivenBack(0)


class Attempt(Report):
    """A claimed job's run.

    Mutable, with slots: one is made for each attempt, and the worker alone writes to it, on the loop. It keeps
    its own copy of the numbers it was claimed with, since the job's record may move on.

    Attributes:
        job, seq, fence, number, lane, claimed_at: what was claimed, and when by the store's clock.
        event: how it ended; until it is known, that it was given back.
        task: the task's definition here.
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
        waits_for: `seq` of the job whose end its code waits for.
    """

    __slots__ = (
        "claimed_at",
        "context",
        "deadline_number",
        "handle",
        "has_returned",
        "is_recorded",
        "is_reported",
        "is_told",
        "lane",
        "number",
        "progress",
        "seq",
        "started",
        "task",
        "timeout_s",
        "waits_for",
    )

    def __init__(self, job: Job, task: TaskDefinition, started: float) -> None:
        """Begin the attempt that was claimed with this record."""
        self.job = job
        self.seq = job.seq
        self.fence = job.fence
        self.event = _NOT_ENDED
        self.number = job.attempt
        self.claimed_at = job.started_at
        self.lane = task.spec.lane
        self.task = task
        self.context = context = Variables()
        context.run(current_attempt.set, self)
        self.handle: object = None
        spec = job.spec
        self.timeout_s = task.timeout_s if spec.timeout_s is None else task.timeout_of(spec)
        self.deadline_number = 0
        self.started = started
        self.is_reported = False
        self.is_told = False
        self.is_recorded = False
        self.has_returned = False
        self.progress: tuple[float, float | None] | None = None
        self.waits_for: int | None = None

    def invoke(self) -> Any:
        """Decode the arguments and call the task's function."""
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
        return outcome_of(error, self.task.policy_of(self.job.spec), self.number)

    def __repr__(self) -> str:
        return f"<Attempt {self.number} of {self.job.id} ({self.task.name})>"
