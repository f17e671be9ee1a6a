"""Shuffling draws the orders that nobody promised, and leaves alone those that somebody did."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

import pytest

from betimes.testing import VirtualLoop, run_virtual

pass_time = asyncio.sleep  # noqa: TID251 - on the virtual loop nothing sleeps really

SEEDS = range(30)


async def tasks_walk() -> list[tuple[str, int]]:
    trace: list[tuple[str, int]] = []

    async def walk(name: str) -> None:
        for step in range(3):
            trace.append((name, step))
            await pass_time(0)

    await asyncio.gather(*(walk(name) for name in "abcd"))
    return trace


async def equal_timers_run() -> list[int]:
    trace: list[int] = []
    loop = asyncio.get_running_loop()
    for number in range(8):
        loop.call_at(number // 4 + 1, trace.append, number)
    await pass_time(5)
    return trace


def test_the_same_seed_draws_the_same_order() -> None:
    for seed in SEEDS:
        assert run_virtual(tasks_walk(), seed=seed, shuffle=True) == run_virtual(
            tasks_walk(), seed=seed, shuffle=True
        )
        assert run_virtual(equal_timers_run(), seed=seed, shuffle=True) == run_virtual(
            equal_timers_run(), seed=seed, shuffle=True
        )


def test_without_shuffling_the_seed_changes_nothing() -> None:
    assert {tuple(run_virtual(tasks_walk(), seed=seed)) for seed in SEEDS} == {
        tuple((name, step) for step in range(3) for name in "abcd")
    }
    assert {tuple(run_virtual(equal_timers_run(), seed=seed)) for seed in SEEDS} == {tuple(range(8))}


def test_tasks_that_became_ready_together_come_in_any_order_each_with_its_own_kept() -> None:
    traces = [run_virtual(tasks_walk(), seed=seed, shuffle=True) for seed in SEEDS]
    assert len({tuple(trace[:4]) for trace in traces}) > 10
    for trace in traces:
        for name in "abcd":
            assert [step for who, step in trace if who == name] == [0, 1, 2]


def test_equal_deadlines_come_in_any_order_and_different_ones_do_not() -> None:
    traces = [run_virtual(equal_timers_run(), seed=seed, shuffle=True) for seed in SEEDS]
    assert len({tuple(trace[:4]) for trace in traces}) > 10
    for trace in traces:
        assert [number // 4 for number in trace] == [0] * 4 + [1] * 4


@pytest.mark.parametrize("seed", SEEDS)
def test_plain_callbacks_keep_their_order_among_themselves_and_against_tasks(seed: int) -> None:
    async def main() -> list[object]:
        loop, trace = asyncio.get_running_loop(), list[object]()

        async def step(name: str) -> None:
            trace.append(name)

        for number in range(4):
            loop.call_soon(trace.append, number)
            loop.call_soon(trace.append, -number)
            loop.create_task(step("ab"[number % 2]))
            loop.create_task(step("ab"[number % 2]))
        await pass_time(1)
        return trace

    trace = run_virtual(main(), seed=seed, shuffle=True)
    assert trace == [0, 0, "a", "a", 1, -1, "b", "b", 2, -2, "a", "a", 3, -3, "b", "b"]


def test_it_finds_a_task_that_is_cancelled_before_its_first_step() -> None:
    """A race that asyncio's own order hides: clean-up that stands in a coroutine that never began."""

    async def main() -> list[str]:
        slots: list[str] = []

        async def hold() -> None:
            try:
                await pass_time(1)
            finally:
                slots.append("released")

        holder = asyncio.create_task(hold())

        async def cancel() -> None:
            holder.cancel()

        await asyncio.gather(holder, asyncio.create_task(cancel()), return_exceptions=True)
        return slots

    assert run_virtual(main()) == ["released"]
    found = [run_virtual(main(), seed=seed, shuffle=True) for seed in SEEDS]
    assert [] in found
    assert ["released"] in found


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_queues_locks_and_timeouts_still_keep_their_promises(seed: int) -> None:
    async def main() -> None:
        queue: asyncio.Queue[int] = asyncio.Queue(3)
        lock, inside, got = asyncio.Lock(), 0, list[int]()

        async def put(begin: int) -> None:
            for number in range(begin, begin + 20):
                await queue.put(number)

        async def take() -> None:
            nonlocal inside
            while True:
                number = await queue.get()
                async with lock:
                    inside += 1
                    await pass_time(0.5)
                    assert inside == 1
                    got.append(number)
                    inside -= 1
                queue.task_done()

        takers = [asyncio.create_task(take()) for _ in range(4)]
        async with asyncio.timeout(100):
            async with asyncio.TaskGroup() as group:
                for begin in (0, 20, 40):
                    group.create_task(put(begin))
            await queue.join()
        for taker in takers:
            taker.cancel()
        assert sorted(got) == list(range(60))
        assert [number for number in got if number < 20] == list(range(20))

    run_virtual(main(), seed=seed, shuffle=True)


class BusyQueue(deque[asyncio.Handle]):
    """A loop's queue to which another thread appends in the middle of everything that is done with it."""

    hand_in: Callable[[], None] = staticmethod(lambda: None)

    def popleft(self) -> asyncio.Handle:
        self.hand_in()
        return super().popleft()

    def clear(self) -> None:
        self.hand_in()
        super().clear()

    def extendleft(self, handles: Iterable[asyncio.Handle]) -> None:
        self.hand_in()
        super().extendleft(handles)


def test_what_other_threads_hand_in_meanwhile_is_kept_in_order() -> None:
    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop._ready = queue = BusyQueue(loop._ready)
        seen, numbers = list[int](), iter(range(100))

        def hand_in() -> None:
            if (number := next(numbers, None)) is not None:
                loop.call_soon(seen.append, number)

        queue.hand_in = hand_in
        await asyncio.gather(*(pass_time(0) for _ in range(10)))
        await pass_time(1)
        return seen

    assert run_virtual(main(), shuffle=True) == list(range(100))
