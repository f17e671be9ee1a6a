"""What happened, call by call: to be printed when a run fails, and compared when it is replayed."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

SHOWN = 60


class Trace:
    """The lines of one run. Two runs of one seed write the same."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.lines: list[str] = []

    def add(self, line: str) -> None:
        """Write a line, with its instant."""
        self.lines.append(f"{self._now():10.4f} {line}")

    @property
    def digest(self) -> str:
        """What stands for all lines."""
        return sha256("\n".join(self.lines).encode()).hexdigest()

    def tail(self, lines: int = SHOWN) -> str:
        """The last lines, as text."""
        return "\n".join(self.lines[-lines:])
