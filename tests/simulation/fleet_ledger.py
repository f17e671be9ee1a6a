"""What happened in a fleet, written down where it happened, and what must hold of it.

Claims and ends are written down where the shared store carries them out, starts by the code of the jobs.
Nothing here is asked by the code under test.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tests.simulation.fairness import Windows

from betimes.core.job import Job, JobEvent, JobStatus
from betimes.core.transition import Transition
from betimes.ports import Report

NARROW = "narrow"
"""The kind of those under a limit, and the tenant they are of, whose share is not followed."""
COMPLETED, RUNNING = JobStatus.COMPLETED, JobStatus.RUNNING


@dataclass(slots=True)
class Lost:
    """One job that a worker held when it died, or was just being given (mutable: it is followed).

    Attributes:
        rescued_at, started_at: when it was taken back, and when its code began elsewhere.
    """

    rescued_at: float | None = None
    started_at: float | None = None


@dataclass(slots=True)
class Ledger:
    """The books of one fleet (mutable: it is written into).

    Attributes:
        time: the virtual time, in seconds.
        weights: of the tenants whose shares are followed.
        most_narrow: how many jobs under the limit may run at once.
        violations: what broke a promise.
        waiting: how many jobs of each tenant were never claimed yet.
        dead: the hosts that have died.
        starts: how often each job's code began, by its id.
        completed: how often its end was recorded.
        lost: what the dead held.
        shares: the first claims of each tenant while all of them had work.
        fires: the jobs that each instant of the schedule has made.
        lags: by their kind, how late the code of jobs began that were due at an instant.
    """

    time: Callable[[], float]
    weights: dict[str, float]
    most_narrow: int
    violations: list[str] = field(default_factory=list)
    waiting: Counter[str] = field(default_factory=Counter)
    dead: set[str] = field(default_factory=set)
    starts: Counter[str] = field(default_factory=Counter)
    completed: Counter[str] = field(default_factory=Counter)
    lost: dict[str, Lost] = field(default_factory=dict)
    shares: Counter[str] = field(default_factory=Counter)
    fires: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    lags: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    most_narrow_seen: int = 0
    _holders: dict[str, str] = field(default_factory=dict)
    _claimed: set[str] = field(default_factory=set)
    _narrow: dict[str, str] = field(default_factory=dict)
    _windows: Windows = field(init=False)

    def __post_init__(self) -> None:
        """Follow the shares of tenants."""
        self._windows = Windows(self.weights, self.fail)

    def fail(self, text: str) -> None:
        """Note that a promise was broken."""
        self.violations.append(f"{self.time():.3f} s: {text}")

    # where the store carries calls out

    def claims(self, host: str, jobs: Sequence[Job]) -> None:
        """Write down what a call of this host has claimed."""
        firsts: Counter[str] = Counter()
        for job in jobs:
            if (holder := self._holders.get(job.id)) is not None:
                self.fail(f"{job.id} was given to {host}, and {holder} holds it")
            self._holders[job.id] = host
            if host in self.dead:
                self.lost[job.id] = Lost()
            if job.fire is not None:
                self.fires[job.fire.at].add(job.id)
            tenant = "" if job.tenant is None else job.tenant[0]
            if job.id not in self._claimed and tenant in self.weights:
                firsts[tenant] += 1
            self._claimed.add(job.id)
        if firsts:
            self.waiting.subtract(firsts)
            busy = {tenant for tenant in self.weights if self.waiting[tenant] > 0}
            self._windows.step(busy, firsts)
            if len(busy) == len(self.weights):
                self.shares.update(firsts)

    def reports(self, reports: Sequence[Report], steps: Sequence[Transition | None]) -> None:
        """Write down which ends were recorded."""
        for report, step in zip(reports, steps, strict=True):
            if step is not None:
                job_id = report.job.id
                self._holders.pop(job_id, None)
                if self.lost.get(job_id) == Lost():
                    del self.lost[job_id]  # its end was on the way when its worker died
                self.completed[job_id] += step.after is COMPLETED

    def changes(self, changes: Iterable[JobEvent]) -> None:
        """Write down which jobs were taken back from the dead."""
        for event in changes:
            if event.before is RUNNING:
                self._holders.pop(event.job_id, None)
                if (lost := self.lost.get(event.job_id)) is None:
                    self.fail(f"{event.job_id} was taken from a worker that lives")
                else:
                    lost.rescued_at = self.time()

    def died(self, hosts: Iterable[str]) -> None:
        """Write down who has died, and what they hold."""
        self.dead.update(hosts)
        for job_id, holder in self._holders.items():
            if holder in self.dead:
                self.lost.setdefault(job_id, Lost())
        self._narrow = {job: host for job, host in self._narrow.items() if host not in self.dead}

    # in the code of the jobs

    def begins(self, host: str, job_id: str, kind: str, *, due: float | None = None) -> None:
        """Write down that a job's code begins; the dead begin nothing."""
        if host in self.dead:
            return
        self.starts[job_id] += 1
        if (lost := self.lost.get(job_id)) is not None and lost.started_at is None:
            lost.started_at = self.time()
        if due is not None:
            self.lags[kind].append(self.time() - due)
        if kind == NARROW:
            self._narrow[job_id] = host
            self.most_narrow_seen = max(self.most_narrow_seen, len(self._narrow))
            if len(self._narrow) > self.most_narrow:
                self.fail(f"{len(self._narrow)} jobs run under a limit of {self.most_narrow}")

    def ends(self, host: str, job_id: str) -> None:
        """Write down that a job's code has returned."""
        if host not in self.dead:
            self._narrow.pop(job_id, None)

    # at the end

    def check(self, submitted: Iterable[str]) -> None:
        """See that every job was recorded as completed once, and ran once more only if its worker died."""
        for job_id in submitted:
            if self.completed[job_id] != 1:
                self.fail(f"{job_id} was recorded as completed {self.completed[job_id]} times")
            if self.starts[job_id] > 1 + (job_id in self.lost):
                self.fail(f"{job_id} was begun {self.starts[job_id]} times")
        for at, jobs in self.fires.items():
            if len(jobs) > 1:
                self.fail(f"the instant {at} has made {len(jobs)} jobs")

    @property
    def are_lost_back(self) -> bool:
        """Whether all that the dead held has begun elsewhere."""
        return all(lost.started_at is not None for lost in self.lost.values())
