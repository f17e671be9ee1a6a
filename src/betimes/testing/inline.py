"""Thread jobs without threads: each function runs inside a step of the event loop, the same way every time.

A real thread on a virtual loop makes time stand still until it has ended, and the order in which several of
them end is nobody's to say. Here a run is one callback of the loop: nothing happens beside it, and a seed
repeats it. Arguments and results make the same way through JSON as in a thread.
"""

from __future__ import annotations

import asyncio
from asyncio import _get_running_loop, _set_running_loop
from collections.abc import Callable

from betimes.core.outcome import Outcome
from betimes.executors.command import outcome_of_end, own_names, run_to_end
from betimes.ports import Executor, Run


class InlineExecutor(Executor):
    """Runs plain functions inline, in a later step of the loop; for deterministic tests.

    The code sees what it would see in a thread: its own context variables, and no running loop. It must not
    wait for anything that the loop does, which stands still meanwhile: `submit_blocking` is refused in it.

    A run whose code is to go on for a while, as a slow or stuck thread's would, is given a time by `takes_s`:
    its function is called at the start, and its outcome arrives, and its slot is free, so many seconds later.

    Args:
        lane: the kind of work it stands in for.
        slots: the most runs at once.
        takes_s: for each run the seconds from its start to its end, on the loop's clock.

    Example:
        >>> clock = VirtualClock()
        >>> scheduler = Scheduler(clock=clock, watchdog=None, executors=[InlineExecutor()])
    """

    def __init__(
        self, lane: str = "thread", *, slots: int = 100, takes_s: Callable[[Run], float] | None = None
    ) -> None:
        self.lane = lane
        self.slots = slots
        self._takes_s = takes_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: Callable[[Run, Outcome], None] | None = None

    def open(self, ended: Callable[[Run, Outcome], None], begun: Callable[[Run], None]) -> None:
        """Use the running loop."""
        del begun  # each begins at once
        self._loop = asyncio.get_running_loop()
        self._ended = ended

    def start(self, run: Run) -> None:
        """Have the function called in the loop's next turn."""
        loop, ended = self._loop, self._ended
        assert loop is not None, "the executor is not open"
        assert ended is not None
        loop.call_soon(self._call, run, ended, loop)

    def cancel(self, run: Run) -> None:
        """Do nothing more: the run's own flag is what its code can see."""

    async def close(self) -> None:
        """Do nothing: there is nothing but the runs."""

    def _call(self, run: Run, ended: Callable[[Run, Outcome], None], loop: asyncio.AbstractEventLoop) -> None:
        takes_s = self._takes_s(run) if self._takes_s is not None else 0.0
        outcome = run.context.run(self._outcome, run)
        if takes_s > 0:
            loop.call_later(takes_s, ended, run, outcome)
        else:
            ended(run, outcome)

    def _outcome(self, run: Run) -> Outcome:
        loop = _get_running_loop()
        _set_running_loop(None)
        try:
            return self._run(run)
        except KeyboardInterrupt:
            raise  # this is the test's own thread, and somebody wants it to end
        except BaseException as error:  # noqa: BLE001 - as in a thread: it ends this run, and nothing else
            return run.raised(error)
        finally:
            _set_running_loop(loop)

    def _run(self, run: Run) -> Outcome:
        return run.returned(run.invoke())


class InlineCommandExecutor(InlineExecutor):
    """Runs commands really, each to its end within a step of the loop; for tests on virtual time.

    Time stands still meanwhile: no timeout is over, and no cancel comes, before the program has ended. A test
    that must not run it gives this lane an executor of its own.
    """

    def __init__(self, *, slots: int = 100, takes_s: Callable[[Run], float] | None = None) -> None:
        super().__init__("command", slots=slots, takes_s=takes_s)

    def _run(self, run: Run) -> Outcome:
        line = run.invoke()
        return outcome_of_end(run, run_to_end(line, own_names(run), run.write_log))
