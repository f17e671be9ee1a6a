"""Betimes where several processes work with one file: from one to the other, and together."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

from bench.clockwork import DURABLE_IDLE_S, IDLE_S, Latencies, Stopwatch, idle_share
from bench.ours.durable import IN_FLIGHT, QUEUE, WAL, fill, url_of
from betimes import Scheduler

WARM_UP_S = 1.0

WORKER = """
import asyncio, sys, time
from betimes import Scheduler

scheduler = Scheduler(sys.argv[1], concurrency=int(sys.argv[2]))

@scheduler.task(name="job")
async def job(number: int) -> None:
    print(number, time.perf_counter_ns(), flush=True)

@scheduler.task(name="noop", retry=3)
async def noop() -> None: ...

async def main() -> None:
    async with scheduler:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        await scheduler.stop(timeout=5)

asyncio.run(main())
"""


def _worker(folder: Path, journal: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORKER, url_of(folder, journal), str(IN_FLIGHT)]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    assert worker.stdout.readline() == "ready\n"
    return worker


def starts_elsewhere(jobs: int, folder: Path, journal: str = WAL) -> dict[str, float]:
    """Submit one job at a time here; another process, which is idle, starts it."""
    latencies = Latencies(jobs)

    async def main() -> dict[str, float]:
        scheduler = Scheduler(url_of(folder, journal))

        @scheduler.task(name="job")
        async def job(number: int) -> None: ...

        async with scheduler.client():
            worker = _worker(folder, journal)
            assert worker.stdout is not None
            await asyncio.sleep(WARM_UP_S)
            for number in range(jobs):
                latencies.submitted(number)
                await job.submit(number)
                line = await asyncio.to_thread(worker.stdout.readline)
                # Both clocks count from the machine's start.
                latencies.started_at(int(line.split()[0]), int(line.split()[1]))
                await asyncio.sleep(DURABLE_IDLE_S)
            worker.communicate("")
        return latencies.figures(skip=jobs // 10)

    return asyncio.run(main())


def drain_together(jobs: int, workers: int, folder: Path, journal: str = WAL) -> dict[str, float]:
    """Have so many processes work off what a file holds."""
    fill(jobs, folder, journal)

    async def main() -> dict[str, float]:
        scheduler = Scheduler(url_of(folder, journal))
        async with scheduler.client():
            await scheduler.pause_queue(QUEUE)
            running = [_worker(folder, journal) for _ in range(workers)]
            watch = Stopwatch()
            await scheduler.resume_queue(QUEUE)
            while True:
                metrics = await scheduler.metrics()
                if not metrics.ready and not metrics.running:
                    break
                await asyncio.sleep(IDLE_S)
            figures = watch.figures(jobs)
            for worker in running:
                worker.communicate("")
        return figures

    return asyncio.run(main())


def idle(seconds: float, folder: Path, journal: str = WAL) -> dict[str, float]:
    """Keep a worker on a file that holds nothing to do."""

    async def main() -> dict[str, float]:
        async with Scheduler(url_of(folder, journal)):
            await asyncio.sleep(WARM_UP_S)
            return await idle_share(seconds)

    return asyncio.run(main())


def command(arguments: list[str], times: int) -> dict[str, float]:
    """Run a Python program so often, and return how long it takes from start to end."""
    taken = []
    for _ in range(times + 1):
        began = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        taken.append((time.perf_counter() - began) * 1000)
    return {"ms": sorted(taken[1:])[times // 2]}
