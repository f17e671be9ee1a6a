"""What a worker may do next, as a value: slots, phases, and whom it must not claim yet. No I/O, no time.

A slot belongs to an attempt from its claim until both its outcome is recorded and its code has returned.
`in_flight` therefore never exceeds the concurrency, whatever the code does with a timeout or a cancel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Generic, Protocol, TypeVar


class Phase(Enum):
    """A worker's life: it only moves down. The next worker of the process begins it anew."""

    RUNNING = "running"
    DRAINING = "draining"
    """Claims nothing more; what runs may end."""
    STOPPED = "stopped"


class Slotted(Protocol):
    """What takes a slot."""

    seq: int
    lane: str
    is_recorded: bool
    has_returned: bool


A = TypeVar("A", bound=Slotted)


class WorkerState(Generic[A]):
    """Counts the slots of one worker and says what it can claim.

    Attributes:
        in_flight: the attempts that hold a slot, by `seq`.
        zombies: those among them whose outcome is known while their code still runs; not to be claimed again.
        peak: the most that ever were in flight at once.
        phase: where the worker is in its life.
    """

    def __init__(self, *, concurrency: int, slots: Mapping[str, int]) -> None:
        """Start with all slots free.

        Args:
            concurrency: the most attempts in flight.
            slots: the most of them in each lane.
        """
        self._concurrency = concurrency
        self._free = dict(slots)
        self.in_flight: dict[int, A] = {}
        self.zombies: dict[int, A] = {}
        self.peak = 0
        self.phase = Phase.RUNNING

    def room(self, ended: Iterable[A] = ()) -> tuple[int, dict[str, int]]:
        """Say how many more attempts can be taken in all, and in each lane.

        Args:
            ended: attempts whose outcomes are recorded in the same step; those whose code has returned give
                their slots to what is claimed in it.
        """
        lanes = dict(self._free)
        given = 0
        for attempt in ended:
            if attempt.has_returned and not attempt.is_recorded:
                lanes[attempt.lane] += 1
                given += 1
        free = self._concurrency - len(self.in_flight) + given
        return (free if self.phase is Phase.RUNNING else 0), lanes

    def on_claimed(self, attempts: Sequence[A]) -> None:
        """Give claimed attempts their slots."""
        in_flight, free = self.in_flight, self._free
        for attempt in attempts:
            assert attempt.seq not in in_flight
            in_flight[attempt.seq] = attempt
            free[attempt.lane] -= 1
        if len(in_flight) > self.peak:
            self.peak = len(in_flight)
            assert self.peak <= self._concurrency

    def on_late(self, attempt: A) -> None:
        """Note that an outcome is known while the code still runs: the next attempt must wait for that."""
        self.zombies[attempt.seq] = attempt

    def on_recorded(self, attempts: Iterable[A]) -> None:
        """Note that the attempts' outcomes are stored, or not wanted; what has returned frees its slot."""
        in_flight, free = self.in_flight, self._free
        for attempt in attempts:
            attempt.is_recorded = True
            if attempt.has_returned:
                del in_flight[attempt.seq]
                free[attempt.lane] += 1
            else:
                self.zombies[attempt.seq] = attempt

    def on_returned(self, attempt: A) -> None:
        """Note that an attempt's code has returned; if its outcome is recorded, its slot is free now."""
        attempt.has_returned = True
        self.zombies.pop(attempt.seq, None)
        if attempt.is_recorded:
            del self.in_flight[attempt.seq]
            self._free[attempt.lane] += 1

    @property
    def has_held(self) -> bool:
        """Whether any attempt in flight has an outcome that is not known yet."""
        return len(self.in_flight) > len(self.zombies)

    def held(self) -> dict[int, A]:
        """Return the attempts whose jobs the worker still answers for: in flight and not recorded."""
        return {seq: attempt for seq, attempt in self.in_flight.items() if not attempt.is_recorded}
