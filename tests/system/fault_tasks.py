"""Tasks of every kind that leave evidence, and what is submitted of them in the fault tests."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from tests.system import evidence
from tests.system.checker import Grid, Rules
from tests.system.evidence import micros

from betimes import (
    BoundJob,
    Context,
    JobEvent,
    Limit,
    RetryPolicy,
    ScheduleInfo,
    Scheduler,
    StoreUnavailable,
    Task,
    every,
)

OverlapPolicy = Literal["skip", "queue_one", "replace", "allow"]
After = Literal["start", "finish"]

GRID = "grid"
PERIOD_S = 0.2
NARROW = 2
TRY_AGAIN_S = 0.05
AGAIN = RetryPolicy(max_attempts=4, base_delay=0.01, max_delay=0.05)


class Noted:
    """A run's code, from `begin` to `end`."""

    def __init__(self, ctx: Context) -> None:
        self._which: dict[str, Any] = {
            "job": ctx.job_id,
            "task": ctx.task,
            "attempt": ctx.attempt,
            "fence": ctx.fence,
        }
        self._at = None if ctx.scheduled_for is None else micros(ctx.scheduled_for)

    def __enter__(self) -> None:
        evidence.note("begin", **self._which, scheduled_for=self._at)

    def __exit__(self, *_: object) -> None:
        evidence.note("end", **self._which)


async def on_loop(ctx: Context, pause_s: float) -> None:
    with Noted(ctx):
        await asyncio.sleep(pause_s)


def in_thread(ctx: Context, pause_s: float) -> None:
    with Noted(ctx):
        time.sleep(pause_s)


def in_process(ctx: Context, pause_s: float) -> None:
    with Noted(ctx):
        time.sleep(pause_s)


async def fails_twice(ctx: Context, pause_s: float) -> None:
    with Noted(ctx):
        await asyncio.sleep(pause_s)
        if ctx.attempt < 3:
            raise ValueError("not yet")


async def does_not_stop(ctx: Context, pause_s: float) -> None:
    """Go on for as long as the process does, the first time; then end."""
    with Noted(ctx):
        while ctx.fence == 1:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue


class Tasks:
    """The tasks of one scheduler, by name."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        task: Any = scheduler.task
        self.by_name: dict[str, Task[..., Any]] = {
            "loop": task(name="loop")(on_loop),
            "thread": task(name="thread")(in_thread),
            "process": task(name="process", executor="process")(in_process),
            "retried": task(name="retried", retry=AGAIN)(fails_twice),
            "narrow": task(name="narrow", limit=Limit("narrow", max_running=NARROW))(on_loop),
            "once": task(name="once", delivery="at_most_once")(on_loop),
            "stubborn": task(name="stubborn")(does_not_stop),
            "tick": task(name="tick")(on_loop),
            "command": scheduler.command("command", [sys.executable, "-I", "-S", evidence.__file__]),
        }
        scheduler.listen(hear)

    def bind(self, kind: str, pause_s: float) -> BoundJob[Any]:
        return self.by_name[kind].bind(str(pause_s) if kind == "command" else pause_s)

    async def submit(self, kind: str, key: str, pause_s: float, **options: Any) -> str:
        """Submit under a key, until it is acknowledged: then it is evidence, and may still be repeated."""
        using = self.by_name[kind].using(key=key, **options)
        while True:
            try:
                job = await using.submit(str(pause_s) if kind == "command" else pause_s)
            except StoreUnavailable:
                await asyncio.sleep(TRY_AGAIN_S)
            else:
                evidence.note("kept", job=job.id, task=kind, key=key, due=_due(options))
                return job.id

    async def keep_grid(
        self, for_s: float, *, pause_s: float = 0.0, overlap: OverlapPolicy = "allow", after: After = "start"
    ) -> None:
        """Keep the schedule, which ends by itself; each of its instants makes a job, however late."""
        begins = datetime.fromtimestamp(time.time() + 0.1, UTC)
        await self.scheduler.add_schedule(
            GRID,
            self.bind("tick", pause_s),
            every(PERIOD_S, after=after),
            start=begins,
            end=begins + timedelta(seconds=for_s),
            missed="all",
            max_catchup=1000,
            overlap=overlap,
            on_conflict="keep",
        )


def _due(options: dict[str, Any]) -> int | None:
    return micros(options["run_at"]) if "run_at" in options else None


def hear(event: JobEvent) -> None:
    if event.after.is_terminal:
        evidence.note("recorded", job=event.job_id, task=event.task, status=event.after.value, at=event.at_us)


def rules(grid: ScheduleInfo | None) -> Rules:
    """Return what these tasks are promised, and their schedule, if it was kept."""
    grids = {}
    if grid is not None:
        assert grid.start is not None
        assert grid.end is not None
        assert grid.created_at is not None
        period = round(PERIOD_S * 1_000_000)
        grids[GRID] = Grid(
            start=micros(grid.start), period=period, end=micros(grid.end), since=micros(grid.created_at)
        )
    return Rules(limits={"narrow": NARROW}, once=frozenset({"once"}), grids=grids)


def i_am(worker: int, file: Path) -> None:
    """Have the evidence of this process, and of its children, speak of this worker."""
    os.environ[evidence.WORKER], os.environ[evidence.FILE] = str(worker), str(file)


def names(count: int) -> Iterator[tuple[str, str]]:
    """Yield kinds and keys, all kinds in turn."""
    kinds = ("loop", "thread", "narrow", "retried", "once", "process", "command", "narrow")
    for number in range(count):
        kind = kinds[number % len(kinds)]
        yield kind, f"{kind}-{number}"
