"""The store as one simulated process sees it: far away, at times slow, and not always there.

A call is a request, which travels to the shared store and is carried out there in one step, and a reply,
which travels back. Each can be slow or get lost. A lost request is never carried out; when a reply is lost,
the call has been carried out all the same; the caller is told `StoreUnavailable` in both cases, and cannot
tell them apart. A request that was sent arrives also if its process dies or is paused meanwhile. Once the
caller has been told, the call is over: it is not carried out later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from random import Random
from typing import TypeVar

from tests.simulation.loops import SteppedLoop
from tests.simulation.settings import CALM, Faults
from tests.simulation.shared_store import SharedStore
from tests.simulation.tally import Met, Tally
from tests.simulation.wire import Parcel

from betimes.core.job import Job, JobEvent, JobStatus, Micros
from betimes.core.schedule import Advance, Fire, Fired, ScheduleRecord
from betimes.errors import BetimesError, StoreUnavailable
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

T = TypeVar("T")


class FaultyStore(Store):
    """One process's way to the shared store.

    Args:
        shared: where calls are carried out.
        loop: the process's own.
        host: the process's name.
        rng: draws delays and losses.

    Attributes:
        faults: what goes wrong at present.
        is_out: nothing gets through at all.
        is_dead: the process is gone.
        calls: how many calls are on their way.
    """

    def __init__(
        self, shared: SharedStore, loop: SteppedLoop, host: str, *, rng: Random, tally: Tally
    ) -> None:
        self._shared = shared
        self._loop = loop
        self._host = host
        self._rng = rng
        self._tally = tally
        self.is_durable = shared.store.is_durable
        self.faults: Faults = CALM
        self.is_out = self.is_dead = False
        self.calls = 0
        self._ears: list[Callable[[Hint], None]] = []

    # --- the way there and back

    async def _call(
        self, name: str, carry_out: Callable[[], T], *, lost: Callable[[T], None] | None = None
    ) -> T:
        answer: asyncio.Future[T] = self._loop.create_future()
        if self.is_dead:
            return await answer  # for ever: a dead process sends nothing
        faults, rng = self.faults, self._rng
        self.calls += 1
        try:
            if self.is_out or rng.random() < faults.lost_request:
                self._loop.call_later(self._delay(), _refuse, answer, f"{name}: the request was lost")
            else:
                is_lost = rng.random() < faults.lost_reply
                arrive = partial(
                    self._arrive, name, carry_out, answer, lost if is_lost else None, is_lost=is_lost
                )
                delay = self._delay()
                if name.startswith("exchange") and rng.random() < faults.stuck:
                    delay += faults.stuck_s * rng.uniform(1.0, 2.0)
                self._shared.loop.call_later(delay, arrive)
            return await answer
        finally:
            self.calls -= 1

    def _delay(self) -> float:
        rng, faults = self._rng, self.faults
        if rng.random() < faults.slow:
            return rng.uniform(0.0, faults.slow_s)
        mean = faults.latency_s
        return min(rng.expovariate(1 / mean), 4 * mean) if mean else 0.0

    def _arrive(
        self,
        name: str,
        carry_out: Callable[[], T],
        answer: asyncio.Future[T],
        lost: Callable[[T], None] | None,
        *,
        is_lost: bool,
    ) -> None:
        """Carry the call out, on the shared store's loop, and send the reply on its way."""
        delay = self._delay()
        try:
            value = carry_out()
        except BetimesError as error:
            self._shared.after_call(self._host, name, type(error).__name__)
            self._loop.call_later(delay, _reject, answer, error)
            return
        except Exception:  # noqa: BLE001 - whatever it is, the store itself is broken
            self._shared.broke(self._host, name)
            return
        self._shared.after_call(self._host, name, _in_short(value))
        if is_lost or self.is_out:
            if lost is not None:
                lost(value)
            self._loop.call_later(delay, _refuse, answer, f"{name}: the reply was lost")
        else:
            self._loop.call_later(delay, _resolve, answer, value)

    # --- life

    async def open(self, *, strategy: str) -> None:
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

    async def beat(self, worker: str, held: Mapping[int, int]) -> Beat:
        """Renew a lease."""
        known = dict(held)
        return await self._call("beat", lambda: self._shared.beat(self._host, worker, known))

    async def exchange(self, reports: Sequence[Report], claim: ClaimRequest | None) -> Exchange:
        """Make a turn; what is asked for is what was asked for when it was sent."""
        sent, sent_at, asked = list(reports), self.now(), None
        if claim is not None:
            asked = ClaimRequest(
                claim.worker, claim.limit, dict(claim.lanes), claim.queues, tuple(claim.hold)
            )
        return await self._call(
            f"exchange {len(sent)}",
            lambda: self._shared.exchange(self._host, sent, asked, sent_at),
            lost=self._shared.seen_by.reply_lost,
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

    async def workers(self) -> list[tuple[WorkerInfo, bool]]:
        """List the workers."""
        return await self._call("workers", lambda: self._shared.read(self._store.workers()))

    # --- queues

    async def pause_queue(self, name: str) -> None:
        """Pause a queue."""
        await self._call(f"pause {name}", lambda: self._shared.pause_queue(self._host, name))

    async def resume_queue(self, name: str) -> None:
        """Resume a queue."""
        await self._call(f"resume {name}", lambda: self._shared.resume_queue(self._host, name))

    async def paused_queues(self) -> frozenset[str]:
        """Look which queues are paused."""
        return await self._call("paused", lambda: self._shared.read(self._store.paused_queues()))

    # --- schedules: none is simulated, so there is nothing to ask the shared store for

    async def save_schedule(
        self, record: ScheduleRecord, *, expected_version: int | None, fires: Sequence[Fire] = ()
    ) -> bool:
        """Keep a schedule; nothing here makes any yet."""
        raise AssertionError("no schedule is simulated")

    async def remove_schedule(self, schedule_id: str) -> bool:
        """Remove a schedule."""
        return False

    async def schedule(self, schedule_id: str) -> ScheduleRecord | None:
        """Look at a schedule."""
        return None

    async def schedules(self, which: ScheduleFilter) -> list[ScheduleRecord]:
        """List schedules."""
        return []

    async def next_fire(self) -> Micros | None:
        """Look for the next fire."""
        return None

    async def fire(self, advances: Sequence[Advance]) -> tuple[list[Fired | None], list[JobEvent]]:
        """Fire schedules; nothing here makes any yet."""
        raise AssertionError("no schedule is simulated")

    async def fires(self, schedule_id: str, *, before: Micros | None = None, limit: int = 100) -> list[Fire]:
        """List a schedule's past."""
        return []


def _resolve(answer: asyncio.Future[T], value: T) -> None:
    if not answer.done():
        answer.set_result(value)


def _reject(answer: asyncio.Future[T], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)


def _refuse(answer: asyncio.Future[T], text: str) -> None:
    _reject(answer, StoreUnavailable(text))


def _in_short(value: object) -> str:
    """What the trace shows of an answer; nothing that is the real machine's or process's own."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_in_short, value))}]"
    text = ""
    if isinstance(value, Job):
        text = f"#{value.seq} {value.status.value}/{value.fence}"
    elif isinstance(value, JobEvent):
        text = f"#{value.seq} {value.before and value.before.value}→{value.after.value}"
    elif isinstance(value, WorkerInfo):
        text = value.id
    elif isinstance(value, Cancellation):
        text = value.answer.name
    elif isinstance(value, Beat):
        text = f"alive={value.is_alive} lost={value.lost} cancels={value.cancels} {_in_short(value.changes)}"
    elif isinstance(value, Exchange):
        ended = [step and step.after.value for step in value.steps]
        text = f"ended {ended} {_in_short(value.changes)} claimed {_in_short(value.claimed)}"
    elif isinstance(value, frozenset):
        text = str(sorted(value))
    elif value is not None:
        text = str(value)
    return text
