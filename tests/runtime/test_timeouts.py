"""Timeouts: recorded at our own deadline, whatever the code does; and what its slot is then."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from tests.runtime.stage import (
    CANCELLED,
    COMPLETED,
    DELAYED,
    READY,
    RUNNING,
    TIMED_OUT,
    Scene,
    StoreMaker,
    pass_time,
    play,
)

from betimes import Context, JobTimedOut, RetryPolicy
from betimes.ports import Run
from betimes.testing import InlineExecutor
from betimes.testing.clock import DEFAULT_START


@pytest.mark.parametrize("timeout", [2.5, "2500ms", timedelta(seconds=2.5)])
def test_an_attempt_ends_at_its_timeout(timeout: Any, store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        told: list[float] = []

        @stage.scheduler.task(timeout=timeout)
        async def work(seconds: float) -> str:
            try:
                await pass_time(seconds)
            except asyncio.CancelledError:
                told.append(stage.time)
                raise
            return "in time"

        late, good = await work.submit(9.0), await work.submit(2.0)
        assert await good.result() == "in time"
        with pytest.raises(JobTimedOut, match=r"the attempt passed its timeout of 2\.5 s"):
            await late.result()
        assert (stage.time, told) == (2.5, [2.5])
        info = await late.info()
        assert info.finished_at == DEFAULT_START + timedelta(seconds=2.5)
        assert info.error is not None
        assert info.error.type == "betimes.errors.JobTimedOut"

    play(scene, store=store)


def test_p26_case_052_a_timeout_holds_against_code_that_swallows_cancellation(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(timeout=1)
        async def stubborn() -> None:
            while stage.time < 50:
                try:
                    await pass_time(1)
                except asyncio.CancelledError:
                    continue

        @stage.scheduler.task
        async def when() -> float:
            return stage.time

        handle = await stubborn.submit()
        assert await handle.wait() is TIMED_OUT
        assert stage.time == 1.0
        metrics = await stage.scheduler.metrics()
        assert (metrics.stuck, metrics.in_flight, metrics.running, metrics.timed_out) == (1, 1, 0, 1)
        # Its slot is its own until it returns; the others are free.
        others = [await when.submit() for _ in range(4)]
        assert [await other.result() for other in others] == [1.0] * 4
        await pass_time(60)
        metrics = await stage.scheduler.metrics()
        assert (metrics.stuck, metrics.in_flight) == (0, 0)
        assert await handle.status() is TIMED_OUT

    play(scene, store=store, concurrency=2)


def test_p26_the_next_attempt_waits_until_the_code_of_the_last_has_returned(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        spans: list[tuple[float, float]] = []

        @stage.scheduler.task(timeout=2, retry=RetryPolicy(3, base_delay=1, jitter=False))
        async def stubborn() -> None:
            begun = stage.time
            while stage.time < begun + 10:
                try:
                    await pass_time(10 - (stage.time - begun))
                except asyncio.CancelledError:
                    continue
            spans.append((begun, stage.time))

        handle = await stubborn.submit()
        assert await handle.wait() is TIMED_OUT
        assert [round(each, 6) for span in spans for each in span] == [0, 10, 10, 20]
        await stage.scheduler.drain()
        info = await handle.info()
        assert [(each.attempt, each.outcome) for each in info.attempts] == [
            (1, "timed_out"),
            (2, "timed_out"),
            (3, "timed_out"),
        ]
        ends = [each.ended_at for each in info.attempts]
        assert ends == [DEFAULT_START + timedelta(seconds=second) for second in (2, 12, 22)]
        await pass_time(20)
        await stage.settle()
        assert stage.witness.path(handle) == [READY, *[RUNNING, DELAYED, READY] * 2, RUNNING, TIMED_OUT]

    play(scene, store=store)


def test_a_retry_that_must_wait_for_its_code_does_not_hold_up_others(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(timeout=1, retry=RetryPolicy(2, base_delay=0), priority=9)
        async def stubborn() -> None:
            begun = stage.time
            while stage.time < begun + 30:
                try:
                    await pass_time(1)
                except asyncio.CancelledError:
                    continue

        @stage.scheduler.task
        async def when() -> float:
            return stage.time

        handle = await stubborn.submit()
        await pass_time(1.5)
        assert await handle.status() is READY
        others = [await when.submit() for _ in range(3)]
        assert [await other.result(timeout=1) for other in others] == [1.5] * 3
        assert await handle.wait() is TIMED_OUT
        assert stage.time == 31.0
        await pass_time(40)

    play(scene, store=store, concurrency=2)


def test_case_072_a_stuck_thread_is_recorded_at_its_deadline_and_keeps_its_slot(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        contexts: list[Context] = []

        @stage.scheduler.task(timeout=1)
        def stuck(context: Context) -> None:
            contexts.append(context)

        @stage.scheduler.task
        def quick() -> None: ...

        handles = [await stuck.submit() for _ in range(4)]
        assert [await handle.wait() for handle in handles] == [TIMED_OUT] * 4
        assert (stage.time, all(context.cancelled for context in contexts)) == (1.0, True)
        waiting = [await quick.submit() for _ in range(4)]
        metrics = await stage.scheduler.metrics()
        assert (metrics.stuck_threads, metrics.in_flight, metrics.ready, metrics.running) == (4, 4, 4, 0)
        assert [await handle.wait() for handle in waiting] == [COMPLETED] * 4
        assert stage.time == 30.0
        metrics = await stage.scheduler.metrics()
        assert (metrics.stuck_threads, metrics.timed_out, metrics.completed) == (0, 4, 4)

    def takes(run: Run) -> float:
        return 30.0 if run.job.spec.task.endswith(".stuck") else 0.0

    play(scene, store=store, concurrency=8, executors=[InlineExecutor(slots=4, takes_s=takes)])


def test_a_drain_does_not_wait_for_code_whose_outcome_is_recorded(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(timeout=1)
        async def stubborn() -> None:
            while stage.time < 50:
                try:
                    await pass_time(50)
                except asyncio.CancelledError:
                    continue

        await stubborn.submit()
        await stage.scheduler.drain()
        assert stage.time == 1.0
        await pass_time(60)

    play(scene, store=store)


def test_what_late_code_returns_or_raises_changes_nothing(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(timeout=1)
        async def late(*, fails: bool) -> str:
            try:
                await pass_time(5)
            except asyncio.CancelledError:
                await pass_time(5)
            if fails:
                raise ValueError("late")
            return "late"

        handles = [await late.submit(fails=fails) for fails in (False, True)]
        await pass_time(20)
        assert [await handle.status() for handle in handles] == [TIMED_OUT] * 2
        await stage.settle()
        assert stage.witness.path(handles[0]) == [READY, RUNNING, TIMED_OUT]
        assert (await stage.scheduler.metrics()).stale_reports == 0

    play(scene, store=store)


def test_timeouts_of_many_jobs_hold_each_at_its_instant() -> None:
    async def scene(stage: Scene) -> None:
        ends: dict[int, float] = {}

        @stage.scheduler.task
        async def work(number: int) -> None:
            try:
                await pass_time(1000)
            finally:
                ends[number] = stage.time

        order = [7, 3, 9, 1, 5, 2, 8, 6, 4]
        await stage.scheduler.submit_many([work.using(timeout=number).bind(number) for number in order])
        await stage.scheduler.drain()
        assert ends == {number: float(number) for number in order}

    play(scene)


def test_a_timeout_counts_from_the_start_of_each_attempt(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        deadlines: list[object] = []

        @stage.scheduler.task(timeout=10, retry=RetryPolicy(2, base_delay=20, jitter=False))
        async def work(context: Context) -> None:
            deadlines.append(context.deadline)
            await pass_time(8)
            if context.attempt == 1:
                raise ValueError("again")

        handle = await work.using(delay=5).submit()
        assert await handle.wait() is COMPLETED
        assert deadlines == [DEFAULT_START + timedelta(seconds=second) for second in (15, 43)]

    play(scene, store=store)


def test_a_job_whose_cancel_was_requested_ends_cancelled_at_its_timeout(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(timeout=5, retry=3)
        async def stubborn() -> None:
            while stage.time < 20:
                try:
                    await pass_time(1)
                except asyncio.CancelledError:
                    continue

        handle = await stubborn.submit()
        await pass_time(1)
        await handle.cancel()
        assert await handle.wait() is CANCELLED
        assert stage.time == 5.0
        await pass_time(30)

    play(scene, store=store)
