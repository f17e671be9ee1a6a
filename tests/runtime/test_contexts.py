"""What a job's code sees of itself, and of others: `Context`, `current_job`, and context variables."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Annotated, Any

import pytest
from tests.runtime.stage import COMPLETED, Scene, StoreMaker, pass_time, play

from betimes import BetimesError, ConfigurationError, Context, current_job
from betimes.testing.clock import DEFAULT_START

who = contextvars.ContextVar("who", default="nobody")


def test_a_parameter_annotated_as_context_is_filled_in(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        seen: list[tuple[str, str, int, int]] = []

        def look(context: Context) -> None:
            seen.append((context.job_id, context.task, context.attempt, context.fence))

        @stage.scheduler.task(name="first")
        async def first(context: Context, number: int) -> int:
            look(context)
            return number

        @stage.scheduler.task(name="last")
        def last(number: int, *, at: Annotated[Context, "filled in"]) -> int:
            look(at)
            return number

        @stage.scheduler.task(name="maybe")
        async def maybe(number: int, context: Context | None = None) -> int:
            assert context is not None
            look(context)
            return number

        handles = [await first.submit(1), await last.submit(2), await maybe.submit(3)]  # type: ignore[call-arg]
        assert [await handle.result() for handle in handles] == [1, 2, 3]
        names = ("first", "last", "maybe")
        assert sorted(seen) == sorted((h.id, name, 1, 1) for h, name in zip(handles, names, strict=True))

    play(scene, store=store)


def test_the_context_tells_of_deadline_schedule_and_log(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(name="work", timeout=5)
        async def work(context: Context) -> None:
            assert context.deadline == DEFAULT_START + timedelta(seconds=7)
            assert context.scheduled_for is None
            assert not context.cancelled
            context.raise_if_cancelled()
            context.log.warning("half of %d done", 10)

        @stage.scheduler.task
        async def without(context: Context) -> None:
            assert context.deadline is None

        handle = await work.using(delay=2, job_id="me").submit()
        assert await handle.wait() is COMPLETED
        assert await (await without.submit()).wait() is COMPLETED

    with caplog.at_level(logging.WARNING, "betimes.job"):
        play(scene)
    (record,) = [each for each in caplog.records if each.name == "betimes.job"]
    assert record.getMessage() == "work me attempt 1: half of 10 done"
    assert (record.__dict__["job_id"], record.__dict__["task"], record.__dict__["attempt"]) == (
        "me",
        "work",
        1,
    )


def test_current_job_is_the_job_whose_code_asks(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def on_loop() -> str:
            await pass_time(1)
            return current_job().job_id

        @stage.scheduler.task
        def in_thread() -> str:
            return current_job().job_id

        @stage.scheduler.task
        async def in_a_task_of_its_own() -> str:
            async def inner() -> str:
                return current_job().job_id

            return await asyncio.create_task(inner())

        for task in (on_loop, in_thread, in_a_task_of_its_own):
            handles = [await task.submit() for _ in range(3)]
            assert [await handle.result() for handle in handles] == [handle.id for handle in handles]
        with pytest.raises(BetimesError, match="outside a job"):
            current_job()

    play(scene, store=store)


def test_case_078_context_variables_do_not_leak_from_job_to_job_nor_from_the_submitter(
    store: StoreMaker,
) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def on_loop(name: str) -> str:
            before = who.get()
            who.set(name)
            await pass_time(1)
            return f"{before} {who.get()}"

        @stage.scheduler.task
        def in_thread(name: str) -> str:
            before = who.get()
            who.set(name)
            return f"{before} {who.get()}"

        who.set("the submitter")
        for task in (on_loop, in_thread):
            for name in ("a", "b"):
                assert await (await task.submit(name)).result() == f"nobody {name}"
        assert who.get() == "the submitter"
        # The scheduler's own tasks know nothing of whoever happened to start it, or to ask.
        store = stage.scheduler._store
        seen: dict[str, set[str]] = {}
        for name in ("exchange", "ended", "beat"):
            setattr(store, name, spy(name, getattr(store, name), seen))
        await (await on_loop.using(delay=20).submit("c")).result()
        assert seen == {"exchange": {"nobody"}, "ended": {"nobody"}, "beat": {"nobody"}}

    play(scene, store=store, concurrency=1)


def spy(name: str, call: Callable[..., Any], seen: dict[str, set[str]]) -> Callable[..., Any]:
    """Write down what a call of the store sees of `who`."""

    def spied(*args: Any, **options: Any) -> Any:
        seen.setdefault(name, set()).add(who.get())
        return call(*args, **options)

    return spied


def test_case_078_async_generators_closed_early_see_their_jobs_context() -> None:
    async def scene(stage: Scene) -> None:
        closed: list[str] = []

        async def numbers() -> AsyncIterator[int]:
            try:
                for number in range(100):
                    yield number
            finally:
                closed.append(current_job().job_id)

        @stage.scheduler.task
        async def work() -> int:
            source = numbers()
            async for number in source:
                if number == 3:
                    break
            await source.aclose()  # type: ignore[attr-defined]
            return number

        handle = await work.submit()
        assert await handle.result() == 3
        assert closed == [handle.id]

    play(scene)


def test_a_context_cannot_be_passed_and_there_is_one_at_most() -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work(number: int, context: Context) -> None: ...

        with pytest.raises(TypeError, match="'context' from the worker"):
            _ = work.submit(1, context=None)  # type: ignore[arg-type]

        async def two(first: Context, second: Context) -> None: ...

        with pytest.raises(ConfigurationError, match="two contexts"):
            stage.scheduler.task(two)

    play(scene)


def test_a_job_may_submit_and_await_another(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def factorial(number: int) -> int:
            if number <= 1:
                return 1
            return number * await (await factorial.submit(number - 1)).result()

        assert await (await factorial.submit(6)).result() == 720

    play(scene, store=store, concurrency=10)
