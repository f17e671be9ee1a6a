"""Stopping: in all its forms, at any moment; nothing is lost, and nothing is left behind."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.runtime.slow_store import SlowStore
from tests.runtime.stage import (
    CANCELLED,
    COMPLETED,
    DELAYED,
    READY,
    RUNNING,
    StoreMaker,
    Witness,
    make_scheduler,
    pass_time,
)

from betimes import (
    ConfigurationError,
    Context,
    JobHandle,
    JobStatus,
    Scheduler,
    SchedulerClosed,
    StoreUnavailable,
)
from betimes.ports import WorkerInfo
from betimes.stores.memory import MemoryStore
from betimes.testing import InlineExecutor, VirtualClock, run_virtual

Main = Callable[[Scheduler, VirtualClock], Coroutine[Any, Any, None]]


def run(main: Main, *, store: StoreMaker | None = None, seed: int | None = None, **options: Any) -> None:
    """Run a test with a scheduler that is not started; afterwards nothing may be left on the loop."""
    clock = VirtualClock()

    async def whole() -> None:
        scheduler = make_scheduler(clock, None if store is None else store(clock), **options)
        await main(scheduler, clock)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert left == set(), "something was left on the loop"

    run_virtual(whole(), clock=clock, seed=seed or 0, shuffle=seed is not None, limit_s=100_000)


def test_p21_a_plain_stop_lets_running_attempts_finish_and_leaves_the_rest(store: StoreMaker) -> None:
    async def main(scheduler: Scheduler, clock: VirtualClock) -> None:
        ran: list[int] = []

        @scheduler.task
        async def work(number: int) -> int:
            await pass_time(10)
            ran.append(number)
            return number

        await scheduler.start()
        handles = [await work.submit(number) for number in range(5)]
        late = await work.using(delay=5).submit(9)
        running = asyncio.create_task(handles[0].result())
        waiting = [asyncio.create_task(each.result()) for each in (handles[4], late)]
        await pass_time(1)
        await scheduler.stop()
        assert (ran, clock.monotonic()) == ([0, 1], 10.0)
        assert await running == 0
        for each in waiting:
            with pytest.raises(SchedulerClosed, match="stopped before the job ended"):
                await each
        async with scheduler.client():
            statuses = [await each.status() for each in (*handles, late)]
            assert statuses[:2] == [COMPLETED] * 2
            assert set(statuses[2:]) <= {READY, DELAYED}
            assert [(await each.info()).attempt for each in handles[2:]] == [0, 0, 0]
        async with scheduler:
            assert [await each.result() for each in (*handles, late)] == [0, 1, 2, 3, 4, 9]

    run(main, store=store, concurrency=2)


def test_stopping_twice_and_without_a_start_is_fine() -> None:
    async def main(scheduler: Scheduler, clock: VirtualClock) -> None:
        await scheduler.stop()
        async with scheduler:
            await scheduler.stop()
            await scheduler.stop(cancel_running=True, timeout=5)
        await scheduler.stop()
        assert clock.monotonic() == 0.0

    run(main)


def test_stop_with_cancel_running_ends_them_cancelled(store: StoreMaker) -> None:
    async def main(scheduler: Scheduler, clock: VirtualClock) -> None:
        cleaned: list[float] = []

        @scheduler.task(retry=5)
        async def work() -> None:
            try:
                await pass_time(100)
            finally:
                await pass_time(1)
                cleaned.append(clock.monotonic())

        await scheduler.start()
        handles = [await work.submit() for _ in range(3)]
        await pass_time(2)
        await scheduler.stop(cancel_running=True)
        assert (cleaned, clock.monotonic()) == ([3.0, 3.0], 3.0)
        async with scheduler.client():
            infos = [await handle.info() for handle in handles]
        assert [info.status for info in infos] == [CANCELLED, CANCELLED, READY]
        assert infos[0].reason == "stopped"

    run(main, store=store, concurrency=2)


def test_when_the_timeout_is_over_what_runs_is_given_back_and_runs_again(store: StoreMaker) -> None:
    async def main(scheduler: Scheduler, clock: VirtualClock) -> None:
        log: list[tuple[str, float, int]] = []

        @scheduler.task
        async def work(context: Context) -> str:
            log.append(("begins", clock.monotonic(), context.attempt))
            try:
                await pass_time(50)
            except asyncio.CancelledError:
                log.append(("told", clock.monotonic(), context.attempt))
                await pass_time(1)
                raise
            return "done"

        witness = Witness(scheduler)
        await scheduler.start()
        handle = await work.submit()
        waiting = asyncio.create_task(handle.result())
        await pass_time(1)
        await scheduler.stop(timeout=3)
        assert clock.monotonic() == 5.0
        with pytest.raises(SchedulerClosed):
            await waiting
        assert witness.path(handle) == [READY, RUNNING, READY]
        async with scheduler.client():
            info = await handle.info()
            assert [(each.attempt, each.outcome) for each in info.attempts] == [(1, "given_back")]
        async with scheduler:
            assert await handle.result() == "done"
            assert (await handle.info()).attempt == 1
        assert log == [("begins", 0.0, 1), ("told", 4.0, 1), ("begins", 5.0, 1)]

    run(main, store=store)


def test_a_stop_with_no_time_at_all_gives_back_at_once(store: StoreMaker) -> None:
    async def main(scheduler: Scheduler, clock: VirtualClock) -> None:
        @scheduler.task
        async def work() -> None:
            await pass_time(50)

        await scheduler.start()
        handle = await work.submit()
        await pass_time(1)
        await scheduler.stop(timeout=0)
        assert clock.monotonic() == 1.0
        async with scheduler.client():
            assert await handle.status() is READY

    run(main, store=store)


@pytest.mark.parametrize("options", [{}, {"cancel_running": True}, {"timeout": 2}])
def test_case_052_a_stop_is_not_held_up_by_code_that_swallows_cancellation(
    options: dict[str, Any], store: StoreMaker, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        scheduler = make_scheduler(clock, store(clock), grace=1)

        @scheduler.task(timeout=1 if not options else None)
        async def stubborn() -> None:
            while clock.monotonic() < 60:
                try:
                    await pass_time(1)
                except asyncio.CancelledError:
                    continue

        await scheduler.start()
        handle = await stubborn.submit()
        await pass_time(5)
        await scheduler.stop(**options)
        assert clock.monotonic() <= 5 + 2 + 2 * 1
        assert f"the code of job {handle.id}" in caplog.text
        assert "did not stop; it is left running" in caplog.text
        assert "stubborn" in caplog.text
        (left,) = asyncio.all_tasks() - {asyncio.current_task()}
        assert left.get_name() == handle.id
        async with scheduler.client():
            expected = {"cancel_running": CANCELLED, "timeout": READY}
            assert await handle.status() is expected.get(next(iter(options), ""), JobStatus.TIMED_OUT)
        await asyncio.wait([left])

    clock = VirtualClock()
    run_virtual(main(), clock=clock)


def test_code_that_was_left_running_keeps_its_slot_and_its_job_over_a_restart(store: StoreMaker) -> None:
    async def main(scheduler: Scheduler, clock: VirtualClock) -> None:
        spans: list[tuple[float, float]] = []

        @scheduler.task
        async def stubborn() -> None:
            begun = clock.monotonic()
            while clock.monotonic() < begun + 20:
                try:
                    await pass_time(begun + 20 - clock.monotonic())
                except asyncio.CancelledError:
                    continue
            spans.append((begun, clock.monotonic()))

        @scheduler.task
        async def when() -> float:
            return clock.monotonic()

        await scheduler.start()
        handle = await stubborn.submit()
        await pass_time(1)
        await scheduler.stop(timeout=1)
        restarted = clock.monotonic()
        async with scheduler:
            others = [await when.submit() for _ in range(3)]
            assert [await each.result() for each in others] == [restarted] * 3
            metrics = await scheduler.metrics()
            assert (metrics.stuck, metrics.in_flight) == (1, 1)
            assert await handle.wait() is COMPLETED
        assert spans == [(0.0, 20.0), (20.0, 40.0)]

    run(main, store=store, concurrency=2, grace=1)


def test_case_058_a_stop_is_not_held_up_by_a_stuck_thread(
    store: StoreMaker, caplog: pytest.LogCaptureFixture
) -> None:
    async def main(scheduler: Scheduler, clock: VirtualClock) -> None:
        @scheduler.task
        def stuck() -> None: ...

        await scheduler.start()
        handle = await stuck.submit()
        await pass_time(1)
        before = clock.monotonic()
        await scheduler.stop(timeout=2)
        assert 2 <= clock.monotonic() - before <= 3
        assert caplog.text.count("did not stop; it is left running") == 1
        async with scheduler.client():
            assert await handle.status() is READY

    run(main, store=store, grace=1, executors=[InlineExecutor(takes_s=lambda run: 600.0)])


# ---------------------------------------------------------------------------------------- several at once


def test_several_stops_at_once_end_together(store: StoreMaker) -> None:
    async def main(scheduler: Scheduler, clock: VirtualClock) -> None:
        @scheduler.task
        async def work() -> str:
            await pass_time(10)
            return "done"

        await scheduler.start()
        handle = await work.submit()
        waiting = asyncio.create_task(handle.result())
        await pass_time(1)
        await asyncio.gather(*(scheduler.stop() for _ in range(4)))
        assert clock.monotonic() == 10.0
        assert await waiting == "done"
        with pytest.raises(SchedulerClosed):
            await work.submit()

    run(main, store=store)


def test_a_second_stop_can_only_make_it_sooner(store: StoreMaker) -> None:
    async def main(scheduler: Scheduler, clock: VirtualClock) -> None:
        ends: list[tuple[str, float]] = []

        @scheduler.task
        async def work() -> None:
            await pass_time(1000)

        async def stop(name: str, **options: Any) -> None:
            await scheduler.stop(**options)
            ends.append((name, clock.monotonic()))

        for options, status in (({"cancel_running": True}, CANCELLED), ({"timeout": 3}, READY)):
            begun = clock.monotonic()
            await scheduler.start()
            handle = await work.submit()
            patient = asyncio.create_task(stop("patient"))
            await pass_time(5)
            await stop("hasty", **options)
            await patient
            assert clock.monotonic() - begun <= 8.0
            async with scheduler.client():
                assert await handle.status() is status
                await handle.cancel()

    run(main, store=store)


@pytest.mark.parametrize("call", ["stop", "drain"])
def test_what_would_wait_for_the_job_itself_is_refused_in_a_job(call: str) -> None:
    async def main(scheduler: Scheduler, clock: VirtualClock) -> None:
        errors: list[str] = []

        @scheduler.task
        async def wait_for_all() -> None:
            try:
                await getattr(scheduler, call)()
            except ConfigurationError as error:
                errors.append(str(error))

        async with scheduler:
            assert await (await wait_for_all.submit()).wait() is COMPLETED
        assert len(errors) == 1
        assert f"a job cannot await {call}()" in errors[0]

    run(main)


def test_a_job_may_have_a_scheduler_of_its_own() -> None:
    async def main(scheduler: Scheduler, clock: VirtualClock) -> None:
        inner = Scheduler(clock=clock)

        @inner.task
        async def double(number: int) -> int:
            return 2 * number

        @scheduler.task
        async def outer() -> int:
            async with inner:
                handle = await double.submit(4)
                await inner.drain()
                return await handle.result()

        async with scheduler:
            assert await (await outer.submit()).result() == 8

    run(main)


def test_what_a_job_has_left_behind_may_stop_the_scheduler() -> None:
    async def main(scheduler: Scheduler, clock: VirtualClock) -> None:
        tasks: list[asyncio.Task[None]] = []

        async def stop_later() -> None:
            await pass_time(1)
            await scheduler.stop()

        @scheduler.task
        async def end_it() -> None:
            tasks.append(asyncio.create_task(stop_later()))

        await scheduler.start()
        assert await (await end_it.submit()).wait() is COMPLETED
        await tasks[0]
        with pytest.raises(SchedulerClosed):
            await end_it.submit()

    run(main)


def test_a_cancelled_stop_gives_back_and_ends_at_once(store: StoreMaker) -> None:
    async def main(scheduler: Scheduler, clock: VirtualClock) -> None:
        @scheduler.task
        async def work() -> None:
            await pass_time(1000)

        await scheduler.start()
        handle = await work.submit()
        await pass_time(1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(scheduler.stop(), timeout=5)
        assert clock.monotonic() == 6.0
        with pytest.raises(SchedulerClosed):
            await work.submit()
        async with scheduler.client():
            assert await handle.status() is READY

    run(main, store=store)


def test_an_error_in_the_body_stops_the_scheduler_and_is_passed_on() -> None:
    async def main(scheduler: Scheduler, clock: VirtualClock) -> None:
        @scheduler.task
        async def work() -> str:
            await pass_time(3)
            return "done"

        handles: list[JobHandle[str]] = []
        with pytest.raises(KeyError):  # noqa: PT012 - the block's own error is what it is about
            async with scheduler:
                handles.append(await work.submit())
                await pass_time(1)
                raise KeyError("mine")
        assert clock.monotonic() == 3.0
        async with scheduler.client():
            assert await handles[0].result() == "done"

    run(main)


def test_a_stop_while_the_start_is_under_way_waits_for_it() -> None:
    async def main() -> None:
        scheduler = make_scheduler(clock, HesitantStore(clock=clock))

        @scheduler.task
        async def nothing() -> None: ...

        starting = asyncio.create_task(scheduler.start())
        await pass_time(0.5)
        with pytest.raises(SchedulerClosed, match="still opening"):
            await nothing.submit()
        with pytest.raises(ConfigurationError, match="open already"):
            await scheduler.start()
        await scheduler.stop()
        assert starting.done()
        with pytest.raises(SchedulerClosed, match="not open"):
            await nothing.submit()

    clock = VirtualClock()
    run_virtual(main(), clock=clock)


class HesitantStore(MemoryStore):
    """Takes a second to open, and may refuse a call.

    Attributes:
        refuses: the call that fails.
    """

    refuses = ""
    is_open = False

    async def open(self, *, strategy: str | None) -> None:
        await pass_time(1)
        self._may("open")
        await super().open(strategy=strategy)
        self.is_open = True

    async def close(self) -> None:
        await super().close()
        self.is_open = False

    async def register(self, worker: WorkerInfo) -> None:
        self._may("register")
        await super().register(worker)

    def _may(self, call: str) -> None:
        if self.refuses == call:
            raise StoreUnavailable("not today")


@pytest.mark.parametrize("call", ["open", "register"])
def test_a_start_that_fails_leaves_nothing_behind_and_may_be_tried_again(call: str) -> None:
    async def main() -> None:
        store = HesitantStore(clock=clock)
        scheduler = make_scheduler(clock, store)
        witness = Witness(scheduler)

        @scheduler.task
        async def nothing() -> None: ...

        store.refuses = call
        with pytest.raises(StoreUnavailable, match="not today"):
            await scheduler.start()
        assert not store.is_open
        assert asyncio.all_tasks() == {asyncio.current_task()}
        with pytest.raises(SchedulerClosed, match="not open"):
            await nothing.submit()
        store.refuses = ""
        async with scheduler:
            await (await nothing.submit()).wait()
        assert [event.after for event in witness.events] == [READY, RUNNING, COMPLETED]

    clock = VirtualClock()
    run_virtual(main(), clock=clock)


def test_a_second_scheduler_cannot_be_started_on_a_running_one() -> None:
    async def main(scheduler: Scheduler, clock: VirtualClock) -> None:
        async with scheduler:
            with pytest.raises(ConfigurationError, match="open already"):
                await scheduler.start()
            with pytest.raises(ConfigurationError, match="open already"):
                async with scheduler:
                    pass
            with pytest.raises(ConfigurationError, match="open already"):
                async with scheduler.client():
                    pass

            @scheduler.task
            async def nothing() -> None: ...

            assert await (await nothing.submit()).wait(timeout=1) is COMPLETED

    run(main)


def test_it_can_be_started_again_and_again_also_on_another_loop(store: StoreMaker) -> None:
    clock = VirtualClock()
    scheduler = make_scheduler(clock, store(clock))
    heard: list[JobStatus] = []

    async def hear(event: Any) -> None:
        heard.append(event.after)

    scheduler.listen(hear)

    @scheduler.task
    async def work(number: int) -> int:
        return number

    @scheduler.task
    def plain(number: int) -> int:
        return number

    async def main(number: int) -> None:
        for _ in range(2):
            async with scheduler:
                assert await (await work.submit(number)).result(timeout=1) == number
                assert await (await plain.submit(number)).result(timeout=1) == number

    for number in range(3):
        run_virtual(main(number), clock=clock)
    assert heard == [READY, RUNNING, COMPLETED] * 12


# ---------------------------------------------------------------------------------------- moments


@pytest.mark.parametrize("seed", range(12))
def test_case_056_a_stop_at_any_moment_loses_nothing(
    seed: int, store: StoreMaker, caplog: pytest.LogCaptureFixture
) -> None:
    rng = random.Random(seed)

    async def main(scheduler: Scheduler, clock: VirtualClock) -> None:
        ran: list[int] = []

        @scheduler.task
        async def on_loop(number: int) -> None:
            await pass_time(rng.choice([0, 0.01, 0.2]))
            ran.append(number)

        @scheduler.task
        def in_thread(number: int) -> None:
            ran.append(number)

        handles: list[JobHandle[None]] = []

        async def submitter() -> None:
            while True:
                task = rng.choice([on_loop, in_thread])
                handles.append(await task.using(delay=rng.choice([0, 0, 0.03])).submit(len(handles)))
                await pass_time(0.05)

        for _ in range(5):
            await scheduler.start()
            submitting = asyncio.create_task(submitter())
            await pass_time(rng.random() / 2)
            await scheduler.stop(**rng.choice([{}, {"timeout": 0.05}, {"timeout": 0}]))  # type: ignore[arg-type]
            with pytest.raises(SchedulerClosed):
                await submitting
        async with scheduler:
            await scheduler.drain()
            assert {await handle.status() for handle in handles} == {COMPLETED}
        assert set(ran) == set(range(len(handles)))
        errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
        assert errors == []

    run(main, store=store, seed=seed, concurrency=3)


def test_case_060_a_job_that_finishes_during_the_stop_is_recorded_once(store: StoreMaker) -> None:
    async def main(scheduler: Scheduler, clock: VirtualClock) -> None:
        ran: list[float] = []

        @scheduler.task
        async def work() -> None:
            await pass_time(1.5)
            ran.append(clock.monotonic())

        await scheduler.start()
        handle = await work.submit()
        await pass_time(1)
        await scheduler.stop(timeout=5)
        assert clock.monotonic() == 1.5
        async with scheduler:
            assert await handle.status() is COMPLETED
            await pass_time(60)
        assert ran == [1.5]

    run(main, store=store)


def test_a_claim_whose_answer_arrives_during_the_stop_is_given_back_unstarted() -> None:
    async def main() -> None:
        store = SlowStore(clock=clock)
        scheduler = make_scheduler(clock, store)
        witness = Witness(scheduler)
        ran: list[int] = []

        @scheduler.task
        async def work() -> None:
            ran.append(1)

        await scheduler.start()
        await pass_time(0.1)
        gate = store.hold("exchange", answers=True)
        handle = await work.submit()
        await gate.came.wait()
        stopping = asyncio.create_task(scheduler.stop())
        await pass_time(1)
        assert not stopping.done()
        gate.opened.set()
        await stopping
        assert (ran, witness.path(handle)) == ([], [READY, RUNNING, READY])
        witness.check()
        async with scheduler.client():
            info = await handle.info()
            assert (info.status, info.attempt, info.worker) == (READY, 0, None)

    clock = VirtualClock()
    run_virtual(main(), clock=clock)


def test_case_062_a_stop_ends_although_the_store_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        store = SlowStore(clock=clock)
        scheduler = make_scheduler(clock, store, grace=1)

        @scheduler.task
        async def work() -> None:
            await pass_time(2)

        await scheduler.start()
        handle = await work.submit()
        await pass_time(1)

        async def gone(name: str) -> None:
            raise StoreUnavailable("the store is gone")

        store.before = gone
        before = clock.monotonic()
        await scheduler.stop(timeout=5)
        assert clock.monotonic() - before <= 5 + 2 * 1
        assert "could not be saved" in caplog.text
        # The lease runs out, and another worker takes the job up: it was never said to be done.
        store.let_through()
        async with scheduler:
            assert await handle.wait(timeout=60) is COMPLETED
            assert (await handle.info()).crashes == 1

    clock = VirtualClock()
    run_virtual(main(), clock=clock)
