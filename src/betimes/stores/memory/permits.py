"""Permits and tokens in memory: charged by the claim, and given back by whatever ends the attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from betimes.core.job import Job, JobStatus, Micros
from betimes.core.limits import GateKind
from betimes.core.transition import Transition
from betimes.ports import Report
from betimes.stores.memory.gates import Door, Gates
from betimes.stores.memory.line import Line
from betimes.stores.memory.lines import Lines

_LIMIT = GateKind.LIMIT


Permit: TypeAlias = tuple[str, Job, tuple[Door, ...]]
"""What one attempt holds: the worker, the job, and the limits."""


class Permits:
    """The permits that are out, by the attempts' `seq` and fence, in the order in which they were given."""

    def __init__(self, gates: Gates, lines: Lines, now: Callable[[], Micros]) -> None:
        """Give permits of these gates to those who stand in these lines; `now` is the store's clock."""
        self._now = now
        self._gates = gates
        self._lines = lines
        self._out: dict[tuple[int, int], Permit] = {}

    def claim(self, line: Line, worker: str, now: Micros) -> Job:
        """Take the head of a ready line, taken from its heap, whose gates are all open, for a worker."""
        limits = line.limits
        job = self._lines.claim(line, now) if line.limit is None else _claim_limited(line, line.limit)
        if limits:
            self._out[job.seq, job.fence + 1] = (worker, job, limits)
        return job

    def release(self, seq: int, fence: int) -> None:
        """Take back what an attempt holds, if it still does; the lines have heeded the time."""
        permit = self._out.pop((seq, fence), None)
        if permit is not None:
            for door in permit[2]:
                held = door.held
                assert held > 0, f"a permit of {door.key} was given back twice"
                door.held = held = held - 1
                if door.waiting and door.most is not None and held < door.most:
                    self._lines.freed(door)

    def release_all(self, worker: str, kept: Mapping[int, int] | None = None) -> None:
        """Take back what a worker's attempts hold, but for those that are to be kept (`seq` → fence)."""
        kept = kept or {}
        self._lines.heed(self._now())
        attempts = [key for key, permit in self._out.items() if permit[0] == worker]
        for seq, fence in attempts:
            if kept.get(seq) != fence:
                self.release(seq, fence)

    def succeeded(self, report: Report) -> None:
        """Do what an accepted success does to the gates; its step has been made."""
        job = report.job
        if report.has_returned:
            self.release(job.seq, report.fence)
        if self._gates.tripped:
            self._prove(job)

    def settle(self, report: Report, step: Transition) -> None:
        """Do what an accepted report does to rates and breakers."""
        job = report.job
        if not report.has_begun:
            self.refund(job)
        elif step.after is JobStatus.COMPLETED and self._gates.tripped:
            self._prove(job)

    def refund(self, job: Job) -> None:
        """Take back the tokens of a claim that began nothing."""
        claimed_at = job.started_at
        assert claimed_at is not None, "it was claimed"
        for key in job.gates:
            door = self._gates.get(key)
            if door is not None and door.terms.kind is not _LIMIT:
                door.refund(claimed_at)
                self._lines.opened(door, self._now())

    def _prove(self, job: Job) -> None:
        """Close the circuits that are open on a job's way, if its success proves that they can be."""
        for key in job.gates:
            door = self._gates.tripped.get(key)
            if door is not None and door.is_proof(job.started_at or 0):
                self.reset(door)

    def trip(self, door: Door) -> None:
        """Open a circuit."""
        door.trip(self._now())
        self._gates.tripped[door.key] = door
        self._lines.opened(door, self._now())

    def reset(self, door: Door) -> None:
        """Close a circuit."""
        door.reset()
        self._gates.tripped.pop(door.key, None)
        self._lines.opened(door, self._now())

    def of(self, door: Door) -> Iterator[Permit]:
        """Iterate over the permits of a gate that are out, the longest first."""
        return (permit for permit in self._out.values() if door in permit[2])


def _claim_limited(line: Line, door: Door) -> Job:
    """Do what `Lines.claim` does where the only gate is a limit, with the calls it would make written out."""
    job, section, rest = line.head, line.section, line.rest
    assert job is not None
    assert door.most is not None
    door.held = held = door.held + 1
    section.live -= 1
    entry = None if rest is None else rest.pop()
    if entry is None:
        line.head = None
        return job
    line.head = entry[2]
    is_open = held < door.most
    place = section.ready if is_open else door.waiting.get(section) or door.wait_in(section)
    line.place = place
    place.push(entry[0], entry[1], line)
    return job
