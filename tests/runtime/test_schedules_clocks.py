"""The wall clock is set, or the machine sleeps: noticed soon; nothing twice, no storm, no stall."""

from __future__ import annotations

import logging

import pytest
from tests.runtime.schedule_scene import DAY, HOUR, MINUTE, World, seconds, when
from tests.runtime.stage import StoreMaker, pass_time

from betimes import Scheduler, at, cron, every
from betimes.stores.memory import MemoryStore
from betimes.testing import VirtualClock

YEARS = 10 * 365 * DAY


@pytest.fixture(params=[True, False], ids=["told", "untold"])
def world(request: pytest.FixtureRequest, store: StoreMaker) -> World:
    """A world whose clock tells that it was set, or whose schedulers must notice."""
    return World(store, tells_jumps=request.param, calm=True)


def test_p29_case_025_a_clock_set_forward_by_years_makes_few_runs(world: World) -> None:
    async def main() -> None:
        async with world.working() as work:
            await work.add(every(1), "latest")
            await work.add(every(1), "all", missed="all", max_catchup=10)
            await work.add(every("1h"), "skip", missed="skip")
            await pass_time(10.5)
            before = len(world.runs)
            assert before == 20
            world.clock.jump(YEARS)
            jumped_at = world.clock.monotonic()
            await pass_time(MINUTE)
            # Within a minute all of the present is fired for, each second once; of the past, few.
            since = world.runs[before:]
            assert min(run.began for run in since) > YEARS
            waited = world.clock.monotonic() - jumped_at
            assert len(since) <= 2 * (waited + 1) + 10
            assert len({(run.planned, run.job_id) for run in since}) == len(since)
            for name in ("latest", "all", "skip"):
                info = await work.scheduler.schedule(name)
                assert info.next_fire_at is not None
                assert 0 < seconds(info.next_fire_at) - world.time <= HOUR
                grid = HOUR if name == "skip" else 1
                assert info.fired + info.skipped == world.time // grid

    world.play(main)


def test_p29_a_clock_set_forward_is_noticed_within_a_minute(world: World) -> None:
    async def main() -> None:
        async with world.working() as work:
            await work.add(at(when(HOUR)))
            await pass_time(1)
            world.clock.jump(HOUR)
            await pass_time(59)
            assert world.planned == [HOUR]
            assert world.began[0] <= HOUR + 61

    world.play(main)


def test_p29_case_027_a_machine_that_slept_over_an_instant_fires_when_it_wakes(world: World) -> None:
    async def main() -> None:
        async with world.working() as work:
            await work.add(cron("*/10 * * * *"))
            await pass_time(595)
            world.clock.suspend(90)
            await pass_time(11)
            assert world.planned == [600]
            assert 685 <= world.began[0] <= 695
            world.clock.suspend(HOUR)
            await pass_time(11)
            assert world.planned[1:] == [4200]
            assert await work.counts() == (2, 5)

    world.play(main)


def test_p29_a_run_goes_on_while_the_machine_sleeps_and_is_no_less_in_the_way(store: StoreMaker) -> None:
    world = World(store, tells_jumps=False)

    async def main() -> None:
        async with world.working(takes=100) as work:
            await work.add(every("10m"))
            await pass_time(610)
            world.clock.suspend(HOUR)
            await pass_time(200)
            # The worker's lease was over while it slept, and nobody else took the job.
            (job,) = await work.scheduler.jobs()
            assert (job.status, job.attempt, job.crashes) == ("completed", 1, 0)
            assert await work.history() == [("fired", 600, 1), ("overlap", 3600, 5), ("overlap", 4200, 1)]
            fires = await work.scheduler.schedule_history("s")
            assert {fire.job_id for fire in fires} == {job.id}

    world.play(main)


