"""The ends of callers' transactions: after each, workers are told to look, for a job may have come with it.

Nothing in such a transaction may tell of it: a NOTIFY takes a lock on the whole database when it commits, and
would make the caller's commits wait for each other. So whoever has submitted in one looks at the connection,
and tells when it has ended. That is a hint: where it is missed (the connection is in its next transaction
already, or the process is gone), workers find the jobs with their next poll.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

SHORTEST_PAUSE_S = 0.002
LONGEST_PAUSE_S = 0.25
PAUSE_PER_AGE = 0.25
"""How long to wait before the next look: a part of the time that the transaction has taken so far."""
GIVE_UP_AFTER_S = 60.0
MOST = 1000
"""The most transactions that are looked at; who comes later is found by polling."""


class Ends:
    """Looks at transactions until they end.

    Args:
        tell: called on the loop when one has ended.
    """

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self._loop: asyncio.AbstractEventLoop | None = None
        self._since: dict[Callable[[], bool], float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """Look on this loop from now on."""
        self._loop = asyncio.get_running_loop()

    def close(self) -> None:
        """Look no more."""
        self._loop = None
        self._since.clear()
        if self._timer is not None:
            self._timer.cancel()

    def await_end(self, is_over: Callable[[], bool]) -> None:
        """Tell when this transaction has ended; from any thread."""
        loop = self._loop
        if loop is not None:
            loop.call_soon_threadsafe(self._add, is_over)

    def _add(self, is_over: Callable[[], bool]) -> None:
        if self._loop is not None and len(self._since) < MOST:
            self._since[is_over] = self._loop.time()
            self._come_back()

    def _look(self) -> None:
        assert self._loop is not None
        self._timer = None
        now = self._loop.time()
        ended = [is_over for is_over in self._since if is_over()]
        for is_over in ended:
            del self._since[is_over]
        for is_over in [each for each, since in self._since.items() if now - since > GIVE_UP_AFTER_S]:
            del self._since[is_over]
        if ended:
            self._tell()
        if self._since:
            self._come_back()

    def _come_back(self) -> None:
        assert self._loop is not None
        youngest_s = self._loop.time() - max(self._since.values())
        pause_s = min(max(youngest_s * PAUSE_PER_AGE, SHORTEST_PAUSE_S), LONGEST_PAUSE_S)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(pause_s, self._look)
