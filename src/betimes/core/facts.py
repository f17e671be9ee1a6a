"""What a checkup reads: facts of one instant about the machine, the store, its workers and its work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from betimes.core.claiming import is_served
from betimes.core.job import Micros
from betimes.core.limits import GateView
from betimes.core.queue_view import Pause
from betimes.core.situation import WorkerSeen
from betimes.core.vitals import Vitals


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What is known of the machine and the interpreter.

    Attributes:
        python: the version of Python.
        zone_data: where the data of time zones comes from, in words; empty: from nowhere.
        zone_problem: why a well-known zone cannot be read; empty: it can.
        local_zone: the system's own zone; empty: it does not say.
    """

    python: str
    zone_data: str = ""
    zone_problem: str = ""
    local_zone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFacts:
    """What is known of one queue.

    Attributes:
        name: the queue.
        ready, delayed, blocked, running: its live jobs.
        oldest_at: since when the oldest job that is due has been due, as far as a bounded look tells.
        pause: set: it is paused.
    """

    name: str
    ready: int = 0
    delayed: int = 0
    blocked: int = 0
    running: int = 0
    oldest_at: Micros | None = None
    pause: Pause | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleFacts:
    """What is known of one schedule.

    Attributes:
        id, task: which, and what it runs.
        next_fire_at: its next instant; None: it has none.
        paused: whether somebody has paused it.
        error: why the scheduler itself has.
    """

    id: str
    task: str
    next_fire_at: Micros | None = None
    paused: bool = False
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Poisoned:
    """A job that ended because workers kept dying while they held it.

    Attributes:
        job_id, task: which.
        at: when it ended.
    """

    job_id: str
    task: str
    at: Micros


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is known of the jobs in the store, and of who runs them.

    Attributes:
        workers: the registered workers.
        held: how many jobs each holds, by its id, as far as they were counted.
        queues: the queues that have live jobs or are paused.
        parked: how many READY jobs are put aside, by the name they are under.
        poisoned: jobs that killed their workers, the newest first.
        open_circuits: the circuit breakers that are open.
        schedules: the schedules, a bounded number.
        here: the id of the worker of this process; None: it runs none.
    """

    workers: tuple[WorkerSeen, ...] = ()
    held: Mapping[str, int] = field(default_factory=dict)
    queues: tuple[QueueFacts, ...] = ()
    parked: Mapping[str, int] = field(default_factory=dict)
    poisoned: tuple[Poisoned, ...] = ()
    open_circuits: tuple[GateView, ...] = ()
    schedules: tuple[ScheduleFacts, ...] = ()
    here: str | None = None

    @property
    def alive(self) -> list[WorkerSeen]:
        """The workers that run: this process's own, and those whose lease holds and whose process is."""
        return [each for each in self.workers if each.id == self.here or each.is_working]

    def serving(self, queue: str) -> list[WorkerSeen]:
        """Return those of them that serve a queue."""
        return [worker for worker in self.alive if is_served(queue, worker.queues)]

    def knowing(self, task: str) -> list[WorkerSeen] | None:
        """Return those of them that know a task; None: some do not say what they know."""
        alive = self.alive
        if any(worker.tasks is None for worker in alive):
            return None
        return [worker for worker in alive if worker.knows_task(task)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """What the scheduler of this process has counted since it was started.

    Attributes:
        stuck: ids of jobs whose outcome is recorded while their code holds a slot.
        slots: how many slots there are.
        deadlocked: attempts that wait in vain for each other.
        stalled_s: for how long its worker has tried in vain to report to the store and to claim.
        store_errors, leases_lost, loop_stalls: how often each happened.
        longest_stall_s: for how long the loop was blocked at most.
    """

    stuck: tuple[str, ...] = ()
    slots: int = 0
    deadlocked: int = 0
    stalled_s: float = 0.0
    store_errors: int = 0
    leases_lost: int = 0
    loop_stalls: int = 0
    longest_stall_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that a checkup reads.

    Attributes:
        now: the store's time.
        machine: of the machine.
        vitals: what the store says of itself.
        strategy: the stored name of this scheduler's own strategy; None: it has none in mind.
        work: what is in the store; None: it could not be looked at, or is not there yet.
        process: what the scheduler of this process has counted; None: it is not open.
    """

    now: Micros
    machine: Machine
    vitals: Vitals
    strategy: str | None = None
    work: Work | None = None
    process: Process | None = None
