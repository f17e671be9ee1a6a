"""Who holds what in memory: workers, their leases, and the jobs that run under them."""

from __future__ import annotations

from betimes.core.job import Job, Micros
from betimes.ports import WorkerInfo


class Lease:
    """One worker's lease and the jobs under it (mutable: it is renewed every few seconds)."""

    __slots__ = ("held", "info", "is_dead", "until")

    def __init__(self, info: WorkerInfo, until: Micros) -> None:
        self.info = info
        self.until = until
        self.is_dead = False
        self.held: dict[int, Job] = {}

    def holds_at(self, boottime: Micros) -> bool:
        """Say whether the lease is in force."""
        return not self.is_dead and self.until > boottime

    def left_at(self, boottime: Micros) -> Micros:
        """Return how long the lease is in force; 0: it is over."""
        return max(self.until - boottime, 0) if self.holds_at(boottime) else 0


class Leases:
    """The workers by id. A lease that is over but that nobody has rescued yet can still be renewed."""

    def __init__(self) -> None:
        """Start without workers."""
        self._leases: dict[str, Lease] = {}

    def begin(self, info: WorkerInfo, boottime: Micros) -> None:
        """Begin a worker's lease."""
        self._leases[info.id] = Lease(info, boottime + info.lease_us)

    def get(self, worker: str) -> Lease | None:
        """Return a worker's lease, dead or alive; None if it never was or has been ended."""
        return self._leases.get(worker)

    def end(self, worker: str) -> Lease | None:
        """Drop a worker; its lease is returned with what it held."""
        return self._leases.pop(worker, None)

    def renew(self, worker: str, boottime: Micros) -> Lease | None:
        """Prolong a lease for its full term; None if it has been rescued or ended."""
        lease = self._leases.get(worker)
        if lease is None or lease.is_dead:
            return None
        lease.until = boottime + lease.info.lease_us
        return lease

    def over(self, boottime: Micros) -> list[Lease]:
        """List the leases that are over and may still have jobs."""
        return [lease for lease in self._leases.values() if not lease.holds_at(boottime)]

    @property
    def is_alone(self) -> bool:
        """Whether there is but one worker."""
        return len(self._leases) == 1

    def all(self) -> list[Lease]:
        """List all leases."""
        return list(self._leases.values())

    def held_by(self, worker: str | None) -> dict[int, Job]:
        """Return the jobs under a worker's lease, to take out of; empty if it has none."""
        lease = self._leases.get(worker or "")
        return {} if lease is None else lease.held

    def hold(self, worker: str, job: Job) -> None:
        """Put a job under a worker's lease."""
        self._leases[worker].held[job.seq] = job

    def release(self, job: Job) -> None:
        """Take a RUNNING job from under its worker's lease."""
        lease = self._leases.get(job.worker or "")
        if lease is not None:
            lease.held.pop(job.seq, None)
