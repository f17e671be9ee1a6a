"""The job: what every store keeps, every worker runs and every decision reads.

Instants are integer microseconds since the Unix epoch (`Micros`); exact, ordered, and the same in memory,
SQL and JSON. Durations are float seconds whose names end in `_s`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple, TypeAlias, overload

Micros: TypeAlias = int
"""An instant: microseconds since 1970-01-01T00:00:00Z."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EMPTY_PAYLOAD = b"{}"


class JobStatus(StrEnum):
    """Where a job stands; the legal ways between are `lifecycle.LEGAL`."""

    BLOCKED = "blocked"
    DELAYED = "delayed"
    READY = "ready"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"

    @property
    def is_terminal(self) -> bool:
        """Whether the job is over; only an operator's `retry` leads out again."""
        return self in TERMINAL


WAITING = frozenset({JobStatus.BLOCKED, JobStatus.DELAYED, JobStatus.READY})
TERMINAL = frozenset({JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.TIMED_OUT, JobStatus.CANCELLED})


class CancelReason(StrEnum):
    """Why a job ended CANCELLED; a job that raises `Cancel(reason)` gives its own words instead."""

    REQUESTED = "requested"
    REPLACED = "replaced"
    EXPIRED = "expired"
    DEPENDENCY = "dependency"
    STOPPED = "stopped"


class Need(StrEnum):
    """What a job waits for in a job it depends on."""

    COMPLETED = "completed"
    """That it completes; any other end cancels the waiting job."""
    ENDED = "ended"
    """That it ends, however that may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """What jobs of one task, submitted with the same options, have in common; shared, not copied.

    Attributes:
        task: the registered name.
        queue: where it waits.
        lane: the kind of executor that runs it (`loop`, `thread`, …); a claim asks each lane for its free
            slots.
        priority: −1000…1000, larger first.
        at_most_once: after a crash of its worker the job fails rather than run again.
        timeout_s: overrides the task's timeout; None: as the task says; 0: none.
        retry: overrides the task's retry policy (`RetryPolicy.to_stored`); None: as the task says.
        keep_s: how long the job stays after its end; None: as the store is set.
        tags: for finding it again.
    """

    task: str
    queue: str = "default"
    lane: str = "loop"
    priority: int = 1
    at_most_once: bool = False
    timeout_s: float | None = None
    retry: Mapping[str, object] | None = None
    keep_s: float | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a submit asks of the store besides keeping the job; checked in the transaction that inserts it.

    Attributes:
        named: the id was chosen by the caller, so a live job of that id is a conflict.
        token: marks this submission; a second try under the same token finds the first (only where `named`).
        replace: the newest version of the id becomes the only one that can start.
        key: idempotency key.
        key_until: until when the key is remembered.
        key_digest: stands for task and arguments; another digest under the same key is an error.
        depends_on: jobs (this batch's own, too) or ids, each with what is needed of it.
    """

    named: bool = False
    token: str | None = None
    replace: bool = False
    key: str | None = None
    key_until: Micros = 0
    key_digest: bytes = b""
    depends_on: tuple[tuple[Job | str, Need], ...] = ()


