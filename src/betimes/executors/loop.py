"""Runs coroutine functions as tasks of the event loop: one task an attempt, in a context of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, cast

from betimes.core.outcome import Outcome
from betimes.ports import Executor, Run


class LoopExecutor(Executor):
    """The lane `loop`.

    A cancelled run ends when its coroutine has ended: it may clean up, and it may refuse (then it goes on, and
    its slot stays taken). Nothing a run raises reaches the loop or the worker.
    """

    lane = "loop"

    def __init__(self, slots: int) -> None:
        """Allow this many runs at once."""
        self.slots = slots
        self._ended: Callable[[Run, Outcome], None] = _not_open
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self, ended: Callable[[Run, Outcome], None]) -> None:
        """Use the running loop."""
        self._ended = ended
        self._loop = asyncio.get_running_loop()

    def start(self, run: Run) -> None:
        """Make a task of the run's coroutine; it takes its first step in the loop's next turn."""
        loop = self._loop
        assert loop is not None
        try:
            coroutine = cast("Coroutine[Any, Any, object]", run.invoke())
        except Exception as error:  # noqa: BLE001 - whatever decoding or a wrapper raises is the job's failure
            loop.call_soon(self._ended, run, run.raised(error))
            return
        task = loop.create_task(coroutine, context=run.context)
        run.handle = task
        task.add_done_callback(partial(self._task_done, run), context=run.context)

    def _task_done(self, run: Run, task: asyncio.Task[object]) -> None:
        # The task keeps its exception, and that keeps every frame: let go of the task first.
        run.handle = None
        try:
            outcome = run.returned(task.result())
        except BaseException as error:  # noqa: BLE001 - also CancelledError: it ends this run, and nothing else
            outcome = run.raised(error)
        self._ended(run, outcome)

    def cancel(self, run: Run) -> None:
        """Throw `CancelledError` into the run's coroutine."""
        task = run.handle
        if isinstance(task, asyncio.Task):
            task.cancel()

    async def close(self) -> None:
        """Do nothing: there is nothing but the runs."""


def _not_open(run: Run, outcome: Outcome) -> None:
    raise AssertionError(f"executor is not open: {run} {outcome}")
