"""Runs plain functions in a bounded pool of daemon threads of our own.

Not `concurrent.futures`: its threads are joined when the interpreter exits, so one stuck function holds up the
exit for ever. A thread cannot be killed; cancelling only sets a flag that the code may look at (`ctx.cancelled`).
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue

from betimes.core.outcome import Outcome
from betimes.ports import Executor, Run


_Work = SimpleQueue[Run | None]


class ThreadExecutor(Executor):
    """The lane `thread`. Threads are started when first needed, up to `slots`, and then kept.

    Arguments are decoded and results encoded in the thread, so that large ones do not hold up the loop. The
    outcomes of several threads cross to the loop together: one wake-up for all that have ended meanwhile.
    """

    lane = "thread"

    def __init__(self, slots: int, *, name: str = "betimes") -> None:
        """Allow this many runs at once; `name` begins the threads' names."""
        self.slots = slots
        self._name = name
        self._work: _Work = SimpleQueue()
        self._threads = 0
        self._idle = 0
        self._ended: Callable[[Run, Outcome], None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._crossing: deque[tuple[_Work, Run, Outcome]] = deque()
        self._is_crossing = False
        self._lock = threading.Lock()

    def open(self, ended: Callable[[Run, Outcome], None]) -> None:
        """Use the running loop for the outcomes."""
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._work = SimpleQueue()
        self._threads = self._idle = 0

    def start(self, run: Run) -> None:
        """Hand the run to an idle thread, or to a new one."""
        run.handle = self
        if self._idle > 0:
            self._idle -= 1
        elif self._threads < self.slots:
            self._threads += 1
            name = f"{self._name}-thread-{self._threads}"
            threading.Thread(target=self._serve, args=(self._work,), name=name, daemon=True).start()
        self._work.put(run)

    def cancel(self, run: Run) -> None:
        """Do nothing more: the run's own flag is what its code can see."""

    async def close(self) -> None:
        """Have the threads end as soon as each is idle; a stuck one is left alone."""
        for _ in range(self._threads):
            self._work.put(None)
        self._work = SimpleQueue()
        self._threads = self._idle = 0

    def _serve(self, work: _Work) -> None:
        while (run := work.get()) is not None:
            outcome = run.context.run(_outcome, run)
            self._cross(work, run, outcome)
            # An idle thread must not keep what it ran last alive.
            del run, outcome

    def _cross(self, work: _Work, run: Run, outcome: Outcome) -> None:
        with self._lock:
            self._crossing.append((work, run, outcome))
            if self._is_crossing:
                return
            self._is_crossing = True
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(self._arrive)
        except RuntimeError:
            # The loop has been closed under a run that was left alone; nobody waits for its outcome any more.
            self._crossing.clear()

    def _arrive(self) -> None:
        with self._lock:
            arrived = list(self._crossing)
            self._crossing.clear()
            self._is_crossing = False
        assert self._ended is not None
        for work, run, outcome in arrived:
            # A thread of a pool that has been closed since is not one of ours any more.
            self._idle += work is self._work
            self._ended(run, outcome)


def _outcome(run: Run) -> Outcome:
    try:
        return run.returned(run.invoke())
    except BaseException as error:  # noqa: BLE001 - SystemExit and the like end this run, and nothing else
        return run.raised(error)
