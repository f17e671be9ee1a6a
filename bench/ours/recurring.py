"""Betimes with many schedules, in memory or on a SQLite file: start, idleness, single fires, all at once."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

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
from betimes import Scheduler, at, cron, every
from betimes.core.triggers import Trigger
from betimes.tasks import Task

FILE = "jobs.db"
IN_FLIGHT = 100
TOGETHER = 1_000
LOOK_S = 0.01
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata")


class _Program:
    """A scheduler, and its task, which counts how often it ran."""

    def __init__(self, folder: Path | None) -> None:
        store = "memory:" if folder is None else folder / FILE
        self.scheduler = Scheduler(store, concurrency=IN_FLIGHT)
        self.tally = Tally()

        @self.scheduler.task(name="noop", retry=3)
        async def noop() -> None:
            self.tally.count("ran")

        self.noop: Task[[], None] = noop

    async def add(self, name: str, trigger: Trigger, start: datetime | None = None) -> None:
        await self.scheduler.add_schedule(name, self.noop.bind(), trigger, start=start)

    async def add_pending(self, schedules: int) -> None:
        """Add schedules of many kinds, none of which fires before tomorrow."""
        tomorrow = datetime.now(UTC) + timedelta(days=1)
        for first in range(0, schedules, TOGETHER):
            numbers = range(first, min(first + TOGETHER, schedules))
            await asyncio.gather(*(self.add(f"pending-{each}", _daily(each), tomorrow) for each in numbers))

    async def add_due(self, schedules: int, when: datetime) -> None:
        """Add schedules that are all due at one instant."""
        for first in range(0, schedules, TOGETHER):
            numbers = range(first, min(first + TOGETHER, schedules))
            trigger = every("1d", align=when)
            await asyncio.gather(*(self.add(f"due-{each}", trigger) for each in numbers))


def _daily(number: int) -> Trigger:
    return cron(f"{number % 60} {number // 60 % 24} * * *", tz=ZONES[number % len(ZONES)])


def fill_shared(schedules: int, shared: Path) -> dict[str, float]:
    """Make the file that the runs of a row copy: with schedules none of which fires before tomorrow."""

    async def main() -> dict[str, float]:
        program = _Program(shared)
        async with program.scheduler.client():
            watch = Stopwatch()
            await program.add_pending(schedules)
            return watch.figures(schedules)

    return asyncio.run(main())


def fill_due(schedules: int, folder: Path, when: datetime) -> None:
    """Make a file with schedules that are all due at one instant, and with one job that one of them made."""

    async def main() -> None:
        program = _Program(folder)
        async with program.scheduler.client():
            await program.add_due(schedules, when)
            await program.scheduler.trigger_now("due-0")

    asyncio.run(main())


def _own_copy(shared: Path | None, folder: Path) -> Path | None:
    """Return the folder of a run, with a copy of the shared file; None: in memory."""
    if shared is None:
        return None
    shutil.copy(shared / FILE, folder / FILE)
    return folder


def adds(schedules: int) -> dict[str, float]:
    """Add schedules to an open scheduler in memory."""

    async def main() -> dict[str, float]:
        program = _Program(None)
        async with program.scheduler:
            watch = Stopwatch()
            await program.add_pending(schedules)
            return watch.figures(schedules)

    return asyncio.run(main())


def start(folder: Path, shared: Path) -> dict[str, float]:
    """Open a file with many schedules, one of them due, and run the job of that one."""

    async def main() -> dict[str, float]:
        place = _own_copy(shared, folder)
        before = _Program(place)
        async with before.scheduler.client():
            await before.add("due", at(datetime.now(UTC) + timedelta(seconds=0.1)))
        await asyncio.sleep(0.2)
        began, cpu = time.perf_counter(), time.process_time()
        program = _Program(place)
        await program.scheduler.start()
        await program.tally.reaches("ran", 1)
        figures = {
            "start_us": (time.perf_counter() - began) * 1e6,
            "cpu_us": (time.process_time() - cpu) * 1e6,
        }
        await program.scheduler.stop()
        return figures

    return asyncio.run(main())


def _place(pending: int, folder: Path, *, is_durable: bool, shared: Path | None) -> Path | None:
    """Return where a run's file is, with what is in it already; None: in memory."""
    if pending:
        return folder if is_durable else None
    return _own_copy(shared, folder)


@asynccontextmanager
async def _running(pending: int, place: Path | None) -> AsyncIterator[_Program]:
    """Have a scheduler run beside so many pending schedules."""
    program = _Program(place)
    async with program.scheduler:
        await program.add_pending(pending)
        yield program


def idle(
    seconds: float, folder: Path, pending: int = 0, *, is_durable: bool = False, shared: Path | None = None
) -> dict[str, float]:
    """Return the processor's share that a scheduler takes whose schedules all wait.

    Args:
        seconds: for how long it is looked at.
        folder: where the file of a run is made.
        pending: how many schedules to add; with them, `shared` is left alone.
        is_durable: add them to a file; otherwise in memory.
        shared: a folder with a file that holds them already.
    """

    async def main() -> dict[str, float]:
        async with _running(pending, _place(pending, folder, is_durable=is_durable, shared=shared)):
            await asyncio.sleep(IDLE_LOOK_S)
            return await idle_share(seconds)

    return asyncio.run(main())


def fires(
    fires: int, folder: Path, pending: int = 0, *, is_durable: bool = False, shared: Path | None = None
) -> dict[str, float]:
    """Fire one schedule so many times, while the others wait.

    Args:
        fires: how many times.
        folder: where the file of a run is made.
        pending: how many schedules to add; with them, `shared` is left alone.
        is_durable: add them to a file; otherwise in memory.
        shared: a folder with a file that holds the others already.
    """

    async def main() -> dict[str, float]:
        place = _place(pending, folder, is_durable=is_durable, shared=shared)
        async with _running(pending, place) as program:
            await program.add("often", every(PERIOD_S))
            return await program.tally.cost_of("ran", fires)

    return asyncio.run(main())


def tick(schedules: int, folder: Path, *, is_durable: bool) -> dict[str, float]:
    """Have many schedules due at one instant: how many get their job, and end, a second from that instant."""

    async def main() -> dict[str, float]:
        when = instant_ahead(schedules)
        program = _Program(folder if is_durable else None)
        async with program.scheduler.client():
            await program.add_due(schedules, when)
        if is_durable:
            program = _Program(folder)  # as after a restart: it has read nothing yet
        scheduler = program.scheduler
        async with scheduler:
            await asyncio.sleep(REST_S)
            watch = StopwatchAhead(when)
            await asyncio.sleep(watch.ahead_s())
            while (await scheduler.metrics()).fires < schedules:  # noqa: ASYNC110 - public, and nothing else
                await asyncio.sleep(LOOK_S)
            inserted = watch.figures(schedules)
            while (await scheduler.metrics()).completed < schedules:  # noqa: ASYNC110 - as above
                await asyncio.sleep(LOOK_S)
            finished = watch.figures(schedules)
        return inserted | {"finished_rate": finished["rate"]}

    return asyncio.run(main())
