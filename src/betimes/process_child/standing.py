"""What stands in for the attempt in its job's own process: what the code sees of itself, and can say."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from betimes.clock import monotonic_s
from betimes.core.log import INFO
from betimes.executors.process.frames import MOST_LOGGED, FromChild, Logged, Progressed

if TYPE_CHECKING:
    from betimes.core.job import Micros
    from betimes.core.remote import Call
    from betimes.process_child.telling import Bell

PROGRESS_EVERY_S = 0.05
MOST_CARRIED = 2**63
"""Whole numbers from here on do not fit into a message; they become floats."""


class StandIn:
    """The attempt as `Context` sees it (mutable: it remembers what was said last).

    Args:
        request: the number of its request.
        call: what is run.
        bell: knows whether it is to stop.
        send: sends a message to the scheduler's process; from any thread.
    """

    __slots__ = (
        "_bell",
        "_call",
        "_last",
        "_request",
        "_said_at",
        "_send",
        "deadline",
        "fence",
        "fire_at",
        "job_id",
        "number",
        "task_name",
    )

    def __init__(self, request: int, call: Call, bell: Bell, send: Callable[[FromChild], None]) -> None:
        self._request = request
        self._bell = bell
        self._send = send
        self._last: Progressed | None = None
        self._said_at = 0.0
        self.job_id: str = call.job_id
        self.task_name: str = call.task
        self.number: int = call.attempt
        self.fence: int = call.fence
        self.fire_at: Micros | None = call.scheduled_for
        self.deadline: Micros | None = call.deadline

    @property
    def is_told(self) -> bool:
        """Whether it has been told to stop."""
        return self._bell.is_doomed(self._request)

    def progressed(self, done: float, total: float | None) -> None:
        """Say how far the code is, some twenty times a second at most, and the last time in any case."""
        self._last = Progressed(self._request, _number(done), None if total is None else _number(total))
        now = monotonic_s()
        if not self._said_at or now - self._said_at >= PROGRESS_EVERY_S:
            self._said_at = now
            self.settle()

    def settle(self) -> None:
        """Send what has not been sent of the progress."""
        last, self._last = self._last, None
        if last is not None:
            self._say(last)

    def write_log(self, text: str, *, source: str = "log", level: int = INFO) -> None:
        """Add lines to the job's log; from any thread."""
        storable = text[:MOST_LOGGED].encode("utf-8", "backslashreplace").decode("utf-8")
        self._say(Logged(self._request, storable, source, level))

    def _say(self, message: FromChild) -> None:
        if threading.current_thread() is threading.main_thread():
            with self._bell.shielded():
                self._send(message)
        else:
            self._send(message)


def _number(value: float) -> float:
    """Return what was said as a number that can be carried; raises what `float` says of one that is none."""
    return value if type(value) is int and -MOST_CARRIED <= value < MOST_CARRIED else float(value)
