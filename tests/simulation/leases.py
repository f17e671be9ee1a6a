"""The witness's own reckoning of who holds a lease."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from betimes.core.job import Micros
from betimes.ports import WorkerInfo


@dataclass(slots=True)
class Lease:
    """One worker's lease.

    Attributes:
        info: who.
        until: when it is over unless renewed, on the boot clock.
        is_dead: somebody has rescued from it, or it was given up; it cannot be renewed.
        is_rescued: the former.
    """

    info: WorkerInfo
    until: Micros
    is_dead: bool = False
    is_rescued: bool = False


class Leases:
    """All leases ever begun; those that ended are dead."""

    def __init__(self) -> None:
        self._leases: dict[str, Lease] = {}

    def begin(self, info: WorkerInfo, now: Micros) -> None:
        """Note a registration."""
        self._leases[info.id] = Lease(info, now + info.lease_us)

    def get(self, worker: str) -> Lease | None:
        """Return a worker's lease, dead or not; None if it never registered."""
        return self._leases.get(worker)

    def holds(self, worker: str, now: Micros) -> bool:
        """Say whether a worker may claim."""
        lease = self._leases.get(worker)
        return lease is not None and not lease.is_dead and lease.until > now

    def renew(self, worker: str, now: Micros) -> bool:
        """Note a heartbeat; say whether it must be answered as alive."""
        lease = self._leases.get(worker)
        if lease is None or lease.is_dead:
            return False
        lease.until = now + lease.info.lease_us
        return True

    def end(self, worker: str) -> None:
        """Note a retirement."""
        lease = self._leases.get(worker)
        if lease is not None:
            lease.is_dead = True

    def bury(self, now: Micros) -> None:
        """Note a rescue: whoever's lease is over now is dead."""
        for lease in self:
            if lease.until <= now and not lease.is_dead:
                lease.is_dead = lease.is_rescued = True

    def __iter__(self) -> Iterator[Lease]:
        return iter(self._leases.values())
