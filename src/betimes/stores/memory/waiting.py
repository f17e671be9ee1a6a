"""Where jobs wait in memory: the ready heaps, delays and expiries, and what is parked or blocked."""

from __future__ import annotations

from betimes.core.claiming import is_open
from betimes.core.heap import LazyHeap
from betimes.core.job import Job, JobStatus, Micros
from betimes.ports import ClaimRequest

BLOCKED, DELAYED, READY = JobStatus.BLOCKED, JobStatus.DELAYED, JobStatus.READY

Heap = LazyHeap[int, Job]


class Waiting:
    """Keeps every job that has not started, each in the one place its status gives it.

    Ready jobs lie in one heap for each (queue, lane), so that full lanes and paused queues are skipped as a
    whole and never scanned past. Future jobs lie in the delayed heap, out of the claims' way.
    """

    def __init__(self) -> None:
        """Start empty."""
        self.ready: dict[tuple[str, str], Heap] = {}
        self.delayed: Heap = LazyHeap()
        self.expiring: Heap = LazyHeap()
        self.parked: dict[str, dict[int, Job]] = {}
        self.blocked: dict[int, Job] = {}
        self.delayed_by_queue: dict[str, int] = {}

    def add(self, job: Job) -> None:
        """Put a waiting job where its status says; it must not be here yet."""
        status = job.status
        if status is READY:
            if job.parked is None:
                self.push_ready(job)
            else:
                self.parked.setdefault(job.parked, {})[job.seq] = job
        elif status is DELAYED:
            self.delayed.push(job.run_at, job.seq, job)
            queue = job.spec.queue
            self.delayed_by_queue[queue] = self.delayed_by_queue.get(queue, 0) + 1
        else:
            self.blocked[job.seq] = job

    def push_ready(self, job: Job) -> None:
        """Put a READY job into its heap."""
        spec = job.spec
        where = (spec.queue, spec.lane)
        heap = self.ready.get(where)
        if heap is None:
            heap = self.ready[where] = LazyHeap()
        heap.push(job.sort_key, job.seq, job)

    def remove(self, job: Job) -> None:
        """Take a job out, wherever its status and `parked` say it waits; O(1)."""
        status = job.status
        if status is BLOCKED:
            del self.blocked[job.seq]
        elif status is DELAYED:
            self.delayed.discard(job.seq)
            self.delayed_by_queue[job.spec.queue] -= 1
        elif job.parked is None:
            self.ready[job.spec.queue, job.spec.lane].discard(job.seq)
        else:
            group = self.parked[job.parked]
            del group[job.seq]
            if not group:
                del self.parked[job.parked]

    def watch_expiry(self, job: Job) -> None:
        """Have `expired` hand the job out when its `expires_at` has come."""
        if job.expires_at is not None:
            self.expiring.push(job.expires_at, job.seq, job)

    def forget_expiry(self, job: Job) -> None:
        """Undo `watch_expiry`; only while the job is still watched."""
        if job.expires_at is not None:
            self.expiring.discard(job.seq)

    @property
    def has_future(self) -> bool:
        """Whether any job waits for an instant: to become due, or to expire."""
        return bool(self.delayed.size or self.expiring.size)

    def next_at(self) -> Micros | None:
        """Return the earliest instant at which a job becomes due or expires."""
        due, expiry = self.delayed.peek(), self.expiring.peek()
        if due is None or expiry is None:
            entry = due or expiry
            return None if entry is None else entry[0]
        return min(due[0], expiry[0])

    def take(
        self, request: ClaimRequest, paused: frozenset[str], free: dict[str, int], most: int
    ) -> list[Job]:
        """Pop the READY jobs that the request may take, at most so many, in the order (sort_key, seq).

        Counts a slot off `free` for each. A job the caller does not keep it must `add` again, once it has
        all.
        """
        heaps = [
            (heap, where[1])
            for where, heap in self.ready.items()
            if heap.live and is_open(*where, request.queues, paused, free)
        ]
        if len(heaps) != 1:
            return self._merge(heaps, free, most)
        heap, lane = heaps[0]
        taken = heap.pop_items(min(most, free[lane]))
        free[lane] -= len(taken)
        return taken

    @staticmethod
    def _merge(heaps: list[tuple[Heap, str]], free: dict[str, int], most: int) -> list[Job]:
        taken: list[Job] = []
        while len(taken) < most:
            best: tuple[Heap, str] | None = None
            best_rank = (0, 0)
            for heap, lane in heaps:
                head = heap.peek() if free[lane] > 0 else None
                if head is not None and (best is None or head[:2] < best_rank):
                    best, best_rank = (heap, lane), head[:2]
            if best is None:
                break
            free[best[1]] -= 1
            taken += best[0].pop_items(1)
        return taken

    def ahead_of(self, job: Job, most: int) -> int:
        """Count the live entries of the job's heap that go before it."""
        heap = self.ready.get((job.spec.queue, job.spec.lane))
        rank = (job.sort_key, job.seq)
        entries = [] if heap is None else heap.in_order()
        return min(most, sum(1 for entry in entries if entry[:2] < rank))
