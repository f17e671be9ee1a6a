"""Runs that would overlap, with real jobs: every policy, on each store, by one scheduler and by several."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.runtime.schedule_scene import HOUR, MINUTE, World
from tests.runtime.stage import CANCELLED, COMPLETED, StoreMaker, pass_time

from betimes import every


def test_p18_case_039_skips_are_counted_and_name_the_job_in_the_way(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working(takes=2.5) as work:
            await work.add(every(1))
            await pass_time(10.9)
            assert world.planned == world.began == [1, 4, 7, 10]
            assert await work.counts() == (4, 6)
            assert (await work.scheduler.metrics()).skipped_fires == 6
            history = (await work.scheduler.schedule_history("s"))[::-1]
            in_the_way = world.runs[0].job_id
            for fire in history:
                if fire.outcome == "fired":
                    in_the_way = str(fire.job_id)
                else:
                    assert (fire.outcome, fire.job_id, fire.count) == ("overlap", in_the_way, 1)
            assert [fire.outcome for fire in history] == [*["fired", "overlap", "overlap"] * 3, "fired"]

    world.play(main)


def first_lasts_an_hour(before: int) -> float:
    return 1.0 if before else 3600.0


def test_p18_case_041_skip_starts_again_when_the_long_run_has_ended(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working(takes=first_lasts_an_hour) as work:
            await work.add(every("1m"))
            await pass_time(HOUR + MINUTE - 1)
            assert (world.began, await work.counts()) == ([60], (1, 59))
            await pass_time(2 * MINUTE + 2)
            # The run that began at minute 1 ends at minute 61, as the next one is due: an end comes first.
            assert world.began[1] == 61 * MINUTE
            assert world.most == 1

    world.play(main)


def test_p18_case_041_one_is_queued_and_runs_at_the_end_of_the_long_run(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working(takes=first_lasts_an_hour) as work:
            await work.add(every("1m"), overlap="queue_one")
            await pass_time(HOUR + 30)
            assert await work.counts() == (2, 58)
            waiting = world.runs[0].job_id
            history = await work.scheduler.schedule_history("s")
            skipped = {fire.job_id for fire in history if fire.outcome == "overlap"}
            assert len(skipped) == 1
            assert waiting not in skipped  # the one that waits is in the way of more
            await pass_time(31)
            assert world.planned[:2] == [60, 120]
            assert world.began[:2] == [60, 61 * MINUTE]
            assert world.most == 1

    world.play(main)


def test_p18_case_041_replace_cancels_the_long_run(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working(takes=first_lasts_an_hour) as work:
            await work.add(every("1m"), overlap="replace")
            await pass_time(3 * MINUTE + 30)
            assert world.began == [60, 120, 180]
            handle = await work.scheduler.job(world.runs[0].job_id)
            info = await handle.info()
            assert (info.status, info.reason) == (CANCELLED, "replaced")
            assert (await work.counts(), world.most) == ((3, 0), 1)

    world.play(main)


def test_p18_case_041_allow_starts_each_run_bounded_by_the_slots(store: StoreMaker) -> None:
    world = World(store, concurrency=7)

    async def main() -> None:
        async with world.working(takes=first_lasts_an_hour) as work:
            await work.add(every("1m"), overlap="allow")
            await pass_time(HOUR + 30)
            assert world.began == [MINUTE * n for n in range(1, 61)]
            assert (await work.counts(), world.most) == ((60, 0), 2)

    world.play(main)


def test_allowed_runs_wait_for_slots_and_none_is_lost(store: StoreMaker) -> None:
    world = World(store, concurrency=2)

    async def main() -> None:
        async with world.working(takes=150) as work:
            await work.add(every("1m"), overlap="allow")
            await pass_time(10 * MINUTE + 30)
            await work.scheduler.pause_schedule("s")
            await work.scheduler.drain()
            assert (world.planned, world.most) == ([MINUTE * n for n in range(1, 11)], 2)

    world.play(main)


def test_replace_also_replaces_what_only_waits(store: StoreMaker) -> None:
    world = World(store, concurrency=1)

    async def main() -> None:
        async with world.working() as work:
            blocker = world.task(work.scheduler, name="blocker", takes=150)
            await work.add(every("1m"), overlap="replace")
            await blocker.submit()
            await pass_time(170)
            assert world.planned == [None, 120]
            (replaced,) = await work.scheduler.jobs(status="cancelled")
            assert (replaced.reason, replaced.attempt) == ("replaced", 0)

    world.play(main)


def test_code_that_goes_on_is_waited_for_before_its_replacement_runs(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        scheduler = world.scheduler()

        @scheduler.task
        async def stubborn() -> None:
            world.running += 1
            world.most = max(world.most, world.running)
            until = world.time + 90
            while world.time < until:
                try:
                    await pass_time(until - world.time)
                except BaseException:  # noqa: BLE001 - it does not let itself be stopped
                    continue
            world.running -= 1

        async with scheduler:
            await scheduler.add_schedule("s", stubborn.bind(), every("1m"), overlap="replace")
            await pass_time(400)
            await scheduler.pause_schedule("s")
            await scheduler.drain()
            assert world.most == 1

    world.play(main)


def test_a_run_that_waits_to_be_tried_again_is_in_the_way(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        scheduler = world.scheduler()

        @scheduler.task(retry=3)
        async def fails() -> None:
            raise ValueError

        async with scheduler:
            await scheduler.add_schedule("s", fails.bind(), every(1), missed="skip")
            await pass_time(1.001)
            await pass_time(60)
            fired = [f for f in await scheduler.schedule_history("s", limit=1000) if f.outcome == "fired"]
            for later, sooner in pairwise(fired):
                info = await (await scheduler.job(str(sooner.job_id))).info()
                assert info.finished_at is not None
                assert info.finished_at <= later.at
                assert info.attempt == 3

    world.play(main)


# -------------------------------------------------------------------------- missed="all", in order


def test_case_037_a_busy_worker_misses_no_instant_of_a_schedule_that_catches_up(store: StoreMaker) -> None:
    world = World(store, concurrency=1)

    async def main() -> None:
        async with world.working(takes=1) as work:
            busy = world.task(work.scheduler, name="busy", takes=1800)
            await work.add(every("1m"), missed="all")
            await busy.submit()
            await pass_time(1900)
            assert world.planned[0] is None
            assert world.planned[1:31] == [MINUTE * n for n in range(1, 31)]
            assert (await work.counts(), world.most) == ((31, 0), 1)

    world.play(main)


def test_p18_what_is_held_back_survives_a_restart(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working(takes=10) as work:
            await work.add(every("1m"), missed="all")
        world.clock.advance(5 * MINUTE + 1)
        async with world.working(takes=10) as work:
            await pass_time(15)
            await work.scheduler.stop(cancel_running=False)
        async with world.working(takes=10) as work:
            await pass_time(35)
            assert world.planned == [60, 120, 180, 240, 300]
            assert (await work.counts(), world.most) == ((5, 0), 1)

    world.play(main)


def test_case_037_five_hundred_schedules_of_one_instant_all_fire(store: StoreMaker) -> None:
    world = World(store, concurrency=500)

    async def main() -> None:
        async with world.working() as work:
            for number in range(1100):
                await work.add(every("1h"), f"s{number}")
            await pass_time(HOUR + 5)
            assert len(world.runs) == 1100
            assert set(world.began) == {HOUR}

    world.play(main)


# ------------------------------------------------------------------------------- several schedulers


@pytest.mark.parametrize("seed", range(3))
def test_p16_case_100_of_several_schedulers_one_fires_each_instant(store: StoreMaker, seed: int) -> None:
    world = World(store, lease=10)

    async def main() -> None:
        schedulers = [world.scheduler() for _ in range(4)]
        for scheduler in schedulers:
            world.task(scheduler, schedule=every(5))
        for scheduler in schedulers:
            await scheduler.start()
        await pass_time(61)
        (info,) = await schedulers[0].schedules()
        assert (info.fired, info.skipped) == (12, 0)
        assert sorted(world.planned, key=float) == [5 * n for n in range(1, 13)]  # type: ignore[arg-type]
        fires = sum([(await each.metrics()).fires for each in schedulers])
        assert fires == 12
        for scheduler in schedulers:
            await scheduler.stop()

    world.play(main, seed=seed)


@pytest.mark.parametrize("seed", range(3))
def test_p18_case_043_the_guard_holds_over_schedulers(store: StoreMaker, seed: int) -> None:
    world = World(store, lease=10)

    async def main() -> None:
        schedulers = [world.scheduler() for _ in range(2)]
        for scheduler in schedulers:
            world.task(scheduler, schedule=every(5), takes=15)
        for scheduler in schedulers:
            await scheduler.start()
        await pass_time(61)
        for scheduler in schedulers:
            await scheduler.stop()
        async with schedulers[0].client():
            jobs = [await (await schedulers[0].job(run.job_id)).info() for run in world.runs]
            info = await schedulers[0].schedule("work")
        assert {job.status for job in jobs} == {COMPLETED}
        spans = sorted((job.started_at, job.finished_at) for job in jobs)
        assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))  # type: ignore[operator]
        assert (info.fired + info.skipped, info.fired, world.most) == (12, len(jobs), 1)

    world.play(main, seed=seed)


def test_p18_the_guard_holds_over_a_restart(store: StoreMaker) -> None:
    world = World(store, lease=10)

    async def main() -> None:
        leaving, staying = world.scheduler(grace=0), world.scheduler()
        world.task(leaving, schedule=every(5), takes=100)
        world.task(staying, takes=12)
        await leaving.start()
        await pass_time(6)
        await staying.start()
        await leaving.stop(timeout=0)  # its run goes back, and begins again at the other
        await pass_time(30)
        assert world.most == 1
        assert world.planned == [5, 5, 20, 35]
        await staying.stop()

    world.play(main)


def test_p16_racing_declarations_make_one_schedule(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        first, second = world.scheduler(), world.scheduler()
        for scheduler in (first, second):
            world.task(scheduler, schedule=every("1m"))
        async with first, second:
            await pass_time(90)
            assert len(await first.schedules()) == 1
            assert world.planned == [60]

    world.play(main)
