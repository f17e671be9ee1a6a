"""Inline mode: what is submitted has run when the submit returns; for tests that ask for no more."""

from __future__ import annotations

import asyncio
import threading
from asyncio import _get_running_loop
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeVar

from betimes.errors import ConfigurationError
from betimes.runtime.context import current_attempt
from betimes.runtime.worker import Worker
from betimes.scheduler import Scheduler
from betimes.testing.clock import DEFAULT_START, VirtualClock
from betimes.testing.here import run_here
from betimes.testing.loop import VirtualLoop
from betimes.testing.recording import RecordingStore
from betimes.testing.stand_in import LoneEngine, parts_for_test, stand_in
from betimes.testing.submissions import Submissions

R = TypeVar("R")

MOST_AT_ONCE = 10_000
"""A job whose submit waits for other jobs keeps its slot, so there must be enough of them."""


class inline_mode(Submissions):  # noqa: N801 - it is used as a statement: `async with inline_mode(…):`
    """Have a scheduler run each job within the call that submits it, in memory, while the block runs.

    For the simplest tests. `await task.submit(…)`, `submit_many` and `submit_graph` return when all that can
    run now has run: the job, what it has submitted, and what waited for it. It runs on the caller's own event
    loop; with a plain `with`, `task.submit_blocking(…)` does the same for code without one. Arguments and
    results make their way through JSON as ever, and what a job raises ends the job, not the submit: ask its
    handle for the `result()`.

    The clock stands still: a job with a delay, or one that waits for its next attempt, stays DELAYED, and no
    schedule fires. To let time pass, use `Jobs`. A job that waits for something which comes after its submit
    holds that up for ever. A thread job may submit others, which then run after it.

    Afterwards the scheduler is what it was. What was submitted can be asked for as with `Jobs`.

    Args:
        scheduler: the one to test; it must not be open.

    Raises:
        ConfigurationError: it is open.

    Example:
        >>> scheduler = Scheduler("jobs.db")
        >>> @scheduler.task
        ... def send(user: str) -> None:
        ...     print(f"sent to {user}")
        >>> async def test_send():
        ...     async with inline_mode(scheduler) as jobs:
        ...         await send.submit("ada")
        ...         jobs.assert_submitted(send, "ada")
        >>> asyncio.run(test_send())
        sent to ada
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = self._tested = scheduler
        self._ends = ExitStack()
        self._async_ends = AsyncExitStack()

    def __enter__(self) -> Self:
        if _get_running_loop() is not None:
            raise ConfigurationError("an event loop is running here: write 'async with inline_mode(…):'")
        clock = VirtualClock(DEFAULT_START)
        with ExitStack() as ends:
            runner = ends.enter_context(asyncio.Runner(loop_factory=lambda: VirtualLoop(clock=clock)))
            run = self._begin(ends, clock, runner.get_loop(), runner)
            run(self._tested.start())
            ends.callback(lambda: run(self._tested.stop(cancel_running=True)))
            self._ends = ends.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.close()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as ends:
            parts = ends.enter_context(ExitStack())
            self._begin(parts, VirtualClock(DEFAULT_START), asyncio.get_running_loop(), None)
            await self._tested.start()
            ends.push_async_callback(self._tested.stop, cancel_running=True)
            self._async_ends = ends.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._async_ends.aclose()

    def _begin(
        self,
        ends: ExitStack,
        clock: VirtualClock,
        loop: asyncio.AbstractEventLoop,
        runner: asyncio.Runner | None,
    ) -> Callable[[Coroutine[Any, Any, Any]], Any]:
        """Put the parts in, and return what runs coroutines for code without a loop."""
        thread = threading.get_ident()

        def run(coroutine: Coroutine[Any, Any, R]) -> R:
            return run_here(loop, thread, coroutine, None if runner is None else runner.run)

        self._store = RecordingStore(clock=clock)
        parts = parts_for_test(self._tested, self._store, clock, seed=0)
        settings = replace(parts.settings, concurrency=MOST_AT_ONCE)
        ends.enter_context(
            stand_in(self._tested, replace(parts, settings=settings, engine=InlineEngine, run_here=run))
        )
        return run


class InlineEngine(LoneEngine):
    """An engine whose submits return when nothing is left to be done.

    A job that has submitted another one waits for it, and is not waited for by that one: what waits within a
    submit counts as done, until it goes on.
    """

    yields_after = 1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._submitting: set[int] = set()

    async def let_others_run(self) -> None:
        """Wait until the worker rests, and no job runs but those that wait here themselves."""
        self.submits = 0
        if asyncio.current_task() is None:
            return  # a thread job, inline, which cannot wait: its jobs run after it
        attempt = current_attempt.get(None)
        worker = self.worker
        if attempt is None or worker is None or worker.state.in_flight.get(attempt.seq) is not attempt:
            await self._rest(within_a_job=False)
            return
        self._submitting.add(attempt.seq)
        try:
            await self._rest(within_a_job=True)
        finally:
            self._submitting.discard(attempt.seq)

    async def _rest(self, *, within_a_job: bool) -> None:
        while (worker := self.worker) is not None and not self.is_closing and not worker.is_over:
            if self._is_at_rest(worker, within_a_job=within_a_job):
                return
            worker.progress.clear()
            await worker.progress.wait()

    def _is_at_rest(self, worker: Worker, *, within_a_job: bool) -> bool:
        if worker.is_awake:
            return False
        if not within_a_job:
            return worker.is_settled
        return all(seq in self._submitting for seq in worker.state.held())
