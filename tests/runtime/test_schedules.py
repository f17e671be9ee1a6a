"""Schedules as users keep them: declared or added, the same again or changed, over restarts."""

from __future__ import annotations

import pytest
from tests.runtime.schedule_scene import HOUR, MINUTE, START, World, seconds, when
from tests.runtime.stage import StoreMaker, pass_time

from betimes import ConfigurationError, Context, Priority, UnknownSchedule, at, cron, every


def test_a_task_with_a_schedule_runs_by_itself(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        scheduler = world.scheduler()
        task = world.task(scheduler, name="tick", schedule=cron("*/10 * * * *"), queue="q", priority=3)
        async with scheduler:
            info = await scheduler.schedule("tick")
            assert (info.id, info.task, info.queue, info.priority) == ("tick", "tick", "q", Priority.CRITICAL)
            assert (info.trigger, info.tz) == ("Every 10th minute of every hour, UTC.", "UTC")
            assert (info.next_fire_at, info.created_at) == (when(600), START)
            await pass_time(HOUR + 1)
            assert world.planned == [600, 1200, 1800, 2400, 3000, 3600]
            assert world.began == world.planned
            (newest, *_) = await scheduler.jobs(task="tick")
            assert (newest.schedule, newest.scheduled_for) == ("tick", when(3600))
            assert newest.run_at == newest.submitted_at == when(3600)
            await task.submit()
            await scheduler.drain()
            assert world.planned[-1] is None

    world.play(main)


def test_a_schedule_is_added_with_arguments_and_options(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        scheduler = world.scheduler()
        greeted: list[tuple[str, str]] = []

        @scheduler.task
        async def greet(name: str, *, greeting: str = "hello") -> None:
            greeted.append((greeting, name))

        async with scheduler:
            bound = greet.using(priority=Priority.LOW, queue="mail", tags=["t"]).bind("ada", greeting="hi")
            info = await scheduler.add_schedule(
                "ada", bound, every("1m"), overlap="queue_one", missed="all", max_catchup=5, jitter="2s",
                start=when(120), end=when(300),
            )  # fmt: skip
            assert (info.overlap, info.missed, info.max_catchup, info.jitter_s) == (
                "queue_one",
                "all",
                5,
                2.0,
            )
            assert (info.start, info.end, info.queue) == (when(120), when(300), "mail")
            assert info == await scheduler.schedule("ada")
            await pass_time(HOUR)
            assert greeted == [("hi", "ada")] * 4
            (job, *_) = await scheduler.jobs(queue="mail")
            assert (job.priority, job.tags, job.schedule) == (Priority.LOW, ("t",), "ada")

    world.play(main)


def test_start_and_end_are_bounds_that_may_be_instants_themselves(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(cron("* * * * *"), start=when(180), end=when(300))
            await pass_time(HOUR)
            assert world.planned == [180, 240, 300]
            assert await work.next_s() is None

    world.play(main)


def test_a_start_that_has_passed_fixes_the_grid_and_fires_nothing_of_the_past(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await pass_time(1000)
            await work.add(every("10m"), start=when(60))
            await pass_time(HOUR)
            assert world.planned[:2] == [1260, 1860]

    world.play(main)


def test_a_fixed_delay_with_a_start_begins_with_it(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working(takes=5) as work:
            await work.add(every("1m", after="finish"), start=when(100))
            await pass_time(300)
            assert world.planned == [100, 165, 230, 295]

    world.play(main)


def test_a_schedule_at_given_instants_is_over_after_the_last(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(at(when(60), when(90)))
            await pass_time(100)
            assert world.planned == [60, 90]
            assert (await work.next_s(), await work.counts()) == (None, (2, 0))

    world.play(main)


def test_jitter_delays_the_start_and_moves_neither_the_grid_nor_what_it_was_scheduled_for(
    store: StoreMaker,
) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("1m"), jitter="20s")
            await pass_time(20 * MINUTE + 30)
            assert world.planned == [MINUTE * n for n in range(1, 21)]
            late = [run.began - (run.planned or 0) for run in world.runs]
            assert all(0 <= each <= 20 for each in late)
            assert len(set(late)) > 10

    world.play(main)


def test_a_run_may_wait_as_long_as_expires_says_from_when_the_jitter_has_moved_it_to(
    store: StoreMaker,
) -> None:
    world = World(store)

    async def main() -> None:
        scheduler = world.scheduler()
        task = world.task(scheduler)
        async with scheduler:
            bound = task.using(expires="1s").bind()
            await scheduler.add_schedule("s", bound, every("10m"), jitter="5m")
            await pass_time(HOUR)
            assert len(world.runs) == 5

    world.play(main)


def test_a_run_expires_that_could_not_start_in_time(store: StoreMaker) -> None:
    world = World(store, concurrency=1)

    async def main() -> None:
        scheduler = world.scheduler()
        task = world.task(scheduler, expires="30s", name="brief")
        slow = world.task(scheduler, takes=300, name="slow")
        async with scheduler:
            await scheduler.add_schedule("s", task.bind(), every("1m"), overlap="allow")
            await slow.submit()
            await pass_time(330)
            assert world.planned == [None, 300]
            assert [job.reason for job in await scheduler.jobs(status="cancelled")] == ["expired"] * 4

    world.play(main)


# ------------------------------------------------------------------------- the same again, changed


def test_p18_case_158_the_same_definition_again_changes_nothing(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("10m"), overlap="allow")
            first = await work.scheduler.schedule("s")
            await pass_time(299)
            await work.add(every("10m"), overlap="allow")
            assert await work.scheduler.schedule("s") == first
            await work.add(every("10m"), overlap="allow", on_conflict="keep")
            await pass_time(HOUR)
            assert world.planned == [600, 1200, 1800, 2400, 3000, 3600]

    world.play(main)


def test_p18_a_changed_definition_goes_on_along_the_grid(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("10m"))
            await pass_time(700)
            await work.add(every("15m"), missed="skip")
            info = await work.scheduler.schedule("s")
            assert (info.next_fire_at, info.fired, info.created_at) == (when(900), 1, START)
            assert info.missed == "skip"
            await work.add(every("10m"), jitter=0)
            assert await work.next_s() == 1200

    world.play(main)


def test_a_change_of_what_it_runs_keeps_the_next_fire(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("10m"))
            await pass_time(100)
            other = world.task(work.scheduler, name="other")
            await work.scheduler.add_schedule("s", other.using(priority=2).bind(), every("10m"))
            info = await work.scheduler.schedule("s")
            assert (info.task, info.priority, info.next_fire_at) == ("other", 2, when(600))

    world.play(main)


def test_a_new_start_begins_a_new_grid(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("10m"))
            await work.add(every("10m"), start=when(60))
            assert await work.next_s() == 60
            await work.add(every("10m"))  # without one, it stays where it is
            assert await work.next_s() == 60
            await pass_time(700)
            assert world.planned == [60, 660]

    world.play(main)


def test_a_schedule_that_was_over_goes_on_when_its_end_is_moved(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("1m"), end=when(90))
            await pass_time(300)
            assert await work.next_s() is None
            await work.add(every("1m"))
            assert await work.next_s() == 360
            await pass_time(61)
            assert world.planned == [60, 360]

    world.play(main)


def test_case_158_on_conflict_keeps_or_refuses(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("10m"))
            await work.add(every("5m"), on_conflict="keep")
            assert await work.next_s() == 600
            with pytest.raises(ConfigurationError, match="there is a schedule 's' already"):
                await work.add(every("10m"), on_conflict="error")
            await work.add(every("5m"), "other", on_conflict="error")
            assert [info.id for info in await work.scheduler.schedules()] == ["other", "s"]

    world.play(main)


def test_case_035_a_change_just_before_an_instant_loses_no_fire(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working(concurrency=20) as work:
            for number in range(9):
                await work.add(cron("* * * * *"), f"s{number}")
            for number in range(10):
                await pass_time(59.5)
                await work.add(every(f"{number + 1}h"), "edited")
                await work.add(cron("* * * * *"), "s0", jitter=number % 2)
                await pass_time(0.5)
            await pass_time(2)
            assert len(world.runs) == 90
            assert [(await work.counts(f"s{number}"))[0] for number in range(9)] == [10] * 9

    world.play(main)


# --------------------------------------------------------------------------------- small matters


def test_what_a_removed_schedule_made_stays(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("1m"))
            await pass_time(90)
            await work.scheduler.remove_schedule("s")
            await pass_time(HOUR)
            assert world.planned == [60]
            assert len(await work.scheduler.jobs()) == 1
            with pytest.raises(UnknownSchedule, match="no schedule 's'"):
                await work.scheduler.schedule("s")
            assert await work.scheduler.schedules() == []

    world.play(main)


def test_a_removed_schedule_that_is_added_again_is_a_new_one(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("1m"))
            await pass_time(90)
            await work.scheduler.remove_schedule("s")
            await work.add(every("1m"))
            assert (await work.next_s(), await work.counts(), await work.history()) == (150, (0, 0), [])

    world.play(main)


def test_schedules_are_listed_in_pages(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            for name in ("b", "c", "a"):
                await work.add(every("1h"), name)
            first = await work.scheduler.schedules(limit=2)
            assert [info.id for info in first] == ["a", "b"]
            assert [info.id for info in await work.scheduler.schedules(after="b")] == ["c"]

    world.play(main)


def test_a_history_is_listed_in_pages_newest_first(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("1m"))
            await pass_time(5 * MINUTE + 1)
            page = await work.scheduler.schedule_history("s", limit=2)
            assert [seconds(fire.at) for fire in page] == [300, 240]
            page = await work.scheduler.schedule_history("s", before=page[-1].at)
            assert [seconds(fire.at) for fire in page] == [180, 120, 60]
            assert {fire.outcome for fire in page} == {"fired"}
            assert [fire.job_id for fire in page] == [run.job_id for run in world.runs[2::-1]]

    world.play(main)


def test_a_run_sees_what_it_was_scheduled_for_in_every_attempt(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        scheduler = world.scheduler()
        seen: list[tuple[int, float]] = []

        @scheduler.task(retry=3, schedule=every("1m"))
        async def fails_twice(ctx: Context) -> None:
            seen.append((ctx.attempt, seconds(ctx.scheduled_for)))
            if ctx.attempt < 3:
                raise ValueError

        async with scheduler:
            await pass_time(61)
            await scheduler.drain()
            assert seen == [(1, 60), (2, 60), (3, 60)]

    world.play(main)


def test_a_schedule_that_is_added_while_the_next_fire_is_looked_up_is_not_overlooked(
    store: StoreMaker,
) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("1h"), "slow")
            next_fire, looks = work.scheduler._store.next_fire, 0

            async def overtaken() -> int | None:
                nonlocal looks
                found = await next_fire()
                looks += 1
                if looks == 2:  # a tick looks at its begin for what is due, and at its end for what is next
                    await work.add(every("1m"), "quick")
                return found  # as it was before

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(work.scheduler._store, "next_fire", overtaken)
                await work.add(every("2h"), "other")
                await pass_time(61)
            assert looks > 2
            assert world.planned == [60]

    world.play(main)
