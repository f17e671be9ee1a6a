"""The store as one simulated process sees it: at the other end of a `Way`.

What crosses is copied, and says what was so when it was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from random import Random

from msgspec.structs import replace
from tests.simulation.faulty_gates import FaultyGates
from tests.simulation.loops import SteppedLoop
from tests.simulation.shared_store import SharedStore
from tests.simulation.tally import Met, Tally
from tests.simulation.wire import Parcel, Turn

from betimes.core.job import Job, JobEvent, JobStatus, Micros
from betimes.core.queue_view import Pause, QueueView
from betimes.core.schedule import Advance, Fire, Fired, ScheduleRecord
from betimes.core.vitals import Vitals
from betimes.ports import (
    Beat,
    Cancellation,
    ClaimRequest,
    Exchange,
    Hint,
    JobFilter,
    Report,
    ScheduleFilter,
    Store,
    WorkerInfo,
)


class FaultyStore(FaultyGates, Store):
    """The shared store, far away."""

    def __init__(
        self, shared: SharedStore, loop: SteppedLoop, host: str, *, rng: Random, tally: Tally
    ) -> None:
        super().__init__(shared, loop, host, rng=rng)
        self._tally = tally
        self.is_durable = shared.store.is_durable
        self._ears: list[Callable[[Hint], None]] = []
        # When this process read the clock to plan the steps that it fires next.
        self._planned_at = 0

    # --- life

    async def open(self, *, strategy: str | None) -> None:
        """Reach the shared store, which has been opened."""
        if self._ears:
            raise AssertionError(f"{self._host} has left {len(self._ears)} subscriptions behind")
        await self._call("open", lambda: self._shared.enter(self._host))
        self._shared.listeners.append(self._overhear)

    async def close(self) -> None:
        """Let the shared store be."""
        if self._overhear in self._shared.listeners:
            self._shared.listeners.remove(self._overhear)

    @property
    def _store(self) -> Store:
        return self._shared.of(self._host)

    def now(self) -> Micros:
        """The store's time."""
        return self._shared.store.now()

    def subscribe(self, hear: Callable[[Hint], None]) -> Callable[[], None]:
        """Have hints delivered, some time later."""
        self._ears.append(hear)

        def stop() -> None:
            if hear in self._ears:
                self._ears.remove(hear)

        return stop

    def _overhear(self, hint: Hint) -> None:
        for hear in self._ears:
            if self.is_out or self._rng.random() < self.faults.lost_hint:
                self._tally[Met.HINT_LOST] += 1
            else:
                self._loop.call_later(self._delay(), self._deliver, hear, hint)

    def _deliver(self, hear: Callable[[Hint], None], hint: Hint) -> None:
        if hear in self._ears:
            hear(hint)

    def heap_entries(self) -> tuple[int, int]:
        """As the shared store."""
        return self._shared.store.heap_entries()

    # --- jobs

    async def submit(self, jobs: Sequence[Job]) -> tuple[list[Job], list[JobEvent]]:
        """Send copies; fill in the given records when the reply comes."""
        parcel = Parcel(jobs, self._shared.records)
        sent_at = self.now()
        reply, changes = await self._call("submit", lambda: self._shared.submit(self._host, parcel, sent_at))
        return parcel.fill_in(reply), changes

    async def get(self, job: Job) -> Job | None:
        """Look at one version."""
        return await self._call("get", lambda: self._shared.get(self._host, job))

    async def ended(self, jobs: Sequence[Job]) -> list[tuple[Job, Job | None]]:
        """Look for those that have ended."""
        return await self._call("ended", lambda: self._shared.ended(self._host, jobs))

    async def find(self, job_id: str) -> Job | None:
        """Look for the newest version of an id."""
        return await self._call("find", lambda: self._shared.find(self._host, job_id))

    async def ids(self, prefix: str, *, limit: int = 10) -> list[str]:
        """Look for ids that begin so."""
        return await self._call("ids", lambda: self._shared.ids(self._host, prefix, limit))

    async def jobs(self, which: JobFilter) -> list[Job]:
        """List jobs."""
        return await self._call("jobs", lambda: self._shared.jobs(self._host, which))

    async def counts(self) -> dict[str, dict[JobStatus, int]]:
        """Count the live jobs."""
        return await self._call("counts", lambda: self._shared.read(self._store.counts()))

    async def ahead(self, job: Job, *, most: int = 1000) -> int:
        """Count what goes before a job."""
        shared = self._shared
        own = shared.records.get(job.seq, job)
        return await self._call("ahead", lambda: shared.read(self._store.ahead(own, most=most)))

    async def cancel(self, job: Job, *, reason: str, abandon: bool = False) -> Cancellation:
        """Cancel a job."""
        name = f"cancel #{job.seq}" + (" abandon" if abandon else "")
        return await self._call(
            name, lambda: self._shared.cancel(self._host, job, reason=reason, abandon=abandon)
        )

    async def retry(self, job: Job, *, by: str) -> Sequence[JobEvent]:
        """Take a finished job back."""
        return await self._call(f"retry #{job.seq}", lambda: self._shared.retry(self._host, job, by))

    async def prune(self, *, keep_us: int, limit: int = 1000) -> int:
        """Forget old jobs."""
        shared = self._shared
        return await self._call("prune", lambda: shared.read(self._store.prune(keep_us=keep_us, limit=limit)))

    async def prunable(self, *, keep_us: int) -> int:
        """Count what could be forgotten."""
        return await self._call("prunable", lambda: self._shared.prunable(self._host, keep_us))

    async def pruned(self) -> int:
        """Count what was forgotten."""
        return await self._call("pruned", lambda: self._shared.read(self._store.pruned()))

    # --- work

    async def register(self, worker: WorkerInfo) -> None:
        """Begin a lease."""
        await self._call("register", lambda: self._shared.register(self._host, worker))

    async def retire(self, worker: str) -> Sequence[JobEvent]:
        """End a lease."""
        return await self._call("retire", lambda: self._shared.retire(self._host, worker))

    async def beat(self, worker: str, held: Mapping[int, int], running: Mapping[int, int]) -> Beat:
        """Renew a lease."""
        known, left = dict(held), dict(running)
        return await self._call("beat", lambda: self._shared.beat(self._host, worker, known, left))

    async def exchange(
        self, reports: Sequence[Report], claim: ClaimRequest | None, returned: Sequence[tuple[int, int]] = ()
    ) -> Exchange:
        """Make a turn; what is said and asked for is what was so when it was sent."""
        turn = Turn.sent(reports, claim, returned, self.now())
        return await self._call(
            f"exchange {len(turn.reports)}",
            lambda: self._shared.exchange(self._host, turn),
            lost=lambda exchange: self._shared.seen_by.reply_lost(turn, exchange),
        )

    async def rescue(self, tasks: Collection[str]) -> Sequence[JobEvent]:
        """Take jobs back from lost workers."""
        known = sorted(tasks)
        return await self._call("rescue", lambda: self._shared.rescue(self._host, known))

    async def unpark(self, name: str) -> Sequence[JobEvent]:
        """Make parked jobs claimable."""
        return await self._call(f"unpark {name}", lambda: self._shared.unpark(self._host, name))

    async def parked(self) -> dict[str, int]:
        """Count the parked jobs."""
        return await self._call("parked", lambda: self._shared.read(self._store.parked()))

    async def workers(self) -> list[tuple[WorkerInfo, Micros]]:
        """List the workers."""
        return await self._call("workers", lambda: self._shared.read(self._store.workers()))

    # --- queues

    async def pause_queue(self, name: str, *, by: str | None = None) -> None:
        """Pause a queue; who asked is not simulated."""
        del by
        await self._call(f"pause {name}", lambda: self._shared.pause_queue(self._host, name))

    async def resume_queue(self, name: str) -> None:
        """Resume a queue."""
        await self._call(f"resume {name}", lambda: self._shared.resume_queue(self._host, name))

    async def paused_queues(self) -> dict[str, Pause]:
        """Look which queues are paused."""
        return await self._call("paused", lambda: self._shared.read(self._store.paused_queues()))

    async def queue(self, name: str) -> QueueView:
        """Look at a queue."""
        return await self._call(f"queue {name}", lambda: self._shared.read(self._store.queue(name)))

    async def oldest_due(self) -> dict[str, Micros]:
        """Look how long the oldest jobs have waited."""
        return await self._call("oldest due", lambda: self._shared.read(self._store.oldest_due()))

    async def vitals(self, *, full: bool = False) -> Vitals:
        """Look at the store itself."""
        return await self._call("vitals", lambda: self._shared.read(self._store.vitals(full=full)))

    async def make_known(self, worker: str, tasks: tuple[str, ...] | None) -> None:
        """Say which tasks a worker knows."""
        await self._call("known", lambda: self._shared.read(self._store.make_known(worker, tasks)))

    # --- schedules

    async def save_schedule(
        self, record: ScheduleRecord, *, expected_version: int | None, fires: Sequence[Fire] = ()
    ) -> bool:
        """Keep a schedule, by compare-and-set."""
        sent_at, shared = self.now(), self._shared.schedules
        return await self._call(
            f"save {record.id} over v{expected_version}",
            lambda: shared.save(self._host, record, expected_version, fires, sent_at),
            lost=lambda saved: self._count(Met.CHANGE_REPLY_LOST, saved),
        )

    async def remove_schedule(self, schedule_id: str) -> bool:
        """Remove a schedule."""
        shared = self._shared.schedules
        return await self._call(f"remove {schedule_id}", lambda: shared.remove(self._host, schedule_id))

    async def schedule(self, schedule_id: str) -> ScheduleRecord | None:
        """Look at a schedule."""
        shared = self._shared.schedules
        return await self._call("schedule", lambda: shared.get(self._host, schedule_id))

    async def schedules(self, which: ScheduleFilter) -> list[ScheduleRecord]:
        """List schedules."""
        shared = self._shared.schedules
        if not shared.are_simulated:
            return []
        return await self._call("schedules", lambda: shared.listed(self._host, which))

    async def next_fire(self) -> Micros | None:
        """Look for the next fire."""
        shared = self._shared.schedules
        if not shared.are_simulated:
            return None
        self._planned_at = self.now()
        return await self._call("next fire", lambda: shared.next_fire(self._host))

    async def fire(self, advances: Sequence[Advance]) -> tuple[list[Fired | None], list[JobEvent]]:
        """Fire schedules, with copies of the jobs that this makes."""
        sent = [replace(advance, due=tuple(job.copy() for job in advance.due)) for advance in advances]
        planned_at, shared = self._planned_at, self._shared.schedules
        return await self._call(
            f"fire {', '.join(advance.record.id for advance in sent)}",
            lambda: shared.fire(self._host, sent, planned_at),
            lost=lambda answer: self._count(Met.FIRE_REPLY_LOST, any(answer[0])),
        )

    def _count(self, met: Met, has_met: bool) -> None:
        self._tally[met] += has_met

    async def fires(self, schedule_id: str, *, before: Micros | None = None, limit: int = 100) -> list[Fire]:
        """List a schedule's past."""
        shared = self._shared.schedules
        return await self._call("fires", lambda: shared.fires(self._host, schedule_id, before, limit))
