"""What was missed while nothing could fire; and schedules that wait for the ends of their runs."""

from __future__ import annotations

import tracemalloc
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.runtime.schedule_scene import DAY, HOUR, MINUTE, World, seconds
from tests.runtime.stage import CANCELLED, FAILED, StoreMaker, pass_time

from betimes import FireOutcome, RetryPolicy, Snooze, cron, every


async def down(world: World, for_s: float, *, missed: str, **options: Any) -> None:
    """Add a schedule of every 10 minutes, and be away for a while."""
    async with world.working() as work:
        await work.add(cron("*/10 * * * *"), missed=missed, **options)
    world.clock.advance(for_s)


# 24 hours and 1 minute: more than half a minute after the last instant, so that one is missed too.
AWAY = DAY + 60


def test_p17_case_029_of_a_day_of_missed_instants_none_runs_if_they_are_skipped(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        await down(world, AWAY, missed="skip")
        async with world.working() as work:
            await pass_time(30)
            assert world.runs == []
            assert await work.history() == [("missed", DAY, 144)]
            assert (await work.counts(), await work.next_s()) == ((0, 144), DAY + 600)

    world.play(main)


def test_p17_case_029_of_a_day_of_missed_instants_the_latest_runs_for_all(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        await down(world, AWAY, missed="latest")
        async with world.working() as work:
            await pass_time(30)
            assert (world.planned, world.began) == ([DAY], [AWAY])
            assert await work.history() == [("merged", DAY - 600, 143), ("fired", DAY, 1)]
            (merged,) = [f for f in await work.scheduler.schedule_history("s") if f.outcome == "merged"]
            assert (seconds(merged.first_at), seconds(merged.decided_at)) == (600, AWAY)
            assert merged.job_id == world.runs[0].job_id
            assert await work.counts() == (1, 143)

    world.play(main)


@pytest.mark.parametrize("overlap", ["skip", "queue_one", "replace", "allow"])
def test_p17_case_029_of_a_day_of_missed_instants_the_newest_five_run_in_order(
    store: StoreMaker, overlap: str
) -> None:
    world = World(store)

    async def main() -> None:
        await down(world, AWAY, missed="all", max_catchup=5, overlap=overlap)
        async with world.working(takes=7) as work:
            await pass_time(60)
            assert world.planned == [DAY - 600 * n for n in (4, 3, 2, 1, 0)]
            assert world.most == (5 if overlap == "allow" else 1)
            assert await work.history() == [
                ("catch_up", DAY - 5 * 600, 139),
                *(("fired", DAY - 600 * n, 1) for n in (4, 3, 2, 1, 0)),
            ]
            assert (await work.counts(), await work.next_s()) == ((5, 139), DAY + 600)

    world.play(main)


def test_case_029_a_yearly_run_that_was_missed_is_made_up_for(store: StoreMaker) -> None:
    eve = datetime(2029, 12, 31, 12, tzinfo=UTC)
    world = World(store, start=eve)

    async def main() -> None:
        scheduler = world.scheduler()
        world.task(scheduler, schedule=cron("0 0 1 1 *"))
        async with scheduler:
            await pass_time(1)
        world.clock.advance(12 * HOUR + 15 * MINUTE)
        scheduler = world.scheduler()
        world.task(scheduler, schedule=cron("0 0 1 1 *"))
        async with scheduler:
            await pass_time(HOUR)
            info = await scheduler.schedule("work")
        assert (world.planned, world.began) == ([0], [15 * MINUTE + 1])
        assert info.next_fire_at == datetime(2031, 1, 1, tzinfo=UTC)

    world.play(main)


@pytest.mark.parametrize("missed", ["latest", "skip", "all"])
def test_an_instant_a_few_seconds_back_is_on_time_whatever_the_policy(store: StoreMaker, missed: str) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("10m"), missed=missed)
            await pass_time(500)
        world.clock.advance(120)
        async with world.working() as work:
            await pass_time(1)
            assert (world.planned, world.began) == ([600], [620])
            assert await work.counts() == (1, 0)

    world.play(main)


def test_instants_of_two_downtimes_are_each_accounted_for_once(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        await down(world, HOUR + 60, missed="latest")
        for _ in range(2):
            async with world.working():
                await pass_time(MINUTE)
            world.clock.advance(HOUR)
        async with world.working() as work:
            await pass_time(MINUTE)
            fired, skipped = await work.counts()
            assert fired == len(world.runs) == len(set(world.planned))
            assert fired + skipped == world.time // 600

    world.play(main)


def test_p17_case_025_ten_missed_years_of_seconds_cost_little_and_make_few_runs(store: StoreMaker) -> None:
    years = 10 * 365 * DAY
    world = World(store, concurrency=100, keep=100 * 365 * DAY)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every(1), "latest")
            await work.add(every(1), "all", missed="all", max_catchup=20, overlap="allow")
            await work.add(every(1), "skip", missed="skip")
        world.clock.advance(years)
        tracemalloc.start()
        async with world.working() as work:
            await pass_time(0.5)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 5_000_000
            for name, fired in (("latest", 1), ("all", 20), ("skip", 1)):
                assert await work.counts(name) == (fired, years - fired)
            assert len(world.runs) == 22

    world.play(main)


def test_p17_a_tick_fires_a_bounded_number_and_the_rest_follow_at_once(store: StoreMaker) -> None:
    world = World(store, concurrency=2000)

    async def main() -> None:
        async with world.working() as work:
            for number in range(1201):
                await work.add(every("10m"), f"s{number:04}")
        world.clock.advance(700)
        async with world.working() as work:
            await pass_time(0.001)
            assert len(world.runs) == 1201
            assert set(world.planned) == {600}

    world.play(main)


# ------------------------------------------------------------------------------------- fixed delay


def test_after_a_fixed_delay_the_next_run_is_due_when_the_last_has_ended(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working(takes=30) as work:
            await work.add(every("1m", after="finish"))
            await pass_time(300)
            assert world.began == [60, 150, 240]
            assert (await work.counts(), await work.next_s()) == ((3, 0), 330)

    world.play(main)


@pytest.mark.parametrize("way", ["fails", "retries", "snoozes", "times out"])
def test_case_102_a_fixed_delay_goes_on_however_its_run_ends(store: StoreMaker, way: str) -> None:
    world = World(store)

    async def main() -> None:
        scheduler = world.scheduler()
        began: list[float] = []

        @scheduler.task(
            name="work",
            timeout=20 if way == "times out" else None,
            retry=RetryPolicy(2, base_delay=10, jitter=False) if way == "retries" else None,
        )
        async def work() -> None:
            began.append(world.time)
            if way == "snoozes" and len(began) % 2:
                raise Snooze(10)
            await pass_time(30 if way == "times out" else 10)
            raise ValueError

        async with scheduler:
            await scheduler.add_schedule("s", work.bind(), every("1m", after="finish"))
            await pass_time(200)
        first, second = {
            "fails": (60, 130),
            "times out": (60, 140),
            "retries": (60, 150),  # 10 s, then 10 s later again for 10 s
            "snoozes": (60, 140),  # snoozed for 10 s, then 10 s
        }[way]
        later = [each for each in began if each >= second]
        assert (began[0], later[0]) == (first, second)

    world.play(main)


def test_case_102_a_fixed_delay_goes_on_after_a_cancel(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working(takes=1000) as work:
            await work.add(every("1m", after="finish"))
            await pass_time(100)
            await work.scheduler.cancel(world.runs[0].job_id)
            await pass_time(61)
            assert world.began == [60, 160]
            await work.scheduler.pause_queue("default")
            await work.scheduler.cancel(world.runs[1].job_id)
            await pass_time(61)
            (waiting,) = await work.scheduler.jobs(status="ready")
            await work.scheduler.cancel(waiting.id)  # it ends before it has begun
            assert (await (await work.scheduler.job(waiting.id)).info()).status == CANCELLED
            assert await work.next_s() == world.time + 60

    world.play(main)


def test_case_102_a_fixed_delay_goes_on_after_the_crash_of_its_worker(store: StoreMaker) -> None:
    world = World(store, lease=10)

    async def main() -> None:
        crashing = world.scheduler()
        world.task(crashing, takes=1000, delivery="at_most_once", schedule=every("1m", after="finish"))
        await crashing.start()
        await pass_time(70)
        other = world.scheduler()
        world.task(other, takes=1)
        await other.start()
        worker = crashing._engine.worker
        assert worker is not None
        worker._pump.cancel()  # as if its process were gone
        await pass_time(60)
        (lost,) = await other.jobs(status="failed")
        assert (lost.status, lost.id) == (FAILED, world.runs[0].job_id)
        assert lost.finished_at is not None
        await pass_time(61)
        assert world.began[1] == pytest.approx(seconds(lost.finished_at) + 60)
        await other.stop()
        await crashing.stop(timeout=0)

    world.play(main)


def test_case_102_a_fixed_delay_survives_restarts_at_each_step(store: StoreMaker) -> None:
    world = World(store, grace=0)

    async def main() -> None:
        async with world.working(takes=10) as work:
            await work.add(every("1m", after="finish"))
        for _ in range(40):
            async with world.working(takes=10) as work:
                await pass_time(7)
                await work.scheduler.stop(timeout=0)
        async with world.working(takes=10) as work:
            before = (await work.scheduler.schedule("s")).fired
            await pass_time(150)
            assert (await work.scheduler.schedule("s")).fired >= before + 2
        assert world.most == 1

    world.play(main)


@pytest.mark.parametrize("missed", ["latest", "skip", "all"])
def test_a_fixed_delay_that_was_missed_runs_once_late_or_begins_anew(store: StoreMaker, missed: str) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("1m", after="finish"), missed=missed)
        world.clock.advance(HOUR)
        async with world.working() as work:
            await pass_time(1)
            assert world.began == ([] if missed == "skip" else [HOUR])
            assert await work.next_s() == HOUR + 60
            outcome = FireOutcome.MISSED if missed == "skip" else FireOutcome.FIRED
            assert await work.history() == [(outcome, 60, 1)]

    world.play(main)


def test_a_fixed_delay_with_an_end_is_over_after_the_last_run_before_it(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working(takes=30) as work:
            await work.scheduler.add_schedule(
                "s", work.task.bind(), every("1m", after="finish"),
                end=datetime(2030, 1, 1, 0, 3, tzinfo=UTC),
            )  # fmt: skip
            await pass_time(HOUR)
            assert world.began == [60, 150]
            assert (await work.next_s(), await work.counts()) == (None, (2, 0))

    world.play(main)


def test_a_run_by_hand_in_the_way_of_a_fixed_delay_sets_its_next_instant(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working(takes=30) as work:
            await work.add(every("1m", after="finish"))
            await pass_time(50)
            await work.scheduler.trigger_now("s")
            await pass_time(20)
            assert (world.began, await work.next_s()) == ([50], None)
            await pass_time(71)
            assert world.began == [50, 140]
            assert await work.counts() == (1, 1)

    world.play(main)
