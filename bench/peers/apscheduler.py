"""APScheduler 3: its asyncio scheduler with the memory job store, and with SQLAlchemy on a SQLite file.

`misfire_grace_time=None` keeps it from dropping what it does not reach within a second, as it does otherwise.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from apscheduler.events import EVENT_JOB_EXECUTED, JobExecutionEvent
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from sqlalchemy import create_engine, event

from bench.clockwork import Latencies, Stopwatch, pace
from bench.pending import Weighing

WARM_UP = 200
YIELD_EVERY = 64

logging.disable(logging.INFO)


async def _noop() -> None:
    """Do nothing."""


def _later() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)


def burst(jobs: int, *, pending: int = 0) -> dict[str, float]:
    """Add no-op coroutine jobs for now; as many as there are may be in flight.

    Args:
        jobs: how many.
        pending: how many jobs are waiting for their time meanwhile.
    """

    async def main() -> dict[str, float]:
        scheduler = AsyncIOScheduler(timezone=UTC)
        left = 0
        over = asyncio.Event()

        def ended(_: JobExecutionEvent) -> None:
            nonlocal left
            left -= 1
            if not left:
                over.set()

        async def finish(number: int) -> None:
            nonlocal left
            left = number
            over.clear()
            for each in range(number):
                scheduler.add_job(_noop, misfire_grace_time=None)
                if each % YIELD_EVERY == 0:
                    await asyncio.sleep(0)
            await over.wait()

        scheduler.add_listener(ended, EVENT_JOB_EXECUTED)
        for _ in range(pending):
            scheduler.add_job(_noop, "date", run_date=_later())
        scheduler.start()
        await finish(WARM_UP)
        watch = Stopwatch()
        await finish(jobs)
        return watch.figures(jobs)

    return asyncio.run(main())


def starts(jobs: int, per_second: int | None = None) -> dict[str, float]:
    """Add jobs at a fixed rate, or one at a time to an idle scheduler."""
    latencies = Latencies(jobs)

    async def job(number: int) -> None:
        latencies.started(number)

    async def main() -> dict[str, float]:
        scheduler = AsyncIOScheduler(timezone=UTC)
        scheduler.start()

        async def submit(number: int) -> None:
            latencies.submitted(number)
            scheduler.add_job(job, args=[number], misfire_grace_time=None)

        return await pace(submit, latencies, per_second=per_second)

    return asyncio.run(main())


def weigh(jobs: int, *, traced: bool) -> dict[str, float]:
    """Keep delayed jobs in the memory job store."""

    async def main() -> dict[str, float]:
        scheduler = AsyncIOScheduler(timezone=UTC)
        scheduler.start()
        weighing = Weighing(traced=traced)
        for _ in range(jobs):
            scheduler.add_job(_noop, "date", run_date=_later())
        return weighing.figures(jobs, lambda: len(scheduler.get_jobs()))

    return asyncio.run(main())


def durable(folder: Path) -> AsyncIOScheduler:
    """Make a scheduler on a file in WAL mode with an fsync for each commit: quicker than as it comes."""
    engine = create_engine(f"sqlite:///{folder / 'apscheduler.db'}")

    @event.listens_for(engine, "connect")
    def on_connect(connection: Any, _: object) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    return AsyncIOScheduler(jobstores={"default": SQLAlchemyJobStore(engine=engine)}, timezone=UTC)


def durable_submits(jobs: int, folder: Path) -> dict[str, float]:
    """Add jobs one after the other, each with its own fsync."""

    async def main() -> dict[str, float]:
        scheduler = durable(folder)
        scheduler.start(paused=True)
        for _ in range(WARM_UP):
            scheduler.add_job(_noop, misfire_grace_time=None)
        watch = Stopwatch()
        for _ in range(jobs):
            scheduler.add_job(_noop, misfire_grace_time=None)
        figures = watch.figures(jobs)
        assert len(scheduler.get_jobs()) == jobs + WARM_UP
        return figures

    return asyncio.run(main())


def drain(jobs: int, folder: Path) -> dict[str, float]:
    """Run jobs that a file holds; each leaves it when it starts."""

    async def main() -> dict[str, float]:
        scheduler = durable(folder)
        left = jobs
        over = asyncio.Event()

        def ended(_: JobExecutionEvent) -> None:
            nonlocal left
            left -= 1
            if not left:
                over.set()

        scheduler.add_listener(ended, EVENT_JOB_EXECUTED)
        scheduler.start(paused=True)
        for _ in range(jobs):
            scheduler.add_job(_noop, misfire_grace_time=None)
        watch = Stopwatch()
        scheduler.resume()
        await over.wait()
        figures = watch.figures(jobs)
        assert not scheduler.get_jobs()
        return figures

    return asyncio.run(main())
