"""From other threads and without a loop: `submit_threadsafe`, `submit_blocking`, `blocking()`."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.stage import CANCELLED, COMPLETED, READY, RUNNING, make_scheduler

from betimes import (
    CancelAnswer,
    ConfigurationError,
    Context,
    DuplicateJob,
    JobEvent,
    JobFailed,
    JobHandle,
    JobTimedOut,
    Scheduler,
    SchedulerClosed,
    UnknownJob,
    current_job,
)
from betimes.blocking import LoopThread
from betimes.testing import VirtualClock, run_virtual

WAIT_S = 30


def in_threads(number: int, work: Callable[[int], None]) -> None:
    """Run a function in so many threads at once, and pass on what they raise."""
    errors: list[BaseException] = []
    meeting = threading.Barrier(number)

    def run(index: int) -> None:
        try:
            meeting.wait(WAIT_S)
            work(index)
        except BaseException as error:  # noqa: BLE001 - passed on below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


@pytest.fixture(params=["memory:", "jobs.db"])
def scheduler(request: pytest.FixtureRequest, tmp_path: Path) -> Scheduler:
    store = request.param if request.param == "memory:" else tmp_path / request.param
    return Scheduler(store, concurrency=4, watchdog=None)


# ---------------------------------------------------------------------------------------- submit_threadsafe


def test_eight_threads_submit_twenty_five_each_and_each_runs_exactly_once(scheduler: Scheduler) -> None:
    ran: list[int] = []
    lock = threading.Lock()

    @scheduler.task
    def in_thread(number: int) -> int:
        with lock:
            ran.append(number)
        return number

    @scheduler.task
    async def on_loop(number: int) -> int:
        with lock:
            ran.append(number)
        return number

    async def main() -> None:
        futures: list[Future[JobHandle[int]]] = []

        def submit(index: int) -> None:
            for number in range(index * 25, index * 25 + 25):
                future = scheduler.submit_threadsafe((in_thread if number % 2 else on_loop).bind(number))
                assert future.result(WAIT_S).id
                with lock:
                    futures.append(future)

        async with scheduler:
            await asyncio.to_thread(in_threads, 8, submit)
            await scheduler.drain(timeout=WAIT_S)
            assert sorted(ran) == list(range(200))
            handles = [future.result(0) for future in futures]
            assert len({handle.id for handle in handles}) == 200
            assert sorted([await handle.result() for handle in handles]) == list(range(200))
            metrics = await scheduler.metrics()
            assert metrics.peak_running <= 4
            assert (metrics.submitted, metrics.completed, metrics.attempts) == (200, 200, 200)

    asyncio.run(main())


def test_case_124_many_threads_submit_the_same_key_and_there_is_one_job(scheduler: Scheduler) -> None:
    ran: list[int] = []

    @scheduler.task
    async def work() -> None:
        ran.append(1)

    async def main() -> None:
        ids: set[str] = set()

        def submit(_: int) -> None:
            for _ in range(20):
                ids.add(scheduler.submit_threadsafe(work.using(key="k").bind()).result(WAIT_S).id)

        async with scheduler:
            await asyncio.to_thread(in_threads, 10, submit)
            await scheduler.drain(timeout=WAIT_S)
        assert (len(ids), ran) == (1, [1])

    asyncio.run(main())


def test_errors_of_a_submit_from_a_thread_come_through_its_future(scheduler: Scheduler) -> None:
    @scheduler.task
    async def work() -> None: ...

    async def main() -> None:
        def submit() -> None:
            scheduler.submit_threadsafe(work.using(job_id="x", delay=60).bind()).result(WAIT_S)
            with pytest.raises(DuplicateJob):
                scheduler.submit_threadsafe(work.using(job_id="x").bind()).result(WAIT_S)
            with pytest.raises(UnknownJob):
                scheduler.submit_threadsafe(work.using(depends_on="nobody").bind()).result(WAIT_S)

        async with scheduler:
            await asyncio.to_thread(submit)

    asyncio.run(main())
    with pytest.raises(SchedulerClosed, match="not open"):
        scheduler.submit_threadsafe(work.bind())


def test_submits_from_threads_that_race_a_stop_end_one_way_or_the_other(scheduler: Scheduler) -> None:
    ran: list[int] = []

    @scheduler.task
    async def work(number: int) -> None:
        ran.append(number)

    taken: list[str] = []
    refused: list[SchedulerClosed] = []
    begun = threading.Event()

    def submit(index: int) -> None:
        for number in range(10_000):
            try:
                taken.append(scheduler.submit_threadsafe(work.bind(number)).result(WAIT_S).id)
                begun.set()
            except SchedulerClosed as error:
                refused.append(error)
                return

    async def main() -> None:
        await scheduler.start()
        racing = asyncio.ensure_future(asyncio.to_thread(in_threads, 3, submit))
        await asyncio.to_thread(begun.wait, WAIT_S)
        await scheduler.stop()
        await racing
        async with scheduler:
            await scheduler.drain(timeout=WAIT_S)
            jobs = [await scheduler.job(each) for each in taken]
            assert {await job.status() for job in jobs} == {COMPLETED}

    asyncio.run(main())
    assert len(refused) == 3
    assert len(ran) == len(taken)


# ---------------------------------------------------------------------------------------- blocking


def test_the_blocking_scheduler_makes_the_same_calls_without_await(scheduler: Scheduler) -> None:
    @scheduler.task
    async def add(a: int, b: int) -> int:
        return a + b

    @scheduler.task
    def fail(context: Context) -> None:
        context.progress(1, 2)
        raise ValueError("no")

    heard: list[JobEvent] = []
    with scheduler.blocking() as blocking:
        blocking.listen(heard.append)
        job = add.submit_blocking(1, 2)
        assert (job.result(timeout=WAIT_S), job.wait(), job.status()) == (3, COMPLETED, COMPLETED)
        assert blocking.submit(add.bind(2, 2)).result(WAIT_S) == 4
        assert [each.result() for each in blocking.submit_many([add.bind(n, 1) for n in range(3)])] == [
            1,
            2,
            3,
        ]
        graph = blocking.submit_graph({"b": (add.bind(1, 1), ["a"]), "a": add.bind(0, 1)})
        assert [each.result() for each in graph.values()] == [2, 1]
        bad = fail.submit_blocking()
        with pytest.raises(JobFailed, match="ValueError: no"):
            bad.result(timeout=WAIT_S)
        assert blocking.retry(bad.id).wait() == bad.info().status
        late = add.using(delay=600).submit_blocking(1, 1)
        with pytest.raises(TimeoutError):
            late.result(timeout=0)
        assert late.cancel() is CancelAnswer.CANCELLED
        assert blocking.cancel("nobody") is CancelAnswer.UNKNOWN
        assert blocking.job(job.id).id == job.id
        assert late.progress() is None
        assert [each.id for each in blocking.jobs(limit=1)] == [late.id]
        assert blocking.explain(job.id).reasons[0].code == job.explain().reasons[0].code
        blocking.pause_queue("default")
        waiting = add.submit_blocking(5, 5)
        assert waiting.status() is READY
        blocking.resume_queue("default")
        assert waiting.result(WAIT_S) == 10
        blocking.drain(timeout=WAIT_S)
        assert blocking.metrics().ready == 0
        blocking.stop()
        with pytest.raises(SchedulerClosed):
            add.submit_blocking(1, 1)
    with pytest.raises(SchedulerClosed, match="not open"):
        add.submit_blocking(1, 1)
    assert heard[0].after is READY


def test_blocking_can_be_entered_again_and_leaves_no_thread(scheduler: Scheduler) -> None:
    @scheduler.task
    async def give() -> int:
        return 1

    for _ in range(3):
        with scheduler.blocking():
            assert give.submit_blocking().result(timeout=WAIT_S) == 1
    assert not [thread for thread in threading.enumerate() if thread.name == "betimes-loop"]


def test_an_error_in_the_block_stops_the_scheduler_and_is_passed_on(scheduler: Scheduler) -> None:
    with pytest.raises(KeyError, match="mine"), scheduler.blocking():
        raise KeyError("mine")
    assert not [thread for thread in threading.enumerate() if thread.name == "betimes-loop"]


def test_a_start_that_fails_is_passed_on_and_leaves_no_thread() -> None:
    scheduler = Scheduler("/nowhere/at/all/jobs.db", watchdog=None)
    with pytest.raises(ConfigurationError), scheduler.blocking():
        pass
    assert not [thread for thread in threading.enumerate() if thread.name == "betimes-loop"]


def test_a_thread_job_may_submit_and_wait_for_another(scheduler: Scheduler) -> None:
    @scheduler.task
    def inner(number: int) -> int:
        return number + 1

    @scheduler.task
    def outer(number: int) -> int:
        first = inner.submit_blocking(number).result(timeout=WAIT_S)
        assert current_job().task == outer.name
        return first * 10

    async def main() -> None:
        async with scheduler:
            assert await (await outer.submit(1)).result(timeout=WAIT_S) == 20

    asyncio.run(main())


def test_a_blocking_call_where_it_would_block_for_ever_is_refused(scheduler: Scheduler) -> None:
    @scheduler.task
    async def work() -> None: ...

    async def main() -> None:
        async with scheduler:
            with pytest.raises(ConfigurationError, match="would block it for ever: await"):
                work.submit_blocking()

    asyncio.run(main())


def test_an_inline_thread_job_cannot_block_its_loop_either() -> None:
    clock = VirtualClock()

    async def main() -> None:
        scheduler = make_scheduler(clock)
        errors: list[str] = []

        @scheduler.task
        def outer() -> None:
            try:
                outer.submit_blocking()
            except ConfigurationError as error:
                errors.append(str(error))

        async with scheduler:
            await (await outer.submit()).wait()
        assert len(errors) == 1

    run_virtual(main(), clock=clock)


def test_a_stop_from_a_thread_job_is_refused(scheduler: Scheduler) -> None:
    errors: list[str] = []

    with scheduler.blocking() as blocking:

        @scheduler.task
        def stop() -> None:
            try:
                blocking.stop()
            except ConfigurationError as error:
                errors.append(str(error))

        assert stop.submit_blocking().wait(timeout=WAIT_S) is COMPLETED
    assert len(errors) == 1
    assert "a job cannot await stop()" in errors[0]


def test_calls_on_another_loop_are_refused_and_harm_nothing(scheduler: Scheduler) -> None:
    async def main() -> None:
        @scheduler.task
        async def work() -> int:
            return 1

        async def elsewhere() -> None:
            calls: list[Callable[[], Awaitable[object]]] = [
                work.submit,
                lambda: scheduler.submit_many([work.bind()]),
                lambda: scheduler.submit_graph({"one": work.bind()}),
                handle.status,
                handle.result,
                handle.cancel,
                handle.explain,
                scheduler.metrics,
                scheduler.jobs,
                scheduler.drain,
                scheduler.stop,
                scheduler.start,
                lambda: scheduler.pause_queue("default"),
            ]
            for call in calls:
                with pytest.raises(ConfigurationError, match="runs on another event loop"):
                    await call()

        async with scheduler:
            handle = await work.submit()
            await asyncio.to_thread(asyncio.run, elsewhere())
            assert await handle.result(timeout=WAIT_S) == 1
            assert (await scheduler.metrics()).submitted == 1

    asyncio.run(main())


def test_a_scheduler_whose_loop_has_gone_says_so() -> None:
    scheduler = Scheduler()

    async def start_only() -> None:
        await scheduler.start()

    async def use_again(call: Callable[[], Awaitable[object]]) -> None:
        with pytest.raises(SchedulerClosed, match="event loop ended before stop"):
            await call()

    asyncio.run(start_only())
    calls: list[Callable[[], Awaitable[object]]] = [scheduler.start, scheduler.stop, scheduler.drain]
    for call in [*calls, scheduler.jobs, scheduler.metrics]:
        asyncio.run(use_again(call))


def test_a_call_to_a_loop_that_is_gone_is_answered() -> None:
    async def nothing() -> int:
        return 1

    with LoopThread() as bridge:
        assert bridge.call(nothing()) == 1
    with pytest.raises(SchedulerClosed, match="event loop has ended"):
        bridge.call(nothing())


# ---------------------------------------------------------------------------------------- real threads


def test_thread_jobs_run_beside_each_other_up_to_their_cap() -> None:
    scheduler = Scheduler(concurrency=8, threads=3, watchdog=None)
    meeting = threading.Barrier(3)
    running, most = 0, 0
    lock = threading.Lock()

    @scheduler.task
    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        meeting.wait(WAIT_S)
        with lock:
            running -= 1

    async def main() -> None:
        async with scheduler:
            handles = [await work.submit() for _ in range(12)]
            assert [await handle.wait(timeout=WAIT_S) for handle in handles] == [COMPLETED] * 12
            assert (await scheduler.metrics()).peak_running == 3

    asyncio.run(main())
    assert most == 3


def test_p19_a_really_stuck_thread_keeps_its_slot_and_its_retry_waits_for_it() -> None:
    scheduler = Scheduler(concurrency=4, threads=2, watchdog=None)
    gate = threading.Event()
    starts: list[int] = []

    @scheduler.task(timeout=0.05, retry=2)
    def stuck(context: Context) -> str:
        starts.append(context.attempt)
        if context.attempt == 1:
            gate.wait(WAIT_S)
            assert context.cancelled
        return "second attempt"

    @scheduler.task
    def quick() -> None: ...

    async def main() -> None:
        timed_out = asyncio.Event()

        @scheduler.listen
        async def hear(event: JobEvent) -> None:
            if event.before is RUNNING and event.error is not None:
                timed_out.set()

        async with scheduler:
            handle = await stuck.submit()
            await asyncio.wait_for(timed_out.wait(), WAIT_S)
            assert [await (await quick.submit()).wait(timeout=WAIT_S) for _ in range(10)] == [COMPLETED] * 10
            metrics = await scheduler.metrics()
            assert (metrics.stuck_threads, starts) == (1, [1])
            gate.set()
            assert await handle.result(timeout=WAIT_S) == "second attempt"
            assert (starts, (await scheduler.metrics()).stuck_threads) == ([1, 2], 0)

    asyncio.run(main())


def test_a_stop_ends_the_threads_and_leaves_a_stuck_one_alone() -> None:
    scheduler = Scheduler(concurrency=3, grace=0.05, watchdog=None)
    gate, begun = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    @scheduler.task
    def work(*, sticks: bool) -> None:
        threads.append(threading.current_thread())
        if sticks:
            begun.set()
            gate.wait(WAIT_S)

    async def main() -> None:
        await scheduler.start()
        stuck = await work.submit(sticks=True)
        await asyncio.to_thread(begun.wait, WAIT_S)
        await (await work.submit(sticks=False)).wait(timeout=WAIT_S)
        await scheduler.stop(timeout=0.05)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        threads[1].join(WAIT_S)
        assert [thread.is_alive() for thread in threads] == [True, False]
        async with scheduler.client():
            assert await stuck.status() is READY

    asyncio.run(main())
    gate.set()
    threads[0].join(WAIT_S)


def test_a_cancelled_thread_job_is_over_when_it_returns() -> None:
    scheduler = Scheduler(watchdog=None)
    begun = threading.Event()

    @scheduler.task(timeout=WAIT_S)
    def work(context: Context) -> str:
        begun.set()
        while not context.cancelled:
            time.sleep(0.001)  # noqa: TID251 - a job that looks at its flag now and then
        return "told"

    async def main() -> None:
        async with scheduler:
            handle = await work.submit()
            await asyncio.to_thread(begun.wait, WAIT_S)
            assert await handle.cancel() is CancelAnswer.REQUESTED
            assert await handle.wait(timeout=WAIT_S) is CANCELLED

    asyncio.run(main())


def test_case_076_loop_and_thread_jobs_alternate_without_a_freeze(scheduler: Scheduler) -> None:
    @scheduler.task
    async def on_loop() -> int:
        return 1

    @scheduler.task
    def in_thread() -> int:
        return 2

    async def main() -> None:
        async with scheduler:
            total = 0
            for _ in range(20):
                total += await (await on_loop.submit()).result(timeout=WAIT_S)
                total += await (await in_thread.submit()).result(timeout=WAIT_S)
            assert total == 60

    asyncio.run(main())


def test_timeouts_and_errors_are_the_same_in_real_threads_on_real_time(scheduler: Scheduler) -> None:
    gate = threading.Event()

    @scheduler.task(timeout=0.05)
    def late() -> None:
        gate.wait(WAIT_S)

    async def main() -> None:
        async with scheduler:
            with pytest.raises(JobTimedOut):
                await (await late.submit()).result(timeout=WAIT_S)
            gate.set()

    asyncio.run(main())


def test_events_of_a_durable_store_are_told_in_order_under_load(scheduler: Scheduler) -> None:
    heard: dict[str, list[Any]] = {}

    def hear(event: JobEvent) -> None:
        heard.setdefault(event.job_id, []).append(event.after)

    scheduler.listen(hear)

    @scheduler.task
    async def work() -> None: ...

    async def main() -> None:
        async def submit() -> None:
            for _ in range(25):
                await work.submit()

        async with scheduler:
            await asyncio.gather(*(submit() for _ in range(8)))
            await scheduler.drain(timeout=WAIT_S)

    asyncio.run(main())
    assert len(heard) == 200
    assert all(path == [READY, RUNNING, COMPLETED] for path in heard.values())
