"""A task's retry budget: retries stay a share of its starts, and what is refused says so."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.stage import (
    COMPLETED,
    FAILED,
    TIMED_OUT,
    Scene,
    StoreMaker,
    make_scheduler,
    pass_time,
    play,
)

from betimes import (
    ConfigurationError,
    Context,
    JobFailed,
    NonRetryableError,
    RetryBudget,
    RetryPolicy,
    Snooze,
)
from betimes.testing import InlineExecutor, VirtualClock, run_virtual

AT_ONCE = RetryPolicy(5, base_delay=0)


def module_work() -> None: ...


def test_a8_a_thousand_failing_jobs_are_retried_a_hundred_times_or_so(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(retry=RetryPolicy(1000, base_delay=0), retry_budget=RetryBudget(0.1, "1h"))
        async def work() -> None:
            raise ConnectionError("down")

        await stage.scheduler.submit_many([work.bind() for _ in range(1000)])
        await stage.scheduler.drain()
        metrics = await stage.scheduler.metrics()
        assert metrics.failed == 1000
        assert metrics.attempts == 1000 + metrics.retries
        assert metrics.retries <= 0.1 * metrics.attempts
        # The first ones fail while few have started, so a little less than the whole share comes about.
        assert metrics.retries >= 100
        assert metrics.retries_denied == 1000

    play(scene, store=store, concurrency=100)


def test_a_refused_retry_ends_the_job_and_says_why(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(name="work", retry=AT_ONCE, retry_budget=RetryBudget(0.25, "30s"))
        async def work() -> None:
            raise ConnectionError("down")

        first = await work.submit()
        assert await first.wait() is FAILED
        info = await first.info()
        assert (info.attempt, info.reason) == (
            2,
            "not retried: the retry budget of task work is spent (0.25 of its starts in 30 s)",
        )
        with pytest.raises(JobFailed, match="ConnectionError: down"):
            await first.result()
        text = str(await first.explain())
        assert "the retry budget of task work is spent" in text
        await pass_time(31)
        second = await work.submit()
        await second.wait()
        assert (await second.info()).attempt == 2, "one retry a window is always there"

    play(scene, store=store)


def test_timeouts_are_counted_as_other_failures_are(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(retry=AT_ONCE, retry_budget=RetryBudget(0.1, "1h"), timeout=1)
        async def work() -> None:
            await pass_time(60)

        job = await work.submit()
        assert await job.wait() is TIMED_OUT
        info = await job.info()
        assert info.attempt == 2
        assert "retry budget" in str(info.reason)

    play(scene, store=store)


def test_a_late_thread_is_judged_once_though_it_returns_later(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(retry=AT_ONCE, retry_budget=RetryBudget(1.0, "1h"), timeout=1)
        def work() -> None:
            raise ValueError("late, too")

        jobs = [await work.submit() for _ in range(4)]
        assert [await job.wait() for job in jobs] == [TIMED_OUT] * 4
        metrics = await stage.scheduler.metrics()
        assert (metrics.retries_denied, metrics.retries, metrics.attempts) == (0, 16, 20)
        await pass_time(100)

    play(scene, store=store, executors=[InlineExecutor(takes_s=lambda run: 5.0)])


def test_what_would_not_be_retried_anyway_uses_up_nothing(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(retry=AT_ONCE, retry_budget=RetryBudget(0.1, "1h"))
        async def work(context: Context, way: str) -> None:
            if way == "hopeless":
                raise NonRetryableError
            if way == "snooze" and stage.time < 5:
                raise Snooze(10)
            if way == "once" and context.attempt == 1:
                raise ConnectionError

        for way in ("hopeless", "hopeless", "snooze", "snooze"):
            await work.submit(way)
        await pass_time(1)
        once = await work.submit("once")
        assert await once.wait() is COMPLETED
        assert (await once.info()).attempt == 2
        assert (await stage.scheduler.metrics()).retries_denied == 0
        await stage.scheduler.drain()

    play(scene, store=store)


def test_each_task_has_a_budget_of_its_own(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        budget = RetryBudget(0.01, "1h")

        async def fails() -> None:
            raise ConnectionError

        tasks = [stage.scheduler.task(name=n, retry=AT_ONCE, retry_budget=budget)(fails) for n in "ab"]
        free = stage.scheduler.task(name="free", retry=AT_ONCE)(fails)
        jobs = [await task.submit() for task in (*tasks, free)]
        await stage.scheduler.drain()
        assert [(await job.info()).attempt for job in jobs] == [2, 2, 5]

    play(scene, store=store)


def test_an_operator_s_retry_is_not_a_matter_of_the_budget(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        fails = True

        @stage.scheduler.task(retry=AT_ONCE, retry_budget=RetryBudget(0.1, "1h"))
        async def work() -> None:
            if fails:
                raise ConnectionError

        job = await work.submit()
        assert await job.wait() is FAILED
        fails = False
        again = await stage.scheduler.retry(job.id)
        assert await again.wait() is COMPLETED

    play(scene, store=store, checked=False)


@pytest.mark.parametrize("wrong", [0.1, True, "0.1", [RetryBudget()], RetryBudget])
def test_a_budget_is_given_as_one(wrong: Any) -> None:
    async def main(clock: VirtualClock) -> None:
        scheduler = make_scheduler(clock)
        with pytest.raises(ConfigurationError, match=r"^retry_budget is .*; write retry_budget=RetryBudget"):
            scheduler.task(retry_budget=wrong)(module_work)

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)
