"""Listeners: every transition, in order, apart from the scheduler's own steps."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
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

from betimes import Cancel, ConfigurationError, JobEvent, RetryPolicy, Scheduler, Snooze
from betimes.runtime.listeners import Listeners
from betimes.testing import VirtualClock, run_virtual
from betimes.testing.clock import DEFAULT_START

WAIT_S = 30
Heard = list[tuple[str, Any, Any, int, str | None]]


def told(events: list[JobEvent]) -> Heard:
    """What is said of each transition, by the job's id."""
    return [(each.job_id, each.before, each.after, each.attempt, each.error) for each in events]


def test_every_transition_is_told_in_order_with_its_attempt_and_error(store: StoreMaker) -> None:
    stages: list[Scene] = []

    async def scene(stage: Scene) -> None:
        stages.append(stage)

        @stage.scheduler.task(name="work", queue="q", retry=RetryPolicy(2, base_delay=1, jitter=False))
        async def work(way: str) -> None:
            if way == "fails":
                raise ValueError("no")
            if way == "snoozes" and stage.time < 20:
                raise Snooze(20)
            if way == "cancels":
                raise Cancel("enough")

        fails = await work.using(job_id="fails", delay=2).submit("fails")
        await work.using(job_id="child", depends_on=fails).submit("")
        await work.using(job_id="snoozes").submit("snoozes")
        await work.using(job_id="cancels").submit("cancels")
        await stage.scheduler.drain()

    play(scene, store=store, concurrency=1)
    events = stages[0].witness.events
    by_job = {
        name: [entry[1:] for entry in told(events) if entry[0] == name]
        for name in ("fails", "child", "snoozes", "cancels")
    }
    assert by_job == {
        "fails": [
            (None, DELAYED, 0, None),
            (DELAYED, READY, 0, None),
            (READY, RUNNING, 1, None),
            (RUNNING, DELAYED, 1, "ValueError: no"),
            (DELAYED, READY, 1, None),
            (READY, RUNNING, 2, None),
            (RUNNING, FAILED, 2, "ValueError: no"),
        ],
        "child": [(None, BLOCKED, 0, None), (BLOCKED, CANCELLED, 0, "dependency: fails")],
        "snoozes": [
            (None, READY, 0, None),
            (READY, RUNNING, 1, None),
            (RUNNING, DELAYED, 1, None),
            (DELAYED, READY, 0, None),
            (READY, RUNNING, 1, None),
            (RUNNING, COMPLETED, 1, None),
        ],
        "cancels": [
            (None, READY, 0, None),
            (READY, RUNNING, 1, None),
            (RUNNING, CANCELLED, 1, "enough"),
        ],
    }
    assert {(each.task, each.queue) for each in events} == {("work", "q")}
    assert [each.at for each in events] == sorted(each.at for each in events)
    assert events[0].at == DEFAULT_START


def test_timeouts_replacements_and_stops_are_told(store: StoreMaker) -> None:
    stages: list[Scene] = []

    async def scene(stage: Scene) -> None:
        stages.append(stage)

        @stage.scheduler.task
        async def work() -> None:
            await pass_time(100)

        late = await work.using(job_id="late", timeout=1).submit()
        await late.wait()
        await work.using(job_id="x", delay=5).submit()
        await work.using(job_id="x", replace=True, delay=50).submit()
        await work.using(job_id="stopped").submit()
        await stage.settle()
        await stage.scheduler.stop(timeout=0)

    play(scene, store=store, checked=False)
    heard = told(stages[0].witness.events)
    assert (
        "late",
        RUNNING,
        TIMED_OUT,
        1,
        "betimes.errors.JobTimedOut: the attempt passed its timeout of 1 s",
    ) in (heard)
    assert ("x", DELAYED, CANCELLED, 0, "replaced") in heard
    assert ("stopped", RUNNING, READY, 1, None) in heard


def test_plain_functions_listen_in_a_thread_of_their_own(store: StoreMaker) -> None:
    threads: set[str] = set()
    events: list[JobEvent] = []

    async def scene(stage: Scene) -> None:
        @stage.scheduler.listen
        def hear(event: JobEvent) -> None:
            threads.add(threading.current_thread().name)
            events.append(event)

        assert callable(hear)

        @stage.scheduler.task
        async def work() -> None: ...

        await (await work.submit()).wait()

    play(scene, store=store)
    assert [each.after for each in events] == [READY, RUNNING, COMPLETED]
    assert threads == {"betimes-listener"}


def test_case_154_a_raising_listener_harms_nobody_and_is_logged_once_for_each_kind(
    store: StoreMaker, caplog: pytest.LogCaptureFixture
) -> None:
    stages: list[Scene] = []

    async def scene(stage: Scene) -> None:
        stages.append(stage)

        @stage.scheduler.listen
        async def broken(event: JobEvent) -> None:
            raise KeyError(event.after) if event.after is RUNNING else ValueError(event.after)

        @stage.scheduler.listen
        def broken_too(event: JobEvent) -> None:
            raise SystemExit(3)

        @stage.scheduler.task
        async def work() -> str:
            return "fine"

        assert [await (await work.submit()).result() for _ in range(5)] == ["fine"] * 5
        await stage.settle()
        metrics = await stage.scheduler.metrics()
        assert metrics.listener_errors >= 15

    play(scene, store=store)
    assert [each.after for each in stages[0].witness.events] == [READY, RUNNING, COMPLETED] * 5
    raised = [record.exc_info[0] for record in caplog.records if record.exc_info]
    assert sorted(kind.__name__ for kind in raised if kind) == ["KeyError", "SystemExit", "ValueError"]


