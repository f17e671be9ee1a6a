"""The conformance suite for executors: what each must do, as tests to be subclassed.

Example:
    >>> from betimes.testing.executor_contract import ExecutorContract, sync_code
    >>> class TestMyExecutor(ExecutorContract):
    ...     code = staticmethod(sync_code)
    ...     def make_executor(self, slots):
    ...         return MyExecutor(slots)

To see the values in a failed assert, put
`pytest.register_assert_rewrite("betimes.testing.executor_contract")` into `conftest.py`, before anything
imports this module.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import weakref
from asyncio import CancelledError
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from functools import partial
from typing import Any

from betimes.core.events import Succeeded
from betimes.core.job import EMPTY_PAYLOAD, Job, JobSpec
from betimes.core.log import INFO, lines_of
from betimes.core.outcome import Outcome, Raised, outcome_of
from betimes.core.payload import NULL
from betimes.core.remote import Answer, Call
from betimes.core.retry import RetryPolicy
from betimes.errors import ProcessDied
from betimes.ports import Executor
from betimes.testing.run import run_virtual

Code = Callable[[], object]
Step = Callable[[], object]

label: ContextVar[str] = ContextVar("label", default="none")

WAIT_S = 30


def sync_code(step: Step) -> Code:
    """Make a plain function of a step."""
    return step


def async_code(step: Step) -> Code:
    """Make a coroutine function of a step, which lets the loop turn once before it."""

    async def code() -> object:
        await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, and no time
        return step()

    return code


class Probe:
    """A run whose code is a test's own, and which writes down how it ended.

    Attributes:
        outcomes: what `ended` was called with.
        ended_in: the threads and loops in which it was called.
        log: the lines its code wrote, each with its source.
    """

    def __init__(self, code: Code) -> None:
        """Run this code."""
        self.job = Job("probe", JobSpec(task="probe"), submitted_at=0, run_at=0)
        self.context = Context()
        self.handle: object = None
        self.outcomes: list[Outcome] = []
        self.ended_in: list[tuple[int, object]] = []
        self.log: list[tuple[str, str]] = []
        self._code = code

    def invoke(self) -> object:
        """Call the code."""
        return self._code()

    def returned(self, value: object) -> Outcome:
        """Make the outcome of a return; the value itself is no matter here."""
        return Succeeded(0, NULL if value is None else str(value).encode())

    def raised(self, error: BaseException) -> Outcome:
        """Make the outcome of an exception."""
        return outcome_of(error, RetryPolicy(2), 1)

    def call(self) -> Call:
        """Return a call of a function that is nowhere: the code of these tests is not another process's."""
        return Call("nowhere", "nothing", EMPTY_PAYLOAD, self.job.id, self.job.spec.task, 1, 1)

    def answered(self, answer: Answer) -> Outcome:
        """Make the outcome of an answer, as far as it is a death."""
        return self.raised(ProcessDied(str(answer)))

    def progressed(self, done: float, total: float | None) -> None:
        """Write it down as a line."""
        self.write_log(f"{done}/{total}", source="progress")

    def write_log(self, text: str, *, source: str = "log", level: int = INFO) -> None:
        """Write it down."""
        del level
        self.log += [(source, line) for line in lines_of(text)]


class Bench:
    """An open executor and the runs it was given.

    Attributes:
        begun: the runs whose code it said had begun.
        probe: makes a run of code.
    """

    probe: type[Probe] = Probe

    def __init__(self, executor: Executor) -> None:
        """Open the executor on the running loop."""
        self.executor = executor
        self.thread = threading.get_ident()
        self._ended = asyncio.Event()
        self.begun: list[object] = []
        executor.open(self._end, self.begun.append)

    def _end(self, run: object, outcome: Outcome) -> None:
        assert isinstance(run, Probe)
        run.outcomes.append(outcome)
        run.ended_in.append((threading.get_ident(), asyncio.get_running_loop()))
        self._ended.set()

    def start(self, code: Code) -> Probe:
        """Start a run of this code."""
        probe = self.probe(code)
        self.executor.start(probe)
        assert probe.outcomes == [], "a run ended within `start`"
        return probe

    async def end_of(self, *probes: Probe) -> list[Outcome]:
        """Wait until these runs have ended, and return how."""
        async with asyncio.timeout(WAIT_S):
            while not all(probe.outcomes for probe in probes):
                self._ended.clear()
                await self._ended.wait()
        for probe in probes:
            assert len(probe.outcomes) == 1, "`ended` was called more than once for one run"
            assert probe.ended_in == [(self.thread, asyncio.get_running_loop())]
        return [probe.outcomes[0] for probe in probes]


Scene = Callable[[Any, Bench], Coroutine[Any, Any, None]]


def on_bench(scene: Scene) -> Callable[[Any], None]:
    """Make a test of a scene: it is played with the executor of the class it stands in."""

    def test(contract: Any) -> None:
        contract.play(lambda bench: scene(contract, bench))

    # The scene's own signature must not be seen: test runners would look for a fixture `bench`.
    test.__name__, test.__qualname__, test.__doc__ = scene.__name__, scene.__qualname__, scene.__doc__
    test.__module__ = scene.__module__
    return test


def error_of(outcome: Outcome) -> str:
    """Name the type of what a run raised."""
    assert isinstance(outcome, Raised)
    return outcome.error.type


