"""APScheduler 3 with many schedules: its memory job store, or SQLAlchemy on a SQLite file.

Its schedules are its jobs: each carries its trigger, and becomes a call of the executor when it is due.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from apscheduler.events import EVENT_JOB_EXECUTED, EVENT_JOB_SUBMITTED, JobExecutionEvent
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger

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
from bench.peers.apscheduler import durable

ADD_S = {False: 0.001, True: 0.005}
"""How long an add takes at most, in memory and on a file."""

_tally = Tally()


async def _noop() -> None:
    _tally.count("ran")


def _scheduler(folder: Path | None) -> AsyncIOScheduler:
    return AsyncIOScheduler(timezone=UTC) if folder is None else durable(folder)


def _add(scheduler: AsyncIOScheduler, name: str, trigger: BaseTrigger) -> None:
    scheduler.add_job(_noop, trigger, id=name, misfire_grace_time=None)


def _add_pending(scheduler: AsyncIOScheduler, schedules: int) -> None:
    """Add schedules none of which fires before tomorrow."""
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    for number in range(schedules):
        trigger = CronTrigger(
            hour=number // 60 % 24, minute=number % 60, start_date=tomorrow, timezone="Europe/Berlin"
        )
        _add(scheduler, f"pending-{number}", trigger)


def adds(schedules: int) -> dict[str, float]:
    """Add schedules to a scheduler in memory that runs."""

    async def main() -> dict[str, float]:
        scheduler = _scheduler(None)
        scheduler.start()
        watch = Stopwatch()
        _add_pending(scheduler, schedules)
        return watch.figures(schedules)

    return asyncio.run(main())


def start(schedules: int, folder: Path) -> dict[str, float]:
    """Open a file with many schedules, one of them due, and run the job of that one."""

    async def fill() -> None:
        scheduler = _scheduler(folder)
        scheduler.start(paused=True)
        _add_pending(scheduler, schedules)
        _add(scheduler, "due", DateTrigger(datetime.now(UTC)))
        scheduler.shutdown()

    async def main() -> dict[str, float]:
        began, cpu = time.perf_counter(), time.process_time()
        _scheduler(folder).start()
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
        scheduler = _scheduler(folder if is_durable else None)
        scheduler.start()
        _add_pending(scheduler, pending)
        await asyncio.sleep(IDLE_LOOK_S)
        return await idle_share(seconds)

    return asyncio.run(main())


def fires(fires: int, pending: int, folder: Path, *, is_durable: bool) -> dict[str, float]:
    """Fire one schedule so many times, while the others wait."""

    async def main() -> dict[str, float]:
        scheduler = _scheduler(folder if is_durable else None)
        _add_pending(scheduler, pending)
        scheduler.start()
        _add(scheduler, "often", IntervalTrigger(seconds=PERIOD_S))
        return await _tally.cost_of("ran", fires)

    return asyncio.run(main())


def tick(schedules: int, folder: Path, *, is_durable: bool) -> dict[str, float]:
    """Have many schedules due at one instant: how many have been submitted, and have ended, a second."""

    def submitted(_: JobExecutionEvent) -> None:
        _tally.count("submitted")

    def executed(_: JobExecutionEvent) -> None:
        _tally.count("executed")

    async def main() -> dict[str, float]:
        when = instant_ahead(schedules, ADD_S[is_durable])
        scheduler = _scheduler(folder if is_durable else None)
        scheduler.start()
        trigger = IntervalTrigger(days=1, start_date=when)
        for number in range(schedules):
            _add(scheduler, f"due-{number}", trigger)
        scheduler.add_listener(submitted, EVENT_JOB_SUBMITTED)
        scheduler.add_listener(executed, EVENT_JOB_EXECUTED)
        await asyncio.sleep(REST_S)
        watch = StopwatchAhead(when)
        await _tally.reaches("submitted", schedules)
        inserted = watch.figures(schedules)
        await _tally.reaches("executed", schedules)
        return inserted | {"finished_rate": watch.figures(schedules)["rate"]}

    return asyncio.run(main())
