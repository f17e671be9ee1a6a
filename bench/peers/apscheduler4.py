"""APScheduler 4, a pre-release: its asyncio scheduler in memory, or with SQLAlchemy on a SQLite file.

It shares its name with APScheduler 3, so that it has an environment of its own. A task may have one running
job unless told otherwise; here it may have as many as the scheduler, a hundred.
"""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from apscheduler import AsyncScheduler, Event, JobAdded, JobReleased, TaskDefaults
from apscheduler.datastores.memory import MemoryDataStore
from apscheduler.datastores.sqlalchemy import SQLAlchemyDataStore
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger
from sqlalchemy import create_engine, event

from bench.clockwork import (
    IDLE_LOOK_S,
    PERIOD_S,
    REST_S,
    Stopwatch,
    StopwatchAhead,
    Tally,
    idle_share,
    instant_ahead,
)

AT_ONCE = 100
ADD_S = {False: 0.002, True: 0.01}
"""How long an add takes at most, in memory and on a file."""

logging.disable(logging.INFO)

_tally = Tally()


async def _noop() -> None:
    _tally.count("ran")


def _scheduler(folder: Path | None) -> AsyncScheduler:
    """Make a scheduler; its file in WAL mode with an fsync for each commit."""
    defaults = TaskDefaults(max_running_jobs=AT_ONCE, misfire_grace_time=None)
    if folder is None:
        return AsyncScheduler(MemoryDataStore(), max_concurrent_jobs=AT_ONCE, task_defaults=defaults)
    engine = create_engine(f"sqlite:///{folder / 'apscheduler4.db'}")

    @event.listens_for(engine, "connect")
    def on_connect(connection: Any, _: object) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    return AsyncScheduler(SQLAlchemyDataStore(engine), max_concurrent_jobs=AT_ONCE, task_defaults=defaults)


async def _add_pending(scheduler: AsyncScheduler, schedules: int) -> None:
    """Add schedules none of which fires before tomorrow."""
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    for number in range(schedules):
        trigger = CronTrigger(
            hour=number // 60 % 24, minute=number % 60, start_time=tomorrow, timezone="Europe/Berlin"
        )
        await scheduler.add_schedule(_noop, trigger, id=f"pending-{number}")


def adds(schedules: int) -> dict[str, float]:
    """Add schedules to a scheduler in memory that runs."""

    async def main() -> dict[str, float]:
        async with _scheduler(None) as scheduler:
            await scheduler.start_in_background()
            watch = Stopwatch()
            await _add_pending(scheduler, schedules)
            return watch.figures(schedules)

    return asyncio.run(main())


def start(schedules: int, folder: Path) -> dict[str, float]:
    """Open a file with many schedules, one of them due, and run the job of that one."""

    async def fill() -> None:
        async with _scheduler(folder) as scheduler:
            await _add_pending(scheduler, schedules)
            await scheduler.add_schedule(_noop, DateTrigger(datetime.now(UTC)), id="due")

    async def main() -> dict[str, float]:
        began, cpu = time.perf_counter(), time.process_time()
        async with _scheduler(folder) as scheduler:
            await scheduler.start_in_background()
            await _tally.reaches("ran", 1)
            return {
                "start_us": (time.perf_counter() - began) * 1e6,
                "cpu_us": (time.process_time() - cpu) * 1e6,
            }

    asyncio.run(fill())
    return asyncio.run(main())


def idle(seconds: float, pending: int, folder: Path, *, is_durable: bool) -> dict[str, float]:
    """Return the processor's share that a scheduler takes whose schedules all wait."""

    async def main() -> dict[str, float]:
        async with _scheduler(folder if is_durable else None) as scheduler:
            await _add_pending(scheduler, pending)
            await scheduler.start_in_background()
            await asyncio.sleep(IDLE_LOOK_S)
            return await idle_share(seconds)

    return asyncio.run(main())


def fires(fires: int, pending: int, folder: Path, *, is_durable: bool) -> dict[str, float]:
    """Fire one schedule so many times, while the others wait."""

    async def main() -> dict[str, float]:
        async with _scheduler(folder if is_durable else None) as scheduler:
            await _add_pending(scheduler, pending)
            await scheduler.start_in_background()
            await scheduler.add_schedule(_noop, IntervalTrigger(seconds=PERIOD_S), id="often")
            return await _tally.cost_of("ran", fires)

    return asyncio.run(main())


def tick(schedules: int, folder: Path, *, is_durable: bool) -> dict[str, float]:
    """Have many schedules due at one instant: how many get their job, and end, a second from that instant."""

    def hear(heard: Event) -> None:
        _tally.count("added" if isinstance(heard, JobAdded) else "released")

    async def main() -> dict[str, float]:
        when = instant_ahead(schedules, ADD_S[is_durable])
        async with _scheduler(folder if is_durable else None) as scheduler:
            for number in range(schedules):
                trigger = IntervalTrigger(days=1, start_time=when)
                await scheduler.add_schedule(_noop, trigger, id=f"due-{number}")
            scheduler.subscribe(hear, {JobAdded, JobReleased})
            await scheduler.start_in_background()
            await asyncio.sleep(REST_S)
            watch = StopwatchAhead(when)
            await _tally.reaches("added", schedules)
            inserted = watch.figures(schedules)
            await _tally.reaches("released", schedules)
            return inserted | {"finished_rate": watch.figures(schedules)["rate"]}

    return asyncio.run(main())
