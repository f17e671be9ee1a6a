"""Runs plain functions in a bounded pool of daemon threads of our own.

Not `concurrent.futures`: its threads are joined when the interpreter exits, so one stuck function holds up
the exit for ever. A thread cannot be killed; cancelling only sets a flag that the code may look at
(`ctx.cancelled`).
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue

from betimes.core.outcome import Outcome
from betimes.ports import Executor, Run


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
        self._pool: _Pool | None = None

    def open(self, ended: Callable[[Run, Outcome], None], begun: Callable[[Run], None]) -> None:
        """Use the running loop for the outcomes."""
        del begun  # each begins at once
        self._pool = _Pool(self.slots, self._name, ended, asyncio.get_running_loop())

    def start(self, run: Run) -> None:
        """Hand the run to an idle thread, or to a new one."""
        assert self._pool is not None, "the executor is not open"
        self._pool.start(run)

    def cancel(self, run: Run) -> None:
        """Do nothing more: the run's own flag is what its code can see."""

    async def close(self) -> None:
        """Have the threads end as soon as each is idle; a stuck one is left alone."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None


class _Pool:
    """The threads of one opening.

    Each opening has its own, so that a thread that was left stuck, when it returns at last, speaks to whoever
    started it.
    """

    def __init__(
        self,
        slots: int,
        name: str,
        ended: Callable[[Run, Outcome], None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._slots = slots
        self._name = name
        self._ended = ended
        self._loop = loop
        self._work: SimpleQueue[Run | None] = SimpleQueue()
        self._threads = 0
        self._idle = 0
        self._crossing: deque[tuple[Run, Outcome]] = deque()
        self._is_crossing = False
        self._lock = threading.Lock()

    def start(self, run: Run) -> None:
        run.handle = self
        if self._idle > 0:
            self._idle -= 1
        elif self._threads < self._slots:
            self._threads += 1
            name = f"{self._name}-thread-{self._threads}"
            threading.Thread(target=self._serve, name=name, daemon=True).start()
        self._work.put(run)

    def close(self) -> None:
        for _ in range(self._threads):
            self._work.put(None)

    def _serve(self) -> None:
        while (run := self._work.get()) is not None:
            outcome = run.context.run(_outcome, run)
            self._cross(run, outcome)
            # An idle thread must not keep what it ran last alive.
            del run, outcome

    def _cross(self, run: Run, outcome: Outcome) -> None:
        with self._lock:
            self._crossing.append((run, outcome))
            if self._is_crossing:
                return
            self._is_crossing = True
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
        for run, outcome in arrived:
            self._idle += 1
            self._ended(run, outcome)


def _outcome(run: Run) -> Outcome:
    try:
        return run.returned(run.invoke())
    except BaseException as error:  # noqa: BLE001 - SystemExit and the like end this run, and nothing else
        return run.raised(error)