class ExecutorContract:
    """What every executor must do, as tests.

    Each test is a plain method: it opens the executor on a loop, plays its scene and closes it. There are no
    fixtures and no sleeps.
    """

    code: Callable[[Step], Code]
    """Makes the lane's kind of code of a step: `sync_code`, `async_code`, or your own, as a static method."""

    bench: type[Bench] = Bench
    """What the scenes are played with."""

    def make_executor(self, slots: int) -> Executor:
        """Return an executor with so many slots, not yet open."""
        raise NotImplementedError(f"{type(self).__name__} must say how its executor is made")

    def run(self, main: Coroutine[Any, Any, None]) -> None:
        """Run one test's coroutine; override it to run on another loop."""
        run_virtual(main)

    def play(self, scene: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
        """Play a scene with a fresh executor."""

        async def main() -> None:
            bench = self.bench(self.make_executor(4))
            try:
                await scene(bench)
            finally:
                await bench.executor.close()

        self.run(main())

    def test_an_executor_names_its_lane_and_its_slots(self) -> None:
        executor = self.make_executor(3)
        assert executor.lane
        assert executor.slots == 3

    @on_bench
    async def test_a_run_ends_with_what_its_code_returned(self, bench: Bench) -> None:
        (outcome,) = await bench.end_of(bench.start(self.code(lambda: 42)))
        assert outcome == Succeeded(0, b"42")

    @on_bench
    async def test_a_run_ends_once_and_not_before_its_code_has_returned(self, bench: Bench) -> None:
        done: list[int] = []
        probes = [bench.start(self.code(partial(done.append, number))) for number in range(4)]
        await bench.end_of(*probes)
        assert sorted(done) == [0, 1, 2, 3]
        again = [bench.start(self.code(lambda: None)) for _ in range(4)]
        await bench.end_of(*again, *probes)

    @on_bench
    async def test_slots_are_free_again_after_a_run(self, bench: Bench) -> None:
        for _ in range(20):
            await bench.end_of(*(bench.start(self.code(lambda: None)) for _ in range(4)))

    @on_bench
    async def test_what_code_raises_ends_its_run_and_nothing_else(self, bench: Bench) -> None:
        def fail() -> None:
            raise ValueError("boom")

        def leave() -> None:
            sys.exit(3)

        def give_up() -> None:
            raise CancelledError

        probes = [bench.start(self.code(step)) for step in (fail, leave, give_up)]
        outcomes = await bench.end_of(*probes)
        assert list(map(error_of, outcomes))[:2] == ["ValueError", "SystemExit"]
        assert error_of(outcomes[2]).endswith("CancelledError")
        assert await bench.end_of(bench.start(self.code(lambda: 1))) == [Succeeded(0, b"1")]

    @on_bench
    async def test_what_the_call_itself_raises_ends_its_run(self, bench: Bench) -> None:
        def refuse() -> object:
            raise TypeError("arguments do not fit")

        probe = Probe(refuse)
        bench.executor.start(probe)
        assert error_of((await bench.end_of(probe))[0]) == "TypeError"

    @on_bench
    async def test_code_runs_in_its_runs_own_context(self, bench: Bench) -> None:
        def look_and_set() -> str:
            before = label.get()
            label.set("dirty")
            return before

        label.set("of whoever starts it")
        probes = [bench.start(self.code(look_and_set)) for _ in range(4)]
        probes.append(probe := bench.probe(self.code(label.get)))
        probe.context.run(label.set, "its own")
        del probes[-1]
        assert await bench.end_of(*probes) == [Succeeded(0, b"none")] * 4
        assert [each.context.get(label) for each in probes] == ["dirty"] * 4
        bench.executor.start(probe)
        assert await bench.end_of(probe) == [Succeeded(0, b"its own")]
        assert label.get() == "of whoever starts it"

    @on_bench
    async def test_an_ended_run_is_let_go_of(self, bench: Bench) -> None:
        class Large:
            pass

        def fail() -> None:
            large = Large()
            left.append(weakref.ref(large))
            raise ValueError(large.__class__.__name__)

        left: list[weakref.ref[Large]] = []
        gc.disable()
        try:
            probe = bench.start(self.code(fail))
            await bench.end_of(probe)
            # One more run: what a pool still holds of the last one is then gone.
            await bench.end_of(bench.start(self.code(lambda: None)))
            assert [each() for each in left] == [None], "the frames of a failed run are kept alive"
        finally:
            gc.enable()

    @on_bench
    async def test_cancelling_is_fine_at_any_time_and_more_than_once(self, bench: Bench) -> None:
        probe = bench.start(self.code(lambda: None))
        bench.executor.cancel(probe)
        bench.executor.cancel(probe)
        await bench.end_of(probe)
        bench.executor.cancel(probe)
        await bench.end_of(bench.start(self.code(lambda: None)), probe)

    @on_bench
    async def test_it_can_be_closed_twice_and_opened_again(self, bench: Bench) -> None:
        await bench.end_of(bench.start(self.code(lambda: None)))
        await bench.executor.close()
        await bench.executor.close()
        again = type(bench)(bench.executor)
        assert await again.end_of(again.start(self.code(lambda: 7))) == [Succeeded(0, b"7")]
