"""Counters, depths and durations; bounded history, and what failing jobs leave in memory."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from dataclasses import asdict

import pytest
from tests.runtime.stage import (
    CANCELLED,
    COMPLETED,
    READY,
    Scene,
    StoreMaker,
    make_scheduler,
    pass_time,
    play,
)

from betimes import Cancel, JobFailed, JobHandle, Metrics, RetryPolicy, Snooze, Task, UnknownJob
from betimes.clock import new_rng
from betimes.testing import VirtualClock, run_virtual


def test_the_counters_reconcile_whatever_becomes_of_the_jobs(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(timeout=2, retry=RetryPolicy(2, base_delay=1, jitter=False))
        async def work(way: str) -> None:
            if way == "fails":
                raise ValueError(way)
            if way == "late":
                await pass_time(10)
            if way == "snoozes" and stage.time < 1:
                raise Snooze(1)
            if way == "cancels":
                raise Cancel(way)

        for way in ("completes", "fails", "late", "snoozes", "cancels"):
            handle = await work.submit(way)
            await work.using(depends_on=handle).submit("completes")
        await work.using(expires=1, delay=2).submit("never")
        await (await work.using(delay=50).submit("never")).cancel()
        await work.using(key="k").submit("completes")
        await work.using(key="k").submit("completes")
        await stage.scheduler.drain()
        metrics = await stage.scheduler.metrics()
        assert metrics.submitted == 13
        ended = (metrics.completed, metrics.failed, metrics.timed_out, metrics.cancelled)
        assert ended == (5, 1, 1, 6)
        assert (metrics.attempts, metrics.retries, metrics.snoozes) == (11, 2, 1)
        assert (metrics.ready, metrics.delayed, metrics.blocked, metrics.running) == (0, 0, 0, 0)
        assert (metrics.in_flight, metrics.stuck, metrics.workers) == (0, 0, 10)
        assert metrics.run_time.count == metrics.attempts
        assert metrics.schedule_lag.count == metrics.attempts

    play(scene, store=store)


def test_depths_are_those_of_the_store(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work() -> None:
            await pass_time(10)

        first = await work.submit()
        await stage.settle()
        await work.submit()
        await work.submit()
        await work.using(delay=100).submit()
        await work.using(depends_on=first).submit()
        metrics = await stage.scheduler.metrics()
        depths = (metrics.running, metrics.ready, metrics.delayed, metrics.blocked)
        assert (depths, metrics.in_flight, metrics.peak_running) == ((1, 2, 1, 1), 1, 1)
        await stage.scheduler.drain()

    play(scene, store=store, concurrency=1)


def test_the_schedule_lag_is_the_time_between_run_at_and_the_start(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work() -> None:
            await pass_time(2)

        for _ in range(3):
            await work.using(delay=1).submit()
        await stage.scheduler.drain()
        metrics = await stage.scheduler.metrics()
        assert (metrics.schedule_lag.count, metrics.schedule_lag.max) == (3, 4.0)
        assert metrics.schedule_lag.mean == pytest.approx(2.0)
        assert metrics.run_time.max == 2.0
        assert metrics.run_time.mean == pytest.approx(2.0)
        assert metrics.run_time.p50 == pytest.approx(2.0, rel=0.05)

    play(scene, store=store, concurrency=1)


def test_metrics_can_be_asked_for_before_and_after() -> None:
    async def main() -> None:
        scheduler = make_scheduler(VirtualClock())

        @scheduler.task
        async def work() -> None: ...

        assert (await scheduler.metrics()).submitted == 0
        async with scheduler:
            await (await work.submit()).wait()
        metrics = await scheduler.metrics()
        assert (metrics.submitted, metrics.completed, metrics.peak_running) == (1, 1, 1)

    run_virtual(main())


def test_case_145_the_metrics_do_not_grow_with_jobs_tasks_or_restarts() -> None:
    async def main() -> int:
        scheduler = make_scheduler(VirtualClock(), concurrency=100)

        async def nothing() -> None: ...

        tasks = [scheduler.task(name=f"task {number}")(nothing) for number in range(20)]
        sizes: set[int] = set()
        for _ in range(5):
            async with scheduler:
                await scheduler.submit_many([task.bind() for task in tasks for _ in range(20)])
                await scheduler.drain()
                metrics = await scheduler.metrics()
                sizes.add(len(asdict(metrics)))
                assert isinstance(metrics, Metrics)
        assert (await scheduler.metrics()).completed == 2000
        assert len(sizes) == 1
        return 0

    run_virtual(main())


def test_heap_entries_stay_within_a_fixed_multiple_of_the_live_ones() -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work() -> None: ...

        handles = await stage.scheduler.submit_many([work.using(delay=1000).bind()] * 2000)
        for handle in handles[:1990]:
            await handle.cancel()
            metrics = await stage.scheduler.metrics()
            assert metrics.heap_live == metrics.delayed
            assert metrics.heap_size <= 4 * metrics.heap_live + 64 * 3
        for handle in handles[1990:]:
            await handle.cancel()

    play(scene)


# ---------------------------------------------------------------------------------------- history


def test_p27_memory_remembers_a_bounded_number_and_what_somebody_holds() -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def give(number: int) -> int:
            return number

        held = await give.submit(-1)
        await held.wait()

        async def run(number: int) -> str:
            handle = await give.submit(number)
            await handle.wait()
            return handle.id

        ids = [await run(number) for number in range(200)]
        gc.collect()
        assert len(await stage.scheduler.jobs(limit=1000)) == 50
        with pytest.raises(UnknownJob, match="pruned"):
            await stage.scheduler.job(ids[0])
        assert await (await stage.scheduler.job(ids[-1])).result() == 199
        assert await held.result() == -1
        assert await (await stage.scheduler.job(held.id)).status() is COMPLETED

    play(scene, history=50, checked=False)


def test_finished_jobs_go_after_their_time_and_the_tasks_word_counts(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(keep="1h")
        async def short() -> None: ...

        @stage.scheduler.task
        async def plain() -> None: ...

        async def run(task: Task[[], None]) -> str:
            handle = await task.submit()
            await handle.wait()
            return handle.id

        ids = [await run(short), await run(plain)]
        await pass_time(3500)
        assert len(await stage.scheduler.jobs()) == 2
        await pass_time(100 + 360)  # a worker that rests looks ten times in that hour
        assert [job.id for job in await stage.scheduler.jobs()] == [ids[1]]
        await pass_time(3600)
        assert await stage.scheduler.jobs() == []

    play(scene, store=store, keep="2h", lease="1h", checked=False)


def test_case_143_failing_jobs_leave_none_of_their_frames_behind() -> None:
    class Large:
        """Stands for a large local."""

    left: list[weakref.ref[Large]] = []

    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(retry=RetryPolicy(2, base_delay=0))
        async def on_loop() -> None:
            large = Large()
            left.append(weakref.ref(large))
            raise ValueError(type(large).__name__)

        @stage.scheduler.task
        def in_thread() -> None:
            large = Large()
            left.append(weakref.ref(large))
            try:
                raise KeyError(type(large).__name__)
            except KeyError as error:
                raise ValueError("chained") from error

        handles: list[JobHandle[None]] = []
        for _ in range(20):
            handles += [await on_loop.submit(), await in_thread.submit()]
        for handle in handles:
            with pytest.raises(JobFailed):
                await handle.result()
        assert [each() for each in left if each() is not None] == []

    gc.disable()
    try:
        play(scene)
    finally:
        gc.enable()
    assert len(left) == 60


def test_many_runs_need_no_more_memory_than_few() -> None:
    async def grown(runs: int) -> int:
        scheduler = make_scheduler(VirtualClock(), history=100)

        @scheduler.task
        async def work(number: int) -> None:
            if number % 2:
                raise ValueError(number)

        async with scheduler:
            await scheduler.submit_many([work.bind(number) for number in range(500)])
            await scheduler.drain()
            gc.collect()
            tracemalloc.start()
            for start in range(runs):
                await scheduler.submit_many([work.bind(start) for _ in range(100)])
                await scheduler.drain()
            gc.collect()
            size, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        return size

    few, many = run_virtual(grown(3)), run_virtual(grown(20))
    # 1,700 more jobs; had each left but its record behind, that would be a megabyte.
    assert many - few < 300_000


def test_a_parked_jobs_task_may_come_later(store: StoreMaker) -> None:
    clock = VirtualClock()

    async def nothing() -> str:
        return "done"

    async def main() -> None:
        shared = store(clock)
        asker = make_scheduler(clock, shared)
        asking = asker.task(name="theirs")(nothing)
        async with asker.client():
            handle = await asking.submit()
            other = await asking.submit()
        worker = make_scheduler(clock, shared, poll="10s", rng=new_rng(8))
        mine = worker.task(name="mine")(nothing)
        async with worker:
            assert await (await mine.submit()).result(timeout=1) == "done"
            await pass_time(100)
            # Parked and visible, never failed; and it can be cancelled.
            theirs = await worker.job(handle.id)
            info = await theirs.info()
            assert (info.status, info.attempt, info.error) == (READY, 0, None)
            assert (await worker.metrics()).ready == 2
            await worker.cancel(other.id)
            assert await (await worker.job(other.id)).status() is CANCELLED
            worker.task(name="theirs")(nothing)
            assert await theirs.result(timeout=11) == "done"

    run_virtual(main(), clock=clock)
