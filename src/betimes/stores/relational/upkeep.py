"""What the writer does by its own timer: prolong leases, and notice that the clock was set back.

The timer belongs to the writer's thread, so that code which blocks the event loop loses no lease. It goes
by `beat`: a worker that has not beaten for longer than `max_stall_us` is left to lose its lease, on
purpose.

A lease is *confirmed* when the transaction that prolonged it is known to be committed, and it counts from
before that was sent: so what is thought here to be left of it is never more than what others see.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from betimes.core.job import Micros
from betimes.ports import Clock

RENEWALS_PER_LEASE = 3
RETRIES_PER_LEASE = 15
"""So often a lease is tried to be prolonged again, at least, when that has failed."""


@dataclass(slots=True)
class _Renewal:
    """When a worker last beat, since when its lease is confirmed, and when it is to be prolonged next.

    Mutable: all of them move on.
    """

    lease_us: int
    beaten_at: int
    confirmed_at: int
    due_at: int


class Renewals:
    """The workers whose leases this process prolongs.

    Args:
        clock: its boot time is what leases are measured by here.
        max_stall_us: a worker that has not beaten for so long is left to lose its lease.
    """

    def __init__(self, *, clock: Clock, max_stall_us: int) -> None:
        self._clock = clock
        self._max_stall_us = max_stall_us
        self._workers: dict[str, _Renewal] = {}

    def now(self) -> int:
        """Return the time by which leases are measured here; it is looked up before a beat is sent."""
        return self._clock.boottime()

    def begin(self, worker: str, lease_us: int, *, since: int | None = None) -> None:
        """Prolong this worker's lease from now on; it is confirmed, as of `since` (None: now)."""
        now = self._clock.boottime()
        since = now if since is None else since
        self._workers[worker] = _Renewal(lease_us, now, since, now + lease_us // RENEWALS_PER_LEASE)

    def beaten(self, worker: str, *, since: int | None = None) -> None:
        """Note that a worker lives, and has prolonged its own lease, as of `since` (None: now)."""
        renewal = self._workers.get(worker)
        if renewal is not None:
            renewal.beaten_at = self._clock.boottime()
            self.confirm([worker], since=renewal.beaten_at if since is None else since)

    def confirm(self, workers: Collection[str], *, since: int) -> None:
        """Note that leases have been prolonged, which was asked for at `since`."""
        now = self._clock.boottime()
        for worker in workers:
            renewal = self._workers.get(worker)
            if renewal is not None:
                renewal.confirmed_at = max(renewal.confirmed_at, since)
                renewal.due_at = now + renewal.lease_us // RENEWALS_PER_LEASE

    def failed(self, workers: Collection[str]) -> None:
        """Note that leases could not be prolonged, so that it is tried again soon."""
        now = self._clock.boottime()
        share = 1 - now % 1000 / 2000  # the last digits of its clock are any machine's own
        for worker in workers:
            renewal = self._workers.get(worker)
            if renewal is not None:
                renewal.due_at = now + round(share * renewal.lease_us / RETRIES_PER_LEASE)

    def left_us(self, worker: str) -> int:
        """Return for how long from now on a lease is sure to hold; 0: it may be over."""
        renewal = self._workers.get(worker)
        if renewal is None:
            return 0
        return max(0, renewal.confirmed_at + renewal.lease_us - self._clock.boottime())

    @property
    def shortest_us(self) -> int | None:
        """The shortest of the leases; None: there is none."""
        return min((renewal.lease_us for renewal in list(self._workers.values())), default=None)

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
