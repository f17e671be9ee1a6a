"""taskiq with its in-memory broker, on the same event loop."""

from __future__ import annotations

import asyncio
import logging

from taskiq import InMemoryBroker

from bench.clockwork import Latencies, Stopwatch, pace
from bench.limits.in_process import IN_FLIGHT, WARM_UP

logging.disable(logging.INFO)


def burst(jobs: int) -> dict[str, float]:
    """Submit no-op coroutine jobs in windows of 100: this broker bounds nothing by itself."""
    broker = InMemoryBroker()
    ran = 0

    @broker.task(task_name="noop")
    async def noop() -> None:
        nonlocal ran
        ran += 1

    async def finish(number: int) -> None:
        for start in range(0, number, IN_FLIGHT):
            for _ in range(min(IN_FLIGHT, number - start)):
                await noop.kiq()
            await broker.wait_all()

    async def main() -> dict[str, float]:
        await broker.startup()
        await finish(WARM_UP)
        watch = Stopwatch()
        await finish(jobs)
        figures = watch.figures(jobs)
        assert ran == jobs + WARM_UP
        return figures

    return asyncio.run(main())


def starts(jobs: int, per_second: int | None = None) -> dict[str, float]:
    """Submit at a fixed rate, or one job at a time to an idle broker."""
    broker = InMemoryBroker()
    latencies = Latencies(jobs)

    @broker.task(task_name="job")
    async def job(number: int) -> None:
        latencies.started(number)

    async def submit(number: int) -> None:
        latencies.submitted(number)
        await job.kiq(number)

    async def main() -> dict[str, float]:
        await broker.startup()
        return await pace(submit, latencies, per_second=per_second)

    return asyncio.run(main())
