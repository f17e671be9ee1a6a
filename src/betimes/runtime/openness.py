"""Whether a scheduler is open, and on which event loop: what every call of it asks first."""

from __future__ import annotations

import asyncio
import threading

from betimes.errors import ConfigurationError, SchedulerClosed

ELSEWHERE = (
    "this code runs in a process job's own process, where no scheduler is open, or can be: return what is to "
    "be submitted, and let a job on the event loop, or whoever waits for the result, submit it (and put what "
    "starts your script under 'if __name__ == \"__main__\":', since the process imports it)"
)


class Openness:
    """Knows the loop and the thread that a scheduler is open on.

    Attributes:
        loop: the event loop; None: it is not open.
        thread: the number of that loop's thread; 0: it is not open.
        is_opening, is_closing: whether it takes no submits, because it is about to open, or to close.
        is_elsewhere: on the class, for all: whether this is a process job's own process. Its code may import
            schedulers, since its tasks are registered there, and opens none.
    """

    is_elsewhere = False

    def __init__(self) -> None:
        """Start closed."""
        self.loop: asyncio.AbstractEventLoop | None = None
        self.thread = 0
        self.is_opening = False
        self.is_closing = False

    def _begin(self) -> None:
        if self.is_elsewhere:
            raise SchedulerClosed(ELSEWHERE)
        self.loop = asyncio.get_running_loop()
        self.thread = threading.get_ident()
        self.is_closing = self.is_opening = True

    def _end(self) -> None:
        self.loop = None
        self.thread = 0

    @property
    def is_open(self) -> bool:
        """Whether submits are taken."""
        return self.loop is not None and not self.is_closing

    def check_open(self) -> None:
        """Refuse to go on unless the store is open and the scheduler is not stopping.

        Raises:
            SchedulerClosed: it is not; the text says what to do.
            ConfigurationError: it is open on another event loop.
        """
        self.check_here()
        self._check_taking()

    def check_open_anywhere(self) -> None:
        """As `check_open`, for a call that may be made on any event loop, and in any thread."""
        self._opened_loop()
        self._check_taking()

    def check_here(self) -> None:
        """Refuse to go on unless the store is open on the running event loop; errors as `check_open`."""
        if self._opened_loop() is not asyncio.get_running_loop():
            raise ConfigurationError(
                "the scheduler runs on another event loop: await its calls there, or use submit_threadsafe() "
                "and submit_blocking(), which may be called in any thread"
            )

    def _check_taking(self) -> None:
        if self.is_closing:
            state = "still opening" if self.is_opening else "stopping"
            raise SchedulerClosed(f"the scheduler is {state}, and takes no work now")

    def _opened_loop(self) -> asyncio.AbstractEventLoop:
        loop = self.loop
        if loop is None:
            if self.is_elsewhere:
                raise SchedulerClosed(ELSEWHERE)
            raise SchedulerClosed(
                "the scheduler is not open: enter 'async with scheduler:' (or 'async with "
                "scheduler.client():' to submit only), or await scheduler.start()"
            )
        if loop.is_closed():
            raise SchedulerClosed(
                "the scheduler's event loop ended before stop(), and its worker with it: make a new Scheduler"
            )
        return loop