@pytest.mark.parametrize("error", [asyncio.CancelledError(), SystemExit(3), GeneratorExit()])
def test_a_coroutine_listener_hears_on_whatever_it_has_raised(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Any] = []

    async def scene(stage: Scene) -> None:
        @stage.scheduler.listen
        async def broken(event: JobEvent) -> None:
            heard.append(event.after)
            raise error

        @stage.scheduler.task
        async def work() -> str:
            return "fine"

        assert await (await work.submit()).result() == "fine"

    play(scene)
    assert heard == [READY, RUNNING, COMPLETED]
    assert "raised; the scheduler goes on" in caplog.text


def test_case_154_a_slow_listener_delays_nobody(store: StoreMaker) -> None:
    heard: list[float] = []

    async def scene(stage: Scene) -> None:
        @stage.scheduler.listen
        async def slow(event: JobEvent) -> None:
            await pass_time(5)
            heard.append(stage.time)

        @stage.scheduler.task
        async def when() -> float:
            return stage.time

        assert await (await when.submit()).result(timeout=1) == 0.0
        assert await (await when.using(delay=1).submit()).result(timeout=2) == 1.0

    # The stop delivers the rest, but waits for a listener no longer than the grace.
    play(scene, store=store, grace=20, checked=False)
    assert heard == [5.0, 10.0, 15.0, 20.0]


def test_a_stop_delivers_the_rest_within_the_grace(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[str] = []
    ends: list[float] = []

    async def main() -> None:
        scheduler = make_scheduler(clock, grace=7)

        @scheduler.listen
        async def slow(event: JobEvent) -> None:
            await pass_time(2)
            heard.append(event.after)

        @scheduler.task
        async def work() -> None: ...

        async with scheduler:
            await (await work.submit()).wait()
            await (await work.submit()).wait()
        ends.append(clock.monotonic())
        metrics = await scheduler.metrics()
        assert metrics.events_dropped == 2

    clock = VirtualClock()
    run_virtual(main(), clock=clock)
    assert (heard, ends) == ([READY, RUNNING, COMPLETED], [7.0])
    assert "2 events were not delivered" in caplog.text


def test_a_listener_that_blocks_its_thread_does_not_hold_up_the_stop_or_the_others() -> None:
    heard: list[JobEvent] = []
    gate = threading.Event()

    async def main() -> None:
        scheduler = Scheduler(grace=0.05, watchdog=None)

        @scheduler.listen
        def blocks(event: JobEvent) -> None:
            gate.wait(WAIT_S)

        scheduler.listen(heard.append)

        @scheduler.task
        async def work() -> None: ...

        async with scheduler:
            await (await work.submit()).wait()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    gate.set()
    assert [each.after for each in heard] == [READY, RUNNING, COMPLETED]


def test_a_full_buffer_drops_the_oldest_events_and_counts_them() -> None:
    heard: list[str] = []

    async def main() -> None:
        listeners = Listeners()
        listeners.open()

        async def hear(event: JobEvent) -> None:
            heard.append(event.job_id)

        listeners.add(hear, buffer=3)
        assert listeners.are_there
        scheduler = make_scheduler(VirtualClock())

        @scheduler.task
        async def work() -> None: ...

        events: list[JobEvent] = []

        async def keep(event: JobEvent) -> None:
            events.append(event)

        scheduler.listen(keep)
        async with scheduler.client():
            for number in range(5):
                await work.using(job_id=str(number)).submit()
        listeners.tell(events)
        assert listeners.dropped == 2
        await listeners.close(5)
        assert (listeners.dropped, listeners.are_there) == (2, False)

    run_virtual(main())
    assert heard == ["2", "3", "4"]


def test_a_listener_may_be_added_while_it_runs_and_hears_the_next_run_too() -> None:
    heard: list[str] = []

    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work() -> None: ...

        await (await work.using(job_id="before").submit()).wait()
        await stage.settle()

        @stage.scheduler.listen
        async def hear(event: JobEvent) -> None:
            heard.append(event.job_id)

        await (await work.using(job_id="after").submit()).wait()
        await stage.scheduler.stop()
        await stage.scheduler.start()
        await (await work.using(job_id="again").submit()).wait()

    play(scene)
    assert heard == ["after"] * 3 + ["again"] * 3


def test_a_listener_may_submit_and_cancel_but_not_wait_for_itself() -> None:
    async def scene(stage: Scene) -> None:
        ran: list[str] = []

        @stage.scheduler.task
        async def work(name: str) -> None:
            ran.append(name)

        @stage.scheduler.listen
        async def follow(event: JobEvent) -> None:
            if event.after is COMPLETED and event.job_id == "first":
                await work.submit("second")

        await work.using(job_id="first").submit("first")
        await pass_time(1)
        await stage.scheduler.drain()
        assert ran == ["first", "second"]

    play(scene)


@pytest.mark.parametrize("listener", [None, 3, "print"])
def test_only_what_can_be_called_can_listen(listener: Any) -> None:
    with pytest.raises(ConfigurationError, match="listen"):
        make_scheduler(VirtualClock()).listen(listener)
