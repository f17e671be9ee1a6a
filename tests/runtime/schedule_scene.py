"""Where schedules are played: one store and one clock, over any number of schedulers and restarts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

from tests.runtime.stage import StoreMaker, make_scheduler, pass_time

from betimes import Context, FireInfo, Scheduler, Task
from betimes.clock import new_rng
from betimes.core.durations import instant_us
from betimes.ports import Store
from betimes.runtime.lease import RESCUE_EVERY_S
from betimes.stores.memory import MemoryStore
from betimes.testing import VirtualClock, run_virtual
from betimes.testing.clock import DEFAULT_START

START = DEFAULT_START
"""2030-01-01 00:00 UTC, a Tuesday."""

START_US = instant_us(START, name="START")

MINUTE, HOUR, DAY = 60, 3_600, 86_400


def when(seconds: float) -> datetime:
    """The instant so many seconds after the start."""
    return START + timedelta(seconds=seconds)


def seconds(instant: datetime | None) -> float:
    """How many seconds after the start an instant is; an instant there must be."""
    assert instant is not None
    return (instant - START).total_seconds()


def told(fires: list[FireInfo]) -> list[tuple[str, float, int]]:
    """A history, oldest first: what became of instants, the second of the last of them, how many."""
    return [(fire.outcome.value, seconds(fire.at), fire.count) for fire in reversed(fires)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One run of a job: what it was scheduled for, and when it began, in seconds after the start."""

    planned: float | None
    began: float
    job_id: str


class World:
    """One test's store and clock.

    In a calm world nobody looks around for other workers, so that days pass quickly on SQLite too.

    Attributes:
        clock: of everything.
        runs: what ran, in the order in which it began.
        running: how many run now; `most`: how many ran at once at most.
    """

    def __init__(
        self,
        store: StoreMaker,
        *,
        tells_jumps: bool = True,
        start: datetime = START,
        calm: bool = False,
        **options: Any,
    ) -> None:
        self.clock = VirtualClock(start, tells_jumps=tells_jumps)
        self.runs: list[Ran] = []
        self.running = self.most = 0
        self._make = store
        self._first: Store | None = store(self.clock)
        self._memory = self._first if isinstance(self._first, MemoryStore) else None
        self._calm = calm
        self._options = {"poll": HOUR, "lease": 30 * DAY, **options} if calm else options
        self._made = 0

    @property
    def time(self) -> float:
        """Seconds after the start, by the wall clock."""
        return (self.clock.now() - START_US) / 1e6

    def new_store(self) -> Store:
        """The store, as another process (for the memory store: another scheduler) opens it."""
        return self._memory or self._make(self.clock)

    def scheduler(self, **options: Any) -> Scheduler:
        """A new scheduler on the store."""
        self._made += 1
        options = {"rng": new_rng(self._made), **self._options, **options}
        return make_scheduler(self.clock, self.new_store(), **options)

    def task(
        self, scheduler: Scheduler, *, takes: float | Callable[[int], float] = 0.0, **options: Any
    ) -> Task[[], None]:
        """A task that notes its runs; each takes so many seconds (given how many ran before it)."""

        @scheduler.task(name=options.pop("name", "work"), **options)
        async def work(ctx: Context) -> None:
            planned = None if ctx.scheduled_for is None else seconds(ctx.scheduled_for)
            lasts = takes(len(self.runs)) if callable(takes) else takes
            self.runs.append(Ran(planned=planned, began=self.time, job_id=ctx.job_id))
            self.running += 1
            self.most = max(self.most, self.running)
            try:
                await pass_time(lasts)
            finally:
                self.running -= 1

        return work

    @asynccontextmanager
    async def working(
        self, *, takes: float | Callable[[int], float] = 0.0, **options: Any
    ) -> AsyncIterator[Work]:
        """A running scheduler with one task that notes its runs."""
        scheduler = self.scheduler(**options)
        task = self.task(scheduler, takes=takes)
        async with scheduler:
            yield Work(scheduler, task)

    @property
    def planned(self) -> list[float | None]:
        """What the runs were scheduled for."""
        return [run.planned for run in self.runs]

    @property
    def began(self) -> list[float]:
        """When the runs began."""
        return [run.began for run in self.runs]

    def play(self, main: Callable[[], Coroutine[Any, Any, None]], *, seed: int | None = None) -> None:
        """Play a scene on the world's clock."""
        with patch("betimes.runtime.lease.RESCUE_EVERY_S", DAY if self._calm else RESCUE_EVERY_S):
            run_virtual(
                main(), clock=self.clock, seed=seed or 0, shuffle=seed is not None, limit_s=20 * 366 * DAY
            )


@dataclass(frozen=True, slots=True)
class Work:
    """A running scheduler, and its task."""

    scheduler: Scheduler
    task: Task[[], None]

    async def add(self, trigger: Any, schedule_id: str = "s", **options: Any) -> None:
        """Add a schedule of the task."""
        await self.scheduler.add_schedule(schedule_id, self.task.bind(), trigger, **options)

    async def history(self, schedule_id: str = "s") -> list[tuple[str, float, int]]:
        """What became of a schedule's instants, oldest first."""
        return told(await self.scheduler.schedule_history(schedule_id, limit=1000))

    async def counts(self, schedule_id: str = "s") -> tuple[int, int]:
        """How many instants were fired, and how many skipped."""
        info = await self.scheduler.schedule(schedule_id)
        return info.fired, info.skipped

    async def next_s(self, schedule_id: str = "s") -> float | None:
        """The second of the next instant."""
        found = (await self.scheduler.schedule(schedule_id)).next_fire_at
        return None if found is None else seconds(found)
