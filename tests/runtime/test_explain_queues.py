"""Queues explained on a running scheduler, and what workers tell each other that they know."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.runtime.stage import (
    STORES,
    Scene,
    StoreMaker,
    make_scheduler,
    pass_time,
    play,
    store_maker,
)

from betimes import (
    ConfigurationError,
    Limit,
    QueueReasonCode,
    ReasonCode,
    Scheduler,
    SchedulerClosed,
    ScheduleReasonCode,
    every,
)
from betimes.runtime.lease import TASKS_TOLD
from betimes.stores.memory import MemoryStore
from betimes.testing import VirtualClock, run_virtual

Code = QueueReasonCode


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> StoreMaker:
    return store_maker(request.param, tmp_path)


def test_a_queue_is_explained_from_its_first_job_to_its_last(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        scheduler = stage.scheduler

        @scheduler.task(limit=Limit("one", max_running=1))
        async def work() -> None:
            await pass_time(60)

        @scheduler.task
        async def plain() -> None: ...

        assert (await scheduler.explain_queue("default")).codes == {Code.EMPTY}
        first, second = await work.submit(), await work.submit()
        await work.using(delay="1h").submit()
        await plain.using(depends_on=[first]).submit()
        await stage.settle()
        said = await scheduler.explain_queue("default")
        assert (said.ready, said.running, said.delayed, said.blocked) == (1, 1, 1, 1)
        assert said.codes == {Code.LIMIT_REACHED, Code.WORKING, Code.NOT_DUE, Code.BLOCKED}
        assert said.oldest_due_at is None
        assert said.heads == ()
        assert first.id in said.reasons[0].text
        await scheduler.pause_queue("default", by="ops")
        await pass_time(61)
        said = await scheduler.explain_queue("default")
        assert {Code.PAUSED} <= said.codes
        assert second.id in {head.job_id for head in said.heads}
        assert said.oldest_due_at is not None
        assert ", by ops" in str(said)
        await scheduler.resume_queue("default")

    play(scene, store=store, checked=False)


def test_a_queue_says_who_serves_it_and_how_full_they_are(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        scheduler = stage.scheduler

        @scheduler.task(queue="a")
        async def work() -> None:
            await pass_time(60)

        for _ in range(3):
            await work.submit()
        await work.using(queue="b").submit()
        await stage.settle()
        said = await scheduler.explain_queue("a")
        assert said.codes == {Code.WORKERS_FULL, Code.FIRST_HELD_UP, Code.WORKING}
        ((running, concurrency, is_here),) = [
            (each.running, each.concurrency, each.is_here) for each in said.workers
        ]
        assert (running, concurrency, is_here) == (2, 2, True)
        said = await scheduler.explain_queue("b")
        assert said.codes == {Code.NOT_SERVED}
        assert said.workers == ()

    play(scene, store=store, checked=False, queues=["a"], concurrency=2)


def test_a_queue_is_asked_for_by_name_on_an_open_scheduler() -> None:
    async def main() -> None:
        scheduler = Scheduler()
        with pytest.raises(SchedulerClosed):
            await scheduler.explain_queue("default")
        async with scheduler.client():
            with pytest.raises(ConfigurationError, match="name"):
                await scheduler.explain_queue("")
            with pytest.raises(ConfigurationError, match="by"):
                await scheduler.pause_queue("default", by="")

    asyncio.run(main())


def test_a_task_that_no_worker_knows_is_told_before_any_has_put_the_job_aside() -> None:
    clock = VirtualClock()

    async def main() -> None:
        store = MemoryStore(clock=clock)
        works, asks = make_scheduler(clock, store), make_scheduler(clock, store)

        @works.task(name="known")
        async def known() -> None: ...

        @asks.task(name="unknown")
        async def unknown() -> None: ...

        async with works, asks.client():
            await asks.pause_queue("default")
            job = await unknown.submit()
            assert (await job.explain()).codes == {ReasonCode.QUEUE_PAUSED, ReasonCode.TASK_UNKNOWN}

            @works.task(name="unknown")
            async def late() -> None: ...

            await pass_time(1.5)
            assert (await job.explain()).codes == {ReasonCode.QUEUE_PAUSED}
            for number in range(TASKS_TOLD):
                works.task(name=f"many-{number}")(late.fn)
            await pass_time(1.5)
            ((info, _),) = await store.workers()
            assert info.tasks is None
            assert info.lanes is not None
            assert "loop" in info.lanes
            await asks.resume_queue("default")
            await job.result(timeout=60)

    run_virtual(main(), clock=clock)


def test_case_147_the_age_of_the_oldest_due_job_is_in_the_metrics(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        scheduler = stage.scheduler

        @scheduler.task(queue="nobody")
        async def work() -> None: ...

        assert (await scheduler.metrics()).oldest_due_s == 0.0
        await work.submit()
        await pass_time(90)
        assert (await scheduler.metrics()).oldest_due_s == pytest.approx(90.0)
        await scheduler.pause_queue("nobody")
        assert (await scheduler.metrics()).oldest_due_s == 0.0

    play(scene, store=store, queues=["somebody"])


def test_case_153_how_long_a_job_waited_is_in_the_metrics_and_with_the_job(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        scheduler = stage.scheduler

        @scheduler.task
        async def work() -> None: ...

        await scheduler.pause_queue("default")
        job = await work.using(delay="1s").submit()
        assert (await job.info()).start_delay_s is None
        await pass_time(4)
        await scheduler.resume_queue("default")
        await job.result(timeout=60)
        assert (await job.info()).start_delay_s == pytest.approx(3.0, abs=0.2)
        lag = (await scheduler.metrics()).schedule_lag
        assert lag.count == 1
        assert lag.max == pytest.approx(3.0, abs=0.2)

    play(scene, store=store)


def test_a_schedule_of_a_task_that_no_worker_knows_says_so() -> None:
    clock = VirtualClock()

    async def main() -> None:
        store = MemoryStore(clock=clock)
        works, asks = make_scheduler(clock, store), make_scheduler(clock, store)

        @asks.task(name="unknown")
        async def unknown() -> None: ...

        async with asks.client():
            await asks.add_schedule("s", unknown.bind(), every("1h"))
            assert (await asks.explain_schedule("s")).reasons[0].code is ScheduleReasonCode.NO_WORKER
            async with works:
                for scheduler in (asks, works):
                    reasons = (await scheduler.explain_schedule("s")).reasons
                    assert reasons[0].code is ScheduleReasonCode.TASK_UNKNOWN

                @works.task(name="unknown")
                async def late() -> None: ...

                assert (await works.explain_schedule("s")).codes == {ScheduleReasonCode.NOT_DUE}
                await pass_time(1.5)
                assert (await asks.explain_schedule("s")).codes == {ScheduleReasonCode.NOT_DUE}

    run_virtual(main(), clock=clock)
