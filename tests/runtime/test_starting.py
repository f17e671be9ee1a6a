"""What starts, when, and in what order: promotion, wake-ups, slots, lanes and strategies."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.runtime.slow_store import SlowStore, taking
from tests.runtime.stage import COMPLETED, READY, Scene, StoreMaker, pass_time, play

from betimes import (
    AgingPriorityStrategy,
    CancelAnswer,
    EarliestDueStrategy,
    JobHandle,
    Priority,
    RetryPolicy,
    SchedulingStrategy,
)
from betimes.testing import InlineExecutor, VirtualClock
from betimes.testing.clock import DEFAULT_START

SEEDS = range(25)


def slow(clock: VirtualClock) -> SlowStore:
    return SlowStore(clock=clock)


# ---------------------------------------------------------------------------------------- instants


def test_p14_a_due_job_starts_at_its_instant_and_not_a_microsecond_early(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def nothing() -> None: ...

        instants = [timedelta(microseconds=us) for us in (1, 3, 999_999, 1_000_000, 1_500_001, 7_777_777)]
        handles = [await nothing.using(delay=delay).submit() for delay in reversed(instants)]
        await stage.scheduler.drain()
        started = [(await handle.info()).started_at for handle in reversed(handles)]
        assert started == [DEFAULT_START + delay for delay in instants]

    play(scene, store=store)


def test_an_earlier_job_interrupts_the_wait_for_a_later_one(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def when() -> float:
            return stage.time

        late = await when.using(delay=10).submit()
        await pass_time(1)
        early = await when.using(delay=2).submit()
        assert (await early.result(), await late.result()) == (3.0, 10.0)

    play(scene, store=store)


def test_a_job_that_becomes_due_while_all_slots_are_taken_is_ready_and_the_loop_is_left_alone(
    store: StoreMaker,
) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work() -> float:
            await pass_time(100)
            return stage.time

        await work.submit()
        await stage.settle()
        later = await work.using(delay=5).submit()
        await pass_time(5.5)
        assert await later.status() is READY
        assert await later.result() == 200.0
        assert (await later.info()).started_at == DEFAULT_START + timedelta(seconds=100)

    play(scene, store=store, concurrency=1)


def test_a_thousand_due_at_once_all_start_at_their_instant() -> None:
    async def scene(stage: Scene) -> None:
        ran: list[float] = []

        @stage.scheduler.task
        async def note() -> None:
            ran.append(stage.time)

        await stage.scheduler.submit_many([note.using(delay=5).bind()] * 1700)
        await stage.scheduler.drain()
        assert ran == [5.0] * 1700

    play(scene)


def test_a_jump_of_the_wall_clock_starts_nothing_early_and_loses_nothing(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def when() -> float:
            return stage.time

        handle = await when.using(delay=100).submit()
        stage.clock.jump(-50)
        await pass_time(120)
        assert (await handle.info()).started_at is None
        assert await handle.result() == 150.0
        ahead = await when.using(delay=1000).submit()
        stage.clock.jump(990)
        # Nobody tells of the jump: it is noticed at the next look, within the time between two polls.
        assert await ahead.result(timeout=30) <= 180.0

    play(scene, store=store)


# ---------------------------------------------------------------------------------------- wake-ups


@pytest.fixture
def nothing_else_wakes(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Put everything off that would wake the worker anyway; the options of a scheduler of that kind."""
    monkeypatch.setattr("betimes.runtime.lease.RESCUE_EVERY_S", 1e6)
    monkeypatch.setattr("betimes.runtime.upkeep.PRUNE_EVERY_S", 1e6)
    return {"poll": "900h", "lease": "3000h", "limit_s": 1000.0}


