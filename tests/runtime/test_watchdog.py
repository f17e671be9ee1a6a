"""The watchdog names the code that blocks the loop, sleeps while nothing is in flight, and leaves nothing.

Nothing here is timed: a loop is blocked until the warning has been logged, and not by a clock. On a busy
machine the loop may be silent by itself; so only warnings about the code of a test count.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.runtime.stage import pass_time

from betimes import Metrics, Scheduler
from betimes.core.job import Job, JobSpec
from betimes.core.payload import Signature
from betimes.core.retry import RetryPolicy
from betimes.core.task import TaskDefinition
from betimes.runtime.attempt import Attempt
from betimes.runtime.context import Context
from betimes.runtime.logbook import LogBook
from betimes.runtime.metrics import Counters
from betimes.runtime.watchdog import Watchdog, can_watch
from betimes.stores.memory import MemoryStore
from betimes.testing import VirtualClock, VirtualLoop, run_virtual

LIMIT_S = 30.0
STALL_S = 0.2


class Log(logging.Handler):
    """Collects what is logged, and tells whoever waits for it, from any thread."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.total = 0
        self.warnings: list[str] = []
        self.infos: list[str] = []
        self.warned = threading.Event()
        self.over = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if "has been blocked" in text:
            self.total += 1
            if "in block_until" in text:
                self.warnings.append(text)
            self.warned.set()
        elif "turns again" in text:
            self.infos.append(text)
            self.over.set()


@pytest.fixture
def log() -> Iterator[Log]:
    logger, handler = logging.getLogger("betimes"), Log()
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(before)


def watchdogs() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "betimes-watchdog"]


def block_until(event: threading.Event) -> None:
    assert event.wait(LIMIT_S), "the watchdog never said anything"


def run(main: Callable[[Scheduler], Any], **options: Any) -> Metrics:
    """Run `main` with a running scheduler on a real loop, and return the last metrics."""

    async def all_of_it() -> Metrics:
        scheduler = Scheduler(**{"watchdog": STALL_S, **options})
        async with scheduler:
            await main(scheduler)
        return await scheduler.metrics()

    metrics = asyncio.run(all_of_it())
    assert watchdogs() == []
    return metrics


def test_p25_a_job_that_blocks_the_loop_is_named_with_its_stack_once(log: Log) -> None:
    ids: list[str] = []

    async def main(scheduler: Scheduler) -> None:
        @scheduler.task(name="blocker")
        async def block(ctx: Context) -> None:
            ids.append(ctx.job_id)
            block_until(log.warned)

        @scheduler.task
        async def innocent() -> None:
            await asyncio.Event().wait()

        other = await innocent.submit()
        await (await block.submit()).result()
        await other.cancel()

    metrics = run(main)
    (text,) = log.warnings
    assert f"blocked for {STALL_S:g} s by job {ids[0]} (blocker, attempt 1)" in text
    assert __file__ in text
    assert metrics.loop_stalls == log.total == len(log.infos)
    assert metrics.longest_stall_s >= STALL_S


def test_each_stall_is_named_anew(log: Log) -> None:
    async def main(scheduler: Scheduler) -> None:
        @scheduler.task
        async def block(number: int) -> None:
            block_until(log.warned)
            log.warned.clear()

        for number in range(3):
            await (await block.submit(number)).result()

    metrics = run(main)
    assert len(log.warnings) == 3
    assert metrics.loop_stalls == log.total == len(log.infos)


def test_the_programs_own_code_is_named_by_its_stack(log: Log) -> None:
    async def main(scheduler: Scheduler) -> None:
        started = asyncio.Event()

        @scheduler.task
        async def wait() -> None:
            started.set()
            await asyncio.Event().wait()

        handle = await wait.submit()
        await started.wait()
        block_until(log.warned)
        await handle.cancel()

    run(main)
    (text,) = log.warnings
    assert "by code outside any job" in text


