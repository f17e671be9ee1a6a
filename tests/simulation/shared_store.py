"""The one real store that all simulated processes share, and the place where each call is carried out.

A call is one step: nothing else runs in between. Right after it, the witness looks at what it did.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from tests.simulation.carrying_out import carried_out
from tests.simulation.loops import SteppedLoop
from tests.simulation.shared_gates import SharedGates
from tests.simulation.shared_schedules import SharedSchedules
from tests.simulation.trace import Trace
from tests.simulation.wire import Parcel, Turn, copied, copied_cancellation, copied_exchange, readdressed
from tests.simulation.witness import Witness

from betimes.core.job import Job, JobEvent, JobStatus
from betimes.ports import (
    Beat,
    Cancellation,
    Exchange,
    Hint,
    JobFilter,
    Store,
    WorkerInfo,
)
from betimes.stores.memory import MemoryStore

T = TypeVar("T")

LOOK_EVERY_CALLS = 25


class SharedStore:
    """Carries out calls on the real store, and has each one witnessed.

    Args:
        new_store: makes an object for the store.
        each_its_own: whether each process has an object of its own for the one store, as on one file.
        strategy: the name of the one it is opened with.

    Attributes:
        store: the one that is looked at.
        loop: the loop it is at home on.
        records: the memory store's own records, by number; empty for a store that hands out copies.
        listeners: who hears the store's hints.
    """

    def __init__(
        self,
        new_store: Callable[[], Store],
        loop: SteppedLoop,
        trace: Trace,
        *,
        each_its_own: bool,
        strategy: str,
    ) -> None:
        self.store = new_store()
        self.loop = loop
        self._new_store = new_store
        self._each_its_own = each_its_own
        self._strategy = strategy
        self._stores: dict[str, Store] = {}
        self.records: dict[int, Job] = {}
        self.listeners: list[Callable[[Hint], None]] = []
        self._trace = trace
        self._calls = 0
        self._stands_for: dict[int, Job] = {}
        self.witness: Witness | None = None
        self.schedules = SharedSchedules(self)
        self.gates = SharedGates(self)

    async def open(self) -> None:
        """Open the real store."""
        await self.store.open(strategy=self._strategy)
        self.store.subscribe(self._hear)

    async def close(self) -> None:
        """Close it, and what processes have left open."""
        for store in (*self._stores.values(), self.store):
            await store.close()

    def enter(self, host: str) -> None:
        """Let a process in."""
        self.seen_by.entered(host)
        if self._each_its_own and host not in self._stores:
            self._stores[host] = store = self._new_store()
            carried_out(store.open(strategy=self._strategy))
            store.subscribe(self._hear)

    def of(self, host: str) -> Store:
        """Return the object through which a process reaches the store."""
        return self._stores.get(host, self.store)

    def _hear(self, hint: Hint) -> None:
        for hear in tuple(self.listeners):
            hear(hint)

    @property
    def seen_by(self) -> Witness:
        """The witness."""
        assert self.witness is not None
        return self.witness

    def peek(self, seq: int) -> Job | None:
        """Look at a version's present record."""
        job = self.records.get(seq) or self._stands_for.get(seq)
        return None if job is None else carried_out(self.store.get(job))

    def _own(self, job: Job) -> Job:
        return self.records.get(job.seq, job)

    def after_call(self, host: str, call: str, said: object = "") -> None:
        """Write the call down, and look at everything now and then."""
        self._trace.add(f"{host}: {call} {said}")
        self._calls += 1
        if self._calls % LOOK_EVERY_CALLS == 0:
            self.look()

    def look(self) -> None:
        """Compare all that the store holds with what has been witnessed."""
        jobs: list[Job] = []
        while page := carried_out(
            self.store.jobs(JobFilter(limit=1000, before=jobs[-1].seq if jobs else None))
        ):
            jobs += page
        counts = carried_out(self.store.counts())
        self.schedules.look()
        self.gates.look()
        self.seen_by.look(jobs, counts, carried_out(self.store.pruned()))

    # --- the calls

    def submit(
        self, host: str, parcel: Parcel, sent_at: int
    ) -> tuple[list[tuple[bool, Job]], list[JobEvent]]:
        """Take new jobs."""
        kept, changes = carried_out(self.of(host).submit(parcel.twins))
        self.keep_in_view(kept)
        self.seen_by.submitted(parcel.asked, kept, changes, sent_at)
        return parcel.reply(kept), list(changes)

    def keep_in_view(self, jobs: Sequence[Job]) -> None:
        """Remember new jobs, so that they can be looked at."""
        for job in jobs:
            if isinstance(self.store, MemoryStore):
                self.records[job.seq] = job
            self._stands_for.setdefault(job.seq, job)

    def cancel(self, host: str, job: Job, *, reason: str, abandon: bool) -> Cancellation:
        """Cancel a job."""
        answer = carried_out(self.of(host).cancel(self._own(job), reason=reason, abandon=abandon))
        self.seen_by.cancelled(job.seq, answer, abandon=abandon)
        return copied_cancellation(answer)

    def retry(self, host: str, job: Job, by: str) -> list[JobEvent]:
        """Take a finished job back."""
        changes = list(carried_out(self.of(host).retry(self._own(job), by=by)))
        self.seen_by.retried(job.seq, changes)
        return changes

    def register(self, host: str, worker: WorkerInfo) -> None:
        """Begin a lease."""
        carried_out(self.of(host).register(worker))
        self.seen_by.registered(worker, host)

    def retire(self, host: str, worker: str) -> list[JobEvent]:
        """End a lease."""
        changes = list(carried_out(self.of(host).retire(worker)))
        self.seen_by.retired(worker, changes)
        return changes

    def beat(self, host: str, worker: str, held: Mapping[int, int], running: Mapping[int, int]) -> Beat:
        """Renew a lease."""
        beat = carried_out(self.of(host).beat(worker, held, running))
        self.seen_by.beaten(worker, held, running, beat)
        return beat

    def exchange(self, host: str, turn: Turn) -> Exchange:
        """Make a worker's turn."""
        reports = readdressed(turn.reports, self.records)
        exchange = carried_out(self.of(host).exchange(reports, turn.claim, turn.returned))
        self.seen_by.exchanged(turn, exchange)
        return copied_exchange(exchange)

    def rescue(self, host: str, tasks: Collection[str]) -> list[JobEvent]:
        """Take jobs back from lost workers."""
        changes = list(carried_out(self.of(host).rescue(tasks)))
        self.seen_by.rescued(tasks, changes)
        return changes

    def unpark(self, host: str, name: str) -> list[JobEvent]:
        """Make parked jobs claimable."""
        changes = list(carried_out(self.of(host).unpark(name)))
        self.seen_by.unparked(changes)
        return changes

    def pause_queue(self, host: str, name: str) -> None:
        """Pause a queue."""
        carried_out(self.of(host).pause_queue(name))
        self.seen_by.paused.add(name)

    def resume_queue(self, host: str, name: str) -> None:
        """Resume a queue."""
        carried_out(self.of(host).resume_queue(name))
        self.seen_by.paused.discard(name)

    def get(self, host: str, job: Job) -> Job | None:
        """Look at one version."""
        return copied(carried_out(self.of(host).get(self._own(job))))

    def ended(self, host: str, jobs: Sequence[Job]) -> list[tuple[Job, Job | None]]:
        """Look for those that have ended."""
        own = {job.seq: job for job in jobs}
        found = carried_out(self.of(host).ended([self._own(job) for job in jobs]))
        return [(own[job.seq], copied(state)) for job, state in found]

    def read(self, call: Coroutine[Any, Any, T]) -> T:
        """Carry out a look whose answer holds no records."""
        return carried_out(call)

    def find(self, host: str, job_id: str) -> Job | None:
        """Look for the newest version of an id."""
        return copied(carried_out(self.of(host).find(job_id)))

    def ids(self, host: str, prefix: str, limit: int) -> list[str]:
        """Look for ids that begin so."""
        return carried_out(self.of(host).ids(prefix, limit=limit))

    def jobs(self, host: str, which: JobFilter) -> list[Job]:
        """List jobs."""
        return [job.copy() for job in carried_out(self.of(host).jobs(which))]

    def prunable(self, host: str, keep_us: int) -> int:
        """Count what could be forgotten."""
        return carried_out(self.of(host).prunable(keep_us=keep_us))

    def statuses(self) -> dict[int, JobStatus]:
        """Where each version stands."""
        return {life.seq: life.status for life in self.seen_by.model.lives}

    def broke(self, host: str, call: str) -> None:
        """Note that the store itself has failed in a way it must not."""
        self.seen_by.model.fail(f"{call} of {host} broke the store: {traceback.format_exc(limit=-4)}")
