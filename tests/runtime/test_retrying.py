"""Retries: when, how often, for which errors; snoozes, and jobs that may start only once."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.runtime.slow_store import SlowStore, failing
from tests.runtime.stage import (
    COMPLETED,
    DELAYED,
    FAILED,
    READY,
    RUNNING,
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
    JobHandle,
    JobStatus,
    NonRetryableError,
    RetryPolicy,
    Snooze,
)
from betimes.clock import new_rng
from betimes.testing import VirtualClock, run_virtual


def starts_of(scene_options: dict[str, Any], **task_options: Any) -> list[float]:
    """When a job that always fails starts, attempt by attempt."""
    starts: list[float] = []

    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(**task_options)
        async def fail() -> None:
            starts.append(stage.time)
            raise ValueError("again")

        assert await (await fail.submit()).wait() is FAILED

    play(scene, **scene_options)
    return starts


def test_without_a_policy_there_is_one_attempt(store: StoreMaker) -> None:
    assert starts_of({"store": store}) == [0.0]


def test_a_job_that_is_cancelled_before_its_retry_shows_each_attempt_once(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(retry=RetryPolicy(5, base_delay=10, jitter=False))
        async def fail() -> None:
            raise ValueError("again")

        job = await fail.submit()
        await pass_time(15)  # the second attempt has failed, the third is to come
        await job.cancel()
        info = await job.info()
        assert info.status is JobStatus.CANCELLED
        assert [(each.attempt, each.outcome) for each in info.attempts] == [(1, "failed"), (2, "failed")]

    play(scene, store=store)


def test_case_085_a_retry_happens_with_no_setting_or_service_of_its_own() -> None:
    assert len(starts_of({}, retry=3)) == 3


def test_p11_a_number_is_the_most_attempts(store: StoreMaker) -> None:
    assert len(starts_of({"store": store}, retry=4)) == 4


def test_case_079_delays_double_from_the_base_up_to_the_cap(store: StoreMaker) -> None:
    policy = RetryPolicy(6, base_delay=1, max_delay=5, jitter=False)
    assert starts_of({"store": store}, retry=policy) == [0, 1, 3, 7, 12, 17]


def test_the_default_base_is_a_second_and_the_seed_decides_the_jitter() -> None:
    starts = [starts_of({"rng": new_rng(seed)}, retry=4) for seed in (5, 5, 6)]
    delays = [after - before for before, after in zip(starts[0], starts[0][1:], strict=False)]
    assert all(0 <= delay <= cap for delay, cap in zip(delays, (1, 2, 4), strict=True))
    assert starts[0] == starts[1] != starts[2]


def test_jitter_is_drawn_between_zero_and_the_cap() -> None:
    class Half(random.Random):
        def uniform(self, a: float, b: float) -> float:
            assert a == 0
            return b / 2

    policy = RetryPolicy(4, base_delay=2, max_delay=6)
    assert starts_of({"rng": Half(1)}, retry=policy) == [0, 1, 3, 6]


@pytest.mark.parametrize("delay", [0, "0s"])
def test_a_base_of_zero_retries_at_once(delay: Any, store: StoreMaker) -> None:
    assert starts_of({"store": store}, retry=RetryPolicy(3, base_delay=delay)) == [0, 0, 0]


def test_only_the_classes_named_are_retried(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        policy = RetryPolicy(3, base_delay=0, retry_on=(OSError, KeyError), never=(FileNotFoundError,))

        @stage.scheduler.task(retry=policy)
        async def work(name: str) -> None:
            raise {"os": OSError, "file": FileNotFoundError, "key": KeyError, "value": ValueError}[name]

        async def attempts(name: str) -> int:
            handle = await work.submit(name)
            assert await handle.wait() is FAILED
            return (await handle.info()).attempt

        assert {name: await attempts(name) for name in ("os", "file", "key", "value")} == {
            "os": 3,
            "file": 1,
            "key": 3,
            "value": 1,
        }

    play(scene, store=store)


def test_errors_outside_exception_are_not_retried_by_default(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(retry=3)
        async def leave() -> None:
            raise SystemExit(1)

        handle = await leave.submit()
        assert await handle.wait() is FAILED
        assert (await handle.info()).attempt == 1

    play(scene, store=store)


def test_a_non_retryable_error_fails_at_once(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        class Hopeless(NonRetryableError):
            pass

        @stage.scheduler.task(retry=5)
        async def work() -> None:
            raise Hopeless("no use")

        @stage.scheduler.task(retry=RetryPolicy(5, retry_on=(NonRetryableError,)))
        def in_thread() -> None:
            raise NonRetryableError("none here either")

        for task, text in ((work, "Hopeless: no use"), (in_thread, "none here either")):
            handle: JobHandle[None] = await task.submit()
            with pytest.raises(JobFailed, match=text):
                await handle.result()
            assert (await handle.info()).attempt == 1

    play(scene, store=store)


def test_timeouts_are_retried_whatever_retry_on_says(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(
            timeout=1, retry=RetryPolicy(3, base_delay=0, retry_on=(KeyError,), never=(TimeoutError,))
        )
        async def work() -> None:
            await pass_time(5)

        handle = await work.submit()
        assert await handle.wait() is TIMED_OUT
        assert ((await handle.info()).attempt, stage.time) == (3, 3.0)

    play(scene, store=store)


def test_a_success_ends_the_retries(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(retry=RetryPolicy(5, base_delay=1, jitter=False))
        async def work(context: Context) -> int:
            if context.attempt < 3:
                raise ValueError(f"attempt {context.attempt}")
            return context.attempt

        handle = await work.submit()
        assert await handle.result() == 3
        info = await handle.info()
        errors = [each.error.message for each in info.attempts if each.error is not None]
        assert (errors, info.error) == (["attempt 1", "attempt 2"], None)
        await stage.settle()
        assert stage.witness.path(handle) == [READY, *[RUNNING, DELAYED, READY] * 2, RUNNING, COMPLETED]
        metrics = await stage.scheduler.metrics()
        assert (metrics.attempts, metrics.retries, metrics.completed, metrics.failed) == (3, 2, 1, 0)

    play(scene, store=store)


@pytest.mark.parametrize(
    ("own", "starts"), [(2, [0, 4]), (None, [0]), (RetryPolicy(3, 1, jitter=False), [0, 1, 3])]
)
def test_a_jobs_own_retry_stands_for_the_tasks(own: Any, starts: list[float], store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        ran: list[float] = []

        @stage.scheduler.task(retry=RetryPolicy(9, base_delay=4, jitter=False))
        async def work() -> None:
            ran.append(stage.time)
            raise ValueError("again")

        assert await (await work.using(retry=own).submit()).wait() is FAILED
        assert ran == starts

    play(scene, store=store)


def test_a_jobs_own_policy_cannot_change_the_classes() -> None:
    scheduler = make_scheduler(VirtualClock())

    @scheduler.task(retry=RetryPolicy(3, retry_on=(OSError,)))
    async def work() -> None: ...

    with pytest.raises(ConfigurationError, match="retry_on"):
        work.using(retry=RetryPolicy(5, retry_on=(ValueError,)))
    work.using(retry=RetryPolicy(5, retry_on=(OSError,)))


# ---------------------------------------------------------------------------------------- snooze


def test_a_snooze_comes_back_later_and_uses_no_attempt(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        seen: list[tuple[float, int, int]] = []

        @stage.scheduler.task(retry=RetryPolicy(2, base_delay=1, jitter=False))
        async def work(context: Context) -> str:
            seen.append((stage.time, context.attempt, context.fence))
            if len(seen) in {1, 2, 4}:
                raise Snooze("5m")
            if len(seen) == 3:
                raise ValueError("once")
            return "done"

        handle = await work.submit()
        await pass_time(1)
        assert await handle.status() is DELAYED
        assert await handle.result() == "done"
        assert seen == [(0, 1, 1), (300, 1, 2), (600, 1, 3), (601, 2, 4), (901, 2, 5)]
        assert [(each.attempt, each.outcome) for each in (await handle.info()).attempts] == [
            (1, "snoozed"),
            (1, "snoozed"),
            (1, "failed"),
            (2, "snoozed"),
            (2, "completed"),
        ]
        metrics = await stage.scheduler.metrics()
        assert (metrics.snoozes, metrics.retries, metrics.attempts) == (3, 1, 5)

    play(scene, store=store)


def test_a_snooze_of_no_time_runs_again_at_once_and_uses_no_attempt(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        attempts: list[int] = []

        @stage.scheduler.task
        async def work(ctx: Context) -> float:
            attempts.append(ctx.attempt)
            if len(attempts) < 20:
                raise Snooze(0)
            return stage.time

        assert await (await work.submit()).result() == 0.0
        assert attempts == [1] * 20

    play(scene, store=store)


@pytest.mark.parametrize("delay", [-1, "soon", None, float("nan")])
def test_a_snooze_without_a_duration_fails_the_job(delay: Any) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(retry=5)
        def work() -> None:
            raise Snooze(delay)

        handle = await work.submit()
        with pytest.raises(JobFailed, match="Snooze"):
            await handle.result()
        assert (await handle.info()).attempt == 1

    play(scene)


# ---------------------------------------------------------------------------------------- at most once


def test_p12_a_job_that_may_start_only_once_is_not_retried(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        starts: list[str] = []

        @stage.scheduler.task(delivery="at_most_once", retry=5, timeout=3)
        async def work(name: str) -> None:
            starts.append(name)
            if name == "late":
                await pass_time(10)
            raise ValueError(name)

        assert await (await work.submit("error")).wait() is FAILED
        assert await (await work.submit("late")).wait() is TIMED_OUT
        assert starts == ["error", "late"]

    play(scene, store=store)


def test_p12_a_job_that_may_start_only_once_cannot_snooze(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        starts: list[int] = []

        @stage.scheduler.task(delivery="at_most_once", retry=5)
        async def later() -> None:
            starts.append(1)
            raise Snooze(1)

        handle = await later.submit()
        assert await handle.wait() is FAILED
        assert "only once" in str((await handle.info()).error)
        assert starts == [1]

    play(scene, store=store)


def test_p12_a_stop_does_not_give_a_job_back_that_may_start_only_once(store: StoreMaker) -> None:
    starts: list[str] = []
    clock = VirtualClock()

    async def main() -> None:
        scheduler = make_scheduler(clock, store(clock))

        async def work(name: str) -> None:
            starts.append(name)
            if len(starts) <= 2:
                await pass_time(100)

        once = scheduler.task(name="once", delivery="at_most_once")(work)
        often = scheduler.task(name="often")(work)
        async with scheduler:
            handles = [await once.submit("once"), await often.submit("often")]
            await pass_time(1)
            await scheduler.stop(timeout=1)
        async with scheduler:
            assert [await handle.wait(timeout=5) for handle in handles] == [FAILED, COMPLETED]
            with pytest.raises(JobFailed, match="stopped before the attempt ended"):
                await handles[0].result()
        assert starts == ["once", "often", "often"]

    run_virtual(main(), clock=clock)


# ---------------------------------------------------------------------------------------- the store fails


def test_what_the_store_refuses_for_a_while_is_sent_again() -> None:
    async def scene(stage: Scene) -> None:
        line = stage.scheduler._store
        assert isinstance(line, SlowStore)
        ran: list[int] = []

        @stage.scheduler.task
        async def work(number: int) -> int:
            ran.append(number)
            await pass_time(1)
            return number

        handles = [await work.submit(number) for number in range(5)]
        await pass_time(0.5)
        line.before = failing("exchange", 4)
        assert [await handle.result() for handle in handles] == list(range(5))
        assert ran == list(range(5))
        # Claims whose answers are lost are found out, and given back.
        line.after = failing("exchange", 3)
        more = [await work.submit(number) for number in range(5, 10)]
        assert [await handle.result(timeout=60) for handle in more] == list(range(5, 10))
        assert sorted(ran) == list(range(10))
        metrics = await stage.scheduler.metrics()
        assert metrics.store_errors == 7
        assert (metrics.completed, metrics.running) == (10, 0)

    play(scene, store=lambda clock: SlowStore(clock=clock), checked=False, witnessed=False)
