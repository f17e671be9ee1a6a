"""Dependencies: what waits for what, what is released, and what falls with what it waited for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.runtime.slow_store import SlowStore
from tests.runtime.stage import (
    BLOCKED,
    CANCELLED,
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
    Cancel,
    ConfigurationError,
    JobCancelled,
    JobHandle,
    JobStatus,
    RetryPolicy,
    SchedulerClosed,
    UnknownJob,
)
from betimes.testing import VirtualClock, run_virtual


def test_p15_a_job_starts_when_all_it_waits_for_has_completed(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work(seconds: float) -> float:
            await pass_time(seconds)
            return stage.time

        first, second = await work.submit(2.0), await work.submit(5.0)
        last = await work.using(depends_on=[first, second]).submit(1.0)
        await pass_time(3)
        assert (await last.status(), (await stage.scheduler.metrics()).blocked) == (BLOCKED, 1)
        assert await last.result() == 6.0
        await stage.settle()
        assert stage.witness.path(last) == [BLOCKED, READY, RUNNING, COMPLETED]

    play(scene, store=store)


def test_a_released_job_still_waits_for_its_run_at(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def when() -> float:
            return stage.time

        first = await when.using(delay=2).submit()
        last = await when.using(depends_on=first, delay=10).submit()
        await pass_time(5)
        assert await last.status() is DELAYED
        assert await last.result() == 10.0
        await stage.settle()
        assert stage.witness.path(last) == [BLOCKED, DELAYED, READY, RUNNING, COMPLETED]

    play(scene, store=store)


def test_case_134_jobs_for_the_same_instant_still_go_one_after_the_other(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        spans: dict[str, tuple[float, float]] = {}

        @stage.scheduler.task
        async def work(name: str) -> None:
            begun = stage.time
            await pass_time(2)
            spans[name] = (begun, stage.time)

        first = await work.using(delay=10).submit("a")
        last = await work.using(delay=10, depends_on=first, priority=1000).submit("b")
        await last.wait()
        assert spans == {"a": (10.0, 12.0), "b": (12.0, 14.0)}

    play(scene, store=store)


ENDS = ("completes", "fails", "times out", "is cancelled", "cancels itself", "expires", "falls")


async def ending(stage: Scene, way: str) -> JobHandle[None]:
    """Submit a job that ends this way, within 5 seconds."""

    @stage.scheduler.task(name="ending", timeout=2, retry=RetryPolicy(2, base_delay=1, jitter=False))
    async def work() -> None:
        if way == "fails":
            raise ValueError(way)
        if way == "cancels itself":
            raise Cancel(way)
        if way == "times out":
            await pass_time(10)

    options: dict[str, Any] = {}
    if way == "expires":
        options = {"expires": 1, "delay": 3}
    elif way == "is cancelled":
        options = {"delay": 3}
    elif way == "falls":
        options = {"depends_on": await failing(stage)}
    handle = await work.using(**options).submit()
    if way == "is cancelled":
        await handle.cancel()
    return handle


async def failing(stage: Scene) -> JobHandle[None]:
    @stage.scheduler.task(name="failing")
    async def fail() -> None:
        await pass_time(1)
        raise ValueError("fails")

    return await fail.submit()


@pytest.mark.parametrize("way", ENDS)
@pytest.mark.parametrize("late", [False, True])
def test_case_132_every_end_releases_or_cancels_what_waits_for_it_once(
    way: str, late: bool, store: StoreMaker
) -> None:
    async def scene(stage: Scene) -> None:
        ran: list[str] = []

        @stage.scheduler.task
        async def note(name: str) -> None:
            ran.append(name)

        parent = await ending(stage, way)
        if late:  # the dependency has ended when its dependents are submitted
            await parent.wait()
        strict = await note.using(depends_on=parent).submit("strict")
        below = await note.using(depends_on=strict).submit("below")
        lenient = await note.using(depends_on=parent, on_dependency_failure="run").submit("lenient")
        await stage.scheduler.drain()
        expected = COMPLETED if way == "completes" else CANCELLED
        assert [await each.status() for each in (strict, below, lenient)] == [expected, expected, COMPLETED]
        assert sorted(ran) == (["below", "lenient", "strict"] if way == "completes" else ["lenient"])
        if expected is CANCELLED:
            with pytest.raises(JobCancelled, match="dependency") as caught:
                await strict.result()
            assert parent.id in caught.value.reason
            assert strict.id in str((await below.info()).reason)

    play(scene, store=store)


def test_a_job_that_runs_on_failure_waits_until_all_have_ended(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work(seconds: float) -> float:
            await pass_time(seconds)
            if seconds == 1.0:
                raise ValueError("no")
            return stage.time

        parents = [await work.submit(seconds) for seconds in (1.0, 5.0)]
        last = await work.using(depends_on=parents, on_dependency_failure="run").submit(0.0)
        assert await last.result() == 5.0

    play(scene, store=store)


def test_a_failure_cascades_to_every_descendant(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        ran: list[int] = []

        @stage.scheduler.task
        async def work(number: int) -> None:
            ran.append(number)
            if number == 0:
                raise ValueError("first")

        chain: list[JobHandle[None]] = []
        for number in range(40):
            chain.append(await work.using(depends_on=chain[-1:]).submit(number))
        fan = [await work.using(depends_on=chain[20]).submit(100 + number) for number in range(10)]
        assert [await each.wait() for each in chain] == [FAILED] + [CANCELLED] * 39
        assert [await each.status() for each in fan] == [CANCELLED] * 10
        assert ran == [0]

    play(scene, store=store)


def test_a_very_long_chain_does_not_exhaust_the_stack() -> None:
    async def main() -> None:
        scheduler = make_scheduler(VirtualClock())

        @scheduler.task
        async def fail() -> None:
            raise ValueError("first")

        names = [str(number) for number in range(20_000)]
        bound = fail.bind()
        graph = {name: (bound, names[at : at + 1]) for at, name in enumerate(names[1:])}
        async with scheduler:
            handles = await scheduler.submit_graph({names[0]: (bound, []), **graph})
            await handles[names[0]].wait()
            assert await handles[names[-1]].status() is CANCELLED
            assert (await scheduler.metrics()).cancelled == 19_999

    run_virtual(main())


def test_a_retried_dependency_is_waited_for(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(retry=RetryPolicy(3, base_delay=10, jitter=False))
        async def flaky() -> None:
            if stage.time < 20:
                raise ValueError("again")

        @stage.scheduler.task
        async def when() -> float:
            return stage.time

        last = await when.using(depends_on=await flaky.submit()).submit()
        assert await last.result() == 30.0

    play(scene, store=store)


def test_case_046_a_cancelled_running_job_takes_its_dependents_with_it(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        ran: list[str] = []

        @stage.scheduler.task
        async def work(name: str) -> str:
            ran.append(name)
            try:
                await pass_time(10)
            except asyncio.CancelledError:
                await pass_time(1)
            return "finished after all"

        first = await work.submit("a")
        last = await work.using(depends_on=first).submit("b")
        await pass_time(1)
        await first.cancel()
        assert await last.status() is BLOCKED  # the code of the first has not returned
        with pytest.raises(JobCancelled, match=f"dependency: {first.id}"):
            await last.result()
        assert (ran, stage.time) == (["a"], 2.0)

    play(scene, store=store)


def test_case_136_a_fan_in_of_two_chains_reaches_its_collector_once(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        collected: list[list[int | None]] = []

        @stage.scheduler.task
        async def step(number: int, *, fails: bool = False) -> int:
            await pass_time(number)
            if fails:
                raise ValueError(str(number))
            return number

        @stage.scheduler.task
        async def collect(ids: list[str]) -> list[int | None]:
            values: list[int | None] = []
            for each in ids:
                handle: JobHandle[int] = await stage.scheduler.job(each)
                values.append(await handle.result() if await handle.status() is COMPLETED else None)
            collected.append(values)
            return values

        async def chain(first: int, last: int, *, fails: bool = False) -> JobHandle[int]:
            return await step.using(depends_on=await step.submit(first)).submit(last, fails=fails)

        for fails in (False, True):
            ends = [await chain(3, 1, fails=fails), await chain(1, 2)]
            bound = collect.using(depends_on=ends, on_dependency_failure="run")
            handle = await bound.submit([each.id for each in ends])
            strict = await collect.using(depends_on=ends).submit([each.id for each in ends])
            assert await handle.result() == ([None, 2] if fails else [1, 2])
            assert await strict.wait() is (CANCELLED if fails else COMPLETED)
        assert collected.count([None, 2]) == 1

    play(scene, store=store)


# ---------------------------------------------------------------------------------------- at submit


def test_an_unknown_dependency_is_refused_and_nothing_is_written(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work() -> None: ...

        with pytest.raises(UnknownJob, match="'nobody'") as caught:
            await work.using(depends_on="nobody", job_id="x").submit()
        assert caught.value.job_id == "nobody"
        with pytest.raises(UnknownJob, match="'x'"):
            await work.using(depends_on="x", job_id="x").submit()
        assert await stage.scheduler.jobs() == []

    play(scene, store=store)


def test_only_handles_and_ids_can_be_depended_on() -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work() -> None: ...

        unsubmitted: Any = work.submit()
        with pytest.raises(ConfigurationError, match="await the submit first"):
            work.using(depends_on=[unsubmitted])
        unsubmitted.close()
        wrong: list[Any] = [3, [3], [None], [work.bind()]]
        for each in wrong:
            with pytest.raises(ConfigurationError, match="depends_on takes job handles or job ids"):
                work.using(depends_on=each)
        with pytest.raises(ConfigurationError, match="on_dependency_failure is 'maybe'"):
            work.using(on_dependency_failure="maybe")

    play(scene)


def test_a_dependency_of_another_scheduler_is_refused() -> None:
    async def scene(stage: Scene) -> None:
        other = make_scheduler(VirtualClock())

        async def nothing() -> None: ...

        theirs, ours = other.task(name="n")(nothing), stage.scheduler.task(name="n")(nothing)
        async with other.client():
            handle = await theirs.submit()
            with pytest.raises(UnknownJob):
                await ours.using(depends_on=handle).submit()

    play(scene)


@pytest.mark.parametrize("fails", [False, True])
def test_p15_a_dependency_that_ends_while_its_dependent_is_submitted_counts(fails: bool) -> None:
    async def scene(stage: Scene) -> None:
        line = stage.scheduler._store
        assert isinstance(line, SlowStore)

        @stage.scheduler.task
        async def work(*, fails: bool = False) -> None:
            if fails:
                raise ValueError("no")

        parent = await work.using(delay=5).submit(fails=fails)
        gate = line.hold("submit")
        submitting = asyncio.create_task(work.using(depends_on=parent).submit())
        await gate.came.wait()
        assert await parent.wait() is (FAILED if fails else COMPLETED)
        gate.opened.set()
        child = await submitting
        assert await child.wait() is (CANCELLED if fails else COMPLETED)

    play(scene, store=lambda clock: SlowStore(clock=clock))


def test_an_id_stands_for_its_newest_version_and_a_handle_for_its_own(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work(*, fails: bool = False) -> None:
            if fails:
                raise ValueError("no")

        old = await work.using(job_id="x").submit(fails=True)
        await old.wait()
        await work.using(job_id="x", delay=3).submit()
        by_handle = await work.using(depends_on=old).submit()
        by_id = await work.using(depends_on="x").submit()
        assert (await by_handle.status(), await by_id.status()) == (CANCELLED, BLOCKED)
        assert await by_id.wait() is COMPLETED
        assert stage.time == 3.0

    play(scene, store=store)


def test_dependents_of_a_replaced_version_fall_with_it(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work() -> None: ...

        old = await work.using(job_id="x", delay=5).submit()
        child = await work.using(depends_on=old).submit()
        new = await work.using(job_id="x", replace=True).submit()
        assert await new.wait() is COMPLETED
        with pytest.raises(JobCancelled, match="dependency"):
            await child.result()

    play(scene, store=store)


def test_what_a_stop_leaves_blocked_is_released_after_the_next_start(store: StoreMaker) -> None:
    clock = VirtualClock()

    async def main() -> None:
        scheduler = make_scheduler(clock, store(clock))

        @scheduler.task
        async def work() -> None:
            await pass_time(1)

        async with scheduler:
            first = await work.using(delay=10).submit()
            last = await work.using(depends_on=first).submit()
            waiting = asyncio.create_task(last.wait())
            await pass_time(1)
        with pytest.raises(SchedulerClosed):
            await waiting
        async with scheduler:
            assert await last.wait() is COMPLETED
            assert clock.monotonic() == 12.0

    run_virtual(main(), clock=clock)


def test_statuses_of_the_ends_are_those_meant() -> None:
    async def scene(stage: Scene) -> None:
        handle = await ending(stage, stage_way[0])
        found.append(await handle.wait())

    found: list[JobStatus] = []
    stage_way = [""]
    for way in ENDS:
        stage_way[0] = way
        play(scene)
    assert found == [COMPLETED, FAILED, TIMED_OUT, CANCELLED, CANCELLED, CANCELLED, CANCELLED]
