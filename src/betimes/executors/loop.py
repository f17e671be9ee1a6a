"""Runs coroutine functions as tasks of the event loop: one task an attempt, in a context of its own."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, cast

from betimes.core.outcome import Outcome
from betimes.ports import Executor, Run


class LoopExecutor(Executor):
    """The lane `loop`.

    A cancelled run ends when its coroutine has ended: it may clean up, and it may refuse (then it goes on,
    and its slot stays taken). Nothing a run raises reaches the loop or the worker.
    """

    lane = "loop"

    def __init__(self, slots: int) -> None:
        """Allow this many runs at once."""
        self.slots = slots
        self._ended: Callable[[Run, Outcome], None] = _not_open
        self._loop: asyncio.AbstractEventLoop | None = None
        self._has_factory = False

    def open(self, ended: Callable[[Run, Outcome], None], begun: Callable[[Run], None]) -> None:
        """Use the running loop."""
        del begun  # each begins at once
        self._ended = ended
        self._loop = loop = asyncio.get_running_loop()
        self._has_factory = loop.get_task_factory() is not None

    def start(self, run: Run) -> None:
        """Make a task of the run's coroutine; it takes its first step in the loop's next turn."""
        loop = self._loop
        assert loop is not None
        name = run.job.id
        # Without a task factory this is what `loop.create_task` does, less a call for each job.
        if self._has_factory:
            run.handle = loop.create_task(_drive(run, self._ended), name=name, context=run.context)
        else:
            run.handle = asyncio.Task(_drive(run, self._ended), loop=loop, name=name, context=run.context)

    def cancel(self, run: Run) -> None:
        """Throw `CancelledError` into the run's coroutine."""
        task = run.handle
        if isinstance(task, asyncio.Task):
            task.cancel()
            if (
                inspect.getcoroutinestate(cast("Coroutine[Any, Any, None]", task.get_coro()))
                == inspect.CORO_CREATED
            ):
                # It has not taken its first step, and now never will: nobody else would say that it ended.
                run.handle = None
                ended = self._ended
                task.add_done_callback(lambda _: ended(run, run.raised(asyncio.CancelledError())))

    async def close(self) -> None:
        """Do nothing: there is nothing but the runs."""


async def _drive(run: Run, ended: Callable[[Run, Outcome], None]) -> None:
    """Await the run's code, and say how it ended from within the last step of its task.

    No done-callback: that would cost another turn of the loop for each job.
    """
    try:
        outcome = run.returned(await run.invoke())
    except BaseException as error:
        outcome = run.raised(error)
        if isinstance(error, KeyboardInterrupt):
            ended(run, outcome)
            raise
    # The task would keep its frame alive, and so on: let go of it.
    run.handle = None
    ended(run, outcome)


def _not_open(run: Run, outcome: Outcome) -> None:
    raise AssertionError(f"executor is not open: {run} {outcome}")
