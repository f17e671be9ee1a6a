"""`explain` of jobs that wait at gates: who holds them up, when it ends, and that it is so."""

from __future__ import annotations

from pathlib import Path

from tests.runtime.restraint_scene import two_schedulers
from tests.runtime.stage import READY, RUNNING, Scene, StoreMaker, pass_time, play

from betimes import (
    CircuitBreaker,
    Explanation,
    Limit,
    Rate,
    ReasonCode,
)
from betimes.runtime.pool_watch import LOOK_EVERY_S
from betimes.testing import VirtualClock, run_virtual

LIMITED, RATED, BROKEN = ReasonCode.LIMIT_REACHED, ReasonCode.NO_TOKEN, ReasonCode.CIRCUIT_OPEN


def codes(explanation: Explanation) -> list[ReasonCode]:
    return [reason.code for reason in explanation.reasons]


def test_a_job_at_a_limit_is_told_who_holds_it_and_how_many_go_before_it(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(limit=Limit("l", 2, by="who"))
        async def work(who: str) -> None:
            await pass_time(10)

        jobs = [await work.submit("acme") for _ in range(4)]
        other = await work.submit("other")
        await stage.settle()
        worker = (await jobs[0].info()).worker
        texts = []
        for job in jobs[2:]:
            explanation = await job.explain()
            assert codes(explanation) == [LIMITED]
            assert explanation.expected_start is None
            texts.append(explanation.reasons[0].text)
        said = "Limit 'l' (who=acme) lets 2 run at once, and 2 do: "
        said += f"{jobs[0].id} (worker {worker}) and {jobs[1].id} (worker {worker})"
        assert texts == [
            f"{said}. It is the next.",
            f"{said}. 1 of those that wait there goes before it.",
        ]
        assert codes(await other.explain()) == [ReasonCode.RUNNING]
        await jobs[0].cancel()
        await stage.settle()
        assert [await job.status() for job in jobs[2:]] == [RUNNING, READY]

    play(scene, store=store)


def test_all_that_is_in_the_way_is_said_and_nothing_that_is_not(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(name="work", limit=Limit("l", 1), rate=Rate("1/h"), breaker=CircuitBreaker())
        async def work() -> None:
            await pass_time(10)

        first = await work.submit()
        await stage.settle()
        second = await work.using(queue="other").submit()
        await stage.scheduler.open_circuit("work")
        await stage.scheduler.pause_queue("other")
        await stage.settle()
        assert codes(await second.explain()) == [ReasonCode.QUEUE_PAUSED, LIMITED, RATED, BROKEN]
        await stage.scheduler.resume_queue("other")
        await first.wait()
        assert codes(await second.explain()) == [RATED, BROKEN]
        await stage.scheduler.close_circuit("work")
        assert codes(await second.explain()) == [RATED]
        start = (await second.explain()).expected_start
        await second.wait()
        assert (await second.info()).started_at == start
        late = await work.using(delay="5h").submit()
        await stage.scheduler.open_circuit("work")
        assert codes(await late.explain()) == [ReasonCode.NOT_DUE]

    play(scene, store=store)


def test_a_job_behind_others_of_its_line_and_of_none_counts_those_that_can_go(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(limit=Limit("l", 1))
        async def limited() -> None:
            await pass_time(10)

        @stage.scheduler.task
        async def free() -> None:
            await pass_time(10)

        await stage.scheduler.submit_many([limited.bind() for _ in range(50)])
        await stage.scheduler.submit_many([free.bind() for _ in range(3)])
        last = await free.submit()
        await stage.settle()
        explanation = await last.explain()
        assert codes(explanation) == [ReasonCode.NO_FREE_SLOT, ReasonCode.BEHIND_OTHERS]
        assert explanation.reasons[1].text.startswith("2 jobs go before it"), "none of those at the limit"
        await stage.scheduler.stop(timeout=0)

    play(scene, store=store, concurrency=2, checked=False)


def test_a_job_that_waits_for_one_of_its_own_limit_shows_in_its_explanation(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        shared = Limit("l", 1)
        children = []

        @stage.scheduler.task(limit=shared)
        async def child() -> None: ...

        @stage.scheduler.task(limit=shared)
        async def parent() -> None:
            children.append(await child.submit())
            await children[0].result()

        job = await parent.submit()
        await pass_time(5 * LOOK_EVERY_S)
        explanation = await children[0].explain()
        assert LIMITED in codes(explanation)
        assert job.id in str(explanation)
        await job.cancel()
        await job.wait()
        await children[0].wait()

    play(scene, store=store)


def test_another_process_says_the_same_of_it(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        runs, looks = two_schedulers(clock, tmp_path)

        @runs.task(limit=Limit("l", 1), rate=Rate("1/h", burst=2))
        async def work() -> None:
            await pass_time(10)

        async with runs, looks.client():
            jobs = [await work.submit() for _ in range(3)]
            await pass_time(1)
            for job in jobs[1:]:
                here, there = await job.explain(), await looks.explain(job.id)
                assert codes(here) == codes(there) == [LIMITED]
                assert here.reasons[0].text == there.reasons[0].text
            await pass_time(20)
            assert codes(await looks.explain(jobs[2].id)) == [RATED]
            await runs.stop(timeout=0)

    clock = VirtualClock()
    run_virtual(main(clock), clock=clock)
