"""The lines that running attempts write, gathered until the worker's next turn takes them to the store.

A page goes out before the outcome of its attempt does, so that whoever sees the job ended sees its log
whole; of an attempt that runs on, soon after the lines were written.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from betimes.core.job import Job
from betimes.core.log import LINES_KEPT, LogLine, LogPage, lines_of
from betimes.errors import StoreUnavailable
from betimes.ports import Store

if TYPE_CHECKING:
    from betimes.runtime.attempt import Attempt


_log = logging.getLogger("betimes")

FLUSH_EVERY_S = 0.5
"""How soon the lines of a job that runs on are stored."""


class _Lines:
    """What one attempt wrote and no store has taken yet (mutable: it gathers)."""

    __slots__ = ("attempt", "fence", "job", "lines")

    def __init__(self, attempt: Attempt) -> None:
        self.job: Job = attempt.job
        self.fence = attempt.fence
        self.attempt = attempt.number
        self.lines: list[LogLine] = []


class LogBook:
    """Takes lines from any thread; bounded: of one attempt, the newest that a store would keep.

    Attributes:
        has_lines: whether anything waits to be stored.
    """

    def __init__(self, store: Store) -> None:
        """Gather lines for this store."""
        self._store = store
        self._loop: asyncio.AbstractEventLoop | None = None
        self._awaken: Callable[[], None] = _nobody
        self._timer: asyncio.TimerHandle | None = None
        self._gathered: dict[tuple[int, int], _Lines] = {}
        self._lock = threading.Lock()
        self._dropped = 0
        self.has_lines = False

    def open(self, loop: asyncio.AbstractEventLoop, awaken: Callable[[], None]) -> None:
        """Have somebody awakened, on this loop, soon after lines were written."""
        self._loop = loop
        self._awaken = awaken

    def close(self) -> None:
        """Awaken nobody any more."""
        if self._timer is not None:
            self._timer.cancel()
        self._loop = None

    def write(self, attempt: Attempt, text: str, *, source: str, level: int) -> None:
        """Add what an attempt wrote, line by line."""
        at = self._store.now()
        new = [
            LogLine(at_us=at, attempt=attempt.number, text=line, source=source, level=level)
            for line in lines_of(text)
        ]
        with self._lock:
            key = (attempt.seq, attempt.fence)
            gathered = self._gathered.get(key)
            if gathered is None:
                gathered = self._gathered[key] = _Lines(attempt)
            gathered.lines += new
            if len(gathered.lines) > 2 * LINES_KEPT:
                del gathered.lines[:-LINES_KEPT]
            is_first, self.has_lines = not self.has_lines, True
        loop = self._loop
        if is_first and loop is not None:
            with suppress(RuntimeError):  # the loop has been closed under code that was left running
                loop.call_soon_threadsafe(self._wait)

    def _wait(self) -> None:
        loop = self._loop
        if loop is not None and (self._timer is None or self._timer.when() <= loop.time()):
            self._timer = loop.call_later(FLUSH_EVERY_S, self._awaken)

    async def flush(self) -> None:
        """Take what was gathered to the store; what it does not take is gathered again.

        But where there is no room on its disk, lines are dropped: outcomes must not wait for them.
        """
        pages = self._take()
        try:
            await self._store.write_log(pages)
        except BaseException as error:
            if isinstance(error, StoreUnavailable) and error.why == "full":
                self._drop(pages)
                return
            self._put_back(pages)
            raise
        if self._dropped:
            _log.warning("logs of jobs are kept again; %d lines were lost meanwhile", self._dropped)
            self._dropped = 0

    def _take(self) -> list[LogPage]:
        with self._lock:
            gathered, self._gathered = self._gathered, {}
            self.has_lines = False
        return [LogPage(one.job, one.fence, tuple(one.lines[-LINES_KEPT:])) for one in gathered.values()]

    def _drop(self, pages: list[LogPage]) -> None:
        if not self._dropped:
            _log.error("the store's disk is full: what jobs log is lost until there is room")
        self._dropped += sum(len(page.lines) for page in pages)

    def _put_back(self, pages: list[LogPage]) -> None:
        with self._lock:
            for page in pages:
                key = (page.job.seq, page.fence)
                later = self._gathered.get(key)
                lines = [*page.lines, *(later.lines if later is not None else ())]
                if later is None:
                    later = self._gathered[key] = _Lines.__new__(_Lines)
                    later.job, later.fence = page.job, page.fence
                    later.attempt = page.lines[-1].attempt if page.lines else 0
                later.lines = lines[-LINES_KEPT:]
            self.has_lines = bool(self._gathered)


def _nobody() -> None:
    """Awaken nobody."""
