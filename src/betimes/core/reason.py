"""One reason why a job does not run, or what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from betimes.core.durations import from_us
from betimes.core.job import Micros


class ReasonCode(StrEnum):
    """What kind of reason it is. The list is closed: every answer is one of these."""

    EXPIRED = "expired"
    """The time in which it had to start is over; the next turn of a worker cancels it."""
    OLDER_VERSION_RUNNING = "older_version_running"
    """It replaces a version of its id whose code still runs."""
    WAITING_FOR_JOBS = "waiting_for_jobs"
    """Jobs that it depends on have not ended."""
    NOT_DUE = "not_due"
    """Its `run_at` is ahead."""
    BACKING_OFF = "backing_off"
    """An attempt failed, and the wait before the next one is not over."""
    SNOOZED = "snoozed"
    """Its code asked to run again later."""
    TASK_UNKNOWN = "task_unknown"
    """No worker that serves its queue knows its task; once one has claimed it, it is put aside."""
    LANE_NOT_SERVED = "lane_not_served"
    """No worker that serves its queue has an executor for its kind of work."""
    PARKED = "parked"
    """It is put aside under another name."""
    QUEUE_PAUSED = "queue_paused"
    """Its queue is paused."""
    NO_WORKER = "no_worker"
    """Nobody runs jobs of this store."""
    QUEUE_NOT_SERVED = "queue_not_served"
    """Workers run, but none serves its queue."""
    WORKER_STOPPING = "worker_stopping"
    """The only worker that serves its queue is stopping."""
    LIMIT_REACHED = "limit_reached"
    """As many jobs of one of its limits run as may."""
    NO_TOKEN = "no_token"  # noqa: S105 - a token of a rate
    """One of its rates has no token left."""
    CIRCUIT_OPEN = "circuit_open"
    """The circuit breaker of its task is open: its attempts have failed, or somebody has opened it."""
    CODE_STILL_RUNNING = "code_still_running"
    """The code of an earlier attempt has not returned, though its outcome is recorded."""
    SLOTS_DEADLOCKED = "slots_deadlocked"
    """The slots it needs are held by jobs that wait for it."""
    NO_FREE_SLOT = "no_free_slot"
    """As many attempts are in flight as may be."""
    BEHIND_OTHERS = "behind_others"
    """Other jobs go before it."""
    NOTHING_IN_THE_WAY = "nothing_in_the_way"
    """It starts at the next turn of a worker."""
    WILL_EXPIRE = "will_expire"
    """A note: it must have started by an instant ahead."""
    RUNNING = "running"
    """It has started, and runs."""
    CANCEL_REQUESTED = "cancel_requested"
    """It runs, and has been told to stop."""
    HOLDER_SILENT = "holder_silent"
    """The worker that holds it is silent, or its process has ended, but its lease is not over yet."""
    HOLDER_LOST = "holder_lost"
    """The worker that holds it has lost its lease, and nobody has taken the job back yet."""
    FINISHED = "finished"
    """It is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One reason.

    Attributes:
        code: its kind.
        text: what is so, in a sentence with the names and times.
        change: what would change it.
        expected_at_us: when it ends by itself, or, for a note, comes true, where that can be said (`Micros`).
    """

    code: ReasonCode
    text: str
    change: str
    expected_at_us: Micros | None = None

    @property
    def expected_at(self) -> datetime | None:
        """When it ends by itself, or a note comes true (aware, UTC); None: that cannot be said."""
        return None if self.expected_at_us is None else from_us(self.expected_at_us)

    def __str__(self) -> str:
        return f"{self.text}\n  {self.change}"
