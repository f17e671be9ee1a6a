"""The virtual loop is asyncio on another clock: timers to the bit, and everything built on them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.testing import TimeLimitPassed, VirtualClock, VirtualLoop, run_virtual

pass_time = asyncio.sleep  # noqa: TID251 - on the virtual loop nothing sleeps really

Trace = list[object]


def test_a_year_of_hourly_timers_passes_at_once() -> None:
    async def year() -> int:
        ticks = 0
        while asyncio.get_running_loop().time() < 365 * 86_400:
            await pass_time(3600)
            ticks += 1
        return ticks

    clock = VirtualClock()
    begun = clock.now()
    assert run_virtual(year(), clock=clock) == 8760
    assert clock.monotonic() == 31_536_000.0
    assert clock.now() - begun == 31_536_000_000_000


def test_the_loops_time_is_the_clocks() -> None:
    clock = VirtualClock()
    clock.advance(7)

    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        assert loop.clock is clock
        seen = [loop.time()]
        await pass_time(0.1)
        seen.append(loop.time())
        clock.advance(1)
        return [*seen, loop.time()]

    assert run_virtual(main(), clock=clock) == [7.0, 7.1, 8.1]
    assert clock.monotonic() == 8.1


def test_every_run_without_a_clock_begins_anew() -> None:
    assert run_virtual(pass_time(5, "a")) == "a"

    async def begin() -> float:
        return asyncio.get_running_loop().time()

    assert run_virtual(begin()) == 0.0


@given(
    begin=st.sampled_from([0.0, 1.0, 86_400.1, 3e7 + 0.3, 3e9]),
    delays=st.lists(st.floats(0, 1e6), min_size=1, max_size=40),
    dropped=st.sets(st.integers(0, 39)),
)
def test_timers_run_in_order_each_at_its_own_instant_and_never_early(
    begin: float, delays: list[float], dropped: set[int]
) -> None:
    clock = VirtualClock()
    clock.advance(begin)
    ran: list[tuple[int, float, float]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()

        def ring(number: int, when: float) -> None:
            ran.append((number, when, loop.time()))

        wanted = [begin + delay for delay in delays]
        timers = [loop.call_at(when, ring, number, when) for number, when in enumerate(wanted)]
        for number in dropped & set(range(len(timers))):
            timers[number].cancel()
        await pass_time(1e6 + 1)

    run_virtual(main(), clock=clock)
    assert all(when == at for _, when, at in ran)
    kept = [(begin + delay, number) for number, delay in enumerate(delays) if number not in dropped]
    assert [(when, number) for number, when, _ in ran] == sorted(kept)


def test_equal_deadlines_run_first_in_first_out() -> None:
    """More than asyncio promises: its heap is not stable. On virtual time equal deadlines are the rule."""
    ran: list[int] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        timers = [loop.call_later(1 + number % 3, ran.append, number) for number in range(300)]
        for timer in timers[::7]:
            timer.cancel()
        await pass_time(10)

    run_virtual(main())
    kept = [number for number in range(300) if number % 7]
    assert ran == sorted(kept, key=lambda number: number % 3)


def test_a_timer_that_is_set_again_for_the_next_deadline_ends() -> None:
    """One timer for many deadlines, as schedulers have: each fires once, whatever its fraction."""
    rng = random.Random(1)
    deadlines = sorted(rng.uniform(0, 1e8) for _ in range(500))
    rings = 0

    async def main() -> None:
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def ring() -> None:
            nonlocal rings
            rings += 1
            while deadlines and deadlines[0] <= loop.time():
                deadlines.pop(0)
            if deadlines:
                loop.call_at(deadlines[0], ring)
            else:
                done.set_result(None)

        loop.call_at(deadlines[0], ring)
        await done

    run_virtual(main(), limit_s=2e8)
    assert (deadlines, rings) == ([], 500)


def test_time_that_a_test_lets_pass_makes_timers_late_in_their_order() -> None:
    async def main(clock: VirtualClock) -> Trace:
        loop, ran = asyncio.get_running_loop(), list[object]()

        def ring(delay: int) -> None:
            ran.append((delay, loop.time()))

        for delay in (3, 1, 2, 50):
            loop.call_later(delay, ring, delay)
        clock.advance(10)
        await pass_time(0)
        await pass_time(0)
        return ran

    clock = VirtualClock()
    assert run_virtual(main(clock), clock=clock) == [(1, 10.0), (2, 10.0), (3, 10.0)]


def test_a_wall_clock_that_jumps_moves_no_timer() -> None:
    async def main(clock: VirtualClock) -> float:
        loop = asyncio.get_running_loop()
        loop.call_later(1, clock.jump, -86_400)
        loop.call_later(2, clock.jump, 7 * 86_400)
        await pass_time(5)
        return loop.time()

    clock = VirtualClock()
    begun = clock.now()
    assert run_virtual(main(clock), clock=clock) == 5.0
    assert clock.now() - begun == (5 + 6 * 86_400) * 1_000_000


# ------------------------------------------------------------------ what asyncio builds on timers


async def timeout_fires(trace: Trace) -> None:
    try:
        async with asyncio.timeout(5):
            await asyncio.Event().wait()
    except TimeoutError:
        trace.append("late")


async def timeout_does_not_fire(trace: Trace) -> None:
    async with asyncio.timeout(5) as limit:
        await pass_time(4)
        limit.reschedule(asyncio.get_running_loop().time() + 5)
        await pass_time(4.5)
    trace.append(limit.expired())


async def wait_for_gives_up(trace: Trace) -> None:
    async def stubborn() -> None:
        try:
            await pass_time(100)
        finally:
            await pass_time(2)
            trace.append("cleaned up")

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(stubborn(), 6.5)


async def group_cancels_the_rest(trace: Trace) -> None:
    async def fail() -> None:
        await pass_time(8.5)
        raise ValueError("no")

    async def rest() -> None:
        try:
            await pass_time(1000)
        except asyncio.CancelledError:
            trace.append("cancelled")
            raise

    with pytest.raises(ExceptionGroup):  # noqa: PT012 - the group is what raises
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            group.create_task(rest())


async def event_wakes_all(trace: Trace) -> None:
    event = asyncio.Event()

    async def wait(name: str) -> None:
        await event.wait()
        trace.append(name)

    waiting = [asyncio.create_task(wait(name)) for name in "abc"]
    asyncio.get_running_loop().call_later(8.5, event.set)
    await asyncio.gather(*waiting)


async def queue_hands_over(trace: Trace) -> None:
    queue: asyncio.Queue[int] = asyncio.Queue(maxsize=2)

    async def consume() -> None:
        while (item := await queue.get()) >= 0:
            await pass_time(1.5)
            trace.append(item)
            queue.task_done()
        queue.task_done()

    consumer = asyncio.create_task(consume())
    for item in (1, 2, 3, 4, 5, -1):
        await queue.put(item)
    await queue.join()
    await consumer
    await pass_time(1)


async def semaphore_admits_two(trace: Trace) -> None:
    semaphore = asyncio.Semaphore(2)

    async def work(number: int) -> None:
        async with semaphore:
            await pass_time(4.25)
            trace.append((number, asyncio.get_running_loop().time()))

    await asyncio.gather(*(work(number) for number in range(4)))


async def condition_is_notified(trace: Trace) -> None:
    condition, items = asyncio.Condition(), list[int]()

    async def take() -> None:
        async with condition:
            await condition.wait_for(lambda: items)
            trace.append(items.pop())

    takers = [asyncio.create_task(take()) for _ in range(2)]
    for item, delay in ((1, 4), (2, 4.5)):
        await pass_time(delay)
        async with condition:
            items.append(item)
            condition.notify()
    await asyncio.gather(*takers)


async def as_completed_and_wait(trace: Trace) -> None:
    trace += [await done for done in asyncio.as_completed([pass_time(n, n) for n in (3, 1, 2)])]
    tasks = [asyncio.create_task(pass_time(n, n)) for n in (5, 7, 9)]
    done, pending = await asyncio.wait(tasks, timeout=5.5)
    trace.append((len(done), len(pending)))


PROGRAMS: list[tuple[Callable[[Trace], Awaitable[None]], float, Trace]] = [
    (timeout_fires, 5.0, ["late"]),
    (timeout_does_not_fire, 8.5, [False]),
    (wait_for_gives_up, 8.5, ["cleaned up"]),
    (group_cancels_the_rest, 8.5, ["cancelled"]),
    (event_wakes_all, 8.5, ["a", "b", "c"]),
    (queue_hands_over, 8.5, [1, 2, 3, 4, 5]),
    (semaphore_admits_two, 8.5, [(0, 4.25), (1, 4.25), (2, 8.5), (3, 8.5)]),
    (condition_is_notified, 8.5, [1, 2]),
    (as_completed_and_wait, 8.5, [1, 2, 3, (1, 2)]),
]


@pytest.mark.parametrize(("program", "ends_at", "expected"), PROGRAMS, ids=[p.__name__ for p, *_ in PROGRAMS])
def test_what_asyncio_builds_on_timers_works(
    program: Callable[[Trace], Awaitable[None]], ends_at: float, expected: Trace
) -> None:
    trace: Trace = []

    async def main() -> float:
        await program(trace)
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) == ends_at
    assert trace == expected


def test_without_timers_every_step_comes_as_on_asyncios_own_loop() -> None:
    """Differential: the same program, with nothing to wait for, on both loops."""

    async def program() -> Trace:
        loop, trace = asyncio.get_running_loop(), list[object]()
        queue: asyncio.Queue[int] = asyncio.Queue(1)
        gate, lock = asyncio.Event(), asyncio.Lock()

        async def walk(name: str, steps: int) -> None:
            for step in range(steps):
                trace.append((name, step))
                await pass_time(0)
                async with lock:
                    await queue.put(step)
                    trace.append((name, await queue.get()))
            gate.set()

        async def wait() -> None:
            try:
                await gate.wait()
                loop.call_soon(trace.append, "soon")
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                trace.append("cancelled")
                raise

        waiting = asyncio.create_task(wait())
        waiting.add_done_callback(lambda task: trace.append(task.cancelled()))
        async with asyncio.TaskGroup() as group:
            for number, name in enumerate("abcd"):
                group.create_task(walk(name, number + 1))
                loop.call_soon(trace.append, number)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return trace

    assert run_virtual(program()) == asyncio.run(program())


# ---------------------------------------------------------------------------------- run_virtual


def test_it_returns_the_result_and_raises_the_error() -> None:
    async def fail() -> None:
        await pass_time(1)
        raise LookupError("gone")

    assert run_virtual(pass_time(1, "done")) == "done"
    with pytest.raises(LookupError, match="gone"):
        run_virtual(fail())


def test_it_cancels_leftovers_closes_generators_and_the_loop() -> None:
    trace: Trace = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            await pass_time(3)
            trace.append("generator")

    async def left_over() -> None:
        try:
            await pass_time(1000)
        finally:
            await pass_time(2)
            trace.append("task")

    async def main() -> tuple[asyncio.AbstractEventLoop, AsyncIterator[int]]:
        left = asyncio.create_task(left_over())
        generator = numbers()
        await anext(generator)
        assert not left.done()
        return asyncio.get_running_loop(), generator

    clock = VirtualClock()
    loop, _ = run_virtual(main(), clock=clock)
    assert trace == ["task", "generator"]
    assert loop.is_closed()
    assert clock.monotonic() == 5.0


def test_a_loop_made_by_hand_runs_more_than_once_each_time_with_its_own_limit() -> None:
    loop = VirtualLoop(limit_s=10)
    try:
        for turn in range(1, 4):
            assert loop.run_until_complete(pass_time(9, turn)) == turn
            assert loop.time() == 9.0 * turn
        with pytest.raises(TimeLimitPassed):
            loop.run_until_complete(pass_time(11))
    finally:
        loop.close()
