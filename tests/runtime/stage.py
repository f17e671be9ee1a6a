"""Where the engine's tests are played: a scheduler on virtual time, and a witness of all its transitions."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from betimes import JobEvent, JobHandle, JobStatus, Scheduler
from betimes.clock import new_rng
from betimes.core.lifecycle import LEGAL
from betimes.ports import Store
from betimes.stores.memory import MemoryStore
from betimes.stores.sqlite import SqliteStore
from betimes.testing import InlineExecutor, VirtualClock, run_virtual

pass_time = asyncio.sleep  # noqa: TID251 - on the virtual loop nothing sleeps really

BLOCKED, DELAYED, READY, RUNNING = JobStatus.BLOCKED, JobStatus.DELAYED, JobStatus.READY, JobStatus.RUNNING
COMPLETED, FAILED = JobStatus.COMPLETED, JobStatus.FAILED
TIMED_OUT, CANCELLED = JobStatus.TIMED_OUT, JobStatus.CANCELLED

WAYS: set[tuple[JobStatus | None, JobStatus]] = {
    (before, after) for ways in LEGAL.values() for before, afters in ways.items() for after in afters
}
WAYS |= {(None, status) for status in (BLOCKED, DELAYED, READY)}

StoreMaker = Callable[[VirtualClock], Store]
STORES = ("memory", "sqlite")


def store_maker(kind: str, folder: Path) -> StoreMaker:
    """Make stores of one kind; those of SQLite all on the same file, carried out inline on virtual time."""

    def make(clock: VirtualClock) -> Store:
        if kind == "memory":
            return MemoryStore(clock=clock)
        return SqliteStore(folder / "jobs.db", clock=clock, inline=True)

    return make


def make_scheduler(clock: VirtualClock, store: Store | None = None, **options: Any) -> Scheduler:
    """Make a scheduler on virtual time whose thread jobs run inline."""
    options.setdefault("executors", [InlineExecutor()])
    options.setdefault("rng", new_rng(7))
    return Scheduler("memory:" if store is None else store, clock=clock, watchdog=None, **options)


class Witness:
    """Hears every transition, and knows which there can be."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.events: list[JobEvent] = []
        scheduler.listen(self.hear)

    async def hear(self, event: JobEvent) -> None:
        self.events.append(event)

    def path(self, handle: JobHandle[Any]) -> list[JobStatus]:
        """The statuses that this version of a job has entered, in order."""
        return [event.after for event in self.events if event.seq == handle._job.seq]

    def check(self) -> None:
        """See that each version has gone one legal way, without a gap."""
        stands: dict[int, JobStatus | None] = defaultdict(lambda: None)
        for event in self.events:
            assert event.before == stands[event.seq], f"{event!r} does not follow {stands[event.seq]}"
            assert (event.before, event.after) in WAYS, f"{event!r} is no legal way"
            stands[event.seq] = event.after


class Scene:
    """One test's scheduler and clock.

    Attributes:
        clock: of the scheduler and its loop.
        scheduler: runs while the scene plays.
        witness: of its transitions.
    """

    def __init__(self, clock: VirtualClock, scheduler: Scheduler) -> None:
        self.clock = clock
        self.scheduler = scheduler
        self.witness = Witness(scheduler)

    @property
    def time(self) -> float:
        """Seconds since the scene began."""
        return self.clock.monotonic()

    async def settle(self) -> None:
        """Let everything happen that can happen now."""
        for _ in range(50):
            await pass_time(0)

    async def check(self) -> None:
        """See that the books balance: what was submitted has ended or is still there, within the limits."""
        metrics = await self.scheduler.metrics()
        ended = metrics.completed + metrics.failed + metrics.timed_out + metrics.cancelled
        live = metrics.ready + metrics.delayed + metrics.blocked + metrics.running
        assert metrics.submitted == ended + live
        assert metrics.peak_running <= metrics.workers
        assert metrics.stale_reports == metrics.store_errors == metrics.events_dropped == 0


Play = Callable[[Scene], Coroutine[Any, Any, None]]


def play(
    scene: Play,
    *,
    store: StoreMaker | None = None,
    seed: int | None = None,
    checked: bool = True,
    witnessed: bool = True,
    limit_s: float = 100_000,
    **options: Any,
) -> None:
    """Play a scene with a running scheduler, stop it, and see that nothing is left and the books balance.

    Args:
        scene: the test.
        store: makes the scheduler's store; memory unless given.
        seed: for drawing the orders that nobody promised.
        checked: whether the counters must balance (an operator's retry counts a job's end twice).
        witnessed: whether every transition must have been told (those whose answer was lost are not).
        limit_s: virtual seconds the scene may take.
        options: of the scheduler.
    """
    clock = VirtualClock()

    async def main() -> None:
        made = None if store is None else store(clock)
        stage = Scene(clock, make_scheduler(clock, made, **options))
        async with stage.scheduler:
            try:
                await scene(stage)
            except BaseException:
                # So that a failed scene can end: nothing else opens the gates of its store.
                getattr(made, "let_through", bool)()
                raise
            if checked:
                await stage.check()
        if witnessed:
            stage.witness.check()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert left == set(), "the scheduler left tasks behind"

    run_virtual(main(), clock=clock, seed=seed or 0, shuffle=seed is not None, limit_s=limit_s)