def test_a_callback_that_blocks_is_named_by_its_stack(log: Log) -> None:
    async def main(scheduler: Scheduler) -> None:
        called = asyncio.Event()

        def callback() -> None:
            block_until(log.warned)
            called.set()

        @scheduler.task
        async def wait() -> None:
            asyncio.get_running_loop().call_soon(callback)
            await called.wait()

        await (await wait.submit()).result()

    run(main)
    assert "by code outside any job" in log.warnings[0]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="only from 3.12 on can a task's context be seen")
def test_a_task_that_a_job_made_counts_as_the_job(log: Log) -> None:
    async def main(scheduler: Scheduler) -> None:
        async def part() -> None:
            block_until(log.warned)

        @scheduler.task(name="whole")
        async def whole() -> None:
            await asyncio.create_task(part())

        await (await whole.submit()).result()

    run(main)
    assert "(whole, attempt 1)" in log.warnings[0]


def test_a_thread_that_takes_its_time_blocks_nobody(log: Log) -> None:
    async def main(scheduler: Scheduler) -> None:
        turns = threading.Event()

        @scheduler.task
        def slow() -> None:
            block_until(turns)  # as many turns of the loop as the watchdog asks for

        handle = await slow.submit()
        counted = 0
        loop, dog = asyncio.get_running_loop(), scheduler._engine._watches.watchdog
        assert dog is not None
        give_sign = dog._give_sign

        def count() -> None:
            nonlocal counted
            counted += 1
            give_sign()
            if counted == 3:
                loop.call_soon(turns.set)

        dog._give_sign = count  # type: ignore[method-assign]
        await handle.result()
        assert counted >= 3, "it was asked, and it answered"

    run(main, watchdog=0.02)
    assert log.warnings == []


# --- when there is none


def test_without_work_there_is_no_thread_and_no_callback() -> None:
    async def main(scheduler: Scheduler) -> None:
        assert watchdogs() == []
        dog = scheduler._engine._watches.watchdog
        assert dog is not None
        assert not dog._is_awake

    run(main)


def test_it_can_be_switched_off() -> None:
    async def main(scheduler: Scheduler) -> None:
        @scheduler.task
        async def nothing() -> None: ...

        await (await nothing.submit()).result()
        assert scheduler._engine._watches.watchdog is None
        assert watchdogs() == []

    run(main, watchdog=None)


def test_on_virtual_time_there_is_none_whatever_was_asked_for() -> None:
    clock = VirtualClock()

    async def main() -> None:
        scheduler = Scheduler(clock=clock, watchdog="1ms")

        @scheduler.task
        async def sleep() -> None:
            await pass_time(3600)

        async with scheduler:
            await (await sleep.submit()).result()
            assert scheduler._engine._watches.watchdog is None
            assert watchdogs() == []

    run_virtual(main(), clock=clock)


def test_a_loop_says_by_itself_that_its_time_is_not_real() -> None:
    real, virtual = asyncio.new_event_loop(), VirtualLoop()
    assert can_watch(real)
    assert not can_watch(virtual)
    real.close()
    virtual.close()


def test_a_client_has_none() -> None:
    async def main() -> None:
        scheduler = Scheduler(watchdog=STALL_S)
        async with scheduler.client():
            assert scheduler._engine._watches.watchdog is None

    asyncio.run(main())


def test_stopping_twice_and_starting_again_leaves_one_at_most() -> None:
    async def main() -> None:
        scheduler = Scheduler(watchdog=STALL_S)

        @scheduler.task
        async def nothing() -> None: ...

        for _ in range(3):
            await scheduler.start()
            await (await nothing.submit()).result()
            assert len(watchdogs()) == 1
            await scheduler.stop()
            await scheduler.stop()
            assert watchdogs() == []

    asyncio.run(main())


# --- the watchdog alone


