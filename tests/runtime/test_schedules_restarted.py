"""Schedules over restarts: the grid stays where it was, and so do zones, months and what was declared."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.runtime.schedule_scene import DAY, HOUR, START, World, seconds
from tests.runtime.stage import StoreMaker, pass_time

from betimes import calendar, cron, every


def test_p18_case_021_a_restart_never_shifts_the_grid(store: StoreMaker) -> None:
    world = World(store, calm=True)

    async def live(until_s: float) -> None:
        scheduler = world.scheduler()
        world.task(scheduler, schedule=every("6h"))
        async with scheduler:
            await pass_time(until_s - world.time)

    async def main() -> None:
        for hour in (4, 8, 12, 16, 20):
            await live(hour * HOUR)
            world.clock.advance(60)

    world.play(main)
    assert world.planned == [6 * HOUR, 12 * HOUR, 18 * HOUR]
    assert world.began == [6 * HOUR, 12 * HOUR + 60, 18 * HOUR]


def test_case_021_an_instant_in_the_minute_of_a_restart_is_made_up_for(store: StoreMaker) -> None:
    world = World(store, calm=True)

    async def main() -> None:
        for hours, down_s in ((5.999, 60.0), (1.0, 0.0)):
            scheduler = world.scheduler()
            world.task(scheduler, schedule=every("6h"))
            async with scheduler:
                await pass_time(hours * HOUR)
            world.clock.advance(down_s)

    world.play(main)
    assert world.planned == [6 * HOUR]
    assert world.began == [pytest.approx(5.999 * HOUR + 60)]


def test_case_031_a_daily_schedule_keeps_its_zone_over_restarts(store: StoreMaker) -> None:
    world = World(store, calm=True, start=datetime(2026, 6, 1, 9, 30, tzinfo=UTC))

    async def main() -> None:
        for _ in range(3):
            scheduler = world.scheduler()
            world.task(scheduler, schedule=cron("1 12 * * *", tz="Europe/Berlin"))
            async with scheduler:
                await pass_time(DAY)

    world.play(main)
    first = seconds(datetime(2026, 6, 1, 10, 1, tzinfo=UTC))
    assert world.planned == [first, first + DAY, first + 2 * DAY]


def test_p18_calendar_months_count_from_the_first_day_over_restarts(store: StoreMaker) -> None:
    world = World(store, calm=True, start=datetime(2030, 1, 31, 9, tzinfo=UTC))

    async def main() -> None:
        for _ in range(4):
            scheduler = world.scheduler()
            world.task(scheduler, schedule=calendar(months=1, at="10:00"))
            async with scheduler:
                await pass_time(28 * DAY)

    world.play(main)
    days = [START + timedelta(seconds=planned or 0) for planned in world.planned]
    assert [(day.month, day.day) for day in days] == [(1, 31), (2, 28), (3, 31), (4, 30)]


def test_a_declared_schedule_is_kept_when_a_task_is_registered_on_a_running_scheduler(
    store: StoreMaker,
) -> None:
    world = World(store)

    async def main() -> None:
        scheduler = world.scheduler()
        async with scheduler:
            await pass_time(5)
            world.task(scheduler, name="a", schedule=every("1m"))
            world.task(scheduler, name="b", schedule=every("1m"))
            await pass_time(61)
            assert [info.id for info in await scheduler.schedules()] == ["a", "b"]
            assert world.planned == [65, 65]

    world.play(main)


def test_a_schedule_goes_on_after_the_same_scheduler_was_stopped_and_started(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        scheduler = world.scheduler()
        world.task(scheduler, schedule=every("1m"))
        for _ in range(2):
            async with scheduler:
                await pass_time(90)
            world.clock.advance(30)

    world.play(main)
    assert world.planned == [60, 120, 180]


def test_a_task_that_is_not_registered_any_more_leaves_its_runs_waiting(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("1m"))
        async with world.scheduler() as scheduler:
            await pass_time(61)
            (job,) = await scheduler.jobs()
            assert (job.task, job.status) == ("work", "ready")
        async with world.working():
            await pass_time(1)
            assert world.planned == [60]

    world.play(main)
