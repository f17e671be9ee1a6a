"""Planted bugs: fences, leases, and replies that are lost."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import count

import pytest
from tests.simulation.bugs import RUNNING, STORES, Returned, bug, change_submit, change_terms

from betimes.core import lifecycle
from betimes.core.events import GivenBack, WorkerLost
from betimes.core.job import Job, JobEvent, Micros
from betimes.core.transition import Transition
from betimes.ports import (
    Beat,
    ClaimRequest,
    Exchange,
    JobFilter,
    Report,
    Store,
    WorkerInfo,
)
from betimes.runtime.attempt import Attempt
from betimes.runtime.worker import Worker
from betimes.stores.memory import MemoryStore
from betimes.stores.memory.leases import Lease, Leases

# --- fences and leases


@bug(r"under fence \d+ was taken", "memory", "sqlite")
def unfenced_finish(patch: pytest.MonkeyPatch) -> None:
    """A report counts if the job runs, whoever holds it now."""

    def plant(store: type[Store]) -> None:
        original = store.exchange

        async def exchange(
            self: Store, reports: Sequence[Report], claim: ClaimRequest | None, returned: Returned = ()
        ) -> Exchange:
            loose = []
            for report in reports:
                job = await self.get(report.job)
                fence = job.fence if job is not None and job.status is RUNNING else report.fence
                loose.append(Report(report.job, fence, report.event))
            return await original(self, loose, claim, returned)

        patch.setattr(store, "exchange", exchange)

    for store in STORES:
        plant(store)


@bug("was rescued, though .* lease holds|was answered alive=True")
def rescue_by_id(patch: pytest.MonkeyPatch) -> None:
    """A rescue looks first and acts later, by id: no look at the fence, nor at the lease any more."""
    suspects: list[Job] = []

    async def rescue(self: MemoryStore, tasks: Collection[str]) -> Sequence[JobEvent]:
        for job in suspects:
            if job.status is RUNNING:
                self._moves.move(job, WorkerLost(self.now()))
        over = self._leases.over(self._clock.boottime())
        suspects[:] = [job for lease in over for job in lease.held.values()]
        return self._done()

    patch.setattr(MemoryStore, "rescue", rescue)


@bug("is not shut out", "memory", "sqlite")
def rescue_keeps_the_fence(patch: pytest.MonkeyPatch) -> None:
    """A rescued job keeps its fence: whoever held it could still finish it."""
    decide = lifecycle._worker_lost

    def worker_lost(job: Job, event: WorkerLost) -> Transition:
        step = decide(job, event)
        step.raises_fence = False
        return step

    patch.setitem(lifecycle._DECIDE, WorkerLost, worker_lost)


@bug("was answered alive=True")
def dead_lease_is_renewed(patch: pytest.MonkeyPatch) -> None:
    """A worker whose jobs were taken goes on as if nothing had happened."""
    known: dict[str, WorkerInfo] = {}
    begin = Leases.begin

    def note(self: Leases, info: WorkerInfo, boottime: Micros) -> None:
        known[info.id] = info
        begin(self, info, boottime)

    def renew(self: Leases, worker: str, boottime: Micros) -> Lease | None:
        if worker in known and self.get(worker) is None:
            begin(self, known[worker], boottime)
        lease = self.get(worker)
        if lease is not None:
            lease.is_dead = False
            lease.until = boottime + lease.info.lease_us
        return lease

    patch.setattr(Leases, "begin", note)
    patch.setattr(Leases, "renew", renew)


@bug("lost 3 workers, and became ready")
def poison_is_swallowed_for_ever(patch: pytest.MonkeyPatch) -> None:
    """Lost workers are not counted."""
    decide = lifecycle._worker_lost

    def worker_lost(job: Job, event: WorkerLost) -> Transition:
        twin = job.copy()
        twin.crashes = 0
        return decide(twin, event)

    patch.setitem(lifecycle._DECIDE, WorkerLost, worker_lost)


@bug("may start once, lost its worker, and became ready")
def at_most_once_is_rescued(patch: pytest.MonkeyPatch) -> None:
    """A job that may start once is rescued like any other."""
    decide = lifecycle._worker_lost

    def worker_lost(job: Job, event: WorkerLost) -> Transition:
        twin = job.copy()
        twin.spec = replace(job.spec, at_most_once=False)
        return decide(twin, event)

    patch.setitem(lifecycle._DECIDE, WorkerLost, worker_lost)


@bug("may start once, has started")
def at_most_once_is_given_back(patch: pytest.MonkeyPatch) -> None:
    """A worker that stops gives back what has started, though it may start only once."""
    patch.setattr(Attempt, "given_back", lambda self, now, _why: GivenBack(now))


# --- replies that are lost


@bug("does not know of", "memory", "sqlite")
def lost_claim_is_never_reconciled(patch: pytest.MonkeyPatch) -> None:
    """A heartbeat compares nothing: a claim whose reply was lost stays claimed for ever."""

    def plant(store: type[Store]) -> None:
        original = store.beat

        async def beat(self: Store, worker: str, held: Mapping[int, int], running: Mapping[int, int]) -> Beat:
            found = await self.jobs(JobFilter(status=RUNNING, limit=1000))
            all_held = {job.seq: job.fence for job in found if job.worker == worker}
            return await original(self, worker, dict(held) | all_held, running)

        patch.setattr(store, "beat", beat)

    for store in STORES:
        plant(store)


@bug("does not know of it|that is not recorded")
def lost_reports_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Outcomes are sent once, whether they arrive or not."""
    recover = Worker._recover_from

    def recover_from(self: Worker, error: Exception) -> None:
        self.outbox.reports.clear()
        recover(self, error)

    patch.setattr(Worker, "_recover_from", recover_from)


@bug("submitted again", "memory", "sqlite")
def submit_is_not_recognised(patch: pytest.MonkeyPatch) -> None:
    """A named submit that is tried again after its reply was lost is taken for another one."""
    numbers = count()
    change_terms(patch, lambda terms: replace(terms, token=terms.token and f"token-{next(numbers)}"))


@bug("submitted again, .* became|was taken again")
def key_is_checked_before_it_is_taken(patch: pytest.MonkeyPatch) -> None:
    """Between the look at the key and the insert another submit under it can get through."""
    taken_at: dict[str, Micros] = {}

    def change(job: Job) -> None:
        terms = job.terms
        if terms is not None and terms.key is not None:
            if job.submitted_at - taken_at.get(terms.key, 0) < 300_000:
                job.terms = replace(terms, key=None)
            taken_at[terms.key] = job.submitted_at

    change_submit(patch, change)
