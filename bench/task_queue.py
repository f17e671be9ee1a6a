"""The task queue at 100,000 pending tasks, beside `heapq` with the same keys: `python bench/task_queue.py`.

The limit is a bare `heappush` and `heappop` for each task. It and the contender take turns, one batch of
tasks each, so that the machine's mood meets both alike; a ratio compares the batches of one turn.
(The file is not named `queue.py`: a script's own folder comes first when modules are looked for, and the
standard library has a `queue` that others need.)
"""

from __future__ import annotations

import argparse
import platform
import random
import statistics
import time
from collections.abc import Callable, Iterator
from heapq import heappop, heappush

from betimes.core.heap import LazyHeap
from betimes.core.queue import DueTask, TaskQueue

PENDING = 100_000
BATCH = 20_000
TURNS = 7

Keys = list[tuple[str, float, int]]
Turns = Iterator[float]
"""Yields the seconds that one batch took."""


def work() -> None:
    """What is scheduled; never called."""


def limit(keys: Keys) -> Turns:
    """Push one entry, pop one, with nothing around it."""
    heap: list[tuple[float, int, Callable[[], None]]] = []
    for seq, (_, run_at, _) in enumerate(keys[:PENDING]):
        heappush(heap, (run_at, seq, work))
    for start in range(PENDING, len(keys), BATCH):
        began = time.perf_counter()
        for seq in range(start, start + BATCH):
            heappush(heap, (keys[seq][1], seq, work))
            heappop(heap)
        yield time.perf_counter() - began


def lazy_heap(keys: Keys) -> Turns:
    """The heap under the queue, alone."""
    heap: LazyHeap[float, Callable[[], None]] = LazyHeap()
    for seq, (_, run_at, _) in enumerate(keys[:PENDING]):
        heap.push(run_at, seq, work)
    for start in range(PENDING, len(keys), BATCH):
        began = time.perf_counter()
        for seq in range(start, start + BATCH):
            heap.push(keys[seq][1], seq, work)
            heap.pop_due(1.0)
        yield time.perf_counter() - began


def schedule_next(keys: Keys) -> Turns:
    """Schedule one task, claim one; every thousand they are finished, outside the measured time."""
    queue = filled(keys)
    for start in range(PENDING, len(keys), BATCH):
        taken = 0.0
        for part in range(start, start + BATCH, 1_000):
            claimed = []
            began = time.perf_counter()
            for task_id, run_at, priority in keys[part : part + 1_000]:
                queue.schedule(task_id, run_at=run_at, priority=priority, fn=work)
                claimed.append(queue.next())
            taken += time.perf_counter() - began
            for due in claimed:
                assert isinstance(due, DueTask)
                queue.finish(due)
        yield taken


def schedule_next_finish(keys: Keys, queue: TaskQueue | None = None) -> Turns:
    """Schedule one task, claim one, finish it."""
    queue = filled(keys, queue)
    for start in range(PENDING, len(keys), BATCH):
        began = time.perf_counter()
        for task_id, run_at, priority in keys[start : start + BATCH]:
            queue.schedule(task_id, run_at=run_at, priority=priority, fn=work)
            due = queue.next()
            assert isinstance(due, DueTask)
            queue.finish(due)
        yield time.perf_counter() - began
    assert len(queue) == PENDING


def other_order(keys: Keys) -> Turns:
    """The same through both heaps: the highest priority among what is due goes first."""
    return schedule_next_finish(keys, TaskQueue(clock=time.monotonic, order=lambda _, priority: -priority))


def schedule_cancel(keys: Keys) -> Turns:
    """Schedule one task and cancel one that waits: every entry becomes stale; the rebuilds are included."""
    queue = filled(keys)
    for start in range(PENDING, len(keys), BATCH):
        began = time.perf_counter()
        for seq in range(start, start + BATCH):
            task_id, run_at, priority = keys[seq]
            queue.schedule(task_id, run_at=run_at, priority=priority, fn=work)
            queue.cancel(keys[seq - PENDING][0])
        yield time.perf_counter() - began
    assert queue.heap_size <= 64 + 4 * len(queue)


def filled(keys: Keys, queue: TaskQueue | None = None) -> TaskQueue:
    """A queue with the first of the tasks pending and due."""
    queue = TaskQueue(clock=time.monotonic) if queue is None else queue
    for task_id, run_at, priority in keys[:PENDING]:
        queue.schedule(task_id, run_at=run_at, priority=priority, fn=work)
    return queue


CONTENDERS: dict[str, Callable[[Keys], Turns]] = {
    "LazyHeap: push + pop_due": lazy_heap,
    "TaskQueue: schedule + next": schedule_next,
    "TaskQueue: schedule + next + finish": schedule_next_finish,
    "TaskQueue with an order: the same": other_order,
    "TaskQueue: schedule + cancel": schedule_cancel,
}


def run(which: str) -> dict[str, float]:
    """One measured run for a row of `bench.memory`: three batches of one contender."""
    rng = random.Random(1)
    keys = [(f"task-{n}", rng.random(), rng.randrange(4)) for n in range(PENDING + 4 * BATCH)]
    contender: Callable[[Keys], Turns] = {
        "limit": limit,
        "schedule_next": schedule_next,
        "schedule_next_finish": schedule_next_finish,
    }[which]
    seconds = list(contender(keys))[1:]
    return {"rate": BATCH / statistics.median(seconds)}


def measure(contender: Callable[[Keys], Turns], turns: int) -> list[tuple[float, float]]:
    """Let the limit and the contender take turns; the seconds of both, for each turn."""
    rng = random.Random(1)
    keys = [(f"task-{n}", rng.random(), rng.randrange(4)) for n in range(PENDING + turns * BATCH)]
    return list(zip(limit(keys), contender(keys), strict=True))


def main() -> None:
    """Print a table: tasks a second, and the share of the limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--turns", type=int, default=TURNS, help=f"batches for each contender ({TURNS})")
    turns: int = parser.parse_args().turns
    print(f"Python {platform.python_version()}, {PENDING:,} pending, {turns} turns of {BATCH:,} tasks")
    print(f"{'tasks a second (median)':38}{'limit':>10}{'ours':>10}   of the limit: median (min to max)")
    for name, contender in CONTENDERS.items():
        seconds = measure(contender, turns)
        base, mine = (BATCH / statistics.median(column) for column in zip(*seconds, strict=True))
        shares = [first / second for first, second in seconds]
        spread = f"{statistics.median(shares):.2f} ({min(shares):.2f} to {max(shares):.2f})"
        print(f"{name:38}{base:>10,.0f}{mine:>10,.0f}   {spread}")


if __name__ == "__main__":
    main()
