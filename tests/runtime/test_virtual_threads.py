"""Work outside the loop: inline by default; on request real, with time standing still meanwhile."""

from __future__ import annotations

import asyncio
import contextvars
import selectors
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from betimes.testing import Deadlock, VirtualLoop, run_virtual

pass_time = asyncio.sleep  # noqa: TID251 - on the virtual loop nothing sleeps really

WAIT_S = 30

label = contextvars.ContextVar("label", default="none")


def running() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as executor:
        yield executor


# ---------------------------------------------------------------------------------------- inline


def test_a_function_for_the_executor_runs_inline_in_a_later_step() -> None:
    async def main() -> None:
        trace: list[object] = []

        def work(number: int) -> int:
            trace.append((number, threading.get_ident()))
            return number * 2

        futures = [running().run_in_executor(None, work, number) for number in range(3)]
        assert trace == []
        assert await asyncio.gather(*futures) == [0, 2, 4]
        assert trace == [(number, threading.get_ident()) for number in range(3)]
        assert running().time() == 0.0

    run_virtual(main())


def test_an_inline_function_sees_what_a_pools_thread_sees() -> None:
    def look() -> tuple[str, bool]:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return label.get(), True
        return label.get(), False

    async def main() -> None:
        label.set("mine")
        assert await running().run_in_executor(None, look) == ("none", True)
        assert await asyncio.to_thread(look) == ("mine", True)
        assert asyncio.get_running_loop() is running()

    run_virtual(main())


def test_an_inline_function_may_run_a_loop_of_its_own() -> None:
    async def inner() -> str:
        await pass_time(0)
        return "inner"

    async def main() -> str:
        return await asyncio.to_thread(asyncio.run, inner())

    assert run_virtual(main()) == "inner"


def test_an_inline_functions_error_belongs_to_who_awaits_it() -> None:
    def fail(error: BaseException) -> None:
        raise error

    async def main() -> None:
        with pytest.raises(LookupError, match="gone"):
            await running().run_in_executor(None, fail, LookupError("gone"))
        with pytest.raises(RuntimeError, match="StopIteration"):
            await running().run_in_executor(None, fail, StopIteration())

    run_virtual(main())


def test_an_inline_function_cancelled_before_its_step_never_runs() -> None:
    ran: list[str] = []

    async def main() -> None:
        running().run_in_executor(None, ran.append, "cancelled").cancel()
        await running().run_in_executor(None, ran.append, "kept")

    run_virtual(main())
    assert ran == ["kept"]


# ------------------------------------------------------------------------------------------ real


def test_a_given_executor_is_really_used_and_time_stands_still() -> None:
    """The job cannot end before the loop has gone idle, with a timer set; the timer still has to wait."""
    trace: list[str] = []

    async def main(pool: ThreadPoolExecutor) -> None:
        turning = threading.Event()

        def work() -> int:
            assert turning.wait(WAIT_S)
            trace.append("work")
            return threading.get_ident()

        running().call_later(1e-6, trace.append, "timer")
        answer = running().run_in_executor(pool, work)
        running().call_soon(turning.set)
        assert await answer != threading.get_ident()
        assert running().time() == 0.0
        await pass_time(1)
        assert trace == ["work", "timer"]

    with ThreadPoolExecutor(1) as pool:
        run_virtual(main(pool))


def test_many_real_jobs_all_come_back_before_time_moves(pool: ThreadPoolExecutor) -> None:
    async def main() -> None:
        for round_ in range(50):
            late = running().call_later(1e-6, lambda: None)
            jobs = [running().run_in_executor(pool, pow, number, 2) for number in range(8)]
            assert await asyncio.gather(*jobs) == [number**2 for number in range(8)]
            assert running().time() == round_
            late.cancel()
            await pass_time(1)

    run_virtual(main())


def test_a_default_executor_that_was_set_is_really_used_and_shut_down() -> None:
    async def main(pool: ThreadPoolExecutor) -> None:
        running().set_default_executor(pool)
        assert await asyncio.to_thread(threading.get_ident) != threading.get_ident()

    pool = ThreadPoolExecutor(1)
    run_virtual(main(pool))
    with pytest.raises(RuntimeError, match="shutdown"):
        pool.submit(print)


def test_a_job_that_the_executor_refuses_does_not_stop_time() -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()

    async def main() -> float:
        with pytest.raises(RuntimeError, match="shutdown"):
            running().run_in_executor(pool, print)
        await pass_time(5)
        return running().time()

    assert run_virtual(main()) == 5.0


def test_a_real_job_goes_on_holding_time_when_nobody_waits_for_it_any_more(pool: ThreadPoolExecutor) -> None:
    trace: list[str] = []

    async def main() -> None:
        begun, go_on = threading.Event(), threading.Event()

        def work() -> None:
            begun.set()
            assert go_on.wait(WAIT_S)
            trace.append("work")

        job = running().run_in_executor(pool, work)
        assert begun.wait(WAIT_S)
        job.cancel()
        running().call_soon(go_on.set)
        await pass_time(1)
        trace.append("timer")

    run_virtual(main())
    assert trace == ["work", "timer"]


