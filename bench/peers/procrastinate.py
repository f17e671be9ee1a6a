"""procrastinate with its psycopg connector and one worker; ended jobs stay in its table."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from procrastinate import App, PsycopgConnector
from procrastinate.tasks import Task

from bench.clockwork import DURABLE_IDLE_S, Latencies, Stopwatch, pace
from bench.server import fresh_database

AT_ONCE = 1_000
POOL = 20

logging.disable(logging.WARNING)


def _play(server: str, scene: Callable[[App], Awaitable[dict[str, float]]]) -> dict[str, float]:
    async def main(url: str) -> dict[str, float]:
        app = App(connector=PsycopgConnector(conninfo=url, max_size=POOL))
        async with app.open_async():
            await app.schema_manager.apply_schema_async()
            return await scene(app)

    with fresh_database(server) as url:
        return asyncio.run(main(url))


def _noop(app: App) -> tuple[Task, list[int]]:
    ran = [0]

    @app.task(name="noop")
    async def noop() -> None:
        ran[0] += 1

    return noop, ran


def submits(jobs: int, callers: int, server: str) -> dict[str, float]:
    """Submit one job a call, from so many coroutines, through a pool."""

    async def scene(app: App) -> dict[str, float]:
        noop, _ = _noop(app)

        async def caller(number: int) -> None:
            for _ in range(number):
                await noop.defer_async()

        await asyncio.gather(*(caller(5) for _ in range(callers)))
        watch = Stopwatch()
        await asyncio.gather(*(caller(jobs // callers) for _ in range(callers)))
        return watch.figures(jobs)

    return _play(server, scene)


async def _fill(noop: Task, jobs: int, batch: int = AT_ONCE) -> None:
    for start in range(0, jobs, batch):
        await noop.batch_defer_async(*({} for _ in range(min(batch, jobs - start))))


def bulk(jobs: int, batch: int, server: str) -> dict[str, float]:
    """Submit so many jobs a call."""

    async def scene(app: App) -> dict[str, float]:
        noop, _ = _noop(app)
        await _fill(noop, 2 * batch, batch)
        watch = Stopwatch()
        await _fill(noop, jobs, batch)
        return watch.figures(jobs)

    return _play(server, scene)


def drain(jobs: int, concurrency: int, server: str) -> dict[str, float]:
    """Run jobs that the database holds."""

    async def scene(app: App) -> dict[str, float]:
        noop, ran = _noop(app)
        await _fill(noop, jobs)
        watch = Stopwatch()
        await app.run_worker_async(wait=False, concurrency=concurrency, install_signal_handlers=False)
        figures = watch.figures(jobs)
        assert ran == [jobs]
        return figures

    return _play(server, scene)


def starts(jobs: int, server: str) -> dict[str, float]:
    """Submit one job at a time to an idle worker in the same process."""
    latencies = Latencies(jobs)

    async def scene(app: App) -> dict[str, float]:
        @app.task(name="job")
        async def job(number: int) -> None:
            latencies.started(number)

        async def submit(number: int) -> None:
            latencies.submitted(number)
            await job.defer_async(number=number)

        running = asyncio.create_task(app.run_worker_async(install_signal_handlers=False))
        await asyncio.sleep(1)
        figures = await pace(submit, latencies, is_waiting=True, idle_s=DURABLE_IDLE_S)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return figures

    return _play(server, scene)