UNREADABLE = "UnreadableRow"
"""The type of the error of a job whose row in the store cannot be read whole: it is not to be run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorInfo:
    """An exception as text: nothing of it is kept alive.

    Attributes:
        type: qualified name of its type.
        message: its `str()`, cut at a fixed length.
        traceback: the formatted traceback, cut likewise; empty where there is none.
    """

    type: str
    message: str
    traceback: str = ""

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptOutcome:
    """How an attempt before the current one ended.

    Attributes:
        attempt: its number, from 1; a snoozed, given back or lost attempt shares it with the next.
        fence: the fence it ran under.
        started_at: when it was claimed; None for a job that ended before its first start.
        ended_at: when its end was recorded.
        outcome: `failed`, `timed_out`, `snoozed`, `given_back`, `lost`, or for what an operator retried,
            the final status.
        error: what it raised, if it did.
        note: who asked for the job back, where somebody did.
    """

    attempt: int
    fence: int
    started_at: Micros | None
    ended_at: Micros
    outcome: str
    error: ErrorInfo | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class FireKey:
    """Which fire made a job.

    Attributes:
        schedule: the schedule's id.
        at: the fire's instant: what the job was scheduled for, however late it starts.
        by_hand: it was asked for by `trigger_now`, outside the schedule's own instants.
    """

    schedule: str
    at: Micros
    by_hand: bool = False


class Tenant(NamedTuple):
    """Whose job it is, for `FairShareStrategy`.

    Attributes:
        name: the value that tells tenants apart.
        cost: how far one job moves its tenant back: the larger, the smaller its share.
    """

    name: str
    cost: int


class Job:
    """One version of one job: the record that stores keep.

    Mutable, and with slots instead of a dict, because the memory store keeps a million of them and moves
    100,000 a second; only `lifecycle.enter` and the stores write to it. Two jobs are never compared: they
    are ordered by `(sort_key, seq)`.

    Attributes:
        id: text, chosen by the caller or made here; later versions of an id share it.
        seq: the store's number for this version: submission order and identity; 0 before the store took it.
        payload: the arguments as JSON.
        submitted_at, run_at: when it was submitted, and the earliest start (moved by retries and snoozes).
        sort_key: from the strategy, at submit; smaller first.
        attempt: number of the attempt that runs or ran last; 0 before the first.
        fence: raised by every claim, rescue and abandonment; proves who holds the job.
        crashes: how many workers died holding it.
        worker: who holds the lease; set exactly while RUNNING.
        started_at, finished_at: of the last attempt, and of the terminal state (exactly then).
        expires_at: not started by then → CANCELLED; None: never.
        unmet: dependencies that still hold it BLOCKED.
        parked: why a READY job is kept outside what claims read (`task` …); None: it is not.
        cancel_requested: the running attempt has been told to stop; however it ends, the job ends CANCELLED.
        superseded: a newer version of the id waits for this one: it will not be retried.
        result: the return value as JSON, when COMPLETED.
        error: of the last failed attempt.
        reason: why it was cancelled, failed without an error of its own, or was not retried.
        attempts: how the earlier attempts ended, the newest last; bounded.
        depends_on: ids of what it waits or waited for.
        key: its idempotency key.
        fire: the fire of a schedule that made it; None: no schedule did.
        gates: keys of the limits, rates and circuit breakers that must let it pass (`limits.gate_key`).
        tenant: whose share it takes, under fair share, and how much of it; None: the strategy has no shares.
        terms: what the submit asks of the store; None once taken.
    """

    __slots__ = (
        "__weakref__",
        "attempt",
        "attempts",
        "cancel_requested",
        "crashes",
        "depends_on",
        "error",
        "expires_at",
        "fence",
        "finished_at",
        "fire",
        "gates",
        "id",
        "key",
        "parked",
        "payload",
        "reason",
        "result",
        "run_at",
        "seq",
        "sort_key",
        "spec",
        "started_at",
        "status",
        "submitted_at",
        "superseded",
        "tenant",
        "terms",
        "unmet",
        "worker",
    )

    def __init__(
        self,
        id: str,  # noqa: A002 - the field's word
        spec: JobSpec,
        payload: bytes = EMPTY_PAYLOAD,
        submitted_at: Micros = 0,
        run_at: Micros = 0,
        *,
        sort_key: int = 0,
        expires_at: Micros | None = None,
        terms: Terms | None = None,
    ) -> None:
        self.id = id
        self.seq = 0
        self.spec = spec
        self.payload = payload
        self.submitted_at = submitted_at
        self.run_at = run_at
        self.sort_key = sort_key
        self.status = _READY
        self.attempt = 0
        self.fence = 0
        self.crashes = 0
        self.worker: str | None = None
        self.started_at: Micros | None = None
        self.finished_at: Micros | None = None
        self.expires_at = expires_at
        self.unmet = 0
        self.parked: str | None = None
        self.cancel_requested = False
        self.superseded = False
        self.result: bytes | None = None
        self.error: ErrorInfo | None = None
        self.reason: str | None = None
        self.attempts: tuple[AttemptOutcome, ...] = ()
        self.depends_on: tuple[str, ...] = ()
        self.key: str | None = None
        self.fire: FireKey | None = None
        self.gates: tuple[str, ...] = ()
        self.tenant: Tenant | None = None
        self.terms = terms

    @property
    def priority(self) -> int:
        """Its spec's priority."""
        return self.spec.priority

    def __repr__(self) -> str:
        where = f"{self.status.value} attempt={self.attempt} fence={self.fence}"
        return f"<Job {self.id} #{self.seq} {self.spec.task} {where}>"

    def copy(self) -> Job:
        """Return an independent record with the same values."""
        twin = Job.__new__(Job)
        for name in _COPIED:
            setattr(twin, name, getattr(self, name))
        return twin


_READY = JobStatus.READY
_COPIED = tuple(name for name in Job.__slots__ if name != "__weakref__")


class JobEvent:
    """One transition, as listeners see it.

    Not frozen, because four of them are made for each job while somebody listens; nobody writes to it.

    Attributes:
        job_id: the job's id.
        seq: its version's number.
        task, queue: where it belongs.
        before: the status left; None for a submit.
        after: the status entered.
        at_us: when, by the store's clock.
        attempt: the attempt's number.
        error: what was raised, or why it was cancelled, as text; None otherwise.
    """

    __slots__ = ("after", "at_us", "attempt", "before", "error", "job_id", "queue", "seq", "task")

    def __init__(
        self, job: Job, before: JobStatus | None, after: JobStatus, *, at_us: Micros, error: str | None = None
    ) -> None:
        self.job_id = job.id
        self.seq = job.seq
        self.task = job.spec.task
        self.queue = job.spec.queue
        self.before = before
        self.after = after
        self.at_us = at_us
        self.attempt = job.attempt
        self.error = error

    @property
    def at(self) -> datetime:
        """When the transition was made (aware, UTC)."""
        return EPOCH + timedelta(microseconds=self.at_us)

    def __repr__(self) -> str:
        before = self.before.value if self.before else "-"
        return f"<JobEvent {self.job_id} {before} → {self.after.value} attempt={self.attempt}>"


class Arrivals(Sequence[JobEvent]):
    """The events of new jobs that wait where they were put: made only when somebody reads them.

    To be read before anything else happens to the jobs.
    """

    __slots__ = ("jobs",)

    def __init__(self, jobs: Sequence[Job]) -> None:
        """Speak of these jobs."""
        self.jobs = jobs

    def __len__(self) -> int:
        return len(self.jobs)

    @overload
    def __getitem__(self, index: int) -> JobEvent: ...
    @overload
    def __getitem__(self, index: slice) -> list[JobEvent]: ...

    def __getitem__(self, index: int | slice) -> JobEvent | list[JobEvent]:
        if isinstance(index, slice):
            return [JobEvent(job, None, job.status, at_us=job.submitted_at) for job in self.jobs[index]]
        job = self.jobs[index]
        return JobEvent(job, None, job.status, at_us=job.submitted_at)
