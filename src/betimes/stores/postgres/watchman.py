"""The watchman: cuts off connections on which the server does not answer, by a deadline of ours."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

_log = logging.getLogger("betimes")

DEADLINE_S = 20.0
"""The longest that one statement may take, where nothing presses."""
LOOKS_PER_DEADLINE = 10
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.5


class Watched(Protocol):
    """What waits for answers."""

    def waits_for(self) -> float:
        """Return for how many seconds it has waited for an answer."""

    def cut(self) -> None:
        """Have what is on its way fail at once."""


class Timed(Watched, Protocol):
    """What knows itself how long it may wait."""

    @property
    def deadline_s(self) -> float:
        """The longest that it may wait, in seconds, at present."""


class Watchman:
    """A thread that looks at sessions now and then.

    Args:
        watched: the sessions.
    """

    def __init__(self, watched: Sequence[Timed]) -> None:
        self._watched = watched
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="betimes-postgres-watchman", daemon=True)

    def begin(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def end(self) -> None:
        """Stop watching."""
        self._is_over.set()

    def look(self) -> float:
        """Cut off those that have waited for too long; return how long to wait until the next look."""
        shortest_s = DEADLINE_S
        for session in self._watched:
            deadline_s = session.deadline_s
            shortest_s = min(shortest_s, deadline_s)
            if session.waits_for() > deadline_s:
                session.cut()
        return min(max(shortest_s / LOOKS_PER_DEADLINE, SHORTEST_PAUSE_S), LONGEST_PAUSE_S)

    def _watch(self) -> None:
        pause_s = SHORTEST_PAUSE_S
        while not self._is_over.wait(pause_s):
            try:
                pause_s = self.look()
            except Exception:  # noqa: BLE001 - without it, a silent server would be waited for for ever
                _log.exception("the watch over the connections with PostgreSQL met a fault, and goes on")
                pause_s = LONGEST_PAUSE_S


class _WithDeadline:
    """Something watched by the usual deadline."""

    deadline_s = DEADLINE_S

    def __init__(self, watched: Watched) -> None:
        self.waits_for = watched.waits_for
        self.cut = watched.cut


@contextmanager
def watched(wire: Watched) -> Iterator[None]:
    """Have one connection watched by the usual deadline, for as long as the block takes."""
    watchman = Watchman([_WithDeadline(wire)])
    watchman.begin()
    try:
        yield
    finally:
        watchman.end()
