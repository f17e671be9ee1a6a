"""Betimes on a PostgreSQL server that syncs each commit, as it comes."""

from __future__ import annotations

import asyncio
import subprocess
import sys

from bench.clockwork import DURABLE_IDLE_S, IDLE_S, Latencies, Stopwatch, pace
from bench.ours.several import WARM_UP_S, WORKER
from bench.server import fresh_schema, multiply, pinned_horizon
from betimes import Scheduler
from betimes.tasks import Task

QUEUE = "default"
AT_ONCE = 1_000
IN_FLIGHT = 500
LOOK_S = 0.003
PINNED_AT_ONCE = 10_000


class Program:
    """A scheduler on a schema, and its task, which counts how often it ran."""

    def __init__(self, url: str, *, concurrency: int = IN_FLIGHT) -> None:
        self.scheduler = Scheduler(url, concurrency=concurrency)
        self.ran = 0

        @self.scheduler.task(name="noop", retry=3)
        async def noop() -> None:
            self.ran += 1

        self.noop: Task[[], None] = noop

    async def submit_many(self, jobs: int, batch: int) -> None:
        """Submit so many jobs, so many a call."""
        for start in range(0, jobs, batch):
            await self.scheduler.submit_many([self.noop.bind() for _ in range(min(batch, jobs - start))])


def fill(url: str, jobs: int) -> None:
    """Have so many jobs ready in a schema, which is made if it is not there."""

    async def main() -> None:
        program = Program(url)
        async with program.scheduler.client():
            await program.submit_many(jobs, AT_ONCE)

    asyncio.run(main())


def submits(jobs: int, callers: int, server: str) -> dict[str, float]:
    """Submit one job a call, from so many coroutines; nothing runs them here."""

    async def main(url: str) -> dict[str, float]:
        program = Program(url)

        async def caller(number: int) -> None:
            for _ in range(number):
                await program.noop.submit()

        async def all_callers(number: int) -> None:
            await asyncio.gather(*(caller(number // callers) for _ in range(callers)))

        async with program.scheduler.client():
            await all_callers(callers * 5)
            watch = Stopwatch()
            await all_callers(jobs)
            figures = watch.figures(jobs)
            metrics = await program.scheduler.metrics()
            assert metrics.ready == jobs + callers * 5, metrics
            return figures

    with fresh_schema(server) as url:
        return asyncio.run(main(url))


def bulk(jobs: int, batch: int, server: str) -> dict[str, float]:
    """Submit so many jobs a call."""

    async def main(url: str) -> dict[str, float]:
        program = Program(url)
        async with program.scheduler.client():
            await program.submit_many(batch * 2, batch)
            watch = Stopwatch()
            await program.submit_many(jobs, batch)
            return watch.figures(jobs)

    with fresh_schema(server) as url:
        return asyncio.run(main(url))


def drain(
    jobs: int, server: str, *, concurrency: int = IN_FLIGHT, backlog: int = 0, history: int = 0
) -> dict[str, float]:
    """Run jobs that a schema holds, until so many have been finished and recorded.

    Args:
        jobs: how many to finish.
        server: where the schema is made.
        concurrency: how many may be in flight.
        backlog: how many more jobs are ready.
        history: how many have ended before.
    """

    async def main(url: str) -> dict[str, float]:
        program = Program(url, concurrency=concurrency)
        scheduler = program.scheduler
        async with scheduler.client():
            await scheduler.pause_queue(QUEUE)
        async with scheduler:
            await asyncio.sleep(WARM_UP_S)
            watch = Stopwatch()
            await scheduler.resume_queue(QUEUE)
            if backlog:
                # To ask for metrics would have the server count a million rows each time.
                while program.ran < jobs:  # noqa: ASYNC110 - jobs count themselves
                    await asyncio.sleep(LOOK_S)
            else:
                await scheduler.drain()
            figures = watch.figures(program.ran)
            await scheduler.pause_queue(QUEUE)
        return figures

    with fresh_schema(server) as url:
        fill(url, jobs)
        multiply(url, backlog=backlog, history=history)
        return asyncio.run(main(url))


def drain_for(seconds: float, server: str, *, is_pinned: bool) -> dict[str, float]:
    """Submit and run jobs for so long; return the rate over the last quarter of that time.

    Args:
        seconds: for how long.
        server: where the schema is made.
        is_pinned: a transaction elsewhere stays open meanwhile.
    """

    async def main(url: str) -> dict[str, float]:
        program = Program(url)
        async with program.scheduler as scheduler:
            await asyncio.sleep(WARM_UP_S)
            loop = asyncio.get_running_loop()
            begin = loop.time()
            done, watch = 0, Stopwatch()
            while loop.time() < begin + seconds:
                if loop.time() < begin + seconds * 3 / 4:
                    done, watch = 0, Stopwatch()
                await program.submit_many(PINNED_AT_ONCE, AT_ONCE)
                await scheduler.drain()
                done += PINNED_AT_ONCE
            return watch.figures(done) | {"done": program.ran}

    with fresh_schema(server) as url:
        fill(url, 1)
        if not is_pinned:
            return asyncio.run(main(url))
        with pinned_horizon(url):
            return asyncio.run(main(url))


def starts(jobs: int, server: str) -> dict[str, float]:
    """Submit one job at a time to an idle scheduler that runs them in the same process."""
    latencies = Latencies(jobs)

    async def main(url: str) -> dict[str, float]:
        scheduler = Scheduler(url, concurrency=IN_FLIGHT)

        @scheduler.task(name="job", retry=3)
        async def job(number: int) -> None:
            latencies.started(number)

        async def submit(number: int) -> None:
            latencies.submitted(number)
            await job.submit(number)

        async with scheduler:
            return await pace(submit, latencies, is_waiting=True, idle_s=DURABLE_IDLE_S)

    with fresh_schema(server) as url:
        return asyncio.run(main(url))


def _worker(url: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORKER, url, str(IN_FLIGHT)]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    assert worker.stdout.readline() == "ready\n"
    return worker


def starts_elsewhere(jobs: int, server: str) -> dict[str, float]:
    """Submit one job at a time here; another process, which is idle, starts it."""
    latencies = Latencies(jobs)

    async def main(url: str) -> dict[str, float]:
        scheduler = Scheduler(url)

        @scheduler.task(name="job")
        async def job(number: int) -> None: ...

        async with scheduler.client():
            worker = _worker(url)
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

    with fresh_schema(server) as url:
        return asyncio.run(main(url))


def drain_together(jobs: int, workers: int, server: str) -> dict[str, float]:
    """Have so many processes work off what a schema holds."""

    async def main(url: str) -> dict[str, float]:
        scheduler = Scheduler(url)
        async with scheduler.client():
            await scheduler.pause_queue(QUEUE)
            running = [_worker(url) for _ in range(workers)]
            await asyncio.sleep(WARM_UP_S)
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

    with fresh_schema(server) as url:
        fill(url, jobs)
        multiply(url)
        return asyncio.run(main(url))
