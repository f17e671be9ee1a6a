"""One line: the jobs of one queue and lane that are alike to all gates, in the strategy's order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from betimes.core.heap import LazyHeap
from betimes.core.job import Job, Micros
from betimes.core.limits import GateKind

if TYPE_CHECKING:
    from betimes.stores.memory.gates import Door

_LIMIT = GateKind.LIMIT


class Section:
    """The lines of one queue and lane.

    Attributes:
        queue, lane: which.
        ready: the lines that stand at no gate, by their heads: where claims look.
        live: how many jobs stand in all its lines.
    """

    # A slots class, not a frozen value: it is on the path of every gated job.
    __slots__ = ("lane", "live", "queue", "ready")

    def __init__(self, queue: str, lane: str) -> None:
        self.queue = queue
        self.lane = lane
        self.ready: LazyHeap[int, Line] = LazyHeap()
        self.live = 0


class Line:
    """The READY jobs of one queue and lane with the same gates. All but its head lie in a heap of its own.

    Attributes:
        section: its queue and lane.
        doors: its gates, in the order in which they are asked.
        limits, metered: those that give out permits, and those that time fills.
        limit: its only gate, if that gives out permits; the most common case by far.
        head: the only job that can be next; None: the line is empty.
        rest: the jobs behind it; None: there never were any.
        place: the heap in which the line lies, under its head's rank; only while it is not empty.
    """

    # A slots class, not a frozen value: it is on the path of every gated job.
    __slots__ = ("doors", "head", "limit", "limits", "metered", "place", "rest", "section")

    def __init__(self, section: Section, doors: tuple[Door, ...]) -> None:
        self.section = section
        self.doors = doors
        self.limits = tuple(door for door in doors if door.terms.kind is _LIMIT)
        self.metered = tuple(door for door in doors if door.terms.kind is not _LIMIT)
        self.limit = self.limits[0] if len(doors) == 1 and self.limits else None
        self.head: Job | None = None
        self.place: LazyHeap[int, Line] = section.ready
        # Made when a second job comes: there may be a million lines of one job each.
        self.rest: LazyHeap[int, Job] | None = None

    def put(self, job: Job) -> None:
        """Add a job behind the head."""
        if self.rest is None:
            # Without slack, since there may be many: what is stale is dropped when it outweighs the rest.
            self.rest = LazyHeap(slack=0)
        self.rest.push(job.sort_key, job.seq, job)

    def discard(self, job: Job) -> None:
        """Take out a job that is not the head."""
        assert self.rest is not None
        self.rest.discard(job.seq)

    def next(self) -> Job | None:
        """Put the first job behind the head in its place; None: the line is empty now."""
        rest = self.rest
        entry = None if rest is None else rest.pop()
        self.head = head = None if entry is None else entry[2]
        return head

    def closed(self, now: Micros) -> Door | None:
        """Return the first of its gates that lets nothing pass now; None: all are open."""
        for door in self.doors:
            most = door.most
            if most is not None:
                if door.held >= most:
                    return door
            elif door.full_at and not door.is_open(now):
                return door
        return None

    @property
    def size(self) -> int:
        """How many jobs stand in it."""
        if self.head is None:
            return 0
        return 1 if self.rest is None else 1 + self.rest.live

    @property
    def entries(self) -> tuple[int, int]:
        """How many entries its heap holds, and how many of them live."""
        return (0, 0) if self.rest is None else (self.rest.size, self.rest.live)

    def jobs(self) -> Iterator[Job]:
        """Iterate over its jobs in order; for inspection."""
        if self.head is not None:
            yield self.head
        if self.rest is not None:
            yield from (entry[2] for entry in self.rest.in_order())
