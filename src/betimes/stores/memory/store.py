"""`MemoryStore`: the whole contract in this process's memory.

It is a product, not a test double: the default store, held to the same suite as the durable ones. No method
awaits anything, so each is one step of the event loop, and nothing can come between its looking and its
doing. It belongs to one event loop at a time; what is in it stays over `close` and `open`, and is gone with
the process.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import nlargest

from betimes.core.events import (
    CancelRequested,
    GivenBack,
    Retried,
    Unparked,
    WorkerLost,
)
from betimes.core.job import Arrivals, Job, JobEvent, JobStatus, Micros
from betimes.core.schedule import Advance, Fire, Fired, ScheduleRecord
from betimes.errors import ConfigurationError, DuplicateJob, UnknownJob
from betimes.ports import (
    Beat,
    CancelAnswer,
    Cancellation,
    ClaimRequest,
    Clock,
    Exchange,
    Hint,
    JobFilter,
    Report,
    ScheduleFilter,
    Store,
    WorkerInfo,
)
from betimes.stores.memory.firing import fire
from betimes.stores.memory.history import History
from betimes.stores.memory.leases import Lease, Leases
from betimes.stores.memory.moves import Moves
from betimes.stores.memory.schedules import Schedules
from betimes.stores.memory.submits import submit
from betimes.stores.memory.turns import STEP_LIMIT, Turns
from betimes.stores.memory.waiting import Waiting

BLOCKED, DELAYED, READY, RUNNING = JobStatus.BLOCKED, JobStatus.DELAYED, JobStatus.READY, JobStatus.RUNNING


class MemoryStore(Store):
    """Keeps jobs in memory; a bounded number of finished ones, and whatever somebody holds a handle of.

    Args:
        clock: where time comes from.
        history: how many finished jobs are remembered.
    """

    is_durable = False

    def __init__(self, *, clock: Clock, history: int = 10_000) -> None:
        """Start empty."""
        if history < 1:
            raise ConfigurationError(f"history is {history}; it must be at least 1 finished job")
        self._clock = clock
        # The clock's own method in place of `now` below: it is called for each job.
        self.now = clock.now  # type: ignore[method-assign]
        self._waiting = Waiting()
        self._leases = Leases()
        self._history = History(history)
        self._schedules = Schedules()
        self._moves = Moves(self._waiting, self._leases, self._history, self._schedules)
        self._turns = Turns(self._waiting, self._leases, self._moves)
        self._paused: frozenset[str] = frozenset()
        self._strategy: str | None = None
        # Replaced as a whole, so that one may leave while they are called.
        self._subscribers: tuple[Callable[[Hint], None], ...] = ()
        # Whether all were told of work since somebody looked last: who has not looked need not be told again.
        self._is_told = False

    async def open(self, *, strategy: str) -> None:
        """Remember the strategy of the first open, and refuse another while jobs are here."""
        if self._strategy not in (None, strategy) and any(True for _ in self._history.all()):
            raise ConfigurationError(
                f"this store holds jobs ordered by strategy {self._strategy!r} and was opened with "
                f"{strategy!r}; open it with the same strategy, or use a new store"
            )
        self._strategy = strategy

    async def close(self) -> None:
        """Do nothing: the jobs stay for the next `open`."""

    def now(self) -> Micros:
        """Return the wall clock's time."""
        return self._clock.now()

    def subscribe(self, hear: Callable[[Hint], None]) -> Callable[[], None]:
        """Have `hear` called within the step that changed something."""
        self._subscribers += (hear,)
        self._is_told = False

        def stop() -> None:
            self._subscribers = tuple(each for each in self._subscribers if each != hear)

        return stop

    def _tell(self) -> None:
        moves = self._moves
        if moves.work_appeared:
            moves.work_appeared = False
            self._is_told = bool(self._subscribers)
            for hear in self._subscribers:
                hear(Hint.WORK)
        if moves.something_ended:
            moves.something_ended = False
            self._history.trim()
            for hear in self._subscribers:
                hear(Hint.ENDED)
        if self._schedules.has_moved:
            self._schedules.has_moved = False
            for hear in self._subscribers:
                hear(Hint.FIRE)

    # jobs

    async def submit(self, jobs: Sequence[Job]) -> tuple[list[Job], Sequence[JobEvent]]:
        """Keep new jobs, all or none."""
        if self._moves.arrive_plainly(jobs):
            if not self._is_told:
                self._tell()
            return list(jobs), Arrivals(jobs)
        kept = submit(jobs, self._history, self._moves, self._clock.now())
        self._tell()
        return kept

    async def get(self, job: Job) -> Job | None:
        """Return the record itself: whoever asks holds it, so it is still there."""
        return job if job.seq else None

    async def ended(self, jobs: Sequence[Job]) -> list[tuple[Job, Job | None]]:
        """Return those of the records that stand in a terminal state."""
        return [(job, job) for job in jobs if job.status.is_terminal]

    async def find(self, job_id: str) -> Job | None:
        """Return the newest version of an id."""
        return self._history.find(job_id)

    async def jobs(self, which: JobFilter) -> list[Job]:
        """List jobs, newest first."""
        matches = (job for job in self._history.all() if _matches(job, which))
        return nlargest(which.limit, matches, key=lambda job: job.seq)

    async def counts(self) -> dict[str, dict[JobStatus, int]]:
        """Count the live jobs of each queue by status."""
        waiting = self._waiting
        counts: dict[str, dict[JobStatus, int]] = {}

        def add(queue: str, status: JobStatus, number: int) -> None:
            of_queue = counts.setdefault(queue, {})
            of_queue[status] = of_queue.get(status, 0) + number

        for (queue, _), heap in waiting.ready.items():
            if heap.live:
                add(queue, READY, heap.live)
        for group in waiting.parked.values():
            for job in group.values():
                add(job.spec.queue, READY, 1)
        for job in waiting.blocked.values():
            add(job.spec.queue, BLOCKED, 1)
        for queue, number in waiting.delayed_by_queue.items():
            add(queue, DELAYED, number)
        for lease in self._leases.all():
            for job in lease.held.values():
                add(job.spec.queue, RUNNING, 1)
        return counts

    async def ahead(self, job: Job, *, most: int = 1000) -> int:
        """Count the claimable jobs of the same queue and lane that go before this one."""
        return self._waiting.ahead_of(job, most)

    async def cancel(self, job: Job, *, reason: str, abandon: bool = False) -> Cancellation:
        """End a job that has not started; ask a running one to stop, or abandon it."""
        if job.seq == 0:
            return Cancellation(answer=CancelAnswer.UNKNOWN)
        if job.status.is_terminal:
            return Cancellation(answer=CancelAnswer.FINISHED, job=job)
        step = self._moves.move(job, CancelRequested(self._clock.now(), reason, abandon))
        changes = self._moves.take_changes()
        self._tell()
        if step.after is not RUNNING:
            return Cancellation(answer=CancelAnswer.CANCELLED, job=job, changes=changes)
        for hear in self._subscribers:
            hear(Hint.CANCEL)
        return Cancellation(answer=CancelAnswer.REQUESTED, job=job)

    async def retry(self, job: Job, *, by: str) -> Sequence[JobEvent]:
        """Take a finished job back to READY."""
        versions = self._history.versions(job.id)
        if job not in versions:
            raise UnknownJob(f"job {job.id!r} has been pruned: submit it again", job_id=job.id)
        for other in versions:
            if other is not job and not other.status.is_terminal:
                raise DuplicateJob(f"another version of job {job.id!r} is {other.status.name}", job_id=job.id)
        self._moves.move(job, Retried(self._clock.now(), by))
        self._schedules.retried(job)
        return self._done()

    async def prune(self, *, keep_us: int, limit: int = 1000) -> int:
        """Forget what is not to be kept any longer."""
        now = self._clock.now()
        self._schedules.forget_fires(now - keep_us)
        return self._history.prune(now, keep_us, limit)

    async def pruned(self) -> int:
        """Return how many jobs have been forgotten so far."""
        return self._history.pruned

    def heap_entries(self) -> tuple[int, int]:
        """Return the entries of all heaps, and the live ones."""
        heaps = [*self._waiting.ready.values(), self._waiting.delayed, self._waiting.expiring]
        return sum(heap.size for heap in heaps), sum(heap.live for heap in heaps)

    # work

    async def register(self, worker: WorkerInfo) -> None:
        """Begin a worker's lease."""
        self._leases.begin(worker, self._clock.boottime())
        for hear in self._subscribers:
            hear(Hint.WORK)  # those who are here must no longer rest

    async def retire(self, worker: str) -> Sequence[JobEvent]:
        """End a worker's lease and give back what it holds."""
        lease = self._leases.get(worker)
        if lease is None:
            return []
        for job in list(lease.held.values()):
            self._moves.move(job, GivenBack(self._clock.now()))
        self._leases.end(worker)
        return self._done()

    async def beat(self, worker: str, held: Mapping[int, int]) -> Beat:
        """Renew a lease and compare what its worker thinks it holds."""
        lease = self._leases.renew(worker, self._clock.boottime())
        if lease is None:
            return Beat(is_alive=False)
        for job in [job for seq, job in lease.held.items() if held.get(seq) != job.fence]:
            self._moves.move(job, GivenBack(self._clock.now()))
        return Beat(
            is_alive=True,
            cancels=[seq for seq, job in lease.held.items() if job.cancel_requested],
            lost=[seq for seq in held if seq not in lease.held],
            changes=self._done(),
        )

    async def exchange(self, reports: Sequence[Report], claim: ClaimRequest | None) -> Exchange:
        """Take reports, promote and expire what is due, and claim."""
        steps = self._turns.take_reports(reports)
        now = self._clock.now()
        self._turns.pass_time(now)
        claimed: list[Job] = []
        if claim is not None:
            # Whoever looks now may miss what comes next, and must be told of it.
            self._is_told = False
            claimed = self._turns.claim(claim, self._paused, now, self._clock.boottime())
        exchange = Exchange(steps, claimed, self._moves.take_changes(), self._waiting.next_at())
        self._tell()
        return exchange

    async def rescue(self, tasks: Collection[str]) -> Sequence[JobEvent]:
        """Take back the jobs of workers whose lease is over."""
        now = self._clock.now()
        left = STEP_LIMIT
        for lease in self._leases.over(self._clock.boottime()):
            lease.is_dead = True
            left = self._rescue_from(lease, tasks, now, left)
            if not lease.held:
                self._leases.end(lease.info.id)
        return self._done()

    def _rescue_from(self, lease: Lease, tasks: Collection[str], now: Micros, left: int) -> int:
        for job in list(lease.held.values()):
            if left and job.spec.task in tasks:
                self._moves.move(job, WorkerLost(now))
                left -= 1
        return left

    async def unpark(self, name: str) -> Sequence[JobEvent]:
        """Make parked jobs claimable."""
        for job in list(self._waiting.parked.get(name, {}).values())[:STEP_LIMIT]:
            self._moves.move(job, Unparked(self._clock.now()))
        return self._done()

    async def parked(self) -> dict[str, int]:
        """Count the parked jobs by name."""
        return {name: len(group) for name, group in self._waiting.parked.items()}

    async def workers(self) -> list[tuple[WorkerInfo, bool]]:
        """List the workers, each with whether its lease holds."""
        boottime = self._clock.boottime()
        return [(lease.info, lease.holds_at(boottime)) for lease in self._leases.all()]

    # queues

    async def pause_queue(self, name: str) -> None:
        """Let nothing of this queue be claimed."""
        self._paused |= {name}

    async def resume_queue(self, name: str) -> None:
        """Undo `pause_queue`."""
        self._paused -= {name}
        self._moves.work_appeared = True
        self._tell()

    async def paused_queues(self) -> frozenset[str]:
        """Return the paused queues' names."""
        return self._paused

    # schedules

    async def save_schedule(
        self, record: ScheduleRecord, *, expected_version: int | None, fires: Sequence[Fire] = ()
    ) -> bool:
        """Insert or replace a schedule by compare-and-set."""
        is_saved = self._schedules.save(record, expected_version, fires)
        self._tell()
        return is_saved

    async def remove_schedule(self, schedule_id: str) -> bool:
        """Remove a schedule and its fires."""
        return self._schedules.remove(schedule_id)

    async def schedule(self, schedule_id: str) -> ScheduleRecord | None:
        """Return a schedule."""
        return self._schedules.get(schedule_id)

    async def schedules(self, which: ScheduleFilter) -> list[ScheduleRecord]:
        """List schedules by id, or those due, earliest first."""
        return self._schedules.matching(which)

    async def next_fire(self) -> Micros | None:
        """Return the earliest next fire."""
        return self._schedules.next_fire()

    async def fire(self, advances: Sequence[Advance]) -> tuple[list[Fired | None], Sequence[JobEvent]]:
        """Carry out steps of schedules."""
        fired = fire(advances, self._schedules, self._history, self._moves, now=self._clock.now())
        changes = self._moves.take_changes()
        if any(event.after is RUNNING for event in changes):
            for hear in self._subscribers:
                hear(Hint.CANCEL)
        self._tell()
        return fired, changes

    async def fires(self, schedule_id: str, *, before: Micros | None = None, limit: int = 100) -> list[Fire]:
        """List what became of a schedule's instants, newest first."""
        return list(self._schedules.fires(schedule_id, before, limit))

    def _done(self) -> list[JobEvent]:
        changes = self._moves.take_changes()
        self._tell()
        return changes


def _matches(job: Job, which: JobFilter) -> bool:
    spec = job.spec
    return (
        (which.status is None or job.status is which.status)
        and (which.task is None or spec.task == which.task)
        and (which.queue is None or spec.queue == which.queue)
        and (which.tag is None or which.tag in spec.tags)
        and (which.before is None or job.seq < which.before)
    )