@pytest.mark.parametrize("seed", SEEDS)
def test_no_wake_up_is_lost_whatever_the_order_of_things(
    seed: int, nothing_else_wakes: dict[str, Any]
) -> None:
    rng = random.Random(seed)

    async def scene(stage: Scene) -> None:
        line = stage.scheduler._store
        assert isinstance(line, SlowStore)
        line.is_in_order = True
        line.before = taking(lambda: rng.choice([0, 0, 0.001, 0.01]))
        line.after = taking(lambda: rng.choice([0, 0, 0.002, 0.02]))

        @stage.scheduler.task(timeout=3, retry=RetryPolicy(2, base_delay=0))
        async def work(seconds: float) -> None:
            await pass_time(seconds)

        @stage.scheduler.task
        def plain() -> None: ...

        async def submitter() -> None:
            for _ in range(20):
                await pass_time(rng.choice([0, 0, 0.1, 0.5]))
                if rng.random() < 0.3:
                    await plain.using(delay=rng.choice([0, 0.2])).submit()
                else:
                    seconds = rng.choice([0, 0.1, 0.7, 5])
                    handle = await work.using(delay=rng.choice([0, 0, 0.3])).submit(seconds)
                    if rng.random() < 0.2:
                        await handle.cancel()

        await asyncio.gather(*(submitter() for _ in range(4)))
        # Were one of the 80 forgotten, nothing would find it within the time this scene may take.
        await stage.scheduler.drain()
        metrics = await stage.scheduler.metrics()
        assert metrics.in_flight == metrics.stuck == 0

    play(scene, store=slow, seed=seed, concurrency=3, **nothing_else_wakes)


def test_a_slot_that_is_freed_while_a_claim_is_on_its_way_is_used_at_once(
    nothing_else_wakes: dict[str, Any],
) -> None:
    async def scene(stage: Scene) -> None:
        line = stage.scheduler._store
        assert isinstance(line, SlowStore)
        line.before = line.after = taking(lambda: 1.0)

        @stage.scheduler.task
        async def work() -> None:
            await pass_time(0.5)

        handles = [await work.submit() for _ in range(6)]
        await asyncio.gather(*(handle.wait() for handle in handles))
        # Each job costs a claim, its half second, and the report; there is no wait beside these.
        assert stage.time <= 6 + 6 * 4.5

    play(scene, store=slow, concurrency=1, **nothing_else_wakes)


def test_a_late_attempt_that_returns_while_its_report_is_on_its_way_frees_its_slot_at_once(
    nothing_else_wakes: dict[str, Any],
) -> None:
    async def scene(stage: Scene) -> None:
        line = stage.scheduler._store
        assert isinstance(line, SlowStore)

        @stage.scheduler.task(timeout=5, retry=RetryPolicy(2, base_delay=0))
        async def work() -> float:
            begun = stage.time
            try:
                await pass_time(100 if begun < 5 else 0)
            except asyncio.CancelledError:
                await pass_time(0.5)  # it returns while the report of its timeout is on its way
            return begun

        handle = await work.submit()
        await pass_time(1)
        gate = line.hold("exchange", answers=True)
        await gate.came.wait()
        assert stage.time == 5.0
        waiting = await work.submit()
        await pass_time(1)
        gate.opened.set()
        # The next exchange starts both: the retry, and what has waited.
        assert await handle.result() == await waiting.result() == 6.0

    play(scene, store=slow, concurrency=1, **nothing_else_wakes)


