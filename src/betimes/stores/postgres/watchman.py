"""The watchman: cuts off connections on which the server does not answer, by a deadline of ours."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

DEADLINE_S = 20.0
"""The longest that one statement may take; the heart has its own, so that no lease is lost by waiting."""
LOOKS_PER_DEADLINE = 10


class Watched(Protocol):
    """What waits for answers."""

    def waits_for(self) -> float:
        """Return for how many seconds it has waited for an answer."""

    def cut(self) -> None:
        """Have what is on its way fail at once."""


class Watchman:
    """A thread that looks at sessions now and then.

    Args:
        watched: the sessions, each with how long it may wait, in seconds.
    """

    def __init__(self, watched: Sequence[tuple[Watched, float]]) -> None:
        self._watched = watched
        self._pause_s = min(deadline_s for _, deadline_s in watched) / LOOKS_PER_DEADLINE
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="betimes-postgres-watchman", daemon=True)

    def begin(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def end(self) -> None:
        """Stop watching."""
        self._is_over.set()

    def look(self) -> None:
        """Cut off those that have waited for too long."""
        for session, deadline_s in self._watched:
            if session.waits_for() > deadline_s:
                session.cut()

    def _watch(self) -> None:
        while not self._is_over.wait(self._pause_s):
            self.look()