def attempt_of(job_id: str) -> Attempt:
    def work() -> None: ...

    spec = JobSpec(task="t")
    definition = TaskDefinition(fn=work, signature=Signature(work, Context), spec=spec, policy=RetryPolicy(1))
    book = LogBook(MemoryStore(clock=VirtualClock()))
    return Attempt(Job(job_id, spec, submitted_at=0, run_at=0), definition, 0.0, book)


class Ears:
    """A watchdog on a running loop, which tells when it goes to sleep and wakes up."""

    def __init__(self, in_flight: dict[int, Attempt]) -> None:
        self.counters = Counters()
        self.dog = Watchdog(0.02, in_flight, self.counters)
        self.answers = 0
        self.asleep = asyncio.Event()
        self._answer = self.dog._answer
        self.dog._answer = self.answer  # type: ignore[method-assign]

    def answer(self) -> None:
        self.answers += 1
        self._answer()
        if not self.dog._is_awake:
            self.asleep.set()


def test_it_goes_to_sleep_when_nothing_is_in_flight_and_wakes_for_the_next_job() -> None:
    async def main() -> None:
        in_flight = {1: attempt_of("a")}
        ears = Ears(in_flight)
        async with asyncio.timeout(LIMIT_S):
            for rounds in range(1, 4):
                ears.dog.wake()
                ears.dog.wake()
                in_flight.clear()
                await ears.asleep.wait()
                assert not ears.dog._work.is_set(), "the thread sleeps, and asks nobody"
                assert ears.answers == rounds
                ears.asleep.clear()
                assert len(watchdogs()) == 1
        ears.dog.close()
        ears.dog.close()
        assert watchdogs() == []

    asyncio.run(main())


def test_it_ends_at_once_though_it_waits_for_an_answer() -> None:
    async def main() -> None:
        dog = Watchdog(3600.0, {1: attempt_of("a")}, Counters())
        dog.wake()
        dog.close()  # the loop has had no turn to answer in
        assert watchdogs() == []

    asyncio.run(main())


def test_a_loop_that_nobody_runs_is_not_called_blocked(log: Log) -> None:
    in_flight = {1: attempt_of("a")}
    loop = asyncio.new_event_loop()

    async def begin() -> Watchdog:
        return Watchdog(STALL_S, in_flight, Counters())

    dog = loop.run_until_complete(begin())
    looked = threading.Event()
    is_running = loop.is_running

    def look() -> bool:
        looked.set()
        return is_running()

    loop.is_running = look  # type: ignore[method-assign]
    dog.wake()
    assert looked.wait(LIMIT_S), "it was silent for long enough to be looked at"
    del loop.is_running
    loop.run_until_complete(asyncio.sleep(0))  # noqa: TID251 - one turn, for the answer
    dog.close()
    loop.close()
    assert (log.warnings, watchdogs()) == ([], [])


def test_a_loop_that_was_closed_under_it_ends_it(log: Log) -> None:
    loop = asyncio.new_event_loop()

    async def begin() -> Watchdog:
        return Watchdog(STALL_S, {1: attempt_of("a")}, Counters())

    dog = loop.run_until_complete(begin())
    loop.close()
    dog.wake()
    assert dog._thread is not None
    dog._thread.join(LIMIT_S)
    assert (log.warnings, watchdogs()) == ([], [])
    dog.close()


def test_the_length_of_a_stall_is_measured_from_the_question_to_the_answer(log: Log) -> None:
    times = iter([100.0, 107.5])

    async def main() -> None:
        counters = Counters()
        dog = Watchdog(STALL_S, {}, counters, monotonic=lambda: next(times, 200.0))
        dog.wake()
        block_until(log.warned)
        await asyncio.get_running_loop().run_in_executor(None, block_until, log.over)
        dog.close()
        assert (counters.loop_stalls, counters.longest_stall_s) == (1, 7.5)

    asyncio.run(main())
    assert log.infos == ["the event loop turns again, after a stall of 7.5 s"]
