"""Where jobs wait in memory: the ready heaps, delays and expiries, and what is parked or blocked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from betimes.core.claiming import is_open
from betimes.core.heap import LazyHeap
from betimes.core.job import Job, JobStatus, Micros
from betimes.core.shares import Shares
from betimes.ports import ClaimRequest
from betimes.stores.memory.gates import Gates
from betimes.stores.memory.lines import Lines

BLOCKED, DELAYED, READY = JobStatus.BLOCKED, JobStatus.DELAYED, JobStatus.READY

Heap = LazyHeap[int, Job]


class Waiting:
    """Keeps every job that has not started, each in the one place its status gives it.

    Ready jobs lie in one heap for each (queue, lane), so that full lanes and paused queues are skipped as a
    whole and never scanned past; those that have gates stand in `lines` instead. Future jobs lie in the
    delayed heap, out of the claims' way.

    Attributes:
        shares: the tenants' time, under fair share.
        has_tenants: whether any job was ordered by it.
    """

    def __init__(self, gates: Gates, now: Callable[[], Micros]) -> None:
        """Start empty, before these gates; `now` is the store's clock."""
        self.lines = Lines(gates, now)
        self.shares = Shares()
        self.has_tenants = False
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
            if job.tenant is not None:
                self.tag((job,))
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

    def tag(self, jobs: Sequence[Job]) -> None:
        """Give READY jobs their sort keys that have tenants, and none yet."""
        self.has_tenants = True
        self.shares.tag(jobs)

    def push_ready(self, job: Job) -> None:
        """Put a READY job into its heap, or its line."""
        if job.gates:
            self.lines.push(job)
            return
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
            if job.gates:
                self.lines.remove(job)
                return
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

    def next_at(self, now: Micros) -> Micros | None:
        """Return the earliest instant at which a job becomes due or expires, or a gate lets more pass."""
        due, expiry, opening = self.delayed.peek(), self.expiring.peek(), self.lines.next_at(now)
        if due is None and expiry is None:
            return opening
        instants = [entry[0] for entry in (due, expiry) if entry is not None]
        return min(instants if opening is None else [*instants, opening])

    def take(
        self, request: ClaimRequest, paused: Collection[str], free: dict[str, int], most: int
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

    def live_by_queue(self) -> Iterator[tuple[str, int]]:
        """Iterate over how many READY jobs each queue has that are not parked, lane by lane."""
        for (queue, _), heap in self.ready.items():
            yield queue, heap.live
        for section in self.lines.sections.values():
            yield section.queue, section.live

    def heap_entries(self) -> tuple[int, int]:
        """Return how many entries all heaps hold, and how many of them live."""
        lines = self.lines
        heaps = [*self.ready.values(), self.delayed, self.expiring]
        entries = [(heap.size, heap.live) for heap in heaps]
        entries += [(heap.size, heap.live) for heap in lines.heaps()]
        entries += [line.entries for line in lines.all()]
        return sum(size for size, _ in entries), sum(live for _, live in entries)

    def ahead_of(self, job: Job, most: int, now: Micros) -> int:
        """Count the claimable jobs of its queue and lane that go before the job, up to `most`.

        Of lines that stand at a gate, those only that go before it in its own.
        """
        where, rank = (job.spec.queue, job.spec.lane), (job.sort_key, job.seq)
        heap = self.ready.get(where)
        ahead = 0 if heap is None else sum(1 for entry in heap.in_order() if entry[:2] < rank)
        section = self.lines.sections.get(where)
        lines = [] if section is None else [entry[2] for entry in section.ready.in_order()]
        lines = [line for line in lines if line.closed(now) is None]
        own = self.lines.line(job) if job.gates else None
        if own is not None and own not in lines:
            lines.append(own)
        for line in lines:
            if ahead >= most:
                break
            ahead += sum(1 for other in line.jobs() if (other.sort_key, other.seq) < rank)
        return min(ahead, most)

    def order_anew(self, live: Iterable[Job]) -> None:
        """Put the READY ones of these jobs where they wait by their new sort keys."""
        self.ready.clear()
        self.lines.clear()
        self.shares = Shares()
        self.has_tenants = False
        for job in sorted(live, key=lambda job: job.seq):
            if job.status is READY:
                self.add(job)
