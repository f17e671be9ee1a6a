"""What can be said of a queue: why its jobs wait, who serves it, and what stands first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from betimes.core.durations import from_us
from betimes.core.explain import Explanation
from betimes.core.job import Micros


class QueueReasonCode(StrEnum):
    """What kind of reason it is. The list is closed: every answer is one of these."""

    PAUSED = "paused"
    """It is paused."""
    NO_WORKER = "no_worker"
    """Nobody runs jobs of this store."""
    NOT_SERVED = "not_served"
    """Workers run, but none serves it."""
    WORKER_STOPPING = "worker_stopping"
    """The only worker that serves it is stopping."""
    WORKERS_FULL = "workers_full"
    """All workers that serve it run as many attempts as they may."""
    LIMIT_REACHED = "limit_reached"
    """Jobs wait because as many of one of their limits run as may."""
    NO_TOKEN = "no_token"  # noqa: S105 - a token of a rate
    """Jobs wait for the next token of a rate."""
    CIRCUIT_OPEN = "circuit_open"
    """Jobs wait because the circuit breaker of their task is open."""
    PUT_ASIDE = "put_aside"
    """Jobs wait because no worker so far could run them."""
    FIRST_HELD_UP = "first_held_up"
    """The job that stands first does not start, for a reason of its own."""
    WORKING = "working"
    """Jobs start in their order, or run."""
    NOT_DUE = "not_due"
    """All that wait are due later."""
    BLOCKED = "blocked"
    """Jobs wait for others to end."""
    EMPTY = "empty"
    """It has no live jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueReason:
    """One reason.

    Attributes:
        code: its kind.
        text: what is so, in a sentence with the names and times.
        change: what would change it; empty where nothing need be.
        expected_at_us: when it ends by itself, where that can be said (`Micros`).
    """

    code: QueueReasonCode
    text: str
    change: str = ""
    expected_at_us: Micros | None = None

    @property
    def expected_at(self) -> datetime | None:
        """When it ends by itself (aware, UTC); None: that cannot be said."""
        return None if self.expected_at_us is None else from_us(self.expected_at_us)

    def __str__(self) -> str:
        return f"{self.text}\n  {self.change}" if self.change else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingWorker:
    """A worker that runs and serves the queue.

    Attributes:
        id: the id it registered under.
        host, pid: its process.
        running: how many attempts it runs, of all queues.
        concurrency: the most it runs; 0: it does not say.
        is_here: whether it runs in this process.
    """

    id: str
    host: str
    pid: int
    running: int
    concurrency: int
    is_here: bool

    def __str__(self) -> str:
        where = "here" if self.is_here else f"{self.host or 'another host'}, pid {self.pid}"
        most = f" of {self.concurrency}" if self.concurrency else ""
        return f"{self.id} ({where}): {self.running}{most} slots taken"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueExplanation:
    """How a queue stands and why its jobs wait; `str()` gives it as text.

    Attributes:
        queue: its name.
        ready, delayed, blocked, running: its live jobs.
        put_aside: how many of the ready ones no worker so far could run.
        oldest_due_at: since when its oldest claimable job has been due, as far as a bounded look tells.
        reasons: the reasons, the most important first; never empty.
        workers: who serves it.
        heads: the explanations of the jobs that stand first, one for each kind of executor.

    Example:
        print(await scheduler.explain_queue("mail"))
    """

    queue: str
    ready: int
    delayed: int
    blocked: int
    running: int
    put_aside: int
    oldest_due_at: datetime | None
    reasons: tuple[QueueReason, ...]
    workers: tuple[ServingWorker, ...] = ()
    heads: tuple[Explanation, ...] = ()

    @property
    def codes(self) -> frozenset[QueueReasonCode]:
        """The reasons' kinds."""
        return frozenset(reason.code for reason in self.reasons)

    def __str__(self) -> str:
        counts = f"{self.ready} ready, {self.delayed} delayed, {self.blocked} blocked, {self.running} running"
        lines = [f"Queue {self.queue}: {counts}."]
        if self.oldest_due_at is not None:
            lines.append(f"The oldest has been due since {self.oldest_due_at:%Y-%m-%d %H:%M:%S} UTC.")
        lines += [f"- {reason}" for reason in self.reasons]
        lines += [f"Worker {worker}." for worker in self.workers]
        for head in self.heads:
            lines += ["First in line:", *(f"  {line}" for line in str(head).splitlines())]
        return "\n".join(lines)
