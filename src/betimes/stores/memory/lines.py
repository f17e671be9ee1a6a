"""Where gated jobs wait in memory: in lines, of which only those that can move are looked at.

What must hold, beside the rules of `core.limits`:

1. A line that is not empty lies in one heap, under its head: among the ready ones of its section (its queue
   and lane), or at the first of its gates that was closed when it last tried, among those of its section.
2. Where a gate lets n more pass, the n first lines of each section that wait for nothing else are ready; more
   may be. So whatever leaves the ready ones without having been claimed has one line move up at each of its
   gates that is open. A claim lets nobody move up: it has charged the gates itself.
3. A ready line may find a gate closed in the meantime: a claim that looks at it sends it there.

Each line that moves up does so for a permit, a token, or a line that went away, so that all costs are
O(log n), amortised; only lines with several gates can be sent from one closed gate to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from betimes.core.heap import LazyHeap
from betimes.core.job import Job, Micros
from betimes.core.limits import Line as LineName
from betimes.core.limits import line_of
from betimes.stores.memory.gates import Door, Gates
from betimes.stores.memory.line import Line, Section

_ALL = 1 << 62
_DOORS_AT_ONCE = 500
_TIDY_AT = 1024


class Lines:
    """All lines, by section and gates.

    Attributes:
        sections: by queue and lane.
        at: the instant of the last look at the clock that `heed` was told of.
        has_moved: whether a line has become ready since somebody looked last.
    """

    def __init__(self, gates: Gates, now: Callable[[], Micros]) -> None:
        """Start without jobs, before these gates; `now` is the store's clock."""
        self._gates = gates
        self._now = now
        self._lines: dict[LineName, Line] = {}
        self.sections: dict[tuple[str, str], Section] = {}
        self._opening: LazyHeap[Micros, Door] = LazyHeap()
        self.at: Micros = 0
        self._tidy_at = _TIDY_AT
        self.has_moved = False

    # jobs

    def push(self, job: Job) -> None:
        """Put a READY job into its line."""
        name = line_of(job)
        line = self._lines.get(name)
        if line is None:
            line = self._begin(name)
        line.section.live += 1
        head = line.head
        if head is None:
            line.head = job
            self._route(line, self._now())
        elif job.sort_key > head.sort_key or (job.sort_key == head.sort_key and job.seq > head.seq):
            line.put(job)
        else:
            line.place.discard(head.seq)
            line.put(head)
            line.head = job
            if line.place is line.section.ready:
                line.place.push(job.sort_key, job.seq, line)
            else:
                self._route(line, self._now())

    def remove(self, job: Job) -> None:
        """Take a job out of its line, without its having been claimed."""
        line = self._lines[line_of(job)]
        section = line.section
        section.live -= 1
        if line.head is not job:
            line.discard(job)
            return
        line.place.discard(job.seq)
        head = line.next()
        if head is not None:
            line.place.push(head.sort_key, head.seq, line)
        if line.place is section.ready:
            self._move_up(line.doors, section, self._now())

    def first(self, section: Section, now: Micros) -> Line | None:
        """Return the section's first line whose gates are all open; what is not goes where it has to wait."""
        ready = section.ready
        while (entry := ready.peek()) is not None:
            line = entry[2]
            door = line.closed(now)
            if door is None:
                return line
            ready.pop()
            self.send_away(line, door, now)
        return None

    def claim(self, line: Line, now: Micros) -> Job:
        """Take the head of a ready line, taken from its heap, whose gates are all open; charge them."""
        for door in line.limits:
            door.held += 1
        for door in line.metered:
            door.charge(now)
            if door.waiting and door.watched_at is None:
                self._watch(door, now)  # all its tokens were there, and those who wait need the next one
        line.section.live -= 1
        job = line.head
        assert job is not None
        if line.next() is not None:
            self._route(line, now)
        return job

    def send_away(self, line: Line, door: Door, now: Micros) -> None:
        """Have a ready line, taken from its heap, wait at a gate that it has found closed."""
        self._wait(line, door, now)
        if len(line.doors) > 1:
            self._move_up(line.doors, line.section, now)

    # gates

    def opened(self, door: Door, now: Micros, most: int = _ALL) -> None:
        """Let the first lines move on that wait at a gate, as many of each section as it lets pass."""
        free = door.free(now, most)
        if free <= 0:
            self._watch(door, now)
            return
        for section, heap in door.waiting.items():
            if heap.live:
                self._let(section, heap, free, now)
        self._watch(door, now)

    def freed(self, door: Door) -> None:
        """Let the first line of each section move on that waits for the permit that has come back."""
        now = self.at
        for section, heap in door.waiting.items():
            entry = heap.pop()
            if entry is None:
                continue
            line, ready = entry[2], section.ready
            if line.limit is not None:
                line.place = ready
                ready.push(entry[0], entry[1], line)
                self.has_moved = True
                continue
            self._route(line, now)
            if line.place is not ready:  # another gate is closed: the permit is for the next
                self._let(section, heap, 1, now)

    def heed(self, now: Micros) -> None:
        """See to it that no gate stays closed for longer because the clock was set back."""
        if now < self.at:
            for door in self._gates.all():
                if door.heed(now):
                    self.opened(door, now)
        self.at = now

    def pass_time(self, now: Micros) -> None:
        """Let lines move on whose gates time has opened; of a bounded number of gates."""
        self.heed(now)
        opening = self._opening
        for _ in range(_DOORS_AT_ONCE):
            entry = opening.pop_due(now)
            if entry is None:
                return
            entry[2].watched_at = None
            self.opened(entry[2], now)

    def next_at(self, now: Micros) -> Micros | None:
        """Return the earliest instant at which time lets a line move on."""
        opening = self._opening
        while (entry := opening.peek()) is not None:
            at, door = entry[0], entry[2]
            if at <= now:
                return at
            self._watch(door, now)
            if door.watched_at == at:
                return at
        return None

    def tidy(self, now: Micros) -> None:
        """Forget empty lines, and gates at rest, once there are twice as many as there were."""
        if len(self._lines) + len(self._gates) < self._tidy_at:
            return
        self._lines = {name: line for name, line in self._lines.items() if line.head is not None}
        used = {door for line in self._lines.values() for door in line.doors}
        self._gates.forget_resting(used, now)
        self._tidy_at = max(_TIDY_AT, 2 * (len(self._lines) + len(self._gates)))

    # looking

    @property
    def has_ready(self) -> bool:
        """Whether any line stands at no gate."""
        return any(section.ready.live for section in self.sections.values())

    def all(self) -> Iterable[Line]:
        """Iterate over the lines, the empty ones included."""
        return self._lines.values()

    def line(self, job: Job) -> Line | None:
        """Return the line in which a job stands, or would; None: there is none at present."""
        return self._lines.get(line_of(job))

    def stands_at(self, line: Line, now: Micros) -> Door | None:
        """Return the gate at which a line waits, or would if a claim looked at it; None: it may move."""
        for door in line.doors:
            if door.waiting.get(line.section) is line.place:
                return door
        return line.closed(now)

    def clear(self) -> None:
        """Empty all lines."""
        self._lines.clear()
        self.sections.clear()
        for door in self._gates.all():
            door.waiting.clear()

    def heaps(self) -> Iterable[LazyHeap[int, Line]]:
        """Iterate over the heaps of lines."""
        for section in self.sections.values():
            yield section.ready
        for door in self._gates.all():
            yield from door.waiting.values()

    # moving

    def _begin(self, name: LineName) -> Line:
        queue, lane, keys = name
        self.tidy(self._now())
        section = self.sections.get((queue, lane))
        if section is None:
            section = self.sections[queue, lane] = Section(queue, lane)
        line = self._lines[name] = Line(section, tuple(self._gates.door(key) for key in keys))
        return line

    def _route(self, line: Line, now: Micros) -> None:
        """Put a line that lies nowhere among the ready ones, or where it has to wait."""
        door = line.closed(now)
        if door is not None:
            self._wait(line, door, now)
        else:
            head = line.head
            assert head is not None
            line.place = ready = line.section.ready
            ready.push(head.sort_key, head.seq, line)
            self.has_moved = True

    def _wait(self, line: Line, door: Door, now: Micros) -> None:
        heap = door.waiting.get(line.section) or door.wait_in(line.section)
        head = line.head
        assert head is not None
        line.place = heap
        heap.push(head.sort_key, head.seq, line)
        if door.full_at:
            self._watch(door, now)

    def _move_up(self, doors: Iterable[Door], section: Section, now: Micros) -> None:
        """Let one line of the section move up at each gate that is open."""
        for door in doors:
            heap = door.waiting.get(section)
            if heap is not None and heap.live and door.is_open(now):
                self._let(section, heap, 1, now)

    def _let(self, section: Section, heap: LazyHeap[int, Line], most: int, now: Micros) -> None:
        """Let lines out of a heap until so many are ready; those that find another gate closed go there."""
        ready = section.ready
        while most > 0 and (entry := heap.pop()) is not None:
            self._route(entry[2], now)
            if entry[2].place is ready:
                most -= 1

    def _watch(self, door: Door, now: Micros) -> None:
        """Have a gate looked at again when time lets more pass, if anybody waits there."""
        at = door.grows_at(now) if door.full_at and door.has_waiting else None
        if at == door.watched_at:
            return
        if door.watched_at is not None:
            self._opening.discard(door.number)
        if at is not None:
            self._opening.push(at, door.number, door)
        door.watched_at = at
