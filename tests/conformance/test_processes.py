"""The executor of processes: the one contract of all executors, and what only processes can do."""

from __future__ import annotations

import asyncio
import base64
import itertools
import marshal
from collections.abc import Coroutine
from functools import partial
from types import FunctionType
from typing import Any

import msgspec
from tests.system import process_jobs

from betimes.core.events import Succeeded
from betimes.core.outcome import AskedToCancel, AskedToSnooze, Outcome, Raised
from betimes.core.recycle import Recycle
from betimes.core.remote import Answer, Call, Returned, Threw, WantsCancel, WantsSnooze
from betimes.executors.process import ProcessExecutor
from betimes.ports import Executor
from betimes.testing.executor_contract import (
    WAIT_S,
    Bench,
    Code,
    ExecutorContract,
    Probe,
    Step,
    error_of,
    on_bench,
)

GRACE_S = 20.0
TOLD = "betimes.process_child.telling.ToldToStop"
CANCELLED = "asyncio.exceptions.CancelledError"


def call_of(fn: Any, *args: Any) -> Code:
    """Make code that is a call of a function of `process_jobs`."""
    return partial(fn, *args)


def shipped(step: Step) -> Code:
    """Make code of a step that is a function without a name, as the contract's steps are."""
    assert isinstance(step, FunctionType)
    code = base64.b64encode(marshal.dumps(step.__code__)).decode()
    return call_of(process_jobs.run_step, step.__module__, code)


class ProcessProbe(Probe):
    """A run whose code is a call by name."""

    def call(self) -> Call:
        code = self._code
        assert isinstance(code, partial)
        names = code.func.__code__.co_varnames
        payload = msgspec.json.encode(dict(zip(names, code.args, strict=False)))
        return Call(code.func.__module__, code.func.__qualname__, payload, "probe", "probe", 1, 1)

    def answered(self, answer: Answer) -> Outcome:
        if isinstance(answer, Returned):
            return Succeeded(0, answer.result)
        if isinstance(answer, Threw):
            return Raised(answer.error, may_retry=False)
        if isinstance(answer, WantsSnooze):
            return AskedToSnooze(answer.delay_us)
        if isinstance(answer, WantsCancel):
            return AskedToCancel(answer.reason)
        return super().answered(answer)


class ProcessBench(Bench):
    probe = ProcessProbe


async def begun(bench: Bench, number: int) -> None:
    """Wait until so many runs have begun."""
    async with asyncio.timeout(WAIT_S):
        while len(bench.begun) < number:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.005)  # noqa: TID251 - the children run on real time


class TestProcessExecutor(ExecutorContract):
    code = staticmethod(shipped)
    bench = ProcessBench

    def make_executor(self, slots: int, recycle: Recycle | None = None) -> Executor:
        tokens = map(str, itertools.count(10**9))
        return ProcessExecutor(slots, grace_s=GRACE_S, new_token=lambda: next(tokens), recycle=recycle)

    def run(self, main: Coroutine[Any, Any, None]) -> None:
        asyncio.run(main)

    # What the contract's own scenes see in this process's memory, seen otherwise.

    @on_bench
    async def test_a_run_ends_once_and_not_before_its_code_has_returned(self, bench: Bench) -> None:
        probes = [bench.start(call_of(process_jobs.pid_of, number)) for number in range(4)]
        ends = [msgspec.json.decode(end.result) for end in await bench.end_of(*probes)]  # type: ignore[union-attr]
        assert [number for number, _ in ends] == [0, 1, 2, 3]
        assert set(map(id, bench.begun)) == set(map(id, probes))
        again = [bench.start(self.code(lambda: None)) for _ in range(4)]
        await bench.end_of(*again, *probes)

    @on_bench
    async def test_what_the_call_itself_raises_ends_its_run(self, bench: Bench) -> None:
        probe = bench.start(call_of(process_jobs.pid_of, "no number"))
        assert error_of((await bench.end_of(probe))[0]).endswith("PayloadError")

    @on_bench
    async def test_code_runs_in_its_runs_own_context(self, bench: Bench) -> None:
        for _ in range(8):
            outcome = await bench.end_of(bench.start(call_of(process_jobs.set_label)))
            assert outcome == [Succeeded(0, b'"none"')]

    @on_bench
    async def test_an_ended_run_is_let_go_of(self, bench: Bench) -> None:
        probe = bench.start(call_of(process_jobs.fail, "boom"))
        await bench.end_of(probe)
        assert probe.handle is None

    # What processes can do.

    @on_bench
    async def test_a_run_that_has_not_begun_never_does_and_ends_at_once(self, bench: Bench) -> None:
        probes = [bench.start(call_of(process_jobs.nap, 600.0)) for _ in range(8)]
        for probe in probes:
            bench.executor.cancel(probe)
        outcomes = await bench.end_of(*probes)
        assert all(error_of(outcome).endswith("CancelledError") for outcome in outcomes)
        assert bench.begun == []

    @on_bench
    async def test_four_runs_go_on_beside_each_other(self, bench: Bench) -> None:
        probes = [bench.start(call_of(process_jobs.nap, 600.0)) for _ in range(4)]
        await begun(bench, 4)
        assert [probe.outcomes for probe in probes] == [[]] * 4
        for probe in probes:
            bench.executor.cancel(probe)
        # One whose child has only just been handed it may not have begun there yet.
        assert {error_of(outcome) for outcome in await bench.end_of(*probes)} <= {TOLD, CANCELLED}

    @on_bench
    async def test_what_waits_behind_a_long_run_goes_to_another_child(self, bench: Bench) -> None:
        executor = bench.executor
        while not executor.ahead:
            await bench.end_of(*(bench.start(self.code(lambda: None)) for _ in range(4)))
        long = bench.start(call_of(process_jobs.nap, 600.0))
        quick = [bench.start(self.code(lambda: 1)) for _ in range(4 + executor.ahead - 1)]
        assert await bench.end_of(*quick) == [Succeeded(0, b"1")] * len(quick)
        assert long.outcomes == []
        executor.cancel(long)
        assert error_of((await bench.end_of(long))[0]).endswith("ToldToStop")

    def test_a_child_is_replaced_after_its_number_of_jobs(self) -> None:
        async def main() -> None:
            bench = self.bench(self.make_executor(1, Recycle(jobs=3)))
            pids = [
                (await bench.end_of(bench.start(call_of(process_jobs.pid))))[0].result  # type: ignore[union-attr]
                for _ in range(7)
            ]
            assert [len(list(group)) for _, group in itertools.groupby(pids)] == [3, 3, 1]
            await bench.executor.close()

        self.run(main())

    def test_a_child_is_replaced_when_it_has_grown_too_large(self) -> None:
        async def main() -> None:
            bench = self.bench(self.make_executor(1, Recycle(memory=300_000_000)))
            pids = [
                (await bench.end_of(bench.start(call_of(process_jobs.keep, size))))[0].result  # type: ignore[union-attr]
                for size in (1, 1, 300_000_000, 1)
            ]
            assert pids[0] == pids[1] == pids[2] != pids[3]
            await bench.executor.close()

        self.run(main())

    def test_closing_ends_what_runs_and_what_waits(self) -> None:
        async def main() -> None:
            bench = self.bench(self.make_executor(2))
            runs = [bench.start(call_of(process_jobs.nap, 600.0)) for _ in range(4)]
            await begun(bench, 2)
            await bench.executor.close()
            ends = [error_of(run.outcomes[0]) for run in runs]
            assert set(ends[:2]) <= {TOLD, CANCELLED}
            assert ends[2:] == [CANCELLED] * 2

        self.run(main())
