"""What waits at gates costs nobody else: work is counted, in calls of functions and in SQLite's own steps."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from betimes.stores.memory import MemoryStore
from betimes.stores.sqlite import SqliteStore
from betimes.testing import VirtualClock, VirtualLoop
from betimes.testing.store_contract.gate_stage import GateStage
from betimes.testing.store_contract.stage import Stage

FEW, MANY = 20, 4_000


class Work:
    """Counts calls of Python and C functions, and steps of SQLite's machine, in hundreds."""

    def __init__(self) -> None:
        self.calls = 0

    def count(self, *_: object) -> int:
        self.calls += 1
        return 0

    def of(self, runner: asyncio.Runner, act: Coroutine[Any, Any, Any]) -> int:
        """How much work this takes."""
        before = self.calls
        sys.setprofile(self.count)
        try:
            runner.run(act)
        finally:
            sys.setprofile(None)
        return self.calls - before


async def claim_and_finish(stage: Stage, gates: GateStage) -> None:
    """Ten claims of one job each, all of which are finished."""
    for _ in range(10):
        (taken,) = await stage.claim(1, lanes={"loop": 9})
        await gates.tell(taken)


async def fill(stage: Stage, way: str, waiting: int, *, opens: bool) -> GateStage:
    """Have so many jobs wait at gates, in the ways that could get into others' way, and 30 pass freely."""
    gates = GateStage(stage)
    limit, by_value = await gates.limit(), await gates.limit("m", by="x")
    rate = await gates.rate(every_s=10**6)
    holder = await gates.start(limit)
    await gates.start(rate)
    if way == "one line":
        await gates.add(waiting, limit, sort_key=-1)
    elif way == "a line that has just come up":
        await gates.add(waiting // 2, rate, sort_key=-2)
        await gates.add(waiting // 2, rate, limit, sort_key=-1)
    else:
        keys = [gates.of(by_value, str(number)) for number in range(waiting)]
        await stage.submit(*(stage.job(gates=[key, limit], sort_key=-1) for key in keys))
    await gates.add(30)
    await stage.claim(1, lanes={"loop": 9})
    if opens:
        await gates.tell(holder)
    return gates


def cost(kind: str, path: Path, way: str, waiting: int, *, opens: bool) -> int:
    """The work of claiming and finishing ten jobs, beside so many that wait, or (`opens`) from among them."""
    clock, work = VirtualClock(), Work()
    store = MemoryStore(clock=clock) if kind == "memory" else SqliteStore(path, clock=clock, inline=True)
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock=clock)) as runner:
        runner.run(store.open(strategy="priority"))
        stage = Stage(store, clock)
        gates = runner.run(fill(stage, way, waiting, opens=opens))
        if isinstance(store, SqliteStore):
            assert store._writer is not None
            store._writer._sql.set_progress_handler(work.count, 100)
        taken = work.of(runner, claim_and_finish(stage, gates))
        runner.run(store.close())
    return taken


@pytest.mark.parametrize("way", ["one line", "a line that has just come up", "many lines"])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("opens", [False, True], ids=["others pass", "one by one"])
def test_p20_those_who_wait_are_never_scanned_past(kind: str, way: str, opens: bool, tmp_path: Path) -> None:
    few, many = (cost(kind, tmp_path / f"{number}.db", way, number, opens=opens) for number in (FEW, MANY))
    assert many <= 1.5 * few, "work that grows with those who wait"
