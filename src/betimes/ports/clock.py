"""Where time comes from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable


class Clock(ABC):
    """Where time comes from. Two kinds, by name: one persists, the others measure."""

    @abstractmethod
    def now(self) -> int:
        """Return the wall clock's time, in microseconds since the Unix epoch; it may jump."""

    @abstractmethod
    def boottime(self) -> int:
        """Return microseconds on a clock that never jumps and goes on through suspend; for leases."""

    @abstractmethod
    def boot_id(self) -> str:
        """Return what names this boot of the machine: `boottime` compares only within one boot."""

    @abstractmethod
    def monotonic(self) -> float:
        """Return seconds on a clock that never jumps; for measuring and for deadlines."""

    def on_jump(self, hear: Callable[[], None]) -> Callable[[], None] | None:
        """Have `hear` called whenever the wall clock is set, and return how to stop that.

        Returns:
            None where the clock cannot tell, as the system's cannot: then somebody has to look.
        """
        del hear
        return None
