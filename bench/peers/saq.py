"""saq on its PostgreSQL queue, in the same process; results are kept for as long as it does by default."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from saq import Worker
from saq.queue.postgres import PostgresQueue

from bench.clockwork import DURABLE_IDLE_S, Latencies, Stopwatch, pace
from bench.server import fresh_database

logging.disable(logging.WARNING)


def _play(server: str, scene: Callable[[PostgresQueue], Awaitable[dict[str, float]]]) -> dict[str, float]:
    async def main(url: str) -> dict[str, float]:
        queue = PostgresQueue.from_url(url)
        await queue.connect()
        try:
            return await scene(queue)
        finally:
            await queue.disconnect()

    with fresh_database(server) as url:
        return asyncio.run(main(url))


def submits(jobs: int, callers: int, server: str) -> dict[str, float]:
    """Submit one job a call, from so many coroutines, through a pool of at most 20."""

    async def scene(queue: PostgresQueue) -> dict[str, float]:
        async def caller(number: int) -> None:
            for _ in range(number):
                await queue.enqueue("noop")

        await asyncio.gather(*(caller(5) for _ in range(callers)))
        watch = Stopwatch()
        await asyncio.gather(*(caller(jobs // callers) for _ in range(callers)))
        return watch.figures(jobs)

    return _play(server, scene)


def drain(jobs: int, concurrency: int, server: str) -> dict[str, float]:
    """Run jobs that the database holds."""

    async def scene(queue: PostgresQueue) -> dict[str, float]:
        ran = 0
        over = asyncio.Event()

        async def noop(_context: dict[str, Any]) -> None:
            nonlocal ran
            ran += 1
            if ran == jobs:
                over.set()

        for _ in range(0, jobs, 20):
            await asyncio.gather(*(queue.enqueue("noop") for _ in range(20)))
        worker = Worker(queue, functions=[("noop", noop)], concurrency=concurrency)
        watch = Stopwatch()
        running = asyncio.create_task(worker.start())
        await over.wait()
        figures = watch.figures(jobs)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return figures

    return _play(server, scene)


def starts(jobs: int, server: str) -> dict[str, float]:
    """Submit one job at a time to an idle worker in the same process."""
    latencies = Latencies(jobs)

    async def scene(queue: PostgresQueue) -> dict[str, float]:
        async def job(_context: dict[str, Any], number: int) -> None:
            latencies.started(number)

        async def submit(number: int) -> None:
            latencies.submitted(number)
            await queue.enqueue("job", number=number)

        worker = Worker(queue, functions=[("job", job)])
        running = asyncio.create_task(worker.start())
        await asyncio.sleep(1)
        figures = await pace(submit, latencies, is_waiting=True, idle_s=DURABLE_IDLE_S)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return figures

    return _play(server, scene)
