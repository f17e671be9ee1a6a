"""A claim where jobs stand in lines, or queues have shares: job by job, the best of those that may go."""

from __future__ import annotations

from typing import TypeAlias

from betimes.core.claiming import is_expired, is_open
from betimes.core.events import Expired
from betimes.core.heap import LazyHeap
from betimes.core.job import Job, Micros
from betimes.core.queue_shares import Dealer
from betimes.ports import ClaimRequest
from betimes.stores.memory.line import Line, Section
from betimes.stores.memory.moves import Moves
from betimes.stores.memory.permits import Permits
from betimes.stores.memory.waiting import Waiting

Found: TypeAlias = tuple[int, int, "Source", Line | None]
"""A job that may be claimed now: its rank, where it waits, and its line, if it stands in one."""


class Source:
    """The READY jobs of one queue and lane: a heap of those without gates, and lines."""

    __slots__ = ("heap", "lane", "queue", "section")

    def __init__(
        self, queue: str, lane: str, heap: LazyHeap[int, Job] | None, section: Section | None
    ) -> None:
        self.queue = queue
        self.lane = lane
        self.heap = heap
        self.section = section


class Picking:
    """One claim."""

    def __init__(
        self, waiting: Waiting, permits: Permits, moves: Moves, request: ClaimRequest, *, now: Micros
    ) -> None:
        """Prepare to claim what is asked for."""
        self._waiting = waiting
        self._permits = permits
        self._moves = moves
        self._request = request
        self._now = now
        self._held_back: list[Job] = []
        self._has_ended_some = False

    def pick(self, paused: frozenset[str]) -> list[Job]:
        """Take the jobs out of where they wait, their gates charged, in the order (sort_key, seq)."""
        request = self._request
        free = dict(request.lanes)
        sources = self._sources(paused, free)
        dealer = None if request.shares is None else request.shares.dealer()
        claimed: list[Job] = []
        while len(claimed) < request.limit:
            found = self._best(sources, free, dealer)
            if found is None:
                break
            claimed.append(self._take(found))
            free[found[2].lane] -= 1
        for job in self._held_back:
            self._waiting.push_ready(job)
        if dealer is not None:
            claimed.sort(key=lambda job: (job.sort_key, job.seq))
        return claimed

    def _sources(self, paused: frozenset[str], free: dict[str, int]) -> list[Source]:
        ready, sections = self._waiting.ready, self._waiting.lines.sections
        return [
            Source(*where, ready.get(where), sections.get(where))
            for where in {**ready, **sections}
            if is_open(*where, self._request.queues, paused, free)
        ]

    def _best(self, sources: list[Source], free: dict[str, int], dealer: Dealer | None) -> Found | None:
        """Find the job to be claimed next; None: there is none."""
        best = self._best_by_queue(sources, free)
        while self._has_ended_some:
            # What waited for the end of a job that has expired may now go before all that was looked at.
            self._has_ended_some = False
            best = self._best_by_queue(sources, free)
        if not best:
            return None
        return min(best.values(), key=_rank) if dealer is None else best[dealer.next(best)]

    def _best_by_queue(self, sources: list[Source], free: dict[str, int]) -> dict[str, Found]:
        best: dict[str, Found] = {}
        for source in sources:
            found = self._first(source) if free[source.lane] > 0 else None
            if found is not None and (source.queue not in best or _rank(found) < _rank(best[source.queue])):
                best[source.queue] = found
        return best

    def _first(self, source: Source) -> Found | None:
        """Find the first job of a queue and lane that may be claimed now."""
        plain = None if source.heap is None else self._first_plain(source.heap)
        line = None if source.section is None else self._first_line(source.section)
        head = None if line is None else line.head
        if plain is not None and (head is None or (plain.sort_key, plain.seq) < (head.sort_key, head.seq)):
            return plain.sort_key, plain.seq, source, None
        return None if head is None else (head.sort_key, head.seq, source, line)

    def _first_plain(self, heap: LazyHeap[int, Job]) -> Job | None:
        while (entry := heap.peek()) is not None:
            if not self._is_kept_out(entry[2]):
                return entry[2]
        return None

    def _first_line(self, section: Section) -> Line | None:
        lines, now = self._waiting.lines, self._now
        while (line := lines.first(section, now)) is not None:
            assert line.head is not None
            if not self._is_kept_out(line.head):
                return line
        return None

    def _is_kept_out(self, job: Job) -> bool:
        """Take a job out that must not be claimed in this turn, so that the next one comes first."""
        if job.id in self._request.hold:
            self._waiting.remove(job)
            self._held_back.append(job)
            return True
        if is_expired(job, self._now):
            self._moves.move(job, Expired(self._now))
            self._has_ended_some = True
            return True
        return False

    def _take(self, found: Found) -> Job:
        _, _, source, line = found
        if line is not None:
            job = self._permits.claim(line, self._request.worker, self._now)
        else:
            assert source.heap is not None
            (job,) = source.heap.pop_items(1)
        if job.started_at is None:
            self._waiting.forget_expiry(job)
        return job


def _rank(found: Found) -> tuple[int, int]:
    return found[:2]
