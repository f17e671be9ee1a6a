"""A job's log: whole when the result is there, live while the job runs, bounded, and its own."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest
from tests.runtime.slow_store import SlowStore
from tests.runtime.stage import COMPLETED, Scene, StoreMaker, make_scheduler, pass_time, play

from betimes import ConfigurationError, Context, JobFailed, RetryPolicy, Scheduler, UnknownJob
from betimes.core.log import LINE_LENGTH, LINES_KEPT
from betimes.testing import Jobs, VirtualClock, run_virtual
from betimes.testing.clock import DEFAULT_START


def test_lines_come_in_order_with_their_instant_attempt_and_level(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(name="work")
        async def work(context: Context) -> None:
            context.log.info("%s of %d", "one", 3)
            context.log.warning("two\nlines")
            await pass_time(5)
            context.log.error("three")

        job = await work.submit()
        await job.result()
        lines = await job.log()
        assert [(line.number, line.attempt, line.source, line.level, line.text) for line in lines] == [
            (1, 1, "log", logging.INFO, "one of 3"),
            (2, 1, "log", logging.WARNING, "two"),
            (3, 1, "log", logging.WARNING, "lines"),
            (4, 1, "log", logging.ERROR, "three"),
        ]
        assert [(line.at - DEFAULT_START).total_seconds() for line in lines] == [0, 0, 0, 5]
        assert await stage.scheduler.log(job.id) == lines

    play(scene, store=store)


def test_a_log_is_read_page_by_page(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(name="work")
        async def work(context: Context) -> None:
            for number in range(10):
                context.log.info("%d", number)

        job = await work.submit()
        await job.result()
        assert [line.text for line in await job.log(limit=4)] == ["0", "1", "2", "3"]
        assert [line.text for line in await job.log(after=4, limit=4)] == ["4", "5", "6", "7"]
        assert [line.number for line in await job.log(after=8)] == [9, 10]
        assert await job.log(after=10) == await job.log(after=99) == []
        for wrong in ({"after": -1}, {"after": "1"}, {"limit": 0}, {"limit": 1001}, {"limit": True}):
            with pytest.raises(ConfigurationError, match=f"{next(iter(wrong))} is"):
                await job.log(**wrong)
        with pytest.raises(UnknownJob):
            await stage.scheduler.log("nobody")

    play(scene, store=store)


def test_the_newest_lines_are_kept_and_each_within_its_length(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(name="work")
        async def work(context: Context) -> None:
            for number in range(LINES_KEPT + 500):
                context.log.info("%d", number)
            context.log.info("x" * 3 * LINE_LENGTH)

        job = await work.submit()
        await job.result()
        lines = await job.log()
        assert len(lines) == LINES_KEPT
        assert [line.text for line in lines[:-1]] == [str(number) for number in range(501, LINES_KEPT + 500)]
        assert len(lines[-1].text) == LINE_LENGTH
        assert lines[-1].text.endswith("x…")

    play(scene, store=store)


def test_the_lines_of_a_failed_attempt_stay_beside_those_of_its_retry(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(name="work", retry=RetryPolicy(2, jitter=False))
        def work(context: Context) -> None:
            context.log.info("try %d", context.attempt)
            if context.attempt == 1:
                raise ValueError("not yet")

        job = await work.submit()
        await job.result()
        assert [(line.number, line.attempt, line.text) for line in await job.log()] == [
            (1, 1, "try 1"),
            (2, 2, "try 2"),
        ]

    play(scene, store=store)


def test_the_log_is_whole_when_the_result_is_there(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(name="work")
        async def work(context: Context, number: int) -> None:
            for _ in range(number % 7):
                await pass_time(0)
            context.log.info("line of %d", number)

        async def follow(number: int) -> None:
            job = await work.submit(number)
            await job.result()
            assert [line.text for line in await job.log()] == [f"line of {number}"]

        async with asyncio.TaskGroup() as group:
            for number in range(200):
                group.create_task(follow(number))

    play(scene, store=store, seed=3)


def test_what_is_written_while_others_lines_are_on_their_way_comes_before_its_outcome() -> None:
    stores: list[SlowLog] = []

    class SlowLog(SlowStore):
        async def write_log(self, pages: Any) -> None:
            await self._before("write_log")
            await super().write_log(pages)

    def make(clock: VirtualClock) -> SlowStore:
        stores.append(SlowLog(clock=clock))
        return stores[-1]

    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(name="first")
        async def first(context: Context) -> None:
            context.log.info("first")

        @stage.scheduler.task(name="second")
        async def second(context: Context) -> None:
            await go_on.wait()
            context.log.info("second")

        go_on = asyncio.Event()
        job = await second.submit()
        await stage.settle()
        gate = stores[0].hold("write_log")
        other = await first.submit()
        await gate.came.wait()
        go_on.set()  # it ends while the lines of the first are on their way
        await stage.settle()
        recorded = asyncio.ensure_future(job.wait())
        next_gate = stores[0].hold("write_log")
        gate.opened.set()
        await stage.settle()
        assert not recorded.done()
        next_gate.opened.set()
        assert await recorded is COMPLETED
        assert [line.text for line in await job.log()] == ["second"]
        assert [line.text for line in await other.log()] == ["first"]

    play(scene, store=make)


def test_lines_of_a_job_that_runs_on_are_there_within_a_second(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(name="work")
        async def work(context: Context) -> None:
            for number in range(3):
                context.log.info("%d", number)
                await pass_time(10)

        job = await work.submit()
        for number in range(3):
            await pass_time(1)
            assert [line.text for line in await job.log()] == [str(each) for each in range(number + 1)]
            await pass_time(9)
        await job.result()

    play(scene, store=store)


def test_lines_of_an_attempt_that_is_not_the_jobs_any_more_are_refused(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        contexts: list[Context] = []

        @stage.scheduler.task(name="work", retry=RetryPolicy(2, base_delay=0))
        async def work(context: Context) -> None:
            contexts.append(context)
            if context.attempt == 1:
                raise ValueError("not yet")
            await pass_time(5)

        job = await work.submit()
        await pass_time(1)
        first, second = contexts
        first.log.info("too late")
        second.log.info("in time")
        await job.result()
        second.log.info("after the end")
        await pass_time(5)
        assert [line.text for line in await job.log()] in (["in time"], ["in time", "after the end"])

    play(scene, store=store)


def test_a_traceback_is_kept_as_lines(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(name="work")
        async def work(context: Context) -> None:
            try:
                raise ValueError("no such page")
            except ValueError as error:
                context.log.exception("page %d", 3)
                context.log.info("again", exc_info=error)

        job = await work.submit()
        await job.result()
        texts = [line.text for line in await job.log()]
        assert texts[0] == "page 3"
        assert texts[1] == "Traceback (most recent call last):"
        assert texts.count("ValueError: no such page") == 2

    play(scene, store=store)


@pytest.mark.parametrize("level", [logging.DEBUG, logging.CRITICAL])
def test_info_is_kept_whatever_logging_is_set_to_and_debug_where_it_is_enabled(
    level: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(level, logger="betimes.job")

    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(name="work")
        async def work(context: Context) -> None:
            context.log.debug("detail")
            context.log.info("news")

        job = await work.submit()
        await job.result()
        expected = ["detail", "news"] if level == logging.DEBUG else ["news"]
        assert [line.text for line in await job.log()] == expected
        ours = [record for record in caplog.records if record.name == "betimes.job"]
        assert [record.getMessage() for record in ours] == [
            f"work {job.id} attempt 1: {text}" for text in expected if level == logging.DEBUG
        ]
        assert {record.filename for record in ours} <= {"test_job_log.py"}

    play(scene)


def test_a_message_that_its_arguments_do_not_fit_is_kept_all_the_same(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    caplog.set_level(logging.CRITICAL, logger="betimes.job")

    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(name="work")
        async def work(context: Context) -> None:
            context.log.info("%d pages", "no")

        job = await work.submit()
        await job.result()
        assert [line.text for line in await job.log()] == ["'%d pages' with ('no',)"]

    play(scene)


def test_threads_write_all_at_once() -> None:
    async def main() -> None:
        scheduler = Scheduler(concurrency=8, watchdog=None)
        meeting = threading.Barrier(8)

        @scheduler.task(name="work")
        def work(context: Context, number: int) -> None:
            meeting.wait(30)
            for each in range(100):
                context.log.info("%d: %d", number, each)

        async with scheduler:
            jobs = [await work.submit(number) for number in range(8)]
            for number, job in enumerate(jobs):
                await job.result(timeout=30)
                assert [line.text for line in await job.log()] == [f"{number}: {each}" for each in range(100)]

    asyncio.run(main())


def test_a_thread_that_outlives_its_scheduler_writes_to_nobody() -> None:
    gate, has_written = threading.Event(), threading.Event()

    async def main() -> None:
        scheduler = Scheduler(grace=0, watchdog=None)

        @scheduler.task(name="work")
        def work(context: Context) -> None:
            context.log.info("before")
            begun.set()
            gate.wait(30)
            context.log.info("after")
            has_written.set()

        begun = threading.Event()
        async with scheduler:
            job = await work.submit()
            while not begun.is_set():
                await pass_time(0)
            await scheduler.stop(timeout=0)
        async with scheduler.client():
            assert [line.text for line in await job.log()] == ["before"]

    asyncio.run(main())
    gate.set()
    assert has_written.wait(30)


def test_a_failed_job_keeps_its_log(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(name="work")
        async def work(context: Context) -> None:
            context.log.info("so far")
            raise ValueError("no further")

        job = await work.submit()
        with pytest.raises(JobFailed):
            await job.result()
        assert [line.text for line in await job.log()] == ["so far"]

    play(scene, store=store)


def test_a_log_can_be_read_without_a_loop() -> None:
    scheduler = Scheduler(watchdog=None)

    @scheduler.task(name="work")
    def work(context: Context) -> None:
        context.log.info("done")

    with scheduler.blocking() as blocking:
        job = work.submit_blocking()
        job.result(timeout=30)
        assert [line.text for line in job.log()] == ["done"]
        assert blocking.log(job.id, limit=1) == job.log(after=0)


def test_a_test_can_look_at_a_jobs_log() -> None:
    scheduler = Scheduler()

    @scheduler.task(name="work")
    def work(context: Context) -> None:
        context.log.info("done")

    with Jobs(scheduler) as jobs:
        job = jobs.submit(work)
        assert [line.text for line in job.log()] == ["done"]


def test_a_restarted_scheduler_still_has_the_logs(store: StoreMaker) -> None:
    clock = VirtualClock()
    kept = store(clock)

    async def main() -> None:
        scheduler = make_scheduler(clock, kept)

        @scheduler.task(name="work")
        async def work(context: Context) -> None:
            context.log.info("done")

        async with scheduler:
            job = await work.submit()
            await job.result()
        async with scheduler.client():
            assert [line.text for line in await scheduler.log(job.id)] == ["done"]

    run_virtual(main(), clock=clock)
