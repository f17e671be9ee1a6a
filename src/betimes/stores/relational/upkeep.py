"""What the writer does by its own timer: prolong leases, and notice that the clock was set back.

The timer belongs to the writer's thread, so that code which blocks the event loop loses no lease. It goes
by `beat`: a worker that has not beaten for longer than `max_stall_us` is left to lose its lease, on
purpose.
"""

from __future__ import annotations

from dataclasses import dataclass

from betimes.core.job import Micros
from betimes.ports import Clock

RENEWALS_PER_LEASE = 3


@dataclass(slots=True)
class _Renewal:
    """When a worker last beat, and when its lease is to be prolonged next (mutable: both move on)."""

    lease_us: int
    beaten_at: int
    due_at: int


class Renewals:
    """The workers whose leases this process prolongs."""

    def __init__(self, *, clock: Clock, max_stall_us: int) -> None:
        self._clock = clock
        self._max_stall_us = max_stall_us
        self._workers: dict[str, _Renewal] = {}

    def begin(self, worker: str, lease_us: int) -> None:
        """Prolong this worker's lease from now on."""
        now = self._clock.boottime()
        self._workers[worker] = _Renewal(lease_us, now, now + lease_us // RENEWALS_PER_LEASE)

    def beaten(self, worker: str) -> None:
        """Note that a worker lives, and has just prolonged its own lease."""
        renewal = self._workers.get(worker)
        if renewal is not None:
            renewal.beaten_at = self._clock.boottime()
            renewal.due_at = renewal.beaten_at + renewal.lease_us // RENEWALS_PER_LEASE

    def end(self, worker: str) -> None:
        """Leave this worker's lease alone."""
        self._workers.pop(worker, None)

    @property
    def workers(self) -> list[str]:
        """The workers whose leases are prolonged here."""
        return list(self._workers)

    def due(self) -> list[str]:
        """Return the workers whose leases are to be prolonged now."""
        now = self._clock.boottime()
        due = []
        for worker, renewal in list(self._workers.items()):  # another thread may begin or end some
            if renewal.due_at <= now:
                renewal.due_at = now + renewal.lease_us // RENEWALS_PER_LEASE
                if now - renewal.beaten_at <= self._max_stall_us:
                    due.append(worker)
        return due

    def next_due_in_us(self) -> int | None:
        """Return how long until one is due; None: none is here."""
        earliest = min((renewal.due_at for renewal in list(self._workers.values())), default=None)
        return None if earliest is None else max(0, earliest - self._clock.boottime())


class SetBack:
    """Notices that the clock was set back: then what is to happen at its time would come too late.

    Mutable; it belongs to the writer. A process that has just begun may have missed it, so to it, it was.

    Attributes:
        is_unheeded: whether nobody has looked yet at what waits for an instant of before.
        is_heeded: whether the transaction under way does; it counts once that is committed.
    """

    __slots__ = ("_latest", "is_heeded", "is_unheeded")

    def __init__(self) -> None:
        self._latest = 0
        self.is_unheeded = True
        self.is_heeded = False

    def see(self, now: Micros) -> None:
        """Note what the clock shows."""
        self.is_unheeded = self.is_unheeded or now < self._latest
        self._latest = now

    def committed(self) -> None:
        """Note that the transaction under way was committed."""
        if self.is_heeded:
            self.is_heeded = self.is_unheeded = False
