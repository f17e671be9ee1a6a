"""The watchdog: a thread that names the code which blocks the event loop.

While something is in flight it asks the loop for a sign of life, at most every half `stall_s`. If none comes
for `stall_s`, it looks where the loop's thread stands and says so, once for each stall: which job, and the
stack. The loop cannot do that itself, since it is the one that is blocked. The bounds:

* *Idle it costs nothing*: with nothing in flight the thread sleeps on an event, and the loop is left alone.
* *It measures real time*, so there is none on a loop whose time is not real. Such a loop says so by an
  attribute `is_virtual` (`testing.VirtualLoop` has it); any other loop is taken as real.
* *Code that holds the GIL* stops this thread too: it is named when it lets go, if it still blocks then.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Mapping

from betimes.clock import monotonic_s
from betimes.runtime.attempt import Attempt
from betimes.runtime.context import current_attempt
from betimes.runtime.metrics import Counters

_log = logging.getLogger("betimes")

FRAMES_SHOWN = 30
"""How many frames of the stack are shown, counted from where the code stands."""

JOIN_S = 1.0
"""How long `close` waits for the thread: it ends at once, unless a log handler of the program holds it up."""


def can_watch(loop: asyncio.AbstractEventLoop) -> bool:
    """Say whether the loop runs on real time, so that a silence means something."""
    return not getattr(loop, "is_virtual", False)


class Watchdog:
    """Watches the running event loop from a thread of its own, until `close`.

    The thread is started with the first work. All but `_serve` and what it calls runs on the loop.

    Args:
        stall_s: how long the loop may be silent, in seconds.
        in_flight: the attempts in flight, by `seq`; only read.
        counters: `loop_stalls` and `longest_stall_s` are raised there, by the thread alone.
        monotonic: seconds, for the length of a stall.
    """

    def __init__(
        self,
        stall_s: float,
        in_flight: Mapping[int, Attempt],
        counters: Counters,
        *,
        monotonic: Callable[[], float] = monotonic_s,
    ) -> None:
        self._stall_s = stall_s
        self._in_flight = in_flight
        self._counters = counters
        self._monotonic = monotonic
        self._is_awake = False
        self._work = threading.Event()
        self._sign = threading.Event()
        self._closing = threading.Event()
        self._signed_at = 0.0
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Watch from now on, until nothing is in flight; cheap when it does so already."""
        if self._is_awake:
            return
        self._is_awake = True
        self._work.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="betimes-watchdog", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End the thread; closing twice is fine."""
        self._is_awake = True
        self._closing.set()
        self._give_sign()
        self._work.set()
        if self._thread is not None:
            self._thread.join(JOIN_S)

    def _answer(self) -> None:
        """Show that the loop turns; and go to sleep when there is nothing to watch over."""
        self._give_sign()
        if not self._in_flight and not self._closing.is_set():
            self._is_awake = False
            self._work.clear()

    def _give_sign(self) -> None:
        self._signed_at = self._monotonic()
        self._sign.set()

    # --- the thread

    def _serve(self) -> None:
        while not self._closing.is_set():
            self._work.wait()
            if not self._ask():
                return
            self._closing.wait(self._stall_s / 2)

    def _ask(self) -> bool:
        """Ask for one sign of life and wait until it comes; False if there is nobody to ask."""
        asked_at = self._monotonic()
        self._sign.clear()
        if self._closing.is_set():
            return False
        try:
            self._loop.call_soon_threadsafe(self._answer)
        except RuntimeError:
            return False  # the loop was closed without this having been closed first
        if not self._sign.wait(self._stall_s):
            # A loop that nobody runs at the moment is silent, too, and nobody's fault.
            is_blocked = self._loop.is_running()
            if is_blocked:
                self._bark()
            self._sign.wait()
            if is_blocked:
                self._note_end(self._signed_at - asked_at)
        return True

    def _note_end(self, stall_s: float) -> None:
        self._counters.longest_stall_s = max(self._counters.longest_stall_s, stall_s)
        _log.info("the event loop turns again, after a stall of %.3g s", stall_s)

    def _bark(self) -> None:
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001 - there is no public way to look
        stack = "".join(traceback.format_stack(frame, FRAMES_SHOWN)) if frame else "(the thread has ended)"
        del frame  # it would keep all the locals of that moment alive
        attempt = self._culprit()
        who = "code outside any job"
        if attempt is not None:
            who = f"job {attempt.job.id} ({attempt.task.name}, attempt {attempt.number})"
        self._counters.loop_stalls += 1
        _log.warning(
            "the event loop has been blocked for %g s by %s: every job, timer and timeout waits for it. "
            "Await in it, or have what blocks run in a thread (a plain 'def' task). It stands here:\n%s",
            self._stall_s,
            who,
            stack,
        )

    def _culprit(self) -> Attempt | None:
        """The attempt whose task, or whose task's child, the loop is in."""
        task = asyncio.current_task(self._loop)
        if task is None:
            return None
        for attempt in list(self._in_flight.values()):
            if attempt.handle is task:
                return attempt
        # A task that the job's code made carries the job's context; Python 3.11 does not let others see it.
        context = task.get_context() if hasattr(task, "get_context") else None
        return None if context is None else context.get(current_attempt)
