"""`explain` of a running scheduler: what it says is what then happens."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest
from tests.runtime.stage import (
    CANCELLED,
    COMPLETED,
    READY,
    RUNNING,
    Scene,
    StoreMaker,
    make_scheduler,
    pass_time,
    play,
)

from betimes import (
    Context,
    Explanation,
    JobHandle,
    Reason,
    ReasonCode,
    RetryPolicy,
    Scheduler,
    SchedulerClosed,
    Snooze,
    UnknownJob,
)
from betimes.core.job import Job, JobSpec
from betimes.core.strategy import PriorityStrategy
from betimes.ports import ClaimRequest, WorkerInfo
from betimes.runtime.explaining import TRIES, explain_job
from betimes.stores.memory import MemoryStore
from betimes.testing import InlineExecutor, VirtualClock, run_virtual


def codes(explanation: Explanation) -> list[ReasonCode]:
    return [reason.code for reason in explanation.reasons]


async def only(handle: JobHandle[None], code: ReasonCode) -> Reason:
    """The job's one reason, which must be of this kind."""
    explanation = await handle.explain()
    assert codes(explanation) == [code]
    assert explanation.status is await handle.status()
    return explanation.reasons[0]


def test_a_delayed_job_starts_when_it_is_said_to(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def nothing() -> None: ...

        handle = await nothing.using(delay="5m").submit()
        start = (await handle.explain()).expected_start
        await only(handle, ReasonCode.NOT_DUE)
        await handle.result()
        info = await handle.info()
        assert start == info.started_at == info.submitted_at + timedelta(minutes=5)
        assert (await stage.scheduler.explain(handle.id)).codes == {ReasonCode.FINISHED}

    play(scene, store=store)


def test_a_failed_attempt_is_named_until_the_next_one_starts(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(retry=RetryPolicy(3, base_delay=10, jitter=False))
        async def flaky(ctx: Context) -> None:
            if ctx.attempt == 1:
                raise ValueError("no luck")
            raise Snooze("1m")

        handle = await flaky.submit()
        await pass_time(1)
        assert (
            "Attempt 1 failed with ValueError: no luck" in (await only(handle, ReasonCode.BACKING_OFF)).text
        )
        await pass_time(10)
        assert "Attempt 2 asked to run again later" in (await only(handle, ReasonCode.SNOOZED)).text
        await handle.cancel()

    play(scene, store=store)


def test_what_a_job_waits_for_is_named_with_its_status(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def sleep(seconds: float) -> None:
            await pass_time(seconds)

        first, second = await sleep.submit(10), await sleep.using(delay=60).submit(1)
        last = await sleep.using(depends_on=[first, second, first]).submit(0)
        await stage.settle()
        text = (await only(last, ReasonCode.WAITING_FOR_JOBS)).text
        assert "Of the 2 jobs it depends on, 2 have not ended" in text
        assert f"{first.id} (RUNNING for 0s on worker" in text
        assert f"{second.id} (DELAYED)" in text
        await pass_time(20)
        text = (await only(last, ReasonCode.WAITING_FOR_JOBS)).text
        assert "Of the 2 jobs it depends on, 1 have not ended" in text
        await last.result()

    play(scene, store=store)


def test_a_replacement_waits_for_the_version_that_runs(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def sleep(seconds: float) -> None:
            await pass_time(seconds)

        old = await sleep.using(job_id="a").submit(10)
        dependent = await sleep.using(depends_on=[old]).submit(0)
        await stage.settle()
        new = await sleep.using(job_id="a", replace=True).submit(0)
        assert "a (RUNNING for 0s" in (await only(new, ReasonCode.OLDER_VERSION_RUNNING)).text
        assert "will not be retried" in (await only(old, ReasonCode.RUNNING)).text
        # The id stands for the new version by now; what the dependent waits for is the old one.
        assert "a (RUNNING for 0s" in (await only(dependent, ReasonCode.WAITING_FOR_JOBS)).text
        await new.result()

    play(scene, store=store)


def test_a_paused_queue_holds_its_jobs_until_it_is_resumed(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(queue="mail")
        async def nothing() -> None: ...

        await stage.scheduler.pause_queue("mail")
        handle = await nothing.using(expires="1h").submit()
        assert codes(await handle.explain()) == [ReasonCode.QUEUE_PAUSED, ReasonCode.WILL_EXPIRE]
        assert await handle.status() is READY
        await stage.scheduler.resume_queue("mail")
        await handle.result(timeout=1)

    play(scene, store=store)


def test_a_queue_that_nobody_serves_is_named(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(queue="elsewhere")
        async def nothing() -> None: ...

        handle = await nothing.submit()
        await stage.settle()
        assert "served are: 'here'" in (await only(handle, ReasonCode.QUEUE_NOT_SERVED)).text

    play(scene, store=store, queues=["here"])


def test_without_a_worker_nothing_runs_and_a_client_says_so(store: StoreMaker) -> None:
    clock = VirtualClock()

    async def main() -> None:
        scheduler = make_scheduler(clock, store(clock))

        @scheduler.task
        async def nothing() -> None: ...

        async with scheduler.client():
            handle = await nothing.submit()
            await only(handle, ReasonCode.NO_WORKER)

    run_virtual(main(), clock=clock)


def test_a_full_pool_and_the_jobs_ahead_are_counted(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def sleep(seconds: float) -> None:
            await pass_time(seconds)

        running = [await sleep.submit(10) for _ in range(2)]
        await stage.settle()
        first, second, urgent = [await sleep.using(priority=priority).submit(0) for priority in (1, 1, 2)]
        explanation = await second.explain()
        assert codes(explanation) == [ReasonCode.NO_FREE_SLOT, ReasonCode.BEHIND_OTHERS]
        assert "2 of 2 attempts are in flight" in explanation.reasons[0].text
        assert explanation.reasons[1].text.startswith("2 jobs go before it")
        await only(urgent, ReasonCode.NO_FREE_SLOT)
        for handle in (*running, first, second, urgent):
            await handle.result()

    play(scene, store=store, concurrency=2)


def test_p26_the_retry_of_a_stuck_thread_waits_for_its_code(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(timeout=1, retry=RetryPolicy(2, base_delay=0))
        def slow() -> None: ...

        @stage.scheduler.task
        def quick() -> None: ...

        handle = await slow.submit()
        await pass_time(10)
        assert (
            "The code of attempt 1 still runs here"
            in (await only(handle, ReasonCode.CODE_STILL_RUNNING)).text
        )
        other = await quick.submit()
        text = (await only(other, ReasonCode.NO_FREE_SLOT)).text
        assert "No slot of lane 'thread' is free here: 1 of 1 attempts are in flight; stuck" in text
        assert f"{handle.id} ({slow.name}, for 10s)" in text
        assert (await stage.scheduler.metrics()).stuck_threads == 1
        await other.result()
        await handle.wait()

    runs_s = iter([50.0, 0.0, 0.0])
    play(scene, store=store, executors=[InlineExecutor(slots=1, takes_s=lambda _: next(runs_s))])


def test_a_running_job_shows_its_progress_and_its_deadline(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(timeout="1m")
        async def count(ctx: Context) -> None:
            ctx.progress(3, 4)
            await pass_time(30)

        handle = await count.submit()
        await pass_time(10)
        text = (await only(handle, ReasonCode.RUNNING)).text
        assert "Attempt 1 runs since 2030-01-01 00:00:00 UTC (10s ago), in this process" in text
        assert "done: 3 of 4; its timeout is over at 2030-01-01 00:01:00 UTC (in 50s)" in text
        await handle.result()
        text = (await only(handle, ReasonCode.FINISHED)).text
        assert text == "It ended COMPLETED at 2030-01-01 00:00:30 UTC (now), in attempt 1."

    play(scene, store=store)


def test_a_job_that_has_been_told_to_stop_says_so_until_it_has(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def stubborn() -> None:
            try:
                await pass_time(1000)
            except asyncio.CancelledError:
                await pass_time(5)
                raise

        handle = await stubborn.submit()
        await pass_time(1)
        await handle.cancel()
        await pass_time(1)
        assert codes(await handle.explain()) == [ReasonCode.RUNNING, ReasonCode.CANCEL_REQUESTED]
        assert await handle.wait() is CANCELLED
        assert "somebody asked for it" in (await only(handle, ReasonCode.FINISHED)).text

    play(scene, store=store)


def test_a_stopping_worker_says_that_it_claims_nothing_more(store: StoreMaker) -> None:
    clock = VirtualClock()

    async def main() -> None:
        scheduler = make_scheduler(clock, store(clock), concurrency=1)

        @scheduler.task
        async def sleep(seconds: float) -> None:
            await pass_time(seconds)

        await scheduler.start()
        running, waiting = await sleep.submit(10), await sleep.submit(0)
        await pass_time(1)
        stopping = asyncio.create_task(scheduler.stop())
        await pass_time(1)
        await only(waiting, ReasonCode.WORKER_STOPPING)
        await only(running, ReasonCode.RUNNING)
        await stopping
        with pytest.raises(SchedulerClosed):
            await waiting.explain()

    run_virtual(main(), clock=clock)


# --- several processes, or what stands in for them


async def claimed_elsewhere(store: MemoryStore, worker: WorkerInfo) -> None:
    await store.register(worker)
    exchange = await store.exchange([], ClaimRequest(worker.id, 1, {"loop": 1}))
    assert [job.status for job in exchange.claimed] == [RUNNING]


def test_a_job_of_a_worker_that_died_says_so_until_it_is_rescued() -> None:
    clock = VirtualClock()

    async def main() -> None:
        store = MemoryStore(clock=clock)
        scheduler = make_scheduler(clock, store)

        @scheduler.task
        async def nothing() -> None: ...

        async with scheduler.client():
            handle = await nothing.submit()
            ghost = WorkerInfo(id="ghost", lease_us=30_000_000, host="ham", pid=7)
            await claimed_elsewhere(store, ghost)
            reason = await only(handle, ReasonCode.RUNNING)
            assert "on ham, pid 7 (worker ghost)" in reason.text
            assert "any other within 30s" in reason.change
            clock.advance(31)
            explanation = await handle.explain()
            assert codes(explanation) == [ReasonCode.HOLDER_LOST, ReasonCode.NO_WORKER]
            assert "Worker ghost" in explanation.reasons[0].text
        async with scheduler:
            assert await handle.wait() is COMPLETED

    run_virtual(main(), clock=clock)


def test_p28_a_task_that_no_worker_knows_is_named_and_runs_when_one_does(store: StoreMaker) -> None:
    clock = VirtualClock()

    async def main() -> None:
        shared = store(clock)
        scheduler = make_scheduler(clock, shared)

        @scheduler.task(name="new")
        async def nothing() -> None: ...

        async with scheduler.client():
            handle = await nothing.submit()
        async with make_scheduler(clock, shared) as without:
            await pass_time(1)
            assert codes(await without.explain(handle.id)) == [ReasonCode.TASK_UNKNOWN]
        async with scheduler:
            await handle.result(timeout=60)

    run_virtual(main(), clock=clock)


# --- what is not there, and what moves


def test_an_unknown_job_has_no_explanation(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        with pytest.raises(UnknownJob):
            await stage.scheduler.explain("nobody")

    play(scene, store=store)


def test_a_pruned_job_has_no_explanation(store: StoreMaker) -> None:
    clock = VirtualClock()

    async def main() -> None:
        shared = store(clock)
        await shared.open(strategy=PriorityStrategy().name)
        job = Job("a", JobSpec(task="t"), submitted_at=shared.now(), run_at=shared.now())
        if shared.is_durable:
            (job,), _ = await shared.submit([job])
            await shared.cancel(job, reason="no use")
            assert await shared.prune(keep_us=0) == 1
        with pytest.raises(UnknownJob) as caught:
            await explain_job(shared, job, {}, None)
        assert caught.value.job_id == "a"
        await shared.close()

    run_virtual(main(), clock=clock)


class Restless(MemoryStore):
    """A store in whose jobs something happens during each look; it hands out copies, as databases do."""

    def __init__(self, clock: VirtualClock, *, restless_for: int) -> None:
        super().__init__(clock=clock)
        self.left = restless_for
        self.looks = 0
        self.job: Job | None = None

    async def get(self, job: Job) -> Job | None:
        return job.copy()

    async def workers(self) -> list[tuple[WorkerInfo, int]]:
        self.looks += 1
        assert self.job is not None
        if self.left:
            self.left -= 1
            self.job.fence += 1
        return await super().workers()


@pytest.mark.parametrize(("restless_for", "looks"), [(0, 1), (1, 2), (100, TRIES)])
def test_the_look_is_repeated_when_the_job_moves_meanwhile_but_not_for_ever(
    restless_for: int, looks: int
) -> None:
    clock = VirtualClock()

    async def main() -> None:
        store = Restless(clock, restless_for=restless_for)
        await store.open(strategy="s")
        store.job = Job("a", JobSpec(task="t"), submitted_at=store.now(), run_at=store.now())
        await store.submit([store.job])
        explanation = await explain_job(store, store.job, {}, None)
        assert (store.looks, codes(explanation)) == (looks, [ReasonCode.NO_WORKER])

    run_virtual(main(), clock=clock)


# --- without a loop


def test_the_blocking_calls_explain_too() -> None:
    scheduler = Scheduler(watchdog=None)

    @scheduler.task
    async def nothing() -> None: ...

    with scheduler.blocking() as s:
        job = s.submit(nothing.using(delay="1h").bind())
        explanations: Sequence[Explanation] = (job.explain(), s.explain(job.id))
        assert [codes(each) for each in explanations] == [[ReasonCode.NOT_DUE]] * 2
        job.cancel()
