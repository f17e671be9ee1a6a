"""Submitting: one job, many, whole graphs; what is stored, and what is not."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.stage import COMPLETED, READY, RUNNING, Scene, StoreMaker, make_scheduler, pass_time, play

from betimes import (
    ConfigurationError,
    DependencyCycle,
    DuplicateJob,
    JobHandle,
    JobStatus,
    PayloadError,
    SchedulerClosed,
    UnknownJob,
    every,
)
from betimes.submitting import MOST_AT_ONCE
from betimes.testing import VirtualClock, run_virtual


def test_a_job_runs_and_its_result_comes_back(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def add(a: int, b: int = 1) -> int:
            return a + b

        @stage.scheduler.task
        def join(*words: str, end: str = "") -> str:
            return " ".join(words) + end

        assert await (await add.submit(1)).result(timeout=5) == 2
        assert await (await add.submit(a=1, b=5)).result(timeout=5) == 6
        assert await (await join.submit("a", "b", end="!")).result(timeout=5) == "a b!"
        assert stage.time == 0.0

    play(scene, store=store)


def test_a_task_is_still_the_plain_function() -> None:
    scheduler = make_scheduler(VirtualClock())

    @scheduler.task(name="adding")
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    @scheduler.task
    async def double(a: int) -> int:
        return 2 * a

    assert (add(1, 2), add.fn(1, 2), add.name, add.__doc__) == (3, 3, "adding", "Add.")
    assert run_virtual(double(4)) == 8


def test_names_default_to_module_and_qualname() -> None:
    scheduler = make_scheduler(VirtualClock())

    @scheduler.task
    def work() -> None: ...

    assert work.name == f"{__name__}.test_names_default_to_module_and_qualname.work"


def test_submit_returns_when_the_job_is_stored(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def nothing() -> None: ...

        handle = await nothing.using(delay=60).submit()
        found = await stage.scheduler.job(handle.id)
        assert (found, await found.status()) == (handle, JobStatus.DELAYED)
        await handle.cancel()

    play(scene, store=store)


def test_ids_are_made_and_never_repeat(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def nothing() -> None: ...

        handles = [await nothing.submit() for _ in range(60)]
        ids = [handle.id for handle in handles]
        assert len(set(ids)) == 60
        assert ids == sorted(ids)
        await stage.scheduler.drain()

    play(scene, store=store)


# ---------------------------------------------------------------------------------------- many


def test_many_are_submitted_in_one_write_in_their_order(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        ran: list[int] = []

        @stage.scheduler.task
        async def note(number: int) -> int:
            ran.append(number)
            return number

        handles = await stage.scheduler.submit_many([note.bind(number) for number in range(50)])
        assert [await handle.result(timeout=5) for handle in handles] == list(range(50))
        assert ran == list(range(50))
        assert await stage.scheduler.submit_many([]) == []

    play(scene, store=store, concurrency=1)


def test_many_are_all_or_none(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def nothing(number: int) -> None: ...

        first = await nothing.using(job_id="taken", delay=60).submit(0)
        batch = [nothing.bind(1), nothing.using(job_id="taken").bind(2), nothing.bind(3)]
        with pytest.raises(DuplicateJob, match="taken"):
            await stage.scheduler.submit_many(batch)
        with pytest.raises(UnknownJob, match="nobody"):
            await stage.scheduler.submit_many([nothing.bind(1), nothing.using(depends_on="nobody").bind(2)])
        assert [job.id for job in await stage.scheduler.jobs()] == ["taken"]
        await first.cancel()

    play(scene, store=store)


def test_a_hundred_thousand_at_once_are_taken_and_not_one_more() -> None:
    async def main() -> None:
        scheduler = make_scheduler(VirtualClock())

        @scheduler.task
        async def nothing() -> None: ...

        bound = nothing.using(delay=3600).bind()
        async with scheduler.client():
            with pytest.raises(ConfigurationError, match=r"100,?000"):
                await scheduler.submit_many(bound for _ in iter(int, 1))  # without end
            assert await scheduler.jobs() == []
            handles = await scheduler.submit_many([bound] * MOST_AT_ONCE)
            assert len({handle.id for handle in handles}) == MOST_AT_ONCE
            assert (await scheduler.metrics()).delayed == MOST_AT_ONCE

    run_virtual(main())


def test_case_126_a_known_key_in_a_batch_answers_with_its_job_in_its_place(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def nothing() -> None: ...

        known = await nothing.using(key="k2").submit()
        batch = [nothing.using(key=key).bind() for key in ("k1", "k2", "k3")]
        handles = await stage.scheduler.submit_many(batch)
        assert handles[1] == known
        assert len(set(handles)) == 3
        with pytest.raises(ConfigurationError, match="k2"):
            await stage.scheduler.submit_many([other_arguments(stage).using(key="k2").bind()])
        await stage.scheduler.drain()
        assert len(await stage.scheduler.jobs()) == 3

    play(scene, store=store)


def other_arguments(stage: Scene):  # type: ignore[no-untyped-def]
    @stage.scheduler.task(name="another")
    async def another() -> None: ...

    return another


def test_the_same_call_bound_once_may_be_submitted_again_and_again(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def double(number: int) -> int:
            return 2 * number

        bound = double.bind(4)
        handles = await stage.scheduler.submit_many([bound, bound, bound])
        assert [await handle.result(timeout=5) for handle in handles] == [8, 8, 8]
        assert len(set(handles)) == 3

    play(scene, store=store)


# ---------------------------------------------------------------------------------------- graphs


def test_a_graph_takes_forward_references(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        ran: list[str] = []

        @stage.scheduler.task
        async def note(name: str) -> None:
            ran.append(name)

        handles = await stage.scheduler.submit_graph(
            {
                "report": (note.bind("report"), ["left", "right"]),
                "left": (note.bind("left"), "start"),
                "right": (note.bind("right"), ["start"]),
                "start": note.bind("start"),
            }
        )
        assert list(handles) == ["report", "left", "right", "start"]
        assert await handles["report"].wait(timeout=5) is COMPLETED
        assert ran == ["start", "left", "right", "report"]
        info = await handles["report"].info()
        assert info.depends_on == (handles["left"].id, handles["right"].id)

    play(scene, store=store, concurrency=1)


def test_a_circle_in_a_graph_is_refused_by_its_names_and_nothing_is_stored(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def nothing() -> None: ...

        bound = nothing.bind()
        graph = {"a": (bound, ["c"]), "b": (bound, ["a"]), "c": (bound, ["b"]), "d": (bound, ["a"])}
        with pytest.raises(DependencyCycle, match="a → ") as caught:
            await stage.scheduler.submit_graph(graph)
        assert sorted(set(caught.value.cycle)) == ["a", "b", "c"]
        assert caught.value.cycle[0] == caught.value.cycle[-1]
        with pytest.raises(DependencyCycle):
            await stage.scheduler.submit_graph({"a": (bound, ["a"])})
        with pytest.raises(UnknownJob, match="'nobody'"):
            await stage.scheduler.submit_graph({"a": (bound, ["nobody"])})
        assert await stage.scheduler.jobs() == []

    play(scene, store=store)


def test_a_graph_keeps_the_options_of_its_calls(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        ran: list[str] = []

        @stage.scheduler.task
        async def note(name: str) -> None:
            ran.append(name)
            if name == "bad":
                raise ValueError(name)

        outside = await note.submit("outside")
        handles = await stage.scheduler.submit_graph(
            {
                "last": (
                    note.using(on_dependency_failure="run", depends_on=[outside], tags=["t"]).bind("last"),
                    ["bad"],
                ),
                "bad": note.using(delay=2).bind("bad"),
            }
        )
        assert await handles["last"].wait(timeout=10) is COMPLETED
        info = await handles["last"].info()
        assert set(info.depends_on) == {outside.id, handles["bad"].id}
        assert (info.tags, ran, stage.time) == (("t",), ["outside", "bad", "last"], 2.0)

    play(scene, store=store)


def test_an_empty_graph_is_nothing() -> None:
    async def scene(stage: Scene) -> None:
        assert await stage.scheduler.submit_graph({}) == {}

    play(scene)


# ---------------------------------------------------------------------------------------- when


def test_nothing_is_taken_unless_the_scheduler_is_open() -> None:
    async def main() -> None:
        scheduler = make_scheduler(VirtualClock())

        @scheduler.task
        async def nothing() -> None: ...

        with pytest.raises(SchedulerClosed, match="not open"):
            await nothing.submit()
        with pytest.raises(SchedulerClosed, match="not open"):
            await scheduler.submit_many([nothing.bind()])
        with pytest.raises(SchedulerClosed, match="not open"):
            await scheduler.submit_graph({"a": nothing.bind()})
        with pytest.raises(SchedulerClosed, match="not open"):
            scheduler.submit_threadsafe(nothing.bind())
        async with scheduler:
            await (await nothing.submit()).result(timeout=5)
        with pytest.raises(SchedulerClosed, match="not open"):
            await nothing.submit()

    run_virtual(main())


def test_nothing_is_taken_while_the_scheduler_stops() -> None:
    async def scene(stage: Scene) -> None:
        refused: list[str] = []

        @stage.scheduler.task
        async def submit_another() -> None:
            await pass_time(5)
            try:
                await submit_another.submit()
            except SchedulerClosed as error:
                refused.append(str(error))

        handle = await submit_another.submit()
        await stage.settle()
        await stage.scheduler.stop()
        assert len(refused) == 1
        assert "stopping" in refused[0]
        assert isinstance(handle, JobHandle)

    play(scene, checked=False)


def test_a_submit_loop_that_never_waits_does_not_starve_the_workers() -> None:
    async def scene(stage: Scene) -> None:
        ran: list[int] = []

        @stage.scheduler.task
        async def note(number: int) -> None:
            ran.append(number)

        for number in range(1000):
            await note.submit(number)
        assert len(ran) > 50

    play(scene)


def test_a_loop_that_adds_schedules_does_not_starve_the_workers() -> None:
    async def scene(stage: Scene) -> None:
        ran: list[int] = []

        @stage.scheduler.task
        async def note(number: int) -> None:
            ran.append(number)

        await note.submit(0)
        for number in range(200):
            await stage.scheduler.add_schedule(f"s{number}", note.bind(number), every("1h"))
        assert ran == [0]
        for number in range(1, 200):
            await stage.scheduler.trigger_now(f"s{number}")
        assert len(ran) > 10

    play(scene)


def test_arguments_that_cannot_be_stored_are_refused_at_the_call_and_nothing_is_written() -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def take(items: list[dict[str, object]]) -> None: ...

        untyped: Any = take
        with pytest.raises(PayloadError) as caught:
            _ = take.submit([{"ok": 1}, {"when": object()}])
        assert caught.value.path == "items[1]['when']"
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'items'"):
            _ = untyped.submit()
        with pytest.raises(TypeError, match=r"unexpected keyword argument 'itms'\. Did you mean 'items'"):
            _ = untyped.submit(itms=[])
        assert await stage.scheduler.jobs() == []

    play(scene)


def test_the_statuses_of_a_plain_job_are_ready_running_completed(store: StoreMaker) -> None:
    handles: list[JobHandle[None]] = []
    stages: list[Scene] = []

    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def nothing() -> None: ...

        handles.append(await nothing.submit())
        stages.append(stage)
        await handles[0].wait(timeout=5)

    play(scene, store=store)
    assert stages[0].witness.path(handles[0]) == [READY, RUNNING, COMPLETED]
