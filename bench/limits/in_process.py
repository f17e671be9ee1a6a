"""The limits in one process: bare `asyncio` tasks, bare executor calls, bare records in a heap."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from heapq import heappush

from bench.clockwork import Latencies, Stopwatch, pace
from bench.pending import Weighing

WARM_UP = 1_000
IN_FLIGHT = 100


async def _noop() -> None:
    """Do nothing."""


async def _finish_all(jobs: int) -> None:
    """`create_task` with a callback that starts the next: never more than 100 in flight."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    left = jobs
    unstarted = jobs - min(jobs, IN_FLIGHT)

    def ended(_: asyncio.Task[None]) -> None:
        nonlocal left, unstarted
        left -= 1
        if unstarted:
            unstarted -= 1
            loop.create_task(_noop()).add_done_callback(ended)
        elif not left:
            done.set_result(None)

    for _ in range(min(jobs, IN_FLIGHT)):
        loop.create_task(_noop()).add_done_callback(ended)
    await done


def burst(jobs: int) -> dict[str, float]:
    """Run no-op coroutines, 100 in flight."""

    async def main() -> dict[str, float]:
        await _finish_all(WARM_UP)
        watch = Stopwatch()
        await _finish_all(jobs)
        return watch.figures(jobs)

    return asyncio.run(main())


def starts(jobs: int, per_second: int | None = None) -> dict[str, float]:
    """Create tasks at a fixed rate, or one at a time on an idle loop."""
    latencies = Latencies(jobs)

    async def job(number: int) -> None:
        latencies.started(number)

    async def main() -> dict[str, float]:
        loop = asyncio.get_running_loop()
        tasks: set[asyncio.Task[None]] = set()

        async def submit(number: int) -> None:
            latencies.submitted(number)
            tasks.add(task := loop.create_task(job(number)))
            task.add_done_callback(tasks.discard)

        return await pace(submit, latencies, per_second=per_second)

    return asyncio.run(main())


def threads(jobs: int, workers: int) -> dict[str, float]:
    """Run calls in a pool, in windows of 100."""

    def work() -> None:
        """Do nothing."""

    async def main() -> dict[str, float]:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(workers) as pool:
            watch = Stopwatch()
            for left in range(jobs + WARM_UP, 0, -IN_FLIGHT):
                if left == jobs:
                    watch = Stopwatch()
                await asyncio.gather(*(loop.run_in_executor(pool, work) for _ in range(min(left, IN_FLIGHT))))
            return watch.figures(jobs)

    return asyncio.run(main())


class _Record:
    """The least that must be known of a delayed job."""

    __slots__ = ("job_id", "payload", "priority", "run_at", "seq", "task")

    def __init__(self, seq: int, run_at: int) -> None:
        self.seq = seq
        self.run_at = run_at
        self.job_id = f"{seq:032x}"
        self.payload = b"{}"
        self.task = "noop"
        self.priority = 1


def weigh(jobs: int, *, traced: bool) -> dict[str, float]:
    """Keep a record of each job under its id, and an entry of it in a heap."""
    weighing = Weighing(traced=traced)
    records: dict[str, _Record] = {}
    heap: list[tuple[int, int, _Record]] = []
    for seq in range(jobs):
        record = _Record(seq, 1_900_000_000_000_000 + seq)
        records[record.job_id] = record
        heappush(heap, (record.run_at, seq, record))
    return weighing.figures(jobs, lambda: len(heap))
