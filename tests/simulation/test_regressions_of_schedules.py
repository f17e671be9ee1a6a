"""Faults of schedules that the simulation has found, each as the shortest story that shows it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from tests.simulation.loops import pass_time

from betimes import Scheduler, every
from betimes.core.schedule import Advance, Fire, ScheduleRecord
from betimes.errors import StoreUnavailable
from betimes.ports import ScheduleFilter, Store
from betimes.stores.memory import MemoryStore
from betimes.stores.sqlite import SqliteStore
from betimes.testing import VirtualClock, run_virtual
from betimes.testing.clock import DEFAULT_START


class _Unreliable(MemoryStore):
    """Once each, a call that is named in `to_lose` does not get through; after a look, `then` is called."""

    def __init__(self, *, clock: VirtualClock) -> None:
        super().__init__(clock=clock)
        self.to_lose: set[str] = set()
        self.then: Callable[[], None] = lambda: None

    def _lose(self, call: str) -> None:
        if call in self.to_lose:
            self.to_lose.remove(call)
            raise StoreUnavailable(f"the {call} was lost")

    async def schedules(self, which: ScheduleFilter) -> list[ScheduleRecord]:
        """Look which have fired ahead of the clock."""
        if which.fired_after is None:
            return await super().schedules(which)
        self._lose("look")
        found = await super().schedules(which)
        if found:
            self.then()
        return found

    async def save_schedule(
        self, record: ScheduleRecord, *, expected_version: int | None, fires: Sequence[Fire] = ()
    ) -> bool:
        """Keep a change."""
        self._lose("save")
        return await super().save_schedule(record, expected_version=expected_version, fires=fires)


def test_a_start_that_fails_at_its_look_at_the_clock_leaves_no_worker_behind() -> None:
    async def main(clock: VirtualClock) -> None:
        store = _Unreliable(clock=clock)
        scheduler = Scheduler(store, clock=clock, watchdog=None)
        store.to_lose = {"look"}
        with pytest.raises(StoreUnavailable, match="the look was lost"):
            await scheduler.start()
        await pass_time(1.0)
        left = [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("betimes")]
        assert left == []
        async with scheduler:
            assert len(await store.workers()) == 1

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)


async def _fire_a_minute_ahead(clock: VirtualClock, store: _Unreliable) -> list[float]:
    """Let the clock run a minute ahead, and set it back, over calls that are lost; return what ran when."""
    runs: list[float] = []
    scheduler = Scheduler(store, clock=clock, watchdog=None)
    to_lose, store.to_lose = store.to_lose, set()

    @scheduler.task(name="tick", schedule=every("10s", align=True), missed="skip")
    async def tick() -> None:
        runs.append(clock.now() / 1e6 - DEFAULT_START.timestamp())

    async with scheduler:
        clock.jump(60)
        await pass_time(15.0)  # 75 s by the clock
        store.to_lose = to_lose
        clock.jump(timedelta(seconds=-60))
        await pass_time(70.0)
        assert not (await scheduler.schedule("tick")).paused
    return runs


@pytest.mark.parametrize("call", ["look", "save"])
@pytest.mark.parametrize("tells_jumps", [True, False])
def test_p29_a_clock_set_back_is_noticed_again_when_the_store_was_out_of_reach(
    call: str, *, tells_jumps: bool
) -> None:
    """The look came once only, and a save that did not get through paused the schedule for good."""
    clock = VirtualClock(tells_jumps=tells_jumps)
    store = _Unreliable(clock=clock)
    store.to_lose = {call}
    runs = run_virtual(_fire_a_minute_ahead(clock, store), clock=clock)
    assert store.to_lose == set()
    ahead = [at for at in runs if at in (60.0, 70.0)]
    assert len(ahead) == len(set(ahead)), "none runs twice"
    assert {30.0, 40.0, 80.0} <= set(runs), "it goes on from where the clock was set to"


def test_p17_nothing_is_lost_if_the_clock_is_set_forward_again_during_the_look() -> None:
    clock = VirtualClock()
    store = _Unreliable(clock=clock)

    def forward_again() -> None:
        store.then = lambda: None
        clock.jump(95)

    store.then = forward_again
    runs = run_virtual(_fire_a_minute_ahead(clock, store), clock=clock)
    assert runs[:5] == [60.0, 70.0, 110.0, 120.0, 130.0]


def test_p17_what_is_due_stays_due_when_a_schedule_that_fired_ahead_of_the_clock_is_re_aimed() -> None:
    """A wrong clock has added it; it is begun anew by the right one, and due, as somebody looks."""

    async def main(clock: VirtualClock) -> list[float]:
        runs: list[float] = []
        scheduler = Scheduler(MemoryStore(clock=clock), clock=clock, watchdog=None)

        @scheduler.task(name="tick")
        async def tick() -> None:
            runs.append(clock.now() / 1e6 - DEFAULT_START.timestamp())

        clock.jump(3600)
        async with scheduler:
            await scheduler.add_schedule("s", tick.bind(), every("10s", align=True))
            await pass_time(25.0)
        clock.jump(timedelta(seconds=-3600))
        async with scheduler.client():
            await scheduler.add_schedule("s", tick.bind(), every("10s", align=True))
            await pass_time(6.0)
        async with scheduler:
            await pass_time(10.0)
        return runs

    clock = VirtualClock()
    assert run_virtual(main(clock), clock=clock) == [3610.0, 3620.0, 31.0, 40.0]


def test_what_was_seen_of_a_schedule_that_was_removed_since_does_not_stand_for_another_one(
    tmp_path: Path,
) -> None:
    """Both began with version 1, so that a slow change of the old one overwrote the new one."""

    async def main(clock: VirtualClock, store: Store) -> None:
        scheduler = Scheduler(store, clock=clock, watchdog=None)

        @scheduler.task(name="tick")
        async def tick() -> None:
            return None

        async with scheduler.client():
            await scheduler.add_schedule("s", tick.bind(), every("10s"))
            seen = await store.schedule("s")
            assert seen is not None
            await scheduler.remove_schedule("s")
            await pass_time(1.0)
            await scheduler.add_schedule("s", tick.bind(), every("10s"))
            assert not await store.save_schedule(seen, expected_version=seen.version)
            assert await store.fire([Advance(record=seen)]) == ([None], [])
            stands = await store.schedule("s")
            assert stands is not None
            assert (stands.next_fire_at, seen.next_fire_at) == (
                clock.now() + 10_000_000,
                clock.now() + 9_000_000,
            )

    for make in (
        lambda clock: MemoryStore(clock=clock),
        lambda clock: SqliteStore(tmp_path / "jobs.db", clock=clock, inline=True),
    ):
        clock = VirtualClock()
        run_virtual(main(clock, make(clock)), clock=clock)
