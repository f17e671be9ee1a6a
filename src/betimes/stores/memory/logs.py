"""The jobs' logs in memory: the newest lines of each job, and a bounded number over all."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice

from msgspec.structs import replace

from betimes.core.log import LINES_KEPT, LogLine

ALL_LINES_KEPT = 200_000
"""How many lines are kept over all jobs; beyond that, the lines of the jobs that wrote first go."""


class _Log:
    """One job's lines (mutable: it is written to): those that are kept are the last of all it wrote."""

    __slots__ = ("lines", "written")

    def __init__(self) -> None:
        self.lines: deque[LogLine] = deque(maxlen=LINES_KEPT)
        self.written = 0


class Logs:
    """The lines by job, as its `seq`; a job's numbers go on whatever of it has been dropped.

    Args:
        most: how many lines are kept over all jobs.
    """

    def __init__(self, most: int = ALL_LINES_KEPT) -> None:
        """Start without lines."""
        self._most = most
        self._logs: dict[int, _Log] = {}
        self._kept = 0
        # Those that have lines, in the order in which they got their first.
        self._filled: dict[int, _Log] = {}

    def __bool__(self) -> bool:
        """Say whether anything was written by a job that is still remembered."""
        return bool(self._logs)

    def write(self, seq: int, lines: Sequence[LogLine]) -> None:
        """Add lines to a job's log."""
        if not lines:
            return
        log = self._logs.setdefault(seq, _Log())
        before = len(log.lines)
        for line in lines:
            log.written += 1
            log.lines.append(replace(line, number=log.written))
        self._filled.setdefault(seq, log)
        self._kept += len(log.lines) - before
        while self._kept > self._most:
            first = next(iter(self._filled))
            log = self._filled.pop(first)
            self._kept -= len(log.lines)
            log.lines.clear()

    def read(self, seq: int, after: int, limit: int) -> list[LogLine]:
        """Return the lines whose number is larger, in order, at most so many."""
        log = self._logs.get(seq)
        if log is None or limit <= 0:
            return []
        # The kept numbers follow each other, so that the place of the first one wanted is known.
        skipped = max(after - (log.written - len(log.lines)), 0)
        return list(islice(log.lines, skipped, skipped + limit))

    def drop(self, seq: int) -> None:
        """Forget a job's log."""
        log = self._logs.pop(seq, None)
        if log is not None:
            self._filled.pop(seq, None)
            self._kept -= len(log.lines)
