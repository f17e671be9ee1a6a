"""pgqueuer on asyncpg, which is its fastest driver; an ended job leaves a line in its log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta

import asyncpg
from pgqueuer.adapters.drivers.asyncpg import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.core.qm import QueueManager
from pgqueuer.domain.models import Job
from pgqueuer.domain.types import QueueExecutionMode
from pgqueuer.queries import Queries

from bench.clockwork import DURABLE_IDLE_S, Latencies, Stopwatch, pace
from bench.server import fresh_database

AT_ONCE = 1_000

logging.disable(logging.INFO)


async def _opened(url: str) -> Queries:
    queries = Queries(AsyncpgDriver(await asyncpg.connect(url)))
    await queries.install()
    return queries


def _play(server: str, scene: Callable[[str], Awaitable[dict[str, float]]]) -> dict[str, float]:
    async def main(url: str) -> dict[str, float]:
        return await scene(url)

    with fresh_database(server) as url:
        return asyncio.run(main(url))


def submits(jobs: int, callers: int, server: str) -> dict[str, float]:
    """Submit one job a call, from so many coroutines, through a pool with a connection for each."""

    async def scene(url: str) -> dict[str, float]:
        await _opened(url)
        async with asyncpg.create_pool(url, min_size=callers, max_size=callers) as pool:
            queries = Queries(AsyncpgPoolDriver(pool))

            async def caller(number: int) -> None:
                for _ in range(number):
                    await queries.enqueue("noop", None)

            await asyncio.gather(*(caller(5) for _ in range(callers)))
            watch = Stopwatch()
            await asyncio.gather(*(caller(jobs // callers) for _ in range(callers)))
            return watch.figures(jobs)

    return _play(server, scene)


async def _fill(queries: Queries, jobs: int, batch: int = AT_ONCE) -> None:
    for _ in range(0, jobs, batch):
        await queries.enqueue(["noop"] * batch, [None] * batch, [0] * batch)


def bulk(jobs: int, batch: int, server: str) -> dict[str, float]:
    """Submit so many jobs a call."""

    async def scene(url: str) -> dict[str, float]:
        queries = await _opened(url)
        await _fill(queries, 2 * batch, batch)
        watch = Stopwatch()
        await _fill(queries, jobs, batch)
        return watch.figures(jobs)

    return _play(server, scene)


def drain(jobs: int, batch: int, server: str) -> dict[str, float]:
    """Run jobs that the database holds, fetched so many at a time."""

    async def scene(url: str) -> dict[str, float]:
        queries = await _opened(url)
        await _fill(queries, jobs)
        manager = QueueManager(queries)
        ran = 0

        @manager.entrypoint("noop")
        async def noop(_job: Job) -> None:
            nonlocal ran
            ran += 1

        watch = Stopwatch()
        await manager.run(batch_size=batch, mode=QueueExecutionMode.drain)
        figures = watch.figures(jobs)
        assert ran == jobs
        return figures

    return _play(server, scene)


def starts(jobs: int, server: str) -> dict[str, float]:
    """Submit one job at a time to an idle worker in the same process, on connections of their own."""
    latencies = Latencies(jobs)

    async def scene(url: str) -> dict[str, float]:
        queries = await _opened(url)
        manager = QueueManager(Queries(AsyncpgDriver(await asyncpg.connect(url))))

        @manager.entrypoint("job")
        async def job(one: Job) -> None:
            latencies.started(int(one.payload or b"0"))

        async def submit(number: int) -> None:
            latencies.submitted(number)
            await queries.enqueue("job", str(number).encode())

        running = asyncio.create_task(manager.run(dequeue_timeout=timedelta(seconds=30)))
        await asyncio.sleep(1)
        figures = await pace(submit, latencies, is_waiting=True, idle_s=DURABLE_IDLE_S)
        manager.shutdown.set()
        await running
        return figures

    return _play(server, scene)
