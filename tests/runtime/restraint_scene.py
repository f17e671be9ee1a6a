"""What the tests of limits, rates and the like share: work that is counted while it runs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.runtime.stage import make_scheduler, pass_time, store_maker

from betimes import JobHandle, Scheduler
from betimes.clock import new_rng
from betimes.ports import Run
from betimes.testing import InlineExecutor, VirtualClock


class Load:
    """Counts what runs at the same time, and when each began.

    Attributes:
        running: by name, how many run now.
        peak: by name, the most that ever did.
        starts: the instants of all starts, in seconds since the scene began, in order.
        order: the names of all that started, in order.
    """

    def __init__(self) -> None:
        self.running: Counter[str] = Counter()
        self.peak: Counter[str] = Counter()
        self.starts: list[float] = []
        self.order: list[str] = []

    def begin(self, name: str) -> None:
        """Count one that starts."""
        self.starts.append(asyncio.get_running_loop().time())
        self.order.append(name)
        self.running[name] += 1
        self.peak[name] = max(self.peak[name], self.running[name])

    def end(self, name: str) -> None:
        """Count one that has returned."""
        self.running[name] -= 1

    async def carry(self, name: str, seconds: float) -> None:
        """Be one for so long, whatever ends it."""
        self.begin(name)
        try:
            await pass_time(seconds)
        finally:
            self.end(name)


class CountedExecutor(InlineExecutor):
    """Runs inline, and counts each run from its start to its late end.

    Args:
        load: counts under the name `name`.
        takes_s: how long each run takes.
    """

    def __init__(self, lane: str, load: Load, name: str, takes_s: float, *, slots: int = 100) -> None:
        super().__init__(lane, slots=slots, takes_s=lambda run: takes_s)
        self._load, self._name = load, name

    def open(self, ended: Callable[[Run, Any], None], begun: Callable[[Run], None]) -> None:
        """Use the running loop, and hear of each end first."""

        def end(run: Run, outcome: Any) -> None:
            self._load.end(self._name)
            ended(run, outcome)

        super().open(end, begun)

    def start(self, run: Run) -> None:
        """Count it, and have it run."""
        self._load.begin(self._name)
        super().start(run)


def two_schedulers(clock: VirtualClock, folder: Path, **options: Any) -> tuple[Scheduler, Scheduler]:
    """Two processes' schedulers on one file: each has names of its own for its worker and its jobs."""
    make = store_maker("sqlite", folder)
    first, second = (
        make_scheduler(clock, make(clock), rng=new_rng(number), **{"poll": 1, **options}) for number in (1, 2)
    )
    return first, second


def turns_of(scheduler: Scheduler) -> Callable[[], int]:
    """Count the worker's turns from now on: each is one call of `Store.exchange`."""
    store, count = scheduler._store, 0
    exchange = store.exchange

    async def counted(*args: Any) -> Any:
        nonlocal count
        count += 1
        return await exchange(*args)

    setattr(store, "exchange", counted)  # noqa: B010 - over a method
    return lambda: count


async def held(scheduler: Scheduler, name: str, value: str | None = None) -> int:
    """How many places of a limit are taken."""
    return (await scheduler.limit(name, value)).held


def ids(handles: list[JobHandle[Any]]) -> tuple[str, ...]:
    return tuple(handle.id for handle in handles)