def test_p29_a_clock_set_back_fires_nothing_twice_and_goes_on(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with world.working() as work:
            await work.add(cron("* * * * *"))
            await pass_time(10 * MINUTE + 30)
            assert len(world.runs) == 10
            world.clock.jump(-5 * MINUTE)
            await pass_time(10 * MINUTE + 15)
            assert world.planned == [MINUTE * n for n in range(1, 16)]
            assert world.began == world.planned
            assert await work.counts() == (15, 0)

    with caplog.at_level(logging.WARNING):
        world.play(main)
    assert "the wall clock was set back by 5m" in caplog.text


def test_p29_a_clock_set_far_forward_and_back_stalls_nothing(world: World) -> None:
    async def main() -> None:
        async with world.working() as work:
            await work.add(every("1m"), "minutely")
            await work.add(cron("0 * * * *"), "hourly")
            await work.add(every("1m"), "all", missed="all", max_catchup=2)
            await pass_time(90)
            world.clock.jump(YEARS)
            await pass_time(90)
            world.clock.jump(-YEARS)
            before = len(world.runs)
            await pass_time(2 * HOUR)
            since = world.runs[before:]
            assert since
            assert all(run.began < YEARS / 2 for run in since)
            hours = [
                run.planned for run in since if await schedule_of(work.scheduler, run.job_id) == "hourly"
            ]
            assert hours == [HOUR, 2 * HOUR]
            for name in ("minutely", "all"):
                found = [r.planned for r in since if await schedule_of(work.scheduler, r.job_id) == name]
                assert len(found) == len(set(found))
                assert 118 <= len(found) <= 121

    world.play(main)


async def schedule_of(scheduler: Scheduler, job_id: str) -> str | None:
    return (await (await scheduler.job(job_id)).info()).schedule


def test_p29_an_instant_that_is_held_back_does_not_stall_after_the_clock_was_set_back(world: World) -> None:
    async def main() -> None:
        async with world.working(takes=lambda before: 0 if before == 0 else 200) as work:
            await work.add(every("1m"), missed="all", max_catchup=5)
            await pass_time(61)
            world.clock.jump(YEARS)
            await pass_time(30)  # one of the past runs for 200 s, the next is held back
            assert len(world.runs) == 2
            assert await work.next_s() is None
            world.clock.jump(-YEARS)
            await pass_time(5 * MINUTE)
            assert len(world.runs) >= 3
            assert 90 < world.began[2] < 10 * MINUTE

    world.play(main)


def test_p29_a_schedule_that_was_over_by_a_wrong_clock_goes_on(world: World) -> None:
    async def main() -> None:
        async with world.working() as work:
            await work.add(every("1m"), end=when(DAY))
            await work.add(at(when(HOUR)), "once")
            world.clock.jump(2 * DAY)
            await pass_time(MINUTE)
            assert (await work.next_s(), await work.next_s("once")) == (None, None)
            assert set(world.planned) == {DAY, HOUR}
            world.clock.jump(-2 * DAY)
            await pass_time(2 * HOUR + 1)
            planned = world.planned[2:]
            assert planned[0] in (60, 120, 180)
            assert planned[-1] == world.time // 60 * 60
            assert len(planned) == len(set(planned))
            assert await work.counts("once") == (1, 0)  # it ran already, and is not run again

    world.play(main)


def test_p29_a_scheduler_that_starts_on_a_clock_set_back_goes_on(world: World) -> None:
    async def main() -> None:
        async with world.working() as work:
            await work.add(cron("*/5 * * * *"))
            await pass_time(HOUR + 1)
        world.clock.jump(-HOUR / 2)
        async with world.working() as work:
            await pass_time(HOUR)
            assert world.planned == [300 * n for n in range(1, 19)]
            assert await work.counts() == (18, 0)

    world.play(main)


def test_p29_a_schedule_that_a_wrong_clock_has_added_begins_anew_when_it_is_added_again(world: World) -> None:
    async def main() -> None:
        world.clock.jump(YEARS)
        async with world.working() as work:
            await work.add(every("1h"), "runs")
            await work.add(every("1h"), "paused")
            await work.scheduler.pause_schedule("paused")
        world.clock.jump(-YEARS)
        async with world.working() as work:
            await work.add(every("1h"), "runs")
            await work.add(every("1h"), "paused")
            assert (await work.next_s("runs"), await work.next_s("paused")) == (HOUR, HOUR)
            await pass_time(HOUR + 1)
            assert world.planned == [HOUR]

    world.play(main)


def test_p29_a_fixed_delay_goes_on_after_jumps_both_ways(world: World) -> None:
    async def main() -> None:
        async with world.working(takes=30) as work:
            await work.add(every("1m", after="finish"))
            for jump in (YEARS, -YEARS, DAY, -DAY, 45, -45):
                before = len(world.runs)
                world.clock.jump(jump)
                await pass_time(4 * MINUTE)
                assert 1 <= len(world.runs) - before <= 4
            assert world.most == 1

    world.play(main)


@pytest.mark.parametrize("jump_s", [-HOUR, -40, -20, 20, 40, HOUR])
def test_p14_nothing_starts_before_its_instant_whatever_the_clock_does(world: World, jump_s: float) -> None:
    async def main() -> None:
        async with world.working() as work:
            await work.add(every("1m"))
            await work.add(cron("*/2 * * * *"), "jittered", jitter="30s")
            for _ in range(5):
                await pass_time(133.7)
                world.clock.jump(jump_s)
            await pass_time(133.7)
            assert world.runs
            for run in world.runs:
                info = await (await work.scheduler.job(run.job_id)).info()
                assert run.planned is not None
                assert run.began >= run.planned
                assert run.began >= seconds(info.run_at)

    world.play(main)


def test_p16_each_instant_is_fired_once_over_jumps_and_two_schedulers(world: World) -> None:
    async def main() -> None:
        first, second = world.scheduler(), world.scheduler()
        for scheduler in (first, second):
            world.task(scheduler, schedule=cron("* * * * *"), overlap="allow")
        async with first, second:
            for jump_s in (-130, 70, -600, 3, 900, -31):
                await pass_time(200)
                world.clock.jump(jump_s)
            await pass_time(200)
            fires = [f for f in await first.schedule_history("work", limit=1000) if f.outcome == "fired"]
            assert len({fire.at for fire in fires}) == len(fires) == len(world.runs)
            assert len(set(world.planned)) == len(world.planned)

    world.play(main)


def test_a_year_of_schedules_passes_quickly_with_the_clock_set_every_month() -> None:
    world = World(lambda clock: MemoryStore(clock=clock))

    async def main() -> None:
        scheduler = world.scheduler()
        world.task(scheduler, schedule=cron("0 9 * * *", tz="Europe/Berlin"))
        async with scheduler:
            for month in range(12):
                await pass_time(30 * DAY)
                world.clock.jump(-120 if month % 2 else 120)
        assert len(world.runs) == len(set(world.planned)) == 360

    world.play(main)


def test_a_suspended_machine_moves_the_wall_and_the_boot_clock_alone() -> None:
    clock = VirtualClock()
    before = clock.now(), clock.boottime(), clock.monotonic()
    heard: list[int] = []
    stop = clock.on_jump(lambda: heard.append(1))
    clock.suspend("1h")
    moved = 3_600_000_000
    assert (clock.now(), clock.boottime(), clock.monotonic()) == (before[0] + moved, before[1] + moved, 0.0)
    assert (heard, VirtualClock(tells_jumps=False).on_jump(lambda: None)) == ([1], None)
    assert stop is not None
    stop()
    clock.suspend(1)
    assert heard == [1]