def test_real_work_waits_for_a_thread_of_ones_own() -> None:
    async def main() -> list[str]:
        loop, answered, trace = running(), asyncio.Event(), list[str]()
        loop.call_later(1, trace.append, "timer")

        def answer() -> None:
            loop.call_soon_threadsafe(trace.append, "answer")
            loop.call_soon_threadsafe(answered.set)

        with loop.real_work():
            thread = threading.Thread(target=answer)
            loop.call_soon(thread.start)
            await answered.wait()
            thread.join(WAIT_S)
        await pass_time(2)
        return trace

    assert run_virtual(main()) == ["answer", "timer"]


Events = list[tuple[selectors.SelectorKey, int]]


def watch_polls(loop: VirtualLoop, watch: Callable[[float, Events], None]) -> None:
    """Have each poll of the loop's selector reported: its timeout before, what it found after."""
    poll = selectors.DefaultSelector.select

    def select(timeout: float | None = None) -> Events:
        def watched(seconds: float) -> Events:
            if seconds > 0:
                watch(seconds, [])
            events = poll(loop._files, seconds)
            if seconds == 0:
                watch(seconds, events)
            return events

        return loop._turn(watched, timeout)

    loop._files.select = select  # type: ignore[method-assign]  # one loop's, not the class's


def test_time_goes_on_when_the_last_of_several_ends_its_real_work() -> None:
    """The threads end their work when the loop goes to sleep because of it: the last one has to wake it."""
    asleep = threading.Event()

    async def main() -> float:
        loop = running()

        def work() -> None:
            assert asleep.wait(WAIT_S)
            loop.end_real_work()

        threads = [threading.Thread(target=work) for _ in range(5)]
        for thread in threads:
            loop.begin_real_work()
            thread.start()
        watch_polls(loop, lambda seconds, _: asleep.set() if seconds else None)
        await pass_time(3)
        for thread in threads:
            thread.join(WAIT_S)
        return loop.time()

    assert run_virtual(main(), real_limit_s=5) == 3.0


def test_a_result_that_comes_between_the_poll_and_the_jump_is_not_overtaken_by_time() -> None:
    """A thread's last two calls, made at the worst moment."""

    async def main() -> float:
        loop, answer = running(), running().create_future()

        def watch(seconds: float, events: Events) -> None:
            if seconds == 0 and not events and not answer.done():
                loop.call_soon_threadsafe(answer.set_result, None)
                loop.end_real_work()

        loop.call_later(1, lambda: None)
        loop.begin_real_work()
        await pass_time(0)
        watch_polls(loop, watch)
        await answer
        return loop.time()

    assert run_virtual(main(), real_limit_s=5) == 0.0


def test_a_test_may_move_time_while_real_work_goes_on(pool: ThreadPoolExecutor) -> None:
    """A thread that a timeout has to reach: the test lets the time pass, since the loop does not."""

    async def main() -> str:
        loop, cancelled = running(), threading.Event()
        loop.call_later(30, cancelled.set)
        job = loop.run_in_executor(pool, cancelled.wait, WAIT_S)
        loop.call_soon(loop.clock.advance, 30)
        return "cancelled" if await job else "never told"

    assert run_virtual(main()) == "cancelled"


def test_real_work_that_never_ends_is_a_deadlock() -> None:
    async def main() -> None:
        with running().real_work():
            await asyncio.Event().wait()

    with pytest.raises(Deadlock, match="no real thread or socket woke the loop") as caught:
        run_virtual(main(), real_limit_s=0.01)
    assert "Event.wait" in caught.value.waiting[0]


def test_ending_real_work_on_a_closed_loop_is_fine() -> None:
    loop = VirtualLoop()
    loop.begin_real_work()
    loop.close()
    loop.end_real_work()


# ------------------------------------------------------------------------------- sockets, processes


def test_a_loop_that_only_waits_for_a_socket_really_waits() -> None:
    async def main() -> bytes:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            thread = threading.Thread(target=theirs.sendall, args=(b"hello",))
            running().call_soon(thread.start)
            received = await running().sock_recv(ours, 100)
            thread.join(WAIT_S)
            return received

    assert run_virtual(main()) == b"hello"


def test_a_socket_that_nobody_writes_to_is_a_deadlock() -> None:
    async def main() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            await running().sock_recv(ours, 100)

    with pytest.raises(Deadlock, match="no real thread or socket"):
        run_virtual(main(), real_limit_s=0.01)


def test_what_is_ready_on_a_socket_comes_before_the_next_timer() -> None:
    async def main() -> tuple[bytes, float]:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            theirs.sendall(b"hello")
            async with asyncio.timeout(1e-6):
                return await running().sock_recv(ours, 100), running().time()

    assert run_virtual(main()) == (b"hello", 0.0)


@pytest.mark.skipif(sys.platform == "win32", reason="asyncio's selector loop starts no processes there")
def test_a_process_is_real_work() -> None:
    async def main() -> tuple[bytes, int | None]:
        with running().real_work():
            async with asyncio.timeout(1):
                child = await asyncio.create_subprocess_exec(
                    sys.executable, "-c", "print('hello')", stdout=asyncio.subprocess.PIPE
                )
                out, _ = await child.communicate()
        return out.strip(), child.returncode

    assert run_virtual(main()) == (b"hello", 0)
