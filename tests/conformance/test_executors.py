"""Every executor is held to the one contract; those whose code can wait are held to more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from functools import partial
from typing import Any

from betimes.core.events import Succeeded
from betimes.executors.loop import LoopExecutor
from betimes.executors.thread import ThreadExecutor
from betimes.ports import Executor, Run
from betimes.testing import InlineExecutor, VirtualLoop
from betimes.testing.executor_contract import (
    WAIT_S,
    Bench,
    Code,
    ExecutorContract,
    Probe,
    async_code,
    error_of,
    on_bench,
    sync_code,
)


class TestLoopExecutor(ExecutorContract):
    code = staticmethod(async_code)

    def make_executor(self, slots: int) -> Executor:
        return LoopExecutor(slots)

    @staticmethod
    def wait_for(gate: asyncio.Event, log: list[str]) -> Code:
        async def code() -> str:
            log.append("begun")
            try:
                await gate.wait()
            except asyncio.CancelledError:
                log.append("told")
                await gate.wait()
                raise
            return "done"

        return code

    @on_bench
    async def test_runs_go_on_beside_each_other(self, bench: Bench) -> None:
        gate, log = asyncio.Event(), list[str]()
        probes = [bench.start(self.wait_for(gate, log)) for _ in range(4)]
        quick = bench.start(self.code(lambda: 1))
        await bench.end_of(quick)
        assert log == ["begun"] * 4
        gate.set()
        assert await bench.end_of(*probes) == [Succeeded(0, b"done")] * 4

    @on_bench
    async def test_a_cancel_is_thrown_into_the_code_which_may_take_its_time(self, bench: Bench) -> None:
        gate, log = asyncio.Event(), list[str]()
        probe = bench.start(self.wait_for(gate, log))
        await bench.end_of(bench.start(self.code(lambda: None)))
        bench.executor.cancel(probe)
        await bench.end_of(bench.start(self.code(lambda: None)))
        assert (log, probe.outcomes) == (["begun", "told"], [])
        gate.set()
        assert error_of((await bench.end_of(probe))[0]).endswith("CancelledError")

    @on_bench
    async def test_code_that_is_cancelled_before_its_first_step_never_runs(self, bench: Bench) -> None:
        ran: list[int] = []
        probe = bench.start(self.code(lambda: ran.append(1)))
        bench.executor.cancel(probe)
        assert error_of((await bench.end_of(probe))[0]).endswith("CancelledError")
        assert ran == []

    @on_bench
    async def test_a_run_that_goes_on_after_a_reopening_ends_where_it_began(self, bench: Bench) -> None:
        gate, log = asyncio.Event(), list[str]()
        probe = bench.start(self.wait_for(gate, log))
        await bench.executor.close()
        again = Bench(bench.executor)
        gate.set()
        await bench.end_of(probe)
        await again.end_of(again.start(self.code(lambda: None)))

    def test_a_task_factory_is_respected(self) -> None:
        made: list[str] = []

        def factory(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
            made.append("made")
            return asyncio.Task(coroutine, loop=loop, **options)

        async def main() -> None:
            asyncio.get_running_loop().set_task_factory(factory)
            bench = Bench(self.make_executor(1))
            assert await bench.end_of(bench.start(self.code(lambda: 3))) == [Succeeded(0, b"3")]
            assert made == ["made"]

        self.run(main())


class TestThreadExecutor(ExecutorContract):
    code = staticmethod(sync_code)

    def make_executor(self, slots: int) -> Executor:
        return ThreadExecutor(slots)

    def run(self, main: Coroutine[Any, Any, None]) -> None:
        asyncio.run(main)

    @on_bench
    async def test_runs_go_on_beside_each_other_in_threads_that_do_not_hold_up_the_exit(
        self, bench: Bench
    ) -> None:
        meeting = threading.Barrier(4)
        threads: set[threading.Thread] = set()

        def meet() -> None:
            meeting.wait(WAIT_S)
            threads.add(threading.current_thread())

        probes = [bench.start(meet) for _ in range(4)]
        await bench.end_of(*probes)
        assert len(threads) == 4
        assert all(thread.daemon and thread.name.startswith("betimes-thread-") for thread in threads)

    @on_bench
    async def test_threads_are_started_when_needed_and_kept(self, bench: Bench) -> None:
        names = set[str]()
        for _ in range(10):
            await bench.end_of(bench.start(lambda: names.add(threading.current_thread().name)))
        assert names == {"betimes-thread-1"}

    @on_bench
    async def test_a_cancel_leaves_the_thread_alone(self, bench: Bench) -> None:
        begun, gate = threading.Event(), threading.Event()

        def wait() -> str:
            begun.set()
            gate.wait(WAIT_S)
            return "done"

        probe = bench.start(wait)
        assert begun.wait(WAIT_S)
        bench.executor.cancel(probe)
        await bench.end_of(bench.start(self.code(lambda: None)))
        assert probe.outcomes == []
        gate.set()
        assert await bench.end_of(probe) == [Succeeded(0, b"done")]

    @on_bench
    async def test_close_leaves_a_stuck_thread_alone_and_the_next_opening_has_all_its_slots(
        self, bench: Bench
    ) -> None:
        gate = threading.Event()
        stuck = [bench.start(lambda: gate.wait(WAIT_S)) for _ in range(4)]
        await bench.executor.close()
        again = Bench(bench.executor)
        meeting = threading.Barrier(4)
        await again.end_of(*(again.start(lambda: meeting.wait(WAIT_S)) for _ in range(4)))
        gate.set()
        await bench.end_of(*stuck)

    def test_the_threads_end_when_it_is_closed(self) -> None:
        threads: list[threading.Thread] = []

        async def main() -> None:
            bench = Bench(self.make_executor(2))
            await bench.end_of(bench.start(lambda: threads.append(threading.current_thread())))
            await bench.executor.close()

        self.run(main())
        threads[0].join(WAIT_S)
        assert not threads[0].is_alive()

    def test_an_outcome_for_a_loop_that_is_gone_is_dropped_and_a_new_loop_hears_the_next(self) -> None:
        executor = self.make_executor(1)
        begun, gate, threads = threading.Event(), threading.Event(), list[threading.Thread]()

        def stick() -> None:
            threads.append(threading.current_thread())
            begun.set()
            gate.wait(WAIT_S)

        async def leave() -> Probe:
            probe = Bench(executor).start(stick)
            assert begun.wait(WAIT_S)
            return probe

        async def come_back() -> None:
            bench = Bench(executor)
            await bench.end_of(bench.start(lambda: None))

        left = asyncio.run(leave())
        asyncio.run(executor.close())
        gate.set()
        threads[0].join(WAIT_S)
        assert not threads[0].is_alive()
        self.run(come_back())
        assert left.outcomes == []


class TestInlineExecutor(ExecutorContract):
    code = staticmethod(sync_code)

    def make_executor(self, slots: int) -> Executor:
        return InlineExecutor(slots=slots)

    @on_bench
    async def test_runs_are_steps_of_the_loop_in_the_order_of_their_starts(self, bench: Bench) -> None:
        log: list[object] = []
        probes = [
            bench.start(partial(lambda number: log.append((number, threading.get_ident())), number))
            for number in range(4)
        ]
        assert log == []
        await bench.end_of(*probes)
        assert log == [(number, bench.thread) for number in range(4)]

    @on_bench
    async def test_code_sees_no_running_loop_and_may_run_its_own(self, bench: Bench) -> None:
        async def inner() -> int:
            return 5

        def look() -> int:
            return asyncio.run(inner())

        assert await bench.end_of(bench.start(look)) == [Succeeded(0, b"5")]
        assert isinstance(asyncio.get_running_loop(), VirtualLoop)

    @on_bench
    async def test_a_run_can_be_given_a_time_that_it_takes(self, bench: Bench) -> None:
        def time_of(run: Run) -> float:
            return 5.0 if run.job.id == "slow" else 0.0

        loop = asyncio.get_running_loop()
        timed = Bench(InlineExecutor("other", slots=2, takes_s=time_of))
        assert timed.executor.lane == "other"
        began: list[float] = []
        slow, quick = Probe(lambda: began.append(loop.time())), Probe(lambda: None)
        slow.job.id = "slow"
        timed.executor.start(slow)
        timed.executor.start(quick)
        await timed.end_of(quick)
        assert (loop.time(), slow.outcomes) == (0.0, [])
        await timed.end_of(slow)
        assert (began, loop.time()) == ([0.0], 5.0)

    @on_bench
    async def test_an_interrupt_of_the_test_is_not_taken_for_a_jobs_error(self, bench: Bench) -> None:
        def interrupt() -> None:
            raise KeyboardInterrupt

        heard: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context))
        executor = InlineExecutor(slots=1)
        executor.open(lambda run, outcome: heard.append(outcome), lambda run: None)
        try:
            executor._call(Probe(interrupt), lambda run, outcome: None, asyncio.get_running_loop())
        except KeyboardInterrupt:
            heard.append("interrupt")
        assert heard == ["interrupt"]
        assert asyncio.get_running_loop() is not None
