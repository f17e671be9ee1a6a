"""A task's circuit breaker: opened by failures, probed one by one, closed by a success, in all processes."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.restraint_scene import two_schedulers
from tests.runtime.stage import (
    CANCELLED,
    COMPLETED,
    FAILED,
    READY,
    Scene,
    StoreMaker,
    make_scheduler,
    pass_time,
    play,
    store_maker,
)
from tests.runtime.test_leases import silence

from betimes import (
    CircuitBreaker,
    ConfigurationError,
    NonRetryableError,
    Rate,
    ReasonCode,
    RetryPolicy,
    Scheduler,
    Snooze,
    StoreUnavailable,
)
from betimes.clock import new_rng
from betimes.stores.memory import MemoryStore
from betimes.testing import InlineExecutor, VirtualClock, run_virtual

BREAKER = CircuitBreaker(failures=3, window="1m", open_for="10s")


def module_work() -> None: ...


class Service:
    """Something that jobs depend on, up or down, and when it was called."""

    def __init__(self, scheduler: Scheduler, **options: Any) -> None:
        self.is_down = True
        self.calls: list[float] = []
        self.takes_s = 0.0
        self.error: Exception | type[Exception] = ConnectionError

        async def call() -> float:
            self.calls.append(scheduler._engine.store.now() / 1e6)
            if self.takes_s:
                await pass_time(self.takes_s)
            if self.is_down:
                raise self.error
            return self.calls[-1]

        self.task = scheduler.task(**{"name": "call", "breaker": BREAKER, **options})(call)

    def since(self, begun: float) -> list[float]:
        return [round(at - begun, 3) for at in self.calls]


def start_of(stage: Scene) -> float:
    return stage.clock.now() / 1e6 - stage.time


def test_a8_a_breaker_s_whole_life(store: StoreMaker, caplog: pytest.LogCaptureFixture) -> None:
    async def scene(stage: Scene) -> None:
        service = Service(stage.scheduler)
        begun = start_of(stage)
        jobs = await stage.scheduler.submit_many([service.task.bind() for _ in range(12)])
        await stage.settle()
        assert service.since(begun) == [0] * 3, "the third failure opens the circuit"
        metrics = await stage.scheduler.metrics()
        assert (metrics.circuits_opened, metrics.circuits_open, metrics.ready) == (1, 1, 9)
        info = await stage.scheduler.limit("call", kind="breaker")
        assert (info.is_tripped, info.is_open, info.waiting, info.every_s) == (True, False, 9, 10)
        await pass_time(9.9)
        assert len(service.calls) == 3
        await pass_time(25)
        assert service.since(begun)[3:] == [10, 20, 30], "one probe for each ten seconds"
        assert (await stage.scheduler.metrics()).circuits_open == 1
        service.is_down = False
        assert await jobs[6].wait() is COMPLETED
        await stage.settle()
        assert service.since(begun)[6:] == [40] * 6, "its success lets all the others go"
        assert (await stage.scheduler.metrics()).circuits_open == 0
        assert [await job.status() for job in jobs] == [FAILED] * 6 + [COMPLETED] * 6
        info = await stage.scheduler.limit("call", kind="breaker")
        assert (info.is_tripped, info.is_open, info.waiting) == (False, True, 0)
        text = (
            "the circuit of task call is open: 3 attempts failed within 60 s; nothing of it starts for 10 s"
        )
        assert [record.getMessage() for record in caplog.records] == [text]

    with caplog.at_level(logging.INFO, "betimes"):
        play(scene, store=store, concurrency=1)


def test_a_closed_circuit_counts_from_the_beginning(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        service = Service(stage.scheduler)
        for round_number in (1, 2):
            service.is_down = True
            jobs = await stage.scheduler.submit_many([service.task.bind() for _ in range(4)])
            await stage.settle()
            assert (await stage.scheduler.metrics()).circuits_opened == round_number
            service.is_down = False
            await pass_time(11)
            assert await jobs[3].status() is COMPLETED

    play(scene, store=store, concurrency=1)


def test_waiting_jobs_use_up_no_attempts_and_retries_wait_like_others(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        service = Service(stage.scheduler, retry=RetryPolicy(10, base_delay=0))
        begun = start_of(stage)
        job, other = [await service.task.submit() for _ in range(2)]
        await pass_time(15)
        assert service.since(begun) == [0, 0, 0, 10]
        service.is_down = False
        assert await job.wait() is await other.wait() is COMPLETED
        assert service.since(begun)[4:] == [20, 20]
        assert (await job.info()).attempt + (await other.info()).attempt == 6

    play(scene, store=store, concurrency=1)


@pytest.mark.parametrize("error", [NonRetryableError("bad input"), Snooze(1000)])
def test_what_says_nothing_of_the_dependency_opens_nothing(error: Exception, store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        service = Service(stage.scheduler)
        service.error = error
        for _ in range(10):
            await service.task.submit()
        await stage.settle()
        metrics = await stage.scheduler.metrics()
        assert (len(service.calls), metrics.circuits_opened, metrics.circuits_open) == (10, 0, 0)
        await stage.scheduler.stop()

    play(scene, store=store, checked=False)


def test_a_cancelled_job_opens_nothing(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        service = Service(stage.scheduler)
        service.takes_s = 100
        jobs = [await service.task.submit() for _ in range(5)]
        await pass_time(1)
        for job in jobs:
            await job.cancel()
        assert [await job.wait() for job in jobs] == [CANCELLED] * 5
        assert (await stage.scheduler.metrics()).circuits_opened == 0

    play(scene, store=store)


def test_timeouts_open_it(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        service = Service(stage.scheduler, timeout=1)
        service.takes_s = 100
        await stage.scheduler.submit_many([service.task.bind() for _ in range(5)])
        await pass_time(5)
        assert (await stage.scheduler.metrics()).circuits_open == 1
        await stage.scheduler.stop(timeout=0)

    play(scene, store=store, concurrency=1, checked=False)


def test_a_success_of_a_job_that_began_before_the_trip_proves_nothing(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(name="call", breaker=BREAKER)
        async def call(seconds: float, *, fails: bool) -> None:
            await pass_time(seconds)
            if fails:
                raise ConnectionError

        long = await call.submit(5, fails=False)
        for _ in range(3):
            await call.submit(1, fails=True)
        assert await long.wait() is COMPLETED
        await stage.settle()
        assert (await stage.scheduler.metrics()).circuits_open == 1
        probe = await call.submit(0, fails=False)
        assert await probe.wait() is COMPLETED
        assert stage.time == 11
        assert (await stage.scheduler.metrics()).circuits_open == 0

    play(scene, store=store)


def test_a_probe_that_takes_long_closes_it_all_the_same(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        service = Service(stage.scheduler)
        await stage.scheduler.submit_many([service.task.bind() for _ in range(9)])
        await stage.settle()
        service.is_down, service.takes_s = False, 25
        await pass_time(34)
        assert len(service.calls) == 3 + 3
        assert (await stage.scheduler.metrics()).circuits_open == 1
        await pass_time(2)
        assert len(service.calls) == 7, "the other two probes hold the other two slots"
        assert (await stage.scheduler.metrics()).circuits_open == 0
        await stage.scheduler.drain()

    play(scene, store=store, concurrency=3)


def test_failures_of_many_that_ran_at_the_trip_open_it_once(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        service = Service(stage.scheduler)
        service.takes_s = 1
        begun = start_of(stage)
        await stage.scheduler.submit_many([service.task.bind() for _ in range(40)])
        await pass_time(5)
        assert len(service.calls) == 20
        metrics = await stage.scheduler.metrics()
        assert (metrics.circuits_open, metrics.circuits_opened) == (1, 1)
        await pass_time(10)
        assert service.since(begun)[20:] == [11]
        await stage.scheduler.stop(timeout=0)

    play(scene, store=store, concurrency=20, checked=False)


def test_a_worker_that_dies_with_the_probe_leaves_the_next_one_to_another() -> None:
    async def main(clock: VirtualClock) -> None:
        store = MemoryStore(clock=clock)
        first, second = (
            make_scheduler(clock, store, rng=new_rng(n), lease=30, concurrency=1) for n in (1, 2)
        )
        services = [Service(first), Service(second)]
        async with first:
            jobs = await first.submit_many([services[0].task.bind() for _ in range(8)])
            await pass_time(1)
            services[0].takes_s = 10_000
            silence(first)
            await pass_time(10)
            assert len(services[0].calls) == 4, "the probe runs, and its worker is heard of no more"
            services[1].is_down = False
            async with second:
                await pass_time(30)
                assert len(services[1].calls) >= 1
                assert (await second.metrics()).circuits_open == 0
                await pass_time(60)
                done = [await job.status() for job in jobs]
                assert done.count(FAILED) == 3
                assert done.count(COMPLETED) >= 4
            await first.stop(timeout=0)

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)


def test_two_processes_share_a_circuit(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        both = two_schedulers(clock, tmp_path, concurrency=1)
        services = [Service(scheduler) for scheduler in both]
        async with both[0], both[1].client():
            await both[0].submit_many([services[0].task.bind() for _ in range(8)])
            await pass_time(1)
            assert (await both[1].metrics()).circuits_open == 1
            assert (await both[1].metrics()).circuits_opened == 0
        services[1].is_down = False
        async with both[1]:
            await pass_time(8)
            assert services[1].calls == [], "it heeds what the other has seen"
            await pass_time(2)
            assert len(services[1].calls) == 5
            assert (await both[1].metrics()).circuits_open == 0

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)


def test_an_operator_opens_and_closes_it(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        service = Service(stage.scheduler)
        service.is_down = False
        await stage.scheduler.open_circuit("call")
        job = await service.task.submit()
        await pass_time(5)
        assert await job.status() is READY
        (reason,) = (await job.explain()).reasons
        assert reason.code is ReasonCode.CIRCUIT_OPEN
        assert "The circuit of task 'call' is open" in reason.text
        await stage.scheduler.close_circuit("call")
        assert await job.wait() is COMPLETED
        assert stage.time == 5
        await stage.scheduler.close_circuit("call")
        await stage.scheduler.open_circuit("call")
        again = await service.task.submit()
        assert await again.wait() is COMPLETED
        assert stage.time == 15, "by itself, as the probe"
        metrics = await stage.scheduler.metrics()
        assert (metrics.circuits_open, metrics.circuits_opened) == (0, 0)

    play(scene, store=store)


def test_an_open_circuit_outlives_a_restart(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        make = store_maker("sqlite", tmp_path)
        for expected in (3, 0):
            scheduler = make_scheduler(clock, make(clock), concurrency=1)
            service = Service(scheduler)
            async with scheduler:
                if expected:
                    await scheduler.submit_many([service.task.bind() for _ in range(5)])
                await pass_time(2)
                assert len(service.calls) == expected

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)


def test_a_breaker_beside_a_rate_waits_for_both(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        service = Service(stage.scheduler, rate=Rate("1/4s", burst=3))
        begun = start_of(stage)
        await stage.scheduler.submit_many([service.task.bind() for _ in range(7)])
        await pass_time(12)
        assert service.since(begun) == [0, 0, 0, 10]
        service.is_down = False
        await stage.scheduler.drain()
        assert service.since(begun)[4:] == [20, 20, 20]

    play(scene, store=store, concurrency=1)


def test_a_late_thread_counts_as_one_failure(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(breaker=CircuitBreaker(failures=4, window="1h", open_for="1h"), timeout=1)
        def work() -> None:
            raise ConnectionError("and late")

        for _ in range(3):
            await work.submit()
        await pass_time(60)
        assert (await stage.scheduler.metrics()).circuits_opened == 0
        await work.submit()
        await pass_time(60)
        assert (await stage.scheduler.metrics()).circuits_opened == 1

    play(scene, store=store, executors=[InlineExecutor(takes_s=lambda run: 5.0)])


def test_a_trip_that_the_store_does_not_take_is_told_again(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        service = Service(stage.scheduler)
        real = stage.scheduler._store
        trip, failures = real.trip, 2

        async def unwilling(key: str, *, is_open: bool) -> None:
            nonlocal failures
            if failures:
                failures -= 1
                raise StoreUnavailable("not now")
            await trip(key, is_open=is_open)

        setattr(real, "trip", unwilling)  # noqa: B010 - over a method
        await stage.scheduler.submit_many([service.task.bind() for _ in range(8)])
        await pass_time(5)
        assert failures == 0
        assert len(service.calls) == 3, "nothing more is claimed before the store knows"
        assert (await stage.scheduler.metrics()).circuits_open == 1
        await stage.scheduler.stop(timeout=0)

    play(scene, store=store, concurrency=1, checked=False)


@pytest.mark.parametrize("wrong", [5, True, "5", [CircuitBreaker()], CircuitBreaker])
def test_a_breaker_is_given_as_one(wrong: Any) -> None:
    async def main(clock: VirtualClock) -> None:
        scheduler = make_scheduler(clock)
        with pytest.raises(ConfigurationError, match=r"^breaker is .*; write breaker=CircuitBreaker"):
            scheduler.task(breaker=wrong)(module_work)

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)
