"""Faults of limits, rates and circuits that the simulation has found, each as the shortest story."""

from __future__ import annotations

from pathlib import Path

import pytest

from betimes import Limit, Scheduler
from betimes.ports import Store
from betimes.stores.memory import MemoryStore
from betimes.stores.sqlite import SqliteStore
from betimes.testing import VirtualClock, run_virtual


def new_store(kind: str, clock: VirtualClock, folder: Path) -> Store:
    """Make one of the stores."""
    return MemoryStore(clock=clock) if kind == "memory" else SqliteStore(folder / "jobs.db", clock=clock)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_what_goes_before_a_job_can_be_asked_before_any_of_its_line_was_ready(
    kind: str, tmp_path: Path
) -> None:
    async def main(clock: VirtualClock) -> int:
        store = new_store(kind, clock, tmp_path)
        scheduler = Scheduler(store, clock=clock, watchdog=None)

        @scheduler.task(name="job", limit=Limit("few", 1))
        async def job() -> None:
            return None

        async with scheduler.client():
            handle = await job.using(delay="1h").submit()
            record = await store.find(handle.id)
            assert record is not None
            return await store.ahead(record)

    clock = VirtualClock()
    assert run_virtual(main(clock), clock=clock) == 0
