"""A virtual loop that cannot go on ends with an error that says who waits for what."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

import pytest

from betimes.errors import BetimesError
from betimes.testing import Deadlock, Livelock, TimeLimitPassed, VirtualClock, run_virtual

pass_time = asyncio.sleep  # noqa: TID251 - on the virtual loop nothing sleeps really


def test_a_deadlock_names_each_waiting_task_and_its_calls() -> None:
    async def consume(queue: asyncio.Queue[int]) -> int:
        return await queue.get()

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(consume(asyncio.Queue()), name="consumer")
            group.create_task(asyncio.Event().wait(), name="waiter")

    with pytest.raises(Deadlock) as caught:
        run_virtual(main())
    assert isinstance(caught.value, BetimesError)
    consumer, waiter = (line for line in caught.value.waiting if not line.startswith("Task-"))
    assert consumer.startswith("consumer: ")
    assert "consume (test_virtual_stuck.py:" in consumer
    assert "> Queue.get (queues.py:" in consumer
    assert waiter.startswith("waiter: Event.wait (locks.py:")
    assert len(caught.value.waiting) == 3
    assert all(line in str(caught.value) for line in caught.value.waiting)


def test_a_deadlock_comes_only_when_the_last_timer_has_run() -> None:
    clock = VirtualClock()

    async def main() -> None:
        await asyncio.gather(pass_time(60), asyncio.Event().wait())

    with pytest.raises(Deadlock):
        run_virtual(main(), clock=clock)
    assert clock.monotonic() == 60.0


def test_a_cancelled_timer_does_not_hide_a_deadlock() -> None:
    clock = VirtualClock()

    async def main() -> None:
        asyncio.get_running_loop().call_later(60, print).cancel()
        await asyncio.Event().wait()

    with pytest.raises(Deadlock):
        run_virtual(main(), clock=clock)
    assert clock.monotonic() == 0.0


def test_many_waiting_tasks_are_counted_and_all_are_in_the_attribute() -> None:
    async def main() -> None:
        await asyncio.gather(*(asyncio.Event().wait() for _ in range(49)))

    with pytest.raises(Deadlock, match="and 30 more") as caught:
        run_virtual(main())
    assert len(caught.value.waiting) == 50


def test_what_is_stuck_is_cancelled_and_cleans_up() -> None:
    trace: list[str] = []

    async def main() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await pass_time(1)
            trace.append("cleaned up")

    with pytest.raises(Deadlock):
        run_virtual(main())
    assert trace == ["cleaned up"]


left_behind: set[asyncio.Task[None]] = set()


def leave_behind(coroutine: Coroutine[object, object, None], name: str) -> None:
    task = asyncio.create_task(coroutine, name=name)
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # it is meant to be, here
    left_behind.add(task)
    task.add_done_callback(left_behind.discard)


async def swallow_one_cancellation() -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.Event().wait()


def test_a_leftover_that_swallows_its_cancellation_does_not_hang_the_end() -> None:
    async def main() -> None:
        leave_behind(swallow_one_cancellation(), "stubborn")
        await pass_time(1)

    with pytest.raises(Deadlock, match="stubborn: swallow_one_cancellation"):
        run_virtual(main())


def test_a_clean_up_that_is_stuck_too_does_not_hide_the_first_error() -> None:
    async def main() -> None:
        leave_behind(swallow_one_cancellation(), "stubborn")
        await pass_time(1)
        raise LookupError("first")

    with pytest.raises(LookupError, match="first") as caught:
        run_virtual(main())
    (note,) = caught.value.__notes__
    assert "clean-up was stuck too" in note
    assert "stubborn" in note


def test_a_livelock_ends_with_an_error() -> None:
    async def main() -> None:
        while True:
            await pass_time(0)

    with pytest.raises(Livelock, match=r"1000 times at 0\.0 s") as caught:
        run_virtual(main(), max_turns=1000)
    assert "main (test_virtual_stuck.py:" in caught.value.waiting[0]


def test_a_timer_of_no_time_is_a_livelock_too() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()

        def again() -> None:
            loop.call_at(5, again)

        loop.call_at(5, again)
        await asyncio.Event().wait()

    with pytest.raises(Livelock, match=r"at 5\.0 s"):
        run_virtual(main(), max_turns=1000)


def test_turns_are_counted_anew_at_each_instant() -> None:
    async def main() -> str:
        for _ in range(20):
            for _ in range(90):
                await pass_time(0)
            await pass_time(1e-6)
        return "done"

    assert run_virtual(main(), max_turns=100) == "done"


def test_a_heartbeat_does_not_hide_that_nothing_else_happens() -> None:
    clock = VirtualClock()

    async def beat() -> None:
        while True:
            await pass_time(10)

    async def main() -> None:
        leave_behind(beat(), "heartbeat")
        await asyncio.Event().wait()

    with pytest.raises(TimeLimitPassed, match="beyond this run's limit") as caught:
        run_virtual(main(), clock=clock, limit_s=3600)
    assert clock.monotonic() == 3600.0
    assert any("Event.wait" in line for line in caught.value.waiting)


def test_waiting_on_a_generator_based_awaitable_is_followed() -> None:
    class Knock:
        def __await__(self):  # type: ignore[no-untyped-def]  # what a library's own awaitables look like
            return (yield from asyncio.get_running_loop().create_future().__await__())

    async def main() -> None:
        await Knock()

    with pytest.raises(Deadlock, match=r"main \(.*\) > .*Knock.__await__ \("):
        run_virtual(main())
