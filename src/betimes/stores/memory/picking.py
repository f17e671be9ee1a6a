"""A claim where jobs stand in lines, or queues have shares."""

from __future__ import annotations

from collections.abc import Collection

from betimes.core.claiming import is_expired, is_open
from betimes.core.events import Expired
from betimes.core.heap import Entry, LazyHeap
from betimes.core.job import Job, Micros
from betimes.core.queue_shares import Dealer
from betimes.ports import ClaimRequest
from betimes.stores.memory.line import Line
from betimes.stores.memory.moves import Moves
from betimes.stores.memory.permits import Permits
from betimes.stores.memory.waiting import Waiting


class Source:
    """One heap of a queue and lane: the READY jobs without gates, or the ready lines."""

    __slots__ = ("jobs", "lane", "lines", "queue")

    def __init__(
        self,
        where: tuple[str, str],
        jobs: LazyHeap[int, Job] | None = None,
        lines: LazyHeap[int, Line] | None = None,
    ) -> None:
        self.queue, self.lane = where
        self.jobs = jobs
        self.lines = lines

    def peek(self) -> Entry[int, Job] | Entry[int, Line] | None:
        """Return the first entry; None: there is none."""
        if self.lines is not None:
            return self.lines.peek()
        assert self.jobs is not None
        return self.jobs.peek()


class Picking:
    """One claim: takes jobs out of where they wait, and charges their gates."""

    def __init__(
        self, waiting: Waiting, permits: Permits, moves: Moves, request: ClaimRequest, *, now: Micros
    ) -> None:
        """Prepare to claim what is asked for."""
        self._waiting = waiting
        self._permits = permits
        self._moves = moves
        self._request = request
        self._now = now
        self._free = dict(request.lanes)
        self._claimed: list[Job] = []
        self._held_back: list[Job] = []

    def pick(self, paused: Collection[str]) -> list[Job]:
        """Return the jobs that the request takes, in the order (sort_key, seq)."""
        sources, shares = self._sources(paused), self._request.shares
        if shares is None:
            self._merge(sources)
        else:
            self._deal(sources, shares.dealer())
        for job in self._held_back:
            self._waiting.push_ready(job)
        if shares is not None:
            self._claimed.sort(key=lambda job: (job.sort_key, job.seq))
        return self._claimed

    def _sources(self, paused: Collection[str]) -> list[Source]:
        queues, free = self._request.queues, self._free
        sources = [Source(where, jobs=heap) for where, heap in self._waiting.ready.items()]
        sources += [
            Source(where, lines=section.ready) for where, section in self._waiting.lines.sections.items()
        ]
        return [one for one in sources if is_open(one.queue, one.lane, queues, paused, free)]

    def _merge(self, sources: list[Source]) -> None:
        """Take what goes first: from one source, until another has something that goes before."""
        free = self._free
        while (room := self._request.limit - len(self._claimed)) > 0:
            best: Source | None = None
            rank = bound = None
            for source in sources:
                entry = source.peek() if free[source.lane] > 0 else None
                if entry is None:
                    continue
                if rank is None or entry[:2] < rank:
                    best, rank, bound = source, entry[:2], rank
                elif bound is None or entry[:2] < bound:
                    bound = entry[:2]
            if best is None:
                return
            self._take(best, min(room, free[best.lane]), bound)

    def _deal(self, sources: list[Source], dealer: Dealer) -> None:
        """Take one by one: each from the queue whose turn it is, among those that have something to take."""
        while len(self._claimed) < self._request.limit:
            best: dict[str, tuple[tuple[int, int], Source]] = {}
            for source in sources:
                if self._free[source.lane] > 0 and self._settle(source):
                    entry = source.peek()
                    assert entry is not None
                    if source.queue not in best or entry[:2] < best[source.queue][0]:
                        best[source.queue] = entry[:2], source
            if not best:
                return
            self._take(best[dealer.next(best)][1], 1, None)

    def _settle(self, source: Source) -> bool:
        """See to it that the source's first may be claimed; False: nothing in it may."""
        lines = self._waiting.lines
        while (entry := source.peek()) is not None:
            line = entry[2]
            if isinstance(line, Job):
                job = line
            else:
                door = line.closed(self._now)
                if door is not None:
                    line.section.ready.pop()
                    lines.send_away(line, door, self._now)
                    continue
                assert line.head is not None
                job = line.head
            if not self._is_kept_out(job):
                return True
        return False

    def _take(self, source: Source, most: int, bound: tuple[int, int] | None) -> None:
        """Take the first jobs of a source that go before `bound`; fewer, if anything else has changed."""
        before = len(self._claimed)
        if source.lines is not None:
            self._take_from_lines(source.lines, most, bound)
        else:
            assert source.jobs is not None
            self._take_jobs(source.jobs, most, bound)
        self._free[source.lane] -= len(self._claimed) - before

    def _take_jobs(self, heap: LazyHeap[int, Job], most: int, bound: tuple[int, int] | None) -> None:
        claimed, hold = self._claimed, self._request.hold
        end = len(claimed) + most
        while len(claimed) < end and (entry := heap.peek()) is not None:
            job = entry[2]
            if bound is not None and entry[:2] > bound:
                return
            if (hold or job.expires_at is not None) and self._is_kept_out(job):
                return
            heap.pop()
            claimed.append(job)
            if job.expires_at is not None and job.started_at is None:
                self._waiting.forget_expiry(job)

    def _take_from_lines(self, ready: LazyHeap[int, Line], most: int, bound: tuple[int, int] | None) -> None:
        claimed, hold, now = self._claimed, self._request.hold, self._now
        claim, worker = self._permits.claim, self._request.worker
        end = len(claimed) + most
        while len(claimed) < end and (entry := ready.pop()) is not None:
            line = entry[2]
            if bound is not None and entry[:2] > bound:
                ready.push(*entry)
                return
            limit = line.limit
            if limit is None or limit.most is None or limit.held >= limit.most:
                door = line.closed(now)
                if door is not None:
                    self._waiting.lines.send_away(line, door, now)
                    continue
            job = line.head
            assert job is not None
            if hold or job.expires_at is not None:
                ready.push(*entry)
                if self._is_kept_out(job):
                    return
                ready.pop()
            claimed.append(claim(line, worker, now))
            if job.expires_at is not None and job.started_at is None:
                self._waiting.forget_expiry(job)

    def _is_kept_out(self, job: Job) -> bool:
        """Take a job out that must not be claimed in this turn, so that the next one comes first."""
        if job.id in self._request.hold:
            self._waiting.remove(job)
            self._held_back.append(job)
            return True
        if is_expired(job, self._now):
            self._moves.move(job, Expired(self._now))
            return True
        return False
