"""What goes into a store's methods and comes out of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from betimes.core.events import Event
    from betimes.core.job import Job, JobEvent, JobStatus, Micros
    from betimes.core.queue_shares import QueueShares
    from betimes.core.schedule import ScheduleRecord
    from betimes.core.transition import Transition


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    """Who claims: one worker of one process; a fresh id per start, never a host's name.

    Attributes:
        id: unique for ever.
        lease_us: how long the worker keeps its jobs without a beat.
        host, pid, pid_namespace, process_started, boot_id: to tell whether its process still lives.
        queues: the queues it serves; None: all.
        concurrency: the most attempts it runs at once.
        lanes: the kinds of work it has an executor for; None: it does not say.
        tasks: the names of the tasks it knows, in order; None: it does not say, as when they are too many.
    """

    id: str
    lease_us: int
    host: str = ""
    pid: int = 0
    pid_namespace: str = ""
    process_started: int = 0
    boot_id: str = ""
    queues: tuple[str, ...] | None = None
    concurrency: int = 0
    lanes: tuple[str, ...] | None = None
    tasks: tuple[str, ...] | None = None


class Report:
    """What a worker tells of an attempt: the event counts only if `fence` is still the job's.

    Not frozen, because each attempt is one: the worker fills in how it ended.

    Attributes:
        job: what it is an attempt of.
        fence: the fence it was claimed under.
        event: what happened.
        has_begun: whether any of its code has run; a claim that began nothing gives its tokens back.
        has_returned: whether its code has ended; until then its permits are held.
    """

    # The two last stand on the class: only an attempt's code runs, and that class has its own.
    __slots__ = ("event", "fence", "job")
    has_begun: bool = True
    has_returned: bool = True

    def __init__(self, job: Job, fence: int, event: Event) -> None:
        """Report an event about the attempt that holds the job under this fence."""
        self.job = job
        self.fence = fence
        self.event = event


@dataclass(slots=True)
class ClaimRequest:
    """What a worker can take now (not frozen, as `Report`).

    Attributes:
        worker: the id it registered under.
        limit: the most jobs in all.
        lanes: free slots of each executor; a lane not named is not served.
        queues: the queues served; None: all.
        shares: by what shares those queues are served; None: by the strategy's order alone.
        hold: ids not to be taken now, in whatever version, since earlier code of theirs still runs here.
    """

    worker: str
    limit: int
    lanes: Mapping[str, int]
    queues: tuple[str, ...] | None = None
    hold: Collection[str] = ()
    shares: QueueShares | None = None


@dataclass(slots=True)
class Exchange:
    """What one turn with the store brought (not frozen, as `Report`).

    Attributes:
        steps: for each report, in order, the transition that was made (or had been made by the same report,
            sent before); None: the report was stale and nothing at all has changed.
        claimed: the jobs taken, RUNNING under the worker's lease, in the order (sort_key, seq).
        changes: every other transition made on the way: promoted, expired, released, cascaded.
        next_at: the earliest instant at which waiting alone makes something claimable or expired, a gate's
            next token included, or the store can be asked again for what it could not do now; None: no such.
        not_now: positions of reports that could not be taken, since a transaction elsewhere has locked their
            jobs: nothing has changed, and they are to be sent again with the next turn.
    """

    steps: list[Transition | None] = field(default_factory=list)
    claimed: list[Job] = field(default_factory=list)
    changes: list[JobEvent] = field(default_factory=list)
    next_at: Micros | None = None
    not_now: Sequence[int] = ()


class CancelAnswer(Enum):
    """What a cancel did."""

    CANCELLED = "cancelled"
    """It never started and never will (or, abandoned, it is CANCELLED whatever its code still does)."""
    REQUESTED = "requested"
    """It runs and has been told; it is over when its code has returned."""
    FINISHED = "finished"
    """Too late: it had ended."""
    UNKNOWN = "unknown"
    """There is no such job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancellation:
    """A cancel's answer, with what else it moved.

    Attributes:
        answer: what was done.
        job: the version it spoke of, as it stands now; None if unknown.
        changes: the transitions made, its own first, then the cascade.
    """

    answer: CancelAnswer
    job: Job | None = None
    changes: Sequence[JobEvent] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """What a heartbeat brought.

    Attributes:
        is_alive: whether the lease still held, and now holds for another term; if not, the worker must stop
            what it runs and register afresh: its jobs may be others'.
        cancels: `seq` of jobs it holds whose cancel was requested.
        lost: `seq` of jobs it named that it does not hold (any more) under the fence it named.
        changes: what was given back: rows under its name that it does not know of (a claim whose reply was
            lost).
    """

    is_alive: bool
    cancels: Sequence[int] = ()
    lost: Sequence[int] = ()
    changes: Sequence[JobEvent] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Which jobs to list, newest first.

    Attributes:
        status, task, queue, tag: each None: any.
        limit: the most to return (1…1,000).
        before: only versions whose `seq` is smaller: the next page.
    """

    status: JobStatus | None = None
    task: str | None = None
    queue: str | None = None
    tag: str | None = None
    limit: int = 100
    before: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleFilter:
    """Which schedules to list.

    Attributes:
        due_by: only those that are not paused and whose `next_fire_at` is not later; None: any.
        fired_after: only those whose `last_fire_at` is later; None: any.
        after: only those that come behind this one in the order of the list: the next page.
        limit: the most to return.
    """

    due_by: Micros | None = None
    fired_after: Micros | None = None
    after: ScheduleRecord | None = None
    limit: int = 1000


class Hint(Enum):
    """Why a store calls its subscribers; only a hint: whoever hears it looks for itself."""

    WORK = "work"
    """Something may be claimable, or due earlier than was said."""
    ENDED = "ended"
    """Something ended."""
    CANCEL = "cancel"
    """The cancel of a running job was requested."""
    FIRE = "fire"
    """A schedule's next fire may be another one."""
