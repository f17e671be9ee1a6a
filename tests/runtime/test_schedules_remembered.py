"""Schedules, what is remembered of their instants: enough that none is fired twice, and not for ever."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from tests.runtime.schedule_scene import DAY, HOUR, World, seconds, when
from tests.runtime.stage import StoreMaker, pass_time

from betimes import FireOutcome, ScheduleReasonCode, every


def test_p16_p29_no_instant_is_fired_twice_when_a_clock_is_set_back_by_more_than_is_remembered(
    store: StoreMaker,
) -> None:
    world = World(store, calm=True, tells_jumps=False)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("1s"))
            await pass_time(1_200)
            fired = len(world.runs)
            world.clock.jump(-1_100)
            await pass_time(1_200)
            assert fired < len(world.runs) <= fired + 101, "neither twice, nor stalled for longer"
            assert max(Counter(world.planned).values()) == 1
            assert await work.counts() == (len(world.runs), 0)

    world.play(main)


def test_p29_a_clock_that_was_years_ahead_for_long_stalls_nothing_when_it_is_set_right(
    store: StoreMaker,
) -> None:
    world = World(store, calm=True, tells_jumps=False)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("1s"))
            await pass_time(60)
            world.clock.jump(3 * 365 * DAY)
            await pass_time(1_100)
            world.clock.jump(-3 * 365 * DAY)
            await pass_time(60)
            fired = len(world.runs)
            await pass_time(100)
            assert len(world.runs) == fired + 100
            assert max(Counter(world.planned).values()) == 1

    world.play(main)


def test_p16_p29_fires_outlive_the_jobs_they_made_by_a_day(store: StoreMaker) -> None:
    world = World(store, calm=True, tells_jumps=False, poll=60, keep="1m")

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("1m"))
            await pass_time(2 * HOUR)
            fired = len(world.runs)
            assert len(await work.scheduler.jobs(limit=100)) < 10, "the jobs themselves are forgotten"
            world.clock.jump(-HOUR)
            await pass_time(2 * HOUR)
            assert fired + 50 < len(world.runs) <= fired + 61
            assert max(Counter(world.planned).values()) == 1

    world.play(main)


def test_p27_skips_are_forgotten_however_many_there_are(
    store: StoreMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("betimes.runtime.upkeep.PRUNE_AT_ONCE", 10)
    world = World(store, calm=True, keep="1d")

    async def main() -> None:
        async with world.working(takes=30 * DAY) as work:
            await work.add(every("1m"))
            await pass_time(HOUR)
            assert len(await work.history()) > 50
            await work.scheduler.pause_schedule("s")
            await pass_time(DAY + 2 * HOUR)
            assert await work.history() == []

    world.play(main)


def test_explain_tells_of_an_instant_rather_than_of_the_runs_asked_for_in_the_same_moment(
    store: StoreMaker,
) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("1m"), overlap="allow")
            await pass_time(60)
            await asyncio.gather(*(work.scheduler.trigger_now("s") for _ in range(3)))
            fires = [each for each in await work.scheduler.schedule_history("s") if seconds(each.at) == 60]
            (fired,) = [each for each in fires if each.outcome is FireOutcome.FIRED]
            assert len(fires) == 4
            (reason,) = (await work.scheduler.explain_schedule("s", at=when(60))).reasons
            assert (reason.code, reason.job_id) == (ScheduleReasonCode.FIRED, fired.job_id)

    world.play(main)
