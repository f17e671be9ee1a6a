"""Looking at queues in memory: what stands first, what is kept back, how long the oldest has waited."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from betimes.core.queue_view import QueueView

if TYPE_CHECKING:
    from betimes.core.job import Job, Micros
    from betimes.stores.memory.waiting import Waiting


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
    delayed = (entry[0] for entry in waiting.delayed.in_order() if entry[2].spec.queue == name)
    return QueueView(
        heads=tuple(firsts.values()),
        gates=tuple(gates),
        parked={under: count for under, count in of_queue.items() if count},
        next_due_at=next(delayed, None),
    )


def _heads(waiting: Waiting) -> Iterator[tuple[str, Job]]:
    for (queue, _), heap in waiting.ready.items():
        head = heap.peek()
        if head is not None:
            yield queue, head[2]


def oldest_due(waiting: Waiting, now: Micros) -> dict[str, Micros]:
    """Return since when the oldest claimable job has been due, by queue."""
    oldest: dict[str, Micros] = {}

    def see(queue: str, run_at: Micros) -> None:
        oldest[queue] = min(run_at, oldest.get(queue, run_at))

    for (queue, _), heap in waiting.ready.items():
        for entry in heap.in_order():
            see(queue, entry[2].run_at)
    for line in waiting.lines.all():
        if line.head is not None and waiting.lines.stands_at(line, now) is None:
            see(line.section.queue, line.head.run_at)
    for run_at, _, job in waiting.delayed.in_order():
        if run_at > now:
            break
        see(job.spec.queue, run_at)
    return oldest
