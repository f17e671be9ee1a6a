"""`MemoryStore`: the whole contract in this process's memory.

It is a product, not a test double: the default store, held to the same suite as the durable ones. No method
awaits anything, so each is one step of the event loop, and nothing can come between its looking and its
doing. It belongs to one event loop at a time; what is in it stays over `close` and `open`, and is gone with
the process.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from heapq import nlargest, nsmallest

from betimes.core.events import (
    CancelRequested,
    GivenBack,
    Retried,
    Unparked,
    lost_worker,
)
from betimes.core.job import Arrivals, Job, JobEvent, JobStatus, Micros
from betimes.errors import DuplicateJob, UnknownJob
from betimes.ports import (
    Beat,
    CancelAnswer,
    Cancellation,
    ClaimRequest,
    Exchange,
    Hint,
    JobFilter,
    Report,
    WorkerInfo,
)
from betimes.stores.memory.leases import Lease
from betimes.stores.memory.oversight import MemoryOversight
from betimes.stores.memory.submits import submit
from betimes.stores.memory.turns import STEP_LIMIT

BLOCKED, DELAYED, READY, RUNNING = JobStatus.BLOCKED, JobStatus.DELAYED, JobStatus.READY, JobStatus.RUNNING


class MemoryStore(MemoryOversight):
    """Keeps jobs in memory; a bounded number of finished ones, and whatever somebody holds a handle of.

    Args:
        clock: where time comes from.
        history: how many finished jobs are remembered.
    """

    # jobs

    async def submit(self, jobs: Sequence[Job]) -> tuple[list[Job], Sequence[JobEvent]]:
        """Keep new jobs, all or none."""
        if self._moves.arrive_plainly(jobs):
            if not self._is_told:
                self._tell()
            return list(jobs), Arrivals(jobs)
        kept = submit(jobs, self._history, self._gates, self._moves, self._clock.now())
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

    async def ids(self, prefix: str, *, limit: int = 10) -> list[str]:
        """Return ids that begin so."""
        return nsmallest(limit, {job.id for job in self._history.all() if job.id.startswith(prefix)})

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

        for queue, number in waiting.live_by_queue():
            if number:
                add(queue, READY, number)
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
        return self._waiting.ahead_of(job, most, self._clock.now())

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

    async def prunable(self, *, keep_us: int) -> int:
        """Count what is not to be kept any longer."""
        return self._history.prunable(self._clock.now(), keep_us)

    async def pruned(self) -> int:
        """Return how many jobs have been forgotten so far."""
        return self._history.pruned

    def heap_entries(self) -> tuple[int, int]:
        """Return the entries of all heaps, and the live ones."""
        return self._waiting.heap_entries()

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
        self._permits.release_all(worker)
        self._leases.end(worker)
        return self._done()

    async def beat(self, worker: str, held: Mapping[int, int], running: Mapping[int, int]) -> Beat:
        """Renew a lease and compare what its worker thinks it holds."""
        self._waiting.lines.heed(self._clock.now())
        lease = self._leases.renew(worker, self._clock.boottime())
        if lease is None:
            return Beat(is_alive=False)
        for job in [job for seq, job in lease.held.items() if held.get(seq) != job.fence]:
            # The reply to its claim was lost: nothing of it has begun.
            self._permits.refund(job)
            self._moves.move(job, GivenBack(self._clock.now()))
        self._permits.release_all(worker, {**running, **held})
        return Beat(
            is_alive=True,
            cancels=[seq for seq, job in lease.held.items() if job.cancel_requested],
            lost=[seq for seq in held if seq not in lease.held],
            changes=self._done(),
        )

    async def exchange(
        self, reports: Sequence[Report], claim: ClaimRequest | None, returned: Sequence[tuple[int, int]] = ()
    ) -> Exchange:
        """Take reports, promote and expire what is due, and claim."""
        now = self._clock.now()
        self._waiting.lines.heed(now)
        steps = self._turns.take_reports(reports)
        if returned:
            self._turns.take_returned(returned)
        self._turns.pass_time(now)
        claimed: list[Job] = []
        if claim is not None:
            # Whoever looks now may miss what comes next, and must be told of it.
            self._is_told = False
            claimed = self._turns.claim(claim, self._paused, now, self._clock.boottime())
            if self._leases.is_alone:
                # The only worker has just looked, and looks again when it has room for more.
                self._waiting.lines.has_moved = False
        exchange = Exchange(steps, claimed, self._moves.take_changes(), self._waiting.next_at(now))
        self._tell()
        return exchange

    async def rescue(self, tasks: Collection[str]) -> Sequence[JobEvent]:
        """Take back the jobs of workers whose lease is over."""
        now = self._clock.now()
        left = STEP_LIMIT
        for lease in self._leases.over(self._clock.boottime()):
            lease.is_dead = True
            self._permits.release_all(lease.info.id)
            left = self._rescue_from(lease, tasks, now, left)
            if not lease.held:
                self._leases.end(lease.info.id)
        return self._done()

    def _rescue_from(self, lease: Lease, tasks: Collection[str], now: Micros, left: int) -> int:
        for job in list(lease.held.values()):
            if left and job.spec.task in tasks:
                info = lease.info
                loss = lost_worker(now, worker=info.id, pid=info.pid, host=info.host, is_gone=False)
                self._moves.move(job, loss)
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

    async def workers(self) -> list[tuple[WorkerInfo, Micros]]:
        """List the workers, each with how long its lease holds."""
        boottime = self._clock.boottime()
        return [(lease.info, lease.left_at(boottime)) for lease in self._leases.all()]

    async def make_known(self, worker: str, tasks: tuple[str, ...] | None) -> None:
        """Remember which tasks a registered worker knows."""
        lease = self._leases.get(worker)
        if lease is not None:
            lease.info = replace(lease.info, tasks=tasks)


def _matches(job: Job, which: JobFilter) -> bool:
    spec = job.spec
    return (
        (which.status is None or job.status is which.status)
        and (which.task is None or spec.task == which.task)
        and (which.queue is None or spec.queue == which.queue)
        and (which.tag is None or which.tag in spec.tags)
        and (which.before is None or job.seq < which.before)
    )