def test_jobs_that_were_there_before_the_start_run_without_a_further_word(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def when() -> float:
            return stage.time

        await stage.scheduler.stop()
        async with stage.scheduler.client():
            first = await when.submit()
            later = await when.using(delay=7).submit()
        await stage.scheduler.start()
        assert await first.result() == 0.0
        assert await later.result() == 7.0

    play(scene, store=store, poll="10h", lease="30h")


# ---------------------------------------------------------------------------------------- slots


@pytest.mark.parametrize("concurrency", [1, 3, 10])
def test_p19_at_most_concurrency_attempts_are_in_flight(concurrency: int, store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        running = most = 0

        @stage.scheduler.task(retry=RetryPolicy(2, base_delay=0))
        async def work(number: int) -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await pass_time(1)
            running -= 1
            if number % 3 == 0:
                raise ValueError("again")

        await stage.scheduler.submit_many([work.bind(number) for number in range(30)])
        await stage.scheduler.drain()
        assert most == concurrency
        metrics = await stage.scheduler.metrics()
        assert (metrics.peak_running, metrics.workers, metrics.attempts) == (concurrency, concurrency, 40)

    play(scene, store=store, concurrency=concurrency)


def test_full_threads_neither_hoard_jobs_nor_hide_those_of_the_loop(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(priority=1000)
        def in_thread() -> None: ...

        @stage.scheduler.task
        async def on_loop() -> float:
            return stage.time

        blocked = [await in_thread.submit() for _ in range(20)]
        await stage.settle()
        waiting = [await on_loop.submit() for _ in range(20)]
        assert [await handle.result(timeout=1) for handle in waiting] == [0.0] * 20
        metrics = await stage.scheduler.metrics()
        assert (metrics.running, metrics.ready, metrics.in_flight) == (2, 18, 2)
        assert await blocked[19].wait() is COMPLETED
        assert stage.time == 100.0

    play(scene, store=store, concurrency=5, executors=[InlineExecutor(slots=2, takes_s=lambda run: 10.0)])


def test_concurrency_holds_over_all_lanes_together(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        def in_thread() -> None: ...

        @stage.scheduler.task
        async def on_loop() -> None:
            await pass_time(10)

        for _ in range(6):
            await in_thread.submit()
            await on_loop.submit()
        await stage.scheduler.drain()
        assert stage.time == 40.0
        assert (await stage.scheduler.metrics()).peak_running == 3

    play(scene, store=store, concurrency=3, executors=[InlineExecutor(slots=2, takes_s=lambda run: 10.0)])


# ---------------------------------------------------------------------------------------- order


def test_priority_holds_over_everything_that_waits(
    store: StoreMaker,
) -> None:
    async def scene(stage: Scene) -> None:
        ran: list[str] = []

        @stage.scheduler.task
        async def work(name: str) -> None:
            ran.append(name)
            await pass_time(1)

        for number in range(5):
            await work.using(priority=0).submit(f"low {number}")
        await pass_time(1.5)
        await work.using(priority=5).submit("high")
        await stage.scheduler.drain()
        assert ran == ["low 0", "low 1", "high", "low 2", "low 3", "low 4"]

    play(scene, store=store, concurrency=1)


def test_case_137_priority_holds_on_every_path_to_the_start(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        ran: list[int] = []

        @stage.scheduler.task(retry=RetryPolicy(2, base_delay=10, jitter=False))
        async def work(number: int, *, fails: bool = False) -> None:
            if fails and stage.time < 10:
                raise ValueError("again")
            ran.append(number)
            await pass_time(0.001)

        due = DEFAULT_START + timedelta(seconds=10)
        for number in (3, 8, 0):
            await work.using(priority=number).submit(number, fails=True)  # fails now, comes back at 10 s
        await pass_time(9)
        for number in (5, 1, 9):
            await work.using(priority=number, run_at=due).submit(number)
        for number in (7, 2):
            await work.using(priority=number, delay=1).submit(number)
        blocker = await work.using(priority=1000, run_at=due).submit(1000)
        for number in (6, 4):
            await work.using(priority=number, depends_on=blocker).submit(number)
        await stage.scheduler.drain()
        assert ran == [1000, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]

    play(scene, store=store, concurrency=1)


def test_equal_priorities_go_by_submission(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        ran: list[int] = []

        @stage.scheduler.task
        async def note(number: int) -> None:
            ran.append(number)

        await stage.scheduler.submit_many([note.using(delay=5).bind(number) for number in range(20)])
        await stage.scheduler.drain()
        assert ran == list(range(20))

    play(scene, store=store, concurrency=1)


@pytest.mark.parametrize(("waited", "first"), [(9.999, "MEDIUM"), (10.0, "LOW"), (10.001, "LOW")])
def test_ageing_after_ten_seconds_a_low_job_equals_a_fresh_medium_one(
    waited: float, first: str, store: StoreMaker
) -> None:
    assert first_of(store, waited, Priority.MEDIUM) == first


@pytest.mark.parametrize(("waited", "first"), [(19.999, "HIGH"), (20.001, "LOW")])
def test_ageing_after_twenty_seconds_a_low_job_goes_before_a_fresh_high_one(
    waited: float, first: str, store: StoreMaker
) -> None:
    assert first_of(store, waited, Priority.HIGH) == first


def first_of(store: StoreMaker, waited: float, other: Priority) -> str:
    """Let a LOW job wait, submit another, and say which of them starts first."""
    ran: list[str] = []

    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def note(name: str) -> None:
            ran.append(name)

        await stage.scheduler.pause_queue("default")
        await note.using(priority=Priority.LOW).submit("LOW")
        await pass_time(waited)
        await note.using(priority=other).submit(other.name)
        await stage.scheduler.resume_queue("default")
        await stage.scheduler.drain()

    play(scene, store=store, strategy=AgingPriorityStrategy(), concurrency=1)
    return ran[0]


def test_ageing_counts_from_run_at_for_a_job_that_was_not_due_before(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        ran: list[str] = []

        @stage.scheduler.task
        async def note(name: str) -> None:
            ran.append(name)

        await stage.scheduler.pause_queue("default")
        await note.using(priority=Priority.LOW, delay=15).submit("low, due after 15 s")
        await pass_time(20)
        await note.using(priority=Priority.MEDIUM).submit("medium")
        await stage.scheduler.resume_queue("default")
        await stage.scheduler.drain()
        assert ran == ["medium", "low, due after 15 s"]

    play(scene, store=store, strategy=AgingPriorityStrategy(), concurrency=1)


@pytest.mark.parametrize(("strategy", "starts"), [(AgingPriorityStrategy(1.0), True), (None, False)])
def test_case_139_a_low_job_starts_under_constant_load_when_it_ages(
    strategy: SchedulingStrategy | None, starts: bool
) -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task(name="work")
        async def work() -> float:
            begun = stage.time
            await pass_time(0.1)
            return begun

        low = await work.using(priority=0, delay=0.05).submit()
        load: list[JobHandle[float]] = []
        for _ in range(100):
            load.append(await work.using(priority=5).submit())
            await pass_time(0.1)
        if starts:
            assert 5 <= await low.result() <= 6
        else:
            assert (await low.info()).started_at is None
            assert await low.cancel() is CancelAnswer.CANCELLED
        await stage.scheduler.drain()

    play(scene, concurrency=1, strategy=strategy)


def test_earliest_due_goes_by_run_at_then_priority_then_submission(store: StoreMaker) -> None:
    async def scene(stage: Scene) -> None:
        ran: list[str] = []

        @stage.scheduler.task
        async def note(name: str) -> None:
            ran.append(name)

        def at(second: int, priority: int = 0) -> Callable[..., object]:
            return note.using(run_at=DEFAULT_START + timedelta(seconds=second), priority=priority).bind

        await stage.scheduler.pause_queue("default")
        calls = [at(3)("third"), at(1)("second"), at(1, 9)("first"), at(3)("fourth"), at(5, 900)("last")]
        await stage.scheduler.submit_many(calls)  # type: ignore[arg-type]
        await pass_time(10)
        await stage.scheduler.resume_queue("default")
        await stage.scheduler.drain()
        assert ran == ["first", "second", "third", "fourth", "last"]

    play(scene, store=store, strategy=EarliestDueStrategy(), concurrency=1)


def test_the_order_is_kept_over_a_snooze_a_retry_and_a_release() -> None:
    async def scene(stage: Scene) -> None:
        ran: list[str] = []

        @stage.scheduler.task(retry=RetryPolicy(2, base_delay=1, jitter=False))
        async def work(name: str, *, fails: bool = False) -> None:
            if fails and stage.time < 1:
                raise ValueError("again")
            ran.append(name)

        await work.submit("old", fails=True)
        await stage.settle()
        await pass_time(0.5)
        await stage.scheduler.pause_queue("default")
        await work.submit("young")
        await pass_time(5)
        await stage.scheduler.resume_queue("default")
        await stage.scheduler.drain()
        assert ran == ["old", "young"]

    play(scene, concurrency=1)
