"""A job's log: what its code logs, and what its process or command prints, line by line, bounded.

The newest lines stay, since that is where an error stands; how many went before them is known by their
numbers, which go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec

from betimes.core.durations import from_us
from betimes.core.job import Job, Micros

LINES_KEPT = 1000
"""How many lines a store keeps of one job, the newest."""

LINE_LENGTH = 2000
"""Characters kept of one line."""

INFO = 20
"""The level of a line that has none of its own, as `logging` numbers them."""


class LogLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a job's log.

    Attributes:
        number: its place among all lines of the job, from 1; 0 before a store took it.
        at_us: when it was written, by the scheduler's clock.
        attempt: the attempt that wrote it.
        source: `log` (`ctx.log`), `stdout` or `stderr`.
        level: as `logging` numbers them; of what was printed, INFO.
        text: the line, without its end.
    """

    at_us: Micros
    attempt: int
    text: str
    source: str = "log"
    level: int = INFO
    number: int = 0

    @property
    def at(self) -> datetime:
        """When it was written (aware, UTC)."""
        return from_us(self.at_us)

    def __str__(self) -> str:
        return self.text


class LogPage(msgspec.Struct, frozen=True):
    """Lines of one attempt, on their way to the store; they count only if `fence` is still the job's."""

    job: Job
    fence: int
    lines: tuple[LogLine, ...]


def lines_of(text: str) -> Iterator[str]:
    """Split what was written into lines that can be stored and shown, each cut at its length."""
    for line in text.splitlines() or [""]:
        storable = line.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")
        yield storable if len(storable) <= LINE_LENGTH else f"{storable[: LINE_LENGTH - 1]}…"
