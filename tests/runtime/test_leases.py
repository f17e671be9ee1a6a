"""Leases as the worker lives them: its own, those of others that died, and jobs it has lost."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.runtime.stage import COMPLETED, FAILED, RUNNING, Scene, StoreMaker, make_scheduler, pass_time, play

from betimes import JobStatus, Scheduler
from betimes.clock import new_rng
from betimes.stores.memory import MemoryStore
from betimes.testing import VirtualClock, run_virtual

Main = Callable[[Scheduler, Scheduler, VirtualClock], Coroutine[Any, Any, None]]


def two_workers(main: Main, **options: Any) -> None:
    """Run a test with two running schedulers on one store."""
    clock = VirtualClock()

    async def whole() -> None:
        store = MemoryStore(clock=clock)
        first = make_scheduler(clock, store, rng=new_rng(1), lease=10, **options)
        second = make_scheduler(clock, store, rng=new_rng(2), lease=10, **options)
        async with first:
            await main(first, second, clock)
            await second.stop()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtual(whole(), clock=clock)


def silence(scheduler: Scheduler) -> Callable[[], None]:
    """Keep a worker from looking after leases, its own too; returns the way to let it do so again."""
    worker = scheduler._engine.worker
    assert worker is not None
    upkeep = worker.upkeep
    chores = [each for each in worker.chores._chores if each.do in {upkeep.beat, upkeep.rescue}]
    calls = [chore.do for chore in chores]
    assert len(chores) == 2
    for chore in chores:
        chore.do = nothing

    def resume() -> None:
        for chore, call in zip(chores, calls, strict=True):
            chore.do = call

    return resume


def test_a_lone_worker_that_was_held_up_does_not_rescue_itself(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        starts: list[float] = []

        @stage.scheduler.task
        async def work() -> str:
            starts.append(stage.time)
            await pass_time(50)
            return "done"

        handle = await work.submit()
        await pass_time(1)
        stage.clock.advance(1000)  # the whole process stands still for longer than its lease
        assert await handle.result(timeout=100) == "done"
        assert starts == [0.0]
        metrics = await stage.scheduler.metrics()
        assert (metrics.lost_leases, metrics.rescued, metrics.stale_reports) == (0, 0, 0)

    play(scene, store=store, lease=10)


def test_p07_p24_a_silent_workers_job_is_rescued_and_what_it_still_reports_is_refused() -> None:
    async def main(first: Scheduler, second: Scheduler, clock: VirtualClock) -> None:
        log: list[tuple[str, float]] = []

        def register(scheduler: Scheduler, name: str) -> Any:
            async def work() -> str:
                log.append((f"{name} begins", clock.monotonic()))
                try:
                    await pass_time(30)
                except asyncio.CancelledError:
                    log.append((f"{name} is told", clock.monotonic()))
                    await pass_time(1)
                return name

            return scheduler.task(name="work")(work)

        handle = await register(first, "first").submit()
        register(second, "second")
        await pass_time(1)
        await second.start()
        resume = silence(first)
        await pass_time(15)
        # The lease ended at 10 s; the other worker has the job now, as the same attempt.
        theirs = await second.job(handle.id)
        info = await theirs.info()
        assert (info.status, info.attempt, info.crashes) == (RUNNING, 1, 1)
        assert [each.outcome for each in info.attempts] == ["lost", "running"]
        resume()
        await pass_time(5)
        assert [name for name, _ in log] == ["first begins", "second begins", "first is told"]
        assert await theirs.result() == "second"
        assert await handle.result() == "second"
        lost = await first.metrics()
        assert (lost.lost_leases, lost.completed, lost.in_flight) == (1, 0, 0)
        assert (await second.metrics()).rescued == 1
        # And it goes on under a fresh lease.
        again = await register_again(first).submit()
        assert await again.wait(timeout=5) is COMPLETED

    two_workers(main)


def test_case_149_a_lost_lease_is_one_line_with_job_worker_and_process_on_both_sides(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main(first: Scheduler, second: Scheduler, clock: VirtualClock) -> None:
        async def work() -> None:
            await pass_time(30)

        job = await first.task(name="work")(work).submit()
        second.task(name="work")(work)
        await pass_time(1)
        await second.start()
        worker = (await job.info()).worker
        resume = silence(first)
        await pass_time(15)
        resume()
        await job.wait(timeout=60)
        who = rf"job {job.id} \(work\), attempt 1: worker {worker} \(pid {os.getpid()}"
        taken, refused = [record.getMessage() for record in caplog.records if job.id in record.getMessage()]
        how = "was lost: it did not prolong its lease in time; it is ready"
        assert re.fullmatch(rf"{who} on \S+\) {how}", taken)
        assert re.match(rf"{who}, this process\) has lost its lease: its code is told to stop", refused)
        note = (await job.info()).attempts[0].note
        assert note is not None
        assert note in taken, "the history says the same"

    with caplog.at_level(logging.WARNING, "betimes"):
        two_workers(main)


def register_again(scheduler: Scheduler) -> Any:
    async def more() -> None: ...

    return scheduler.task(name="more")(more)


def test_p07_a_report_that_comes_too_late_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def main(first: Scheduler, second: Scheduler, clock: VirtualClock) -> None:
        results = {"first": 20.0, "second": 60.0}

        def register(scheduler: Scheduler, name: str) -> Any:
            async def work() -> str:
                await pass_time(results[name])
                return name

            return scheduler.task(name="work")(work)

        handle = await register(first, "first").submit()
        child = await first.task(name="child")(nothing).using(depends_on=handle).submit()
        register(second, "second")
        await second.start()
        resume = silence(first)
        await pass_time(25)
        # The first has reported meanwhile; the job still runs on the second, and nothing was released.
        assert (await handle.status(), await child.status()) == (RUNNING, JobStatus.BLOCKED)
        metrics = await first.metrics()
        assert (metrics.stale_reports, metrics.completed, metrics.in_flight) == (1, 0, 0)
        resume()
        assert await handle.result() == "second"
        assert await child.wait() is COMPLETED

    two_workers(main)


async def nothing() -> None: ...


def test_p11_a_job_that_kills_its_workers_is_given_up() -> None:
    clock = VirtualClock()

    async def main() -> None:
        store = MemoryStore(clock=clock)
        starts: list[float] = []

        async def poison() -> None:
            starts.append(clock.monotonic())
            await pass_time(10_000)

        schedulers = [make_scheduler(clock, store, rng=new_rng(number), lease=10) for number in range(4)]
        tasks = [scheduler.task(name="poison", retry=9)(poison) for scheduler in schedulers]
        async with schedulers[0].client():
            handle = await tasks[0].submit()
        for scheduler in schedulers:
            await scheduler.start()
            await pass_time(5)  # long enough to look after the one before
            silence(scheduler)
            await pass_time(20)
        await pass_time(60)
        job = await schedulers[0].job(handle.id)
        info = await job.info()
        assert info.status is FAILED
        assert info.reason is not None
        assert "poison pill" in info.reason
        assert (info.crashes, len(starts)) == (3, 3)
        for scheduler in schedulers:
            await scheduler.stop(timeout=0)

    run_virtual(main(), clock=clock)


def test_p28_a_worker_does_not_rescue_a_task_it_does_not_know() -> None:
    async def main(first: Scheduler, second: Scheduler, clock: VirtualClock) -> None:
        async def work() -> None:
            await pass_time(1000)

        handle = await first.task(name="theirs")(work).submit()
        await second.start()
        await pass_time(1)
        silence(first)
        await pass_time(60)
        assert await handle.status() is RUNNING
        second.task(name="theirs")(work)
        await pass_time(5)
        assert (await handle.info()).crashes == 1

        await first.stop(timeout=0)
        await second.stop(timeout=0)

    two_workers(main)


def test_case_054_jobs_that_end_at_the_instant_of_a_heartbeat_are_completed_without_a_word(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work() -> None:
            await pass_time(1)  # the beat comes every second

        for _ in range(50):
            await stage.scheduler.submit_many([work.bind()] * 20)
            await stage.scheduler.drain()
        metrics = await stage.scheduler.metrics()
        assert (metrics.completed, metrics.lost_leases, metrics.stale_reports) == (1000, 0, 0)

    with caplog.at_level(logging.WARNING):
        play(scene, lease=3, concurrency=20, seed=5)
    assert caplog.records == []


def test_a_handle_of_one_process_waits_for_a_job_that_another_rescues() -> None:
    async def main(first: Scheduler, second: Scheduler, clock: VirtualClock) -> None:
        async def slow() -> str:
            await pass_time(1000)
            return "first"

        async def quick() -> str:
            return "second"

        handle = await first.task(name="work")(slow).submit()
        second.task(name="work")(quick)
        waiting = asyncio.create_task(handle.result())
        await pass_time(1)
        resume = silence(first)
        await second.start()
        await pass_time(15)  # the lease is over, and the other has run the job
        resume()
        assert await waiting == "second"
        assert 16 <= clock.monotonic() <= 20
        await first.stop(timeout=0)

    two_workers(main)
