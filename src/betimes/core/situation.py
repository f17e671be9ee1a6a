"""What is known around one job at one instant: the values that `explain` reads beside the job itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from betimes.core.claiming import is_served
from betimes.core.job import JobStatus, Micros
from betimes.core.limits import GateView
from betimes.core.queue_view import Pause


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherJob:
    """A job that this one waits for.

    Attributes:
        job_id: its id.
        status: where it stands; None: it has been pruned.
        started_at, worker: since when and by whom it is run, while it is.
    """

    job_id: str
    status: JobStatus | None
    started_at: Micros | None = None
    worker: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupant:
    """An attempt that holds one of the slots here.

    Attributes:
        seq, job_id, task, lane, attempt: what is run.
        since: when it was claimed.
        is_stuck: its outcome is recorded, and its code has not returned.
        is_waiting: its code waits for the end of another job.
        progress: the last `(done, total)` that its code gave.
    """

    seq: int
    job_id: str
    task: str
    lane: str
    attempt: int
    since: Micros | None
    is_stuck: bool = False
    is_waiting: bool = False
    progress: tuple[float, float | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """The worker of this process.

    Attributes:
        worker: its id.
        queues: the queues it serves; None: all.
        tasks: the names of the tasks it knows.
        slots: the most attempts of each lane it serves.
        concurrency: the most attempts in all.
        occupants: the attempts that hold a slot.
        starved: `seq` of jobs whose slots are held by attempts that wait for them.
        is_stopping: whether it claims nothing more.
    """

    worker: str
    queues: Collection[str] | None
    tasks: Collection[str]
    slots: Mapping[str, int]
    concurrency: int
    occupants: tuple[Occupant, ...] = ()
    starved: Collection[int] = ()
    is_stopping: bool = False

    def in_lane(self, lane: str) -> list[Occupant]:
        """Return the attempts that hold a slot of this lane."""
        return [occupant for occupant in self.occupants if occupant.lane == lane]

    def occupant(self, seq: int) -> Occupant | None:
        """Return the attempt of this version, if it holds a slot here."""
        return next((occupant for occupant in self.occupants if occupant.seq == seq), None)

    def stuck_code_of(self, job_id: str) -> Occupant | None:
        """Return the attempt of any version of this id whose outcome is recorded while its code runs on."""
        stuck = (one for one in self.occupants if one.job_id == job_id and one.is_stuck)
        return next(stuck, None)

    @property
    def free(self) -> Mapping[str, int]:
        """How many more attempts of each lane could be claimed now."""
        left = 0 if self.is_stopping else self.concurrency - len(self.occupants)
        return {lane: min(left, slots - len(self.in_lane(lane))) for lane, slots in self.slots.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSeen:
    """A registered worker, here or in another process.

    Attributes:
        id: the id it registered under.
        queues: the queues it serves; None: all.
        lease_us: how long it keeps its jobs without a sign of life.
        is_alive: whether its lease holds.
        left_us: for how long its lease holds, unless it is prolonged; None: not known.
        is_gone: whether its process is known to have ended.
        tasks, lanes: the tasks it knows, and the kinds of work it has an executor for; None: it does not say.
        concurrency: the most attempts it runs at once; 0: it does not say.
        host, pid: its process.
    """

    id: str
    queues: Collection[str] | None
    lease_us: int
    is_alive: bool
    left_us: int | None = None
    is_gone: bool = False
    tasks: Collection[str] | None = None
    lanes: Collection[str] | None = None
    concurrency: int = 0
    host: str = ""
    pid: int = 0

    @property
    def is_working(self) -> bool:
        """Whether it runs, as far as can be told: its lease holds, and its process has not ended."""
        return self.is_alive and not self.is_gone

    @property
    def is_silent(self) -> bool:
        """Whether it has missed its beats, of which there are several in each lease, though it is alive."""
        return self.is_alive and self.left_us is not None and 2 * self.left_us < self.lease_us

    def knows_task(self, task: str) -> bool:
        """Say whether it may know a task: it names it, or does not say what it knows."""
        return self.tasks is None or task in self.tasks

    def has_lane(self, lane: str) -> bool:
        """Say whether it may have an executor for a kind of work."""
        return self.lanes is None or lane in self.lanes


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What is known around one job.

    Attributes:
        now: the store's time.
        here: the worker of this process; None: it runs no jobs.
        workers: all registered workers, this process's too.
        paused: the paused queues, each with since when and by whom.
        dependencies: the jobs it depends on.
        older: versions of its id that still run.
        gates: its limits, rates and breaker as they stand.
        ahead: how many claimable jobs of its queue and lane go before it; counted up to `most_ahead`.
        most_ahead: where that count ends.
        deadline: when the timeout of its running attempt is over.
    """

    now: Micros
    here: Here | None = None
    workers: tuple[WorkerSeen, ...] = ()
    paused: Mapping[str, Pause] = field(default_factory=dict)
    dependencies: tuple[OtherJob, ...] = ()
    older: tuple[OtherJob, ...] = ()
    gates: tuple[GateView, ...] = ()
    ahead: int = 0
    most_ahead: int = 1000
    deadline: Micros | None = None

    @property
    def alive(self) -> list[WorkerSeen]:
        """The workers that run, as far as can be told."""
        return [worker for worker in self.workers if worker.is_working]

    def serving(self, queue: str) -> list[WorkerSeen]:
        """Return the workers alive that serve a queue."""
        return [worker for worker in self.alive if is_served(queue, worker.queues)]

    def serving_elsewhere(self, queue: str) -> list[WorkerSeen]:
        """Return those of them that are not this process's."""
        mine = None if self.here is None else self.here.worker
        return [worker for worker in self.serving(queue) if worker.id != mine]

    def holder(self, worker_id: str | None) -> WorkerSeen | None:
        """Return the registered worker of this id."""
        return next((worker for worker in self.workers if worker.id == worker_id), None)
