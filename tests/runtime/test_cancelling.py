"""Cancelling: in every state, at every moment, with its four answers; and what cancellation does not do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from tests.runtime.slow_store import SlowStore
from tests.runtime.stage import (
    BLOCKED,
    CANCELLED,
    COMPLETED,
    DELAYED,
    READY,
    RUNNING,
    Scene,
    StoreMaker,
    pass_time,
    play,
)

from betimes import (
    Cancel,
    CancelAnswer,
    Context,
    JobCancelled,
    JobFailed,
    JobHandle,
    JobStatus,
    RetryPolicy,
)
from betimes.testing import InlineExecutor, VirtualClock


def slow(clock: VirtualClock) -> SlowStore:
    return SlowStore(clock=clock)


def line_of(stage: Scene) -> SlowStore:
    line = stage.scheduler._store
    assert isinstance(line, SlowStore)
    return line


# ---------------------------------------------------------------------------------------- the four answers


@pytest.mark.parametrize("abandon", [False, True])
def test_p13_what_has_not_started_is_cancelled_in_every_state_and_never_starts(
    abandon: bool, store: StoreMaker
) -> None:
    async def scene(stage: Scene) -> None:
        ran: list[str] = []

        @stage.scheduler.task
        async def work(name: str) -> None:
            ran.append(name)
            await pass_time(50)

        await work.submit("busy")
        await stage.settle()
        handles: dict[JobStatus, JobHandle[None]] = {
            READY: await work.submit("ready"),
            DELAYED: await work.using(delay=10).submit("delayed"),
        }
        handles[BLOCKED] = await work.using(depends_on=handles[READY]).submit("blocked")
        for status in (BLOCKED, DELAYED, READY):
            handle = handles[status]
            assert await handle.status() is status
            assert await handle.cancel(abandon=abandon) is CancelAnswer.CANCELLED
            assert await handle.cancel(abandon=abandon) is CancelAnswer.FINISHED
            with pytest.raises(JobCancelled, match="requested"):
                await handle.result(timeout=0)
        await stage.scheduler.drain()
        assert ran == ["busy"]
        assert (await handles[READY].info()).attempt == 0

    play(scene, store=store, concurrency=1)


def test_a_running_job_is_told_and_is_over_when_its_code_has_returned(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        log: list[tuple[str, float]] = []

        @stage.scheduler.task(retry=5)
        async def work() -> None:
            try:
                await pass_time(100)
            finally:
                log.append(("told", stage.time))
                await pass_time(3)
                log.append(("cleaned up", stage.time))

        handle = await work.submit()
        await pass_time(1)
        assert await handle.cancel() is CancelAnswer.REQUESTED
        info = await handle.info()
        assert (info.status, info.cancel_requested) == (RUNNING, True)
        with pytest.raises(JobCancelled):
            await handle.result()
        assert log == [("told", 1.0), ("cleaned up", 4.0)]
        await stage.settle()
        assert stage.witness.path(handle) == [READY, RUNNING, CANCELLED]
        assert [each.outcome for each in (await handle.info()).attempts] == ["cancelled"]

    play(scene, store=store)


def test_cancelling_again_does_not_break_into_the_clean_up(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        cleaned: list[float] = []

        @stage.scheduler.task
        async def work() -> None:
            try:
                await pass_time(100)
            except asyncio.CancelledError:
                await pass_time(5)
                cleaned.append(stage.time)
                raise

        handle = await work.submit()
        await pass_time(1)
        for _ in range(3):
            assert await handle.cancel() is CancelAnswer.REQUESTED
            await pass_time(1)
        assert await handle.wait() is CANCELLED
        assert cleaned == [6.0]

    play(scene, store=store)


def test_a_cancel_that_is_ignored_still_ends_the_job_cancelled(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(retry=5)
        async def work(*, fails: bool) -> str:
            try:
                await pass_time(100)
            except asyncio.CancelledError:
                await pass_time(2)
            if fails:
                raise ValueError("after all")
            return "done after all"

        for fails in (False, True):
            handle = await work.submit(fails=fails)
            await pass_time(1)
            assert await handle.cancel() is CancelAnswer.REQUESTED
            assert await handle.wait() is CANCELLED
            assert (await handle.info()).attempt == 1

    play(scene, store=store)


def test_the_scheduler_cancels_by_id_and_knows_no_strangers(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work() -> None: ...

        old = await work.using(job_id="x").submit()
        await old.wait()
        new = await work.using(job_id="x", delay=5).submit()
        assert await stage.scheduler.cancel("x") is CancelAnswer.CANCELLED
        assert (await old.status(), await new.status()) == (COMPLETED, CANCELLED)
        assert await stage.scheduler.cancel("x") is CancelAnswer.FINISHED
        assert await stage.scheduler.cancel("nobody") is CancelAnswer.UNKNOWN

    play(scene, store=store)


@pytest.mark.parametrize("way", ["completed", "failed", "cancelled", "timed out"])
def test_too_late_is_finished(way: str, store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(timeout=5)
        async def work() -> None:
            if way == "failed":
                raise ValueError("no")
            if way == "cancelled":
                raise Cancel("I do not want to")
            await pass_time(10 if way == "timed out" else 0)

        handle = await work.submit()
        before = await handle.wait()
        assert await handle.cancel() is CancelAnswer.FINISHED
        assert await handle.cancel(abandon=True) is CancelAnswer.FINISHED
        assert await handle.status() is before

    play(scene, store=store)


def test_a_job_may_cancel_itself_with_a_reason(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(retry=5)
        async def work() -> None:
            raise Cancel("nothing to do today")

        @stage.scheduler.task(retry=5)
        def in_thread() -> None:
            raise Cancel

        with pytest.raises(JobCancelled, match="nothing to do today") as caught:
            await (await work.submit()).result()
        assert caught.value.reason == "nothing to do today"
        with pytest.raises(JobCancelled, match="cancelled by the job"):
            await (await in_thread.submit()).result()

    play(scene, store=store)


# ---------------------------------------------------------------------------------------- moments


def test_case_044_a_cancel_between_claim_and_start_keeps_the_code_from_running() -> None:
    async def scene(stage: Scene) -> None:
        ran: list[int] = []

        @stage.scheduler.task
        async def work() -> None:
            ran.append(1)

        gate = line_of(stage).hold("exchange", answers=True)
        handle = await work.submit()
        dependent = await work.using(depends_on=handle).submit()
        await gate.came.wait()
        assert await handle.status() is RUNNING  # claimed, and the answer is on its way
        waiting = asyncio.create_task(handle.wait())
        assert await handle.cancel() is CancelAnswer.REQUESTED
        gate.opened.set()
        assert await waiting is CANCELLED
        assert stage.time == 0.0
        assert await dependent.status() is CANCELLED
        info = await handle.info()
        assert (ran, info.reason, info.fence) == ([], "requested", 1)
        await stage.settle()
        assert stage.witness.path(handle) == [READY, RUNNING, CANCELLED]
        metrics = await stage.scheduler.metrics()
        assert (metrics.attempts, metrics.cancelled, metrics.in_flight) == (0, 2, 0)

    play(scene, store=slow)


def test_case_044_an_abandoned_claim_is_not_started_either() -> None:
    async def scene(stage: Scene) -> None:
        ran: list[int] = []

        @stage.scheduler.task
        async def work() -> None:
            ran.append(1)

        gate = line_of(stage).hold("exchange", answers=True)
        handle = await work.submit()
        await gate.came.wait()
        assert await handle.cancel(abandon=True) is CancelAnswer.CANCELLED
        gate.opened.set()
        await stage.settle()
        assert (ran, await handle.status()) == ([], CANCELLED)
        metrics = await stage.scheduler.metrics()
        assert (metrics.attempts, metrics.in_flight, metrics.stuck) == (0, 0, 0)
        assert await (await work.submit()).wait(timeout=1) is COMPLETED

    play(scene, store=slow, checked=False, witnessed=False)


def test_a_cancel_whose_answer_is_late_is_obeyed_all_the_same() -> None:
    async def scene(stage: Scene) -> None:
        told: list[float] = []

        @stage.scheduler.task
        async def work() -> None:
            try:
                await pass_time(100)
            except asyncio.CancelledError:
                told.append(stage.time)
                raise

        line = line_of(stage)
        handle = await work.submit()
        await pass_time(1)
        gate = line.hold("cancel", answers=True)
        cancelling = asyncio.create_task(handle.cancel())
        await gate.came.wait()
        await pass_time(1)
        gate.opened.set()
        assert await cancelling in {CancelAnswer.REQUESTED, CancelAnswer.FINISHED}
        assert await handle.wait() is CANCELLED
        assert len(told) == 1

    play(scene, store=slow)


def test_a_cancel_racing_the_end_of_the_code_has_one_outcome() -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work() -> str:
            await pass_time(0.7)
            return "done"

        line = line_of(stage)
        # The outcome is on its way to the store when the cancel overtakes it.
        overtaken = await work.submit()
        await pass_time(0.5)
        gate = line.hold("exchange")
        await gate.came.wait()
        assert await overtaken.cancel() is CancelAnswer.REQUESTED
        gate.opened.set()
        assert await overtaken.wait() is CANCELLED
        # The outcome is in the store, and only the answer is on its way.
        line.let_through()
        stored = await work.submit()
        await pass_time(0.5)
        gate = line.hold("exchange", answers=True)
        await gate.came.wait()
        assert await stored.cancel() is CancelAnswer.FINISHED
        gate.opened.set()
        assert await stored.result() == "done"
        await stage.settle()

    play(scene, store=slow)


def test_case_048_many_are_cancelled_together_and_the_worker_goes_on(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work(seconds: float) -> None:
            await pass_time(seconds)

        handles = await stage.scheduler.submit_many([work.bind(1000.0)] * 50)
        await stage.settle()
        assert (await stage.scheduler.metrics()).running == 50
        answers = await asyncio.gather(*(handle.cancel() for handle in handles))
        assert answers == [CancelAnswer.REQUESTED] * 50
        assert [await handle.wait() for handle in handles] == [CANCELLED] * 50
        again = [await stage.scheduler.cancel(handle.id) for handle in handles]
        assert again == [CancelAnswer.FINISHED] * 50
        await (await work.submit(0.0)).result(timeout=1)
        assert stage.time == 0.0

    play(scene, store=store, concurrency=50)


# ---------------------------------------------------------------------------------------- abandoning


def test_an_abandoned_job_is_over_at_once_and_its_slot_stays_taken(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def stuck() -> str:
            while stage.time < 20:
                try:
                    await pass_time(20 - stage.time)
                except asyncio.CancelledError:
                    continue
            return "nobody hears this"

        @stage.scheduler.task
        async def when() -> float:
            return stage.time

        handle = await stuck.submit()
        await pass_time(1)
        assert await handle.cancel(abandon=True) is CancelAnswer.CANCELLED
        assert await handle.wait(timeout=0) is CANCELLED
        waiting = await when.submit()
        metrics = await stage.scheduler.metrics()
        assert (metrics.stuck, metrics.stuck_threads, metrics.in_flight, metrics.running) == (1, 0, 1, 0)
        assert await waiting.result() == 20.0
        metrics = await stage.scheduler.metrics()
        assert (metrics.stuck, metrics.in_flight, metrics.cancelled, metrics.completed) == (0, 0, 1, 1)
        assert await handle.status() is CANCELLED

    play(scene, store=store, concurrency=1)


def test_an_abandoned_thread_counts_as_stuck_until_it_returns(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        told: list[Callable[[], bool]] = []

        @stage.scheduler.task
        def stuck(context: Context) -> None:
            told.append(lambda: context.cancelled)

        handle = await stuck.submit()
        await stage.settle()
        assert not told[0]()
        assert await handle.cancel(abandon=True) is CancelAnswer.CANCELLED
        assert told[0]()
        metrics = await stage.scheduler.metrics()
        assert (metrics.stuck_threads, metrics.stuck) == (1, 1)
        await pass_time(30.5)
        assert (await stage.scheduler.metrics()).stuck_threads == 0

    play(scene, store=store, executors=[InlineExecutor(takes_s=lambda run: 30.0)])


def test_an_abandoned_job_may_be_retried_once_its_code_has_returned(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        spans: list[tuple[float, float]] = []

        @stage.scheduler.task
        async def work() -> None:
            begun = stage.time
            try:
                await pass_time(10)
            except asyncio.CancelledError:
                await pass_time(10)
            spans.append((begun, stage.time))

        handle = await work.using(job_id="x").submit()
        await pass_time(1)
        await handle.cancel(abandon=True)
        await stage.scheduler.retry("x")
        assert await handle.wait() is COMPLETED
        assert spans == [(0.0, 11.0), (11.0, 21.0)]

    play(scene, store=store, checked=False)


# ---------------------------------------------------------------------------------------- what is absorbed


def test_case_050_a_cancelled_error_of_the_jobs_own_fails_that_job_alone(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def raises() -> None:
            raise asyncio.CancelledError("mine")

        @stage.scheduler.task
        async def awaits_a_cancelled_task() -> None:
            task = asyncio.ensure_future(pass_time(100))
            task.cancel()
            await task

        @stage.scheduler.task
        def in_thread() -> None:
            raise asyncio.CancelledError

        @stage.scheduler.task
        async def innocent() -> str:
            await pass_time(5)
            return "fine"

        handle = await innocent.submit()
        for task in (raises, awaits_a_cancelled_task, in_thread):
            with pytest.raises(JobFailed, match="CancelledError"):
                await (await task.submit()).result(timeout=1)
        assert await handle.result() == "fine"
        assert (await stage.scheduler.metrics()).failed == 3

    play(scene, store=store)


def test_exits_and_interrupts_of_a_job_are_its_own_failure(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def leaves() -> None:
            raise SystemExit(3)

        @stage.scheduler.task
        def leaves_a_thread() -> None:
            raise SystemExit(4)

        with pytest.raises(JobFailed, match="SystemExit: 3"):
            await (await leaves.submit()).result(timeout=1)
        with pytest.raises(JobFailed, match="SystemExit: 4"):
            await (await leaves_a_thread.submit()).result(timeout=1)

    play(scene, store=store)


def test_only_a_cancellation_of_the_workers_own_task_is_passed_on(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(stage: Scene) -> None:
        ended: list[str] = []

        @stage.scheduler.task
        async def work() -> None:
            try:
                await pass_time(100)
            finally:
                ended.append("told")

        handle = await work.submit()
        await pass_time(1)
        (pump,) = [task for task in asyncio.all_tasks() if task.get_name() == "betimes-worker"]
        pump.cancel()
        await stage.settle()
        assert pump.cancelled()
        assert "was cancelled from outside" in caplog.text
        # It can still be stopped in order, and started again.
        await stage.scheduler.stop(timeout=5)
        assert ended == ["told"]
        await stage.scheduler.start()
        await handle.cancel()
        assert await handle.wait() is CANCELLED

    play(scene, checked=False)


def test_a_job_that_is_cancelled_before_its_first_step_never_runs() -> None:
    async def scene(stage: Scene) -> None:
        ran: list[str] = []

        @stage.scheduler.task
        async def first(other: str) -> None:
            assert await stage.scheduler.cancel(other) is CancelAnswer.REQUESTED

        @stage.scheduler.task
        async def second() -> None:
            ran.append("second")

        await stage.scheduler.submit_many(
            [first.using(job_id="a").bind("b"), second.using(job_id="b").bind()]
        )
        handle = await stage.scheduler.job("b")
        assert await handle.wait() is CANCELLED
        assert ran == []

    play(scene)


def test_a_job_may_cancel_its_own_job(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work(context: Context, *, waits: bool) -> str:
            assert await stage.scheduler.cancel(context.job_id) is CancelAnswer.REQUESTED
            if waits:
                await pass_time(10)
            return "done"

        for waits in (True, False):
            assert await (await work.submit(waits=waits)).wait() is CANCELLED
        assert stage.time == 0.0

    play(scene, store=store)


def test_a_thread_job_sees_that_it_was_told() -> None:
    async def scene(stage: Scene) -> None:
        contexts: list[Context] = []

        @stage.scheduler.task
        def work(context: Context) -> None:
            contexts.append(context)
            context.raise_if_cancelled()

        handle = await work.submit()
        await stage.settle()
        assert not contexts[0].cancelled
        assert await handle.cancel() is CancelAnswer.REQUESTED
        assert contexts[0].cancelled
        with pytest.raises(Cancel, match="told to stop"):
            contexts[0].raise_if_cancelled()
        assert await handle.status() is RUNNING
        assert await handle.wait() is CANCELLED
        assert stage.time == 10.0

    play(scene, executors=[InlineExecutor(takes_s=lambda run: 10.0)])


def test_a_cancel_during_a_retrys_wait_ends_it(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(retry=RetryPolicy(5, base_delay=10, jitter=False))
        async def work() -> None:
            raise ValueError("again")

        handle = await work.submit()
        await pass_time(1)
        assert await handle.status() is DELAYED
        assert await handle.cancel() is CancelAnswer.CANCELLED
        await stage.settle()
        assert stage.witness.path(handle) == [READY, RUNNING, DELAYED, CANCELLED]
        assert (await stage.scheduler.metrics()).attempts == 1

    play(scene, store=store)
