"""Inline mode: what is submitted has run when the submit returns, on the caller's loop or without one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from betimes import ConfigurationError, JobFailed, JobStatus, Scheduler, every
from betimes.testing import inline_mode

COMPLETED, FAILED, DELAYED, READY = (
    JobStatus.COMPLETED,
    JobStatus.FAILED,
    JobStatus.DELAYED,
    JobStatus.READY,
)


@dataclass(frozen=True)
class Letter:
    """An argument of a type of its own."""

    to: str


class App:
    """A program whose scheduler names a file that cannot even be made."""

    def __init__(self) -> None:
        self.scheduler = Scheduler("/nowhere/at/all/jobs.db", concurrency=2)
        self.log: list[Any] = []
        task = self.scheduler.task

        @task(name="send")
        def send(letter: Letter) -> Letter:
            self.log.append(letter)
            return letter

        @task(name="tree")
        async def tree(depth: int) -> int:
            if depth == 0:
                return 1
            below = [await tree.submit(depth - 1), await tree.submit(depth - 1)]
            assert [await each.status() for each in below] == [COMPLETED, COMPLETED]
            self.log.append(depth)
            return sum([await each.result() for each in below])

        @task(name="chain")
        def chain(length: int) -> None:
            self.log.append(length)
            if length:
                chain.submit_blocking(length - 1)

        @task(name="fail", retry=2)
        async def fail() -> None:
            raise ValueError("boom")

        self.send, self.tree, self.chain, self.fail = send, tree, chain, fail


@pytest.fixture
def app() -> App:
    return App()


async def a_test(app: App) -> None:
    """What stands in an async test, which some other plugin runs on a loop of its own."""
    async with inline_mode(app.scheduler) as jobs:
        letter = Letter("ada")
        job = await app.send.submit(letter)
        assert app.log == [letter]
        assert app.log[0] is not letter
        assert await job.result() == letter
        jobs.assert_submitted(app.send, Letter("ada"), times=1)


def test_a_job_has_run_when_its_submit_returns(app: App) -> None:
    asyncio.run(a_test(app))
    assert repr(app.scheduler).startswith("<Scheduler SqliteStore not open")


def test_the_jobs_that_a_job_submits_have_run_too_however_deep(app: App) -> None:
    async def main() -> None:
        async with inline_mode(app.scheduler) as jobs:
            job = await app.tree.submit(5)
            assert await job.status() is COMPLETED
            assert await job.result() == 32
            assert len(jobs.submitted()) == 63
            assert app.log[-1] == 5

    asyncio.run(main())


def test_tasks_that_submit_at_once_each_get_their_own(app: App) -> None:
    async def submit(depth: int) -> int:
        job = await app.tree.submit(depth)
        assert await job.status() is COMPLETED
        return await job.result()

    async def main() -> None:
        async with inline_mode(app.scheduler):
            assert await asyncio.gather(*map(submit, (1, 2, 3, 4))) == [2, 4, 8, 16]

    asyncio.run(main())


def test_batches_and_graphs_have_run_as_well(app: App) -> None:
    async def main() -> None:
        async with inline_mode(app.scheduler):
            many = await app.scheduler.submit_many([app.send.bind(Letter(each)) for each in "abc"])
            assert [await each.status() for each in many] == [COMPLETED] * 3
            graph = await app.scheduler.submit_graph(
                {"last": (app.send.bind(Letter("2")), ["first"]), "first": app.send.bind(Letter("1"))}
            )
            assert [await each.status() for each in graph.values()] == [COMPLETED] * 2
            assert [each.to for each in app.log] == ["a", "b", "c", "1", "2"]

    asyncio.run(main())


def test_what_a_job_raises_ends_the_job_and_not_the_submit(app: App) -> None:
    @app.scheduler.task
    async def fail_once() -> None:
        raise ValueError("boom")

    async def main() -> None:
        async with inline_mode(app.scheduler):
            job = await fail_once.submit()
            assert await job.status() is FAILED
            with pytest.raises(JobFailed, match="ValueError: boom"):
                await job.result()

    asyncio.run(main())


def test_no_time_passes(app: App) -> None:
    ran: list[int] = []

    @app.scheduler.task(schedule=every("1s"))
    async def tick() -> None:
        ran.append(1)

    async def main() -> None:
        async with inline_mode(app.scheduler):
            assert await (await app.fail.submit()).status() is DELAYED
            assert await (await app.send.using(delay="5m").submit(Letter("ada"))).status() is DELAYED
            await app.scheduler.pause_queue("default")
            assert await (await app.send.submit(Letter("eve"))).status() is READY
        assert app.log == ran == []

    asyncio.run(main())


def test_without_a_loop_submit_blocking_does_the_same(app: App) -> None:
    with inline_mode(app.scheduler) as jobs:
        job = app.send.submit_blocking(Letter("ada"))
        assert (job.status(), job.result()) == (COMPLETED, Letter("ada"))
        assert app.tree.submit_blocking(3).result() == 8
        future = app.scheduler.submit_threadsafe(app.send.bind(Letter("eve")))
        assert future.done()
        jobs.assert_submitted(app.send, times=2)
    assert repr(app.scheduler).startswith("<Scheduler SqliteStore not open")


@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_thread_job_submits_runs_after_it_and_before_the_submit_returns(
    app: App, is_async: bool
) -> None:
    async def main() -> None:
        async with inline_mode(app.scheduler):
            await app.chain.submit(3)
            assert app.log == [3, 2, 1, 0]

    if is_async:
        asyncio.run(main())
    else:
        with inline_mode(app.scheduler):
            app.chain.submit_blocking(3)
            assert app.log == [3, 2, 1, 0]


def test_a_blocking_call_on_the_loop_itself_is_refused_as_ever(app: App) -> None:
    async def main() -> None:
        async with inline_mode(app.scheduler):
            with pytest.raises(ConfigurationError, match="await the call instead"):
                app.send.submit_blocking(Letter("ada"))

    asyncio.run(main())


def test_a_plain_with_on_a_running_loop_is_refused_and_changes_nothing(app: App) -> None:
    before = app.scheduler._parts

    async def main() -> None:
        with pytest.raises(ConfigurationError, match="async with"), inline_mode(app.scheduler):
            raise AssertionError("it must not come so far")

    asyncio.run(main())
    assert app.scheduler._parts is before


def test_a_run_that_is_asked_for_by_hand_has_run(app: App) -> None:
    async def main() -> None:
        async with inline_mode(app.scheduler):
            call = app.send.bind(Letter("ada"))
            await app.scheduler.add_schedule("daily", call, every("1d"))
            job = await app.scheduler.trigger_now("daily")
            assert await job.status() is COMPLETED
            assert app.log == [Letter("ada")]

    asyncio.run(main())


def test_an_error_in_the_block_leaves_the_scheduler_as_it_was(app: App) -> None:
    before = app.scheduler._parts

    async def main() -> None:
        async with inline_mode(app.scheduler):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(main())
    with pytest.raises(ZeroDivisionError), inline_mode(app.scheduler):
        raise ZeroDivisionError
    assert app.scheduler._parts is before


def test_an_open_scheduler_is_left_alone() -> None:
    scheduler = Scheduler()

    async def main() -> None:
        async with scheduler:
            with pytest.raises(ConfigurationError, match="is open"):
                async with inline_mode(scheduler):
                    raise AssertionError("it must not come so far")
            assert scheduler._engine.is_open

    asyncio.run(main())
