"""A run that ends by itself: when nothing is left to do here, now and soon."""

from __future__ import annotations

import asyncio

import pytest
from tests.runtime.stage import COMPLETED, DELAYED, READY, Scene, StoreMaker, pass_time, play

from betimes import Limit, RetryPolicy, every
from betimes.operating import until_idle

SEEDS = range(10)


def test_without_work_it_is_over_at_once(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        await until_idle(stage.scheduler, soon_s=10)
        assert stage.time == 0

    play(scene, store=store)


@pytest.mark.parametrize("seed", SEEDS)
def test_it_waits_for_jobs_their_retries_and_what_they_submit(store: StoreMaker, seed: int) -> None:
    async def scene(stage: Scene) -> None:
        tries: list[float] = []

        @stage.scheduler.task(retry=RetryPolicy(3, base_delay=4, jitter=False))
        async def fail() -> None:
            tries.append(stage.time)
            raise ValueError

        @stage.scheduler.task
        async def begin() -> None:
            await pass_time(2)
            await fail.submit()

        first = await begin.submit()
        await until_idle(stage.scheduler, soon_s=10)
        assert await first.status() is COMPLETED
        assert tries == [2, 6, 14]
        assert stage.time == pytest.approx(14, abs=0.1)

    play(scene, store=store, seed=seed)


@pytest.mark.parametrize(("soon_s", "ends_at"), [(0, 0), (4.9, 0), (5, 5), (60, 5)])
def test_what_is_due_soon_is_waited_for_and_what_is_due_later_is_not(
    store: StoreMaker, soon_s: float, ends_at: float
) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def nothing() -> None: ...

        soon, late = await nothing.using(delay=5).submit(), await nothing.using(delay="1h").submit()
        await until_idle(stage.scheduler, soon_s=soon_s)
        assert stage.time == pytest.approx(ends_at, abs=0.1)
        assert await soon.status() is (COMPLETED if ends_at else DELAYED)
        assert await late.status() is DELAYED

    play(scene, store=store)


def test_what_waits_for_something_else_than_time_does_not_count(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(limit=Limit("desk", 1))
        async def sit() -> None:
            await pass_time(3)

        @stage.scheduler.task(queue="held")
        async def held() -> None: ...

        await stage.scheduler.pause_queue("held")
        paused, first, second = await held.submit(), await sit.submit(), await sit.submit()
        await until_idle(stage.scheduler, soon_s=10)
        # The second one's turn at the desk came by itself, when the first had gone.
        assert [await each.status() for each in (paused, first, second)] == [READY, COMPLETED, COMPLETED]
        assert stage.time == pytest.approx(6, abs=0.1)

    play(scene, store=store)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_fire_that_is_due_counts(store: StoreMaker, seed: int) -> None:
    async def scene(stage: Scene) -> None:
        ran: list[float] = []

        @stage.scheduler.task
        async def tick() -> None:
            ran.append(stage.time)
            await pass_time(1)

        await stage.scheduler.add_schedule("ticks", tick.bind(), every(60))
        await until_idle(stage.scheduler, soon_s=10)
        assert (ran, stage.time) == ([], 0)
        await pass_time(60)  # exactly the instant of the first fire, which may not have become a job yet
        await until_idle(stage.scheduler, soon_s=10)
        assert ran == [60]
        assert stage.time == pytest.approx(61, abs=0.1)

    play(scene, store=store, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_job_that_comes_just_then_is_run_first_or_left_whole(store: StoreMaker, seed: int) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def nothing() -> None:
            await pass_time(1)

        for _ in range(20):
            job, _ = await asyncio.gather(nothing.submit(), until_idle(stage.scheduler, soon_s=10))
            await until_idle(stage.scheduler, soon_s=10)
            assert await job.status() is COMPLETED

    play(scene, store=store, seed=seed)


def test_a_worker_that_has_ended_is_not_waited_for(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def nothing() -> None: ...

        await nothing.using(delay=5).submit()
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(until_idle(stage.scheduler, soon_s=10))
            await stage.settle()
            await stage.scheduler.stop()
        assert waiting.done()
        await stage.scheduler.start()

    play(scene, store=store)
