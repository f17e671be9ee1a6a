"""Results and waiting: what a handle tells, and how long it lets one wait."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from tests.runtime.stage import (
    CANCELLED,
    COMPLETED,
    FAILED,
    READY,
    RUNNING,
    Scene,
    StoreMaker,
    make_scheduler,
    pass_time,
    play,
)

from betimes import (
    CancelAnswer,
    ConfigurationError,
    DuplicateJob,
    IllegalTransition,
    JobCancelled,
    JobError,
    JobFailed,
    JobHandle,
    JobInfo,
    JobStatus,
    JobTimedOut,
    RetryPolicy,
    SchedulerClosed,
    UnknownJob,
)
from betimes.stores.memory import MemoryStore
from betimes.testing import VirtualClock, run_virtual
from betimes.testing.clock import DEFAULT_START


def after(seconds: float) -> datetime:
    """The instant so many seconds after a scene's beginning."""
    return DEFAULT_START + timedelta(seconds=seconds)


@dataclass(frozen=True)
class Measured:
    name: str
    at: datetime
    share: Decimal


def test_a_result_is_decoded_into_the_return_annotation(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def measure(name: str, at: datetime) -> list[Measured]:
            return [Measured(name, at, Decimal("0.1"))]

        @stage.scheduler.task
        def nothing() -> None: ...

        handle = await measure.submit("a", DEFAULT_START)
        assert await handle.result() == [Measured("a", DEFAULT_START, Decimal("0.1"))]
        empty: object = await (await nothing.submit()).result()  # type: ignore[func-returns-value]
        assert empty is None

    play(scene, store=store)


def test_a_result_that_cannot_be_stored_fails_the_job(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(retry=5)
        async def bad() -> object:
            return {"a": object()}

        @stage.scheduler.task
        def wrong() -> int:
            return "text"  # type: ignore[return-value]

        with pytest.raises(JobFailed, match=r"PayloadError.*result") as caught:
            await (await bad.submit()).result()
        assert caught.value.error_type == "betimes.errors.PayloadError"
        with pytest.raises(JobFailed, match="result"):
            await (await wrong.submit()).result()
        assert (await stage.scheduler.metrics()).retries == 0

    play(scene, store=store)


def test_a_failure_tells_type_message_and_traceback(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def fail() -> None:
            raise ValueError("the door is locked")

        handle = await fail.submit()
        with pytest.raises(JobFailed, match="ValueError: the door is locked") as caught:
            await handle.result()
        error = caught.value
        assert (error.job_id, error.error_type, error.error_message) == (
            handle.id,
            "ValueError",
            "the door is locked",
        )
        assert 'raise ValueError("the door is locked")' in error.traceback
        assert isinstance(error, JobError)
        info = await handle.info()
        assert (info.error is not None and info.error.message, info.reason) == ("the door is locked", None)

    play(scene, store=store)


def test_a_timeout_and_a_cancel_have_errors_of_their_own(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(timeout=2)
        async def late() -> None:
            await pass_time(10)

        with pytest.raises(JobTimedOut, match="timeout of 2 s"):
            await (await late.submit()).result()
        handle = await late.using(delay=5).submit()
        await handle.cancel()
        with pytest.raises(JobCancelled, match="requested") as caught:
            await handle.result()
        assert (caught.value.reason, caught.value.job_id) == ("requested", handle.id)

    play(scene, store=store)


def test_case_130_a_result_is_the_same_at_every_reading(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def give(*, fails: bool = False) -> list[int]:
            if fails:
                raise KeyError("gone")
            return [1, 2]

        good, bad = await give.submit(), await give.submit(fails=True)
        expired = await give.using(expires=1, delay=2).submit()
        for _ in range(3):
            assert await good.result() == [1, 2]
            with pytest.raises(JobFailed, match="KeyError: 'gone'"):
                await bad.result()
            with pytest.raises(JobCancelled, match="expired"):
                await expired.result()
            await pass_time(2)

    play(scene, store=store)


# ---------------------------------------------------------------------------------------- waiting


def test_waiting_ends_at_the_instant_the_job_does(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work(seconds: float) -> float:
            await pass_time(seconds)
            return seconds

        handles = [await work.submit(seconds) for seconds in (3.0, 1.0, 2.0)]
        ends: list[float] = []

        async def wait(handle: JobHandle[float]) -> None:
            assert await handle.result() == await handle.result()
            ends.append(stage.time)

        await asyncio.gather(*(wait(handle) for handle in handles), handles[0].wait(), handles[0].result())
        assert ends == [1.0, 2.0, 3.0]

    play(scene, store=store)


def test_a_timeout_of_waiting_leaves_the_job_alone(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work() -> str:
            await pass_time(10)
            return "done"

        handle = await work.submit()
        with pytest.raises(TimeoutError, match=f"{handle.id} has not ended within 3 s"):
            await handle.result(timeout="3s")
        assert stage.time == 3.0
        with pytest.raises(TimeoutError, match="within 0 s"):
            await handle.wait(timeout=0)
        assert await handle.status() is RUNNING
        assert (await handle.result(timeout=timedelta(seconds=8)), stage.time) == ("done", 10.0)
        assert (await handle.result(timeout=0), await handle.wait(timeout=0)) == ("done", COMPLETED)

    play(scene, store=store)


def test_whoever_is_cancelled_while_waiting_leaves_nothing_behind(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work() -> None:
            await pass_time(10)

        handle = await work.submit()
        waiting = [asyncio.create_task(handle.wait()) for _ in range(3)]
        await pass_time(1)
        waiting[1].cancel()
        await pass_time(1)
        assert [task.done() for task in waiting] == [False, True, False]
        assert await handle.wait() is COMPLETED
        assert [await waiting[0], await waiting[2]] == [COMPLETED, COMPLETED]
        assert len(stage.scheduler._engine.journal.endings) == 0

    play(scene, store=store)


def test_one_scheduler_can_wait_for_what_another_runs_on_the_same_store() -> None:
    clock = VirtualClock()

    async def main() -> None:
        shared = MemoryStore(clock=clock)
        worker, asker = make_scheduler(clock, shared), make_scheduler(clock, shared)

        async def work() -> float:
            await pass_time(4)
            return clock.monotonic()

        worker.task(name="work")(work)
        asking = asker.task(name="work")(work)
        async with worker, asker.client():
            handle = await asking.submit()
            assert await handle.result() == 4.0
            assert clock.monotonic() <= 5.0

    run_virtual(main(), clock=clock)


# ---------------------------------------------------------------------------------------- looking


def test_info_tells_the_whole_life(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(queue="q", retry=RetryPolicy(3, base_delay=10, jitter=False), name="life")
        async def work() -> None:
            await pass_time(2)
            if stage.time < 10:
                raise ValueError("first")

        handle = await work.using(job_id="me", priority=2, tags=["t"], delay=1, key="k").submit()
        info = await handle.info()
        assert isinstance(info, JobInfo)
        assert (info.id, info.task, info.queue, info.priority, info.tags) == ("me", "life", "q", 2, ("t",))
        assert (info.status, info.attempt, info.attempts, info.started_at) == (JobStatus.DELAYED, 0, (), None)
        await pass_time(2)
        info = await handle.info()
        assert (info.status, info.attempt, info.attempts[0].outcome) == (RUNNING, 1, "running")
        assert (info.worker is not None, info.fence, info.started_at) == (
            True,
            1,
            DEFAULT_START + timedelta(seconds=1),
        )
        await handle.wait()
        info = await handle.info()
        assert [(each.attempt, each.outcome) for each in info.attempts] == [(1, "failed"), (2, "completed")]
        assert info.attempts[0].error is not None
        assert info.attempts[0].error.message == "first"
        assert (info.attempts[0].started_at, info.attempts[0].ended_at) == (
            after(1),
            after(3),
        )
        assert (info.finished_at, info.worker, info.error) == (
            DEFAULT_START + timedelta(seconds=15),
            None,
            None,
        )
        assert (info.run_at, info.attempt, info.fence) == (after(13), 2, 2)

    play(scene, store=store)


def test_handles_keep_their_version(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def give(number: int) -> int:
            return number

        handles = []
        for number in range(3):
            handle = await give.using(job_id="x").submit(number)
            handles.append(handle)
            assert await handle.result() == number
        assert [await handle.result() for handle in handles] == [0, 1, 2]
        assert len({(await handle.info()).version for handle in handles}) == len(set(handles)) == 3
        assert await stage.scheduler.job("x") == handles[2]

    play(scene, store=store)


def test_an_unknown_job_is_said_to_be_unknown(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        with pytest.raises(UnknownJob, match="'nobody'") as caught:
            await stage.scheduler.job("nobody")
        assert caught.value.job_id == "nobody"
        with pytest.raises(UnknownJob):
            await stage.scheduler.retry("nobody")
        with pytest.raises(UnknownJob):
            await stage.scheduler.explain("nobody")

    play(scene, store=store)


def test_jobs_are_listed_newest_first_by_what_is_asked(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def good() -> None: ...

        @stage.scheduler.task(queue="q")
        async def bad() -> None:
            raise ValueError

        first, second = await good.submit(), await bad.submit()
        await stage.scheduler.drain()
        third = await good.using(delay=5).submit()

        async def ids(**which: object) -> list[str]:
            return [job.id for job in await stage.scheduler.jobs(**which)]  # type: ignore[arg-type]

        assert await ids() == [third.id, second.id, first.id]
        assert await ids(status=JobStatus.DELAYED) == await ids(status="delayed") == [third.id]
        assert await ids(task=good.name) == [third.id, first.id]
        assert await ids(queue="q") == await ids(status=FAILED) == [second.id]
        assert await ids(limit=1) == [third.id]
        (newest,) = await stage.scheduler.jobs(limit=1)
        assert await ids(before=newest.version) == [second.id, first.id]
        await third.cancel()

    play(scene, store=store)


def test_progress_is_what_the_code_said_last() -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work() -> None:
            from betimes import current_job  # noqa: PLC0415

            await pass_time(1)
            current_job().progress(3, 10)
            await pass_time(1)
            current_job().progress(4)
            await pass_time(1)

        handle = await work.submit()
        assert await handle.progress() is None
        await pass_time(1.5)
        assert await handle.progress() == (3, 10)
        await pass_time(1)
        assert await handle.progress() == (4, None)
        await handle.wait()
        assert await handle.progress() is None

    play(scene)


# ---------------------------------------------------------------------------------------- clients


def test_a_client_submits_and_looks_and_runs_nothing(store: StoreMaker) -> None:
    clock = VirtualClock()

    async def main() -> None:
        scheduler = make_scheduler(clock, store(clock))

        @scheduler.task
        async def give() -> int:
            return 1

        async with scheduler.client() as client:
            assert client is scheduler
            handle = await give.submit()
            await pass_time(100)
            assert await handle.status() is READY
            assert (await scheduler.metrics()).ready == 1
            with pytest.raises(ConfigurationError, match="open already"):
                await scheduler.start()
        with pytest.raises(SchedulerClosed):
            await handle.status()
        async with scheduler:
            assert await handle.result(timeout=5) == 1

    run_virtual(main(), clock=clock)


def test_whoever_waits_in_a_client_that_closes_is_told(store: StoreMaker) -> None:
    clock = VirtualClock()

    async def main() -> None:
        scheduler = make_scheduler(clock, store(clock))

        @scheduler.task
        async def give() -> int:
            return 1

        async with scheduler.client():
            handle = await give.submit()
            waiting = asyncio.create_task(handle.result())
            await pass_time(1)
        with pytest.raises(SchedulerClosed, match="stopped before the job ended"):
            await waiting

    run_virtual(main(), clock=clock)


# ---------------------------------------------------------------------------------------- retry, pause, drain


def test_an_operator_takes_a_finished_job_back(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        broken = True

        @stage.scheduler.task(retry=RetryPolicy(2, base_delay=1, jitter=False))
        async def work() -> str:
            if broken:
                raise ValueError("broken")
            return "mended"

        handle = await work.using(job_id="x").submit()
        assert await handle.wait() is FAILED
        broken = False
        again = await stage.scheduler.retry("x", by="ann")
        assert again == handle
        assert await handle.result(timeout=5) == "mended"
        info = await handle.info()
        assert [(each.attempt, each.outcome, each.note) for each in info.attempts] == [
            (1, "failed", None),
            (2, "failed", "retried by ann"),
            (1, "completed", None),
        ]
        assert info.fence == 3
        await stage.settle()
        assert stage.witness.path(handle)[-3:] == [READY, RUNNING, COMPLETED]

    play(scene, store=store, checked=False)


def test_only_what_has_finished_can_be_retried_and_only_the_newest_version(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def nothing() -> None: ...

        handle = await nothing.using(job_id="x", delay=5).submit()
        with pytest.raises(IllegalTransition, match="DELAYED"):
            await stage.scheduler.retry("x")
        await handle.cancel()
        retried = await stage.scheduler.retry("x")
        assert await retried.wait(timeout=5) is COMPLETED
        assert issubclass(DuplicateJob, Exception)

    play(scene, store=store, checked=False)


def test_p14_nothing_of_a_paused_queue_starts(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def when() -> float:
            return stage.time

        await stage.scheduler.pause_queue("q")
        await stage.scheduler.pause_queue("q")
        paused = await when.using(queue="q").submit()
        later = await when.using(queue="q", delay=5).submit()
        assert await (await when.submit()).result(timeout=1) == 0.0
        await pass_time(20)
        assert (await paused.status(), await later.status()) == (READY, READY)
        await stage.scheduler.resume_queue("q")
        assert (await paused.result(), await later.result()) == (20.0, 20.0)

    play(scene, store=store)


def test_drain_returns_when_nothing_is_left_to_do(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(retry=RetryPolicy(2, base_delay=10, jitter=False))
        async def work() -> None:
            if stage.time < 8:
                raise ValueError("later")

        await stage.scheduler.drain()
        assert stage.time == 0.0
        first = await work.using(delay=7).submit()
        await work.using(depends_on=first).submit()
        await stage.scheduler.drain()
        assert (stage.time, (await stage.scheduler.metrics()).completed) == (17.0, 2)

    play(scene, store=store)


def test_drain_gives_up_after_its_timeout(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def nothing() -> None: ...

        handle = await nothing.using(delay=100).submit()
        with pytest.raises(TimeoutError, match="after 3 s"):
            await stage.scheduler.drain(timeout=3)
        assert stage.time == 3.0
        draining = asyncio.create_task(stage.scheduler.drain())
        await pass_time(1)
        assert await handle.cancel() is CancelAnswer.CANCELLED
        await draining
        assert (stage.time, await handle.status()) == (4.0, CANCELLED)

    play(scene, store=store)


def test_a_stop_ends_a_drain(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def nothing() -> None: ...

        await nothing.using(delay=100).submit()
        draining = asyncio.create_task(stage.scheduler.drain())
        await pass_time(1)
        await stage.scheduler.stop()
        with pytest.raises(SchedulerClosed):
            await draining

    play(scene, store=store, checked=False)
