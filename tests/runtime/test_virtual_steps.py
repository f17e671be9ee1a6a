"""A virtual loop run step by step: up to an instant, and no further."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest
from tests.runtime.stage import pass_time

from betimes.testing import TimeLimitPassed, VirtualLoop


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    made = VirtualLoop()
    yield made
    made.close()


def test_what_is_due_by_then_has_run_and_the_clock_stands_there(loop: VirtualLoop) -> None:
    rung: list[tuple[float, float]] = []

    def ring(when: float) -> None:
        rung.append((when, loop.time()))

    for when in (1.0, 2.0, 2.000002, 3.0):
        loop.call_at(when, ring, when)
    loop.run_until(2.0)
    assert (rung, loop.time()) == ([(1.0, 1.0), (2.0, 2.0)], 2.0)
    loop.run_until(2.5)
    assert (rung[2:], loop.time()) == ([(2.000002, 2.000002)], 2.5)
    loop.run_until(3.0)
    assert len(rung) == 4


def test_what_that_brings_at_once_has_happened_too(loop: VirtualLoop) -> None:
    steps: list[int] = []

    def step(number: int) -> None:
        steps.append(number)
        if number < 100:
            loop.call_soon(step, number + 1)

    loop.call_at(5.0, step, 1)
    loop.run_until(5.0)
    assert steps[-1] == 100


def test_an_instant_reckoned_as_a_sum_is_that_instant(loop: VirtualLoop) -> None:
    rung: list[float] = []
    loop.call_at(0.1 + 0.2, rung.append, 0.3)  # a trace more than 0.3
    loop.run_until(0.3)
    assert rung == [0.3]
    loop.run_until(0.3)


def test_without_timers_time_passes_all_the_same(loop: VirtualLoop) -> None:
    loop.run_until(60.0)
    loop.run_until(60.0)
    assert loop.time() == 60.0


def test_a_step_may_be_longer_than_the_limit_of_a_run(loop: VirtualLoop) -> None:
    loop.limit_s = 10.0
    loop.call_at(50.0, lambda: None)
    loop.run_until(100.0)
    assert loop.time() == 100.0
    with pytest.raises(TimeLimitPassed):
        loop.run_until_complete(pass_time(11))


def test_a_socket_that_nobody_writes_to_does_not_hold_a_step_up(loop: VirtualLoop) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        heard: list[bytes] = []
        loop.add_reader(ours, lambda: heard.append(ours.recv(10)))
        loop.run_until(10.0)
        theirs.send(b"ho")
        loop.run_until(10.0)
        loop.remove_reader(ours)
    assert (heard, loop.time()) == ([b"ho"], 10.0)


def test_real_work_holds_a_step_up(loop: VirtualLoop) -> None:
    done: list[float] = []
    began = threading.Event()

    async def main() -> None:
        with loop.real_work():
            answered = asyncio.Event()

            def answer() -> None:
                began.wait(30)
                loop.call_soon_threadsafe(answered.set)

            threading.Thread(target=answer).start()
            loop.call_soon(began.set)
            await answered.wait()
        done.append(loop.time())

    task = loop.create_task(main())
    loop.run_until(10.0)
    assert (task.done(), done, loop.time()) == (True, [0.0], 10.0)
