"""Looking at queues in memory: what stands first, what is kept back, how long the oldest has waited."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from betimes.core.job import Job, JobStatus, Micros
from betimes.core.queue_view import QueueView

if TYPE_CHECKING:
    from betimes.stores.memory.history import History
    from betimes.stores.memory.waiting import Waiting

DELAYED_LOOKED_AT = 10_000
OLDEST_LOOKED_AT = 20_000
"""How many jobs are looked at, at most."""


def look_at_queue(waiting: Waiting, name: str, now: Micros) -> QueueView:
    """Show one queue."""
    heads = [job for queue, job in _heads(waiting) if queue == name]
    gates: dict[str, None] = {}
    for line in waiting.lines.all():
        if line.head is not None and line.section.queue == name:
            door = waiting.lines.stands_at(line, now)
            if door is None:
                heads.append(line.head)
            else:
                gates[door.key] = None
    firsts: dict[str, Job] = {}
    for job in sorted(heads, key=lambda job: (job.sort_key, job.seq)):
        firsts.setdefault(job.spec.lane, job)
    of_queue = {
        under: sum(job.spec.queue == name for job in group.values())
        for under, group in waiting.parked.items()
    }
    return QueueView(
        heads=tuple(firsts.values()),
        gates=tuple(gates),
        parked={under: count for under, count in of_queue.items() if count},
        next_due_at=_next_due(waiting, name),
    )


def _heads(waiting: Waiting) -> Iterator[tuple[str, Job]]:
    for (queue, _), heap in waiting.ready.items():
        head = heap.peek()
        if head is not None:
            yield queue, head[2]


def _next_due(waiting: Waiting, name: str) -> Micros | None:
    delayed = waiting.delayed
    first = delayed.peek()
    entries = delayed.in_order() if delayed.live <= DELAYED_LOOKED_AT else [] if first is None else [first]
    return next((entry[0] for entry in entries if entry[2].spec.queue == name), None)


def oldest_due(waiting: Waiting, history: History, now: Micros) -> dict[str, Micros]:
    """Return since when the oldest claimable job has been due, by queue.

    Beside what stands first, it looks at the oldest submitted: most strategies put others before them.
    """
    oldest: dict[str, Micros] = {}

    def see(queue: str, run_at: Micros) -> None:
        oldest[queue] = min(run_at, oldest.get(queue, run_at))

    for queue, job in _heads(waiting):
        see(queue, job.run_at)
    for line in waiting.lines.all():
        if line.head is not None and waiting.lines.stands_at(line, now) is None:
            see(line.section.queue, line.head.run_at)
    for job in islice(history.newest.values(), OLDEST_LOOKED_AT):
        if job.status is JobStatus.READY and job.parked is None and not job.gates:
            see(job.spec.queue, job.run_at)
    due = waiting.delayed.peek()
    if due is not None and due[0] <= now:
        see(due[2].spec.queue, due[0])
    return oldest
