"""Where the contract is played: a store, a clock that stands still, and a witness of every transition.

Rules of the play, and why:

* *Everything that a store says it changed is written down* and compared with what it holds: each event must
  begin where the one before it ended, and after the scene every job must stand where the last event left it.
  So "all changes, in order" is checked in every scene, whatever the scene is about.
* *Whatever a store hands out is only read, and fences are noted at the claim*: a store may hand out copies or
  its own records, which go on changing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from betimes.core.events import Event
from betimes.core.job import (
    EMPTY_PAYLOAD,
    ErrorInfo,
    Job,
    JobEvent,
    JobSpec,
    JobStatus,
    Micros,
    Need,
    Tenant,
    Terms,
)
from betimes.core.queue_shares import QueueShares
from betimes.core.transition import Transition, violations
from betimes.errors import BetimesError
from betimes.ports import (
    Beat,
    Cancellation,
    ClaimRequest,
    Exchange,
    JobFilter,
    Report,
    ScheduleFilter,
    Store,
    WorkerInfo,
)
from betimes.testing.clock import VirtualClock

SECOND: Micros = 1_000_000
DAY: Micros = 86_400 * SECOND
BOOM = ErrorInfo(type="ValueError", message="boom", traceback="Traceback …\nValueError: boom\n")
LANES: Mapping[str, int] = {"loop": 1000, "thread": 1000}
LEASE_S = 30.0
MOST = 1000

E = TypeVar("E", bound=BetimesError)
Dependency = Job | str | tuple[Job | str, Need]


@dataclass(frozen=True, slots=True)
class Taken:
    """A claimed job, with what was true of it at the claim."""

    job: Job
    fence: int
    attempt: int


@dataclass(slots=True)
class Refused:
    """The error that a `refused` block ended with."""

    error: BetimesError | None = None


@contextmanager
def refused(kind: type[BetimesError]) -> Iterator[Refused]:
    """Expect the block to raise this error."""
    caught = Refused()
    try:
        yield caught
    except kind as error:
        caught.error = error
        return
    raise AssertionError(f"{kind.__name__} was not raised")


def values(job: Job) -> dict[str, object]:
    """Everything a record holds, but for what its submit had asked for."""
    return {name: getattr(job, name) for name in Job.__slots__ if name not in {"__weakref__", "terms"}}


def again(jobs: Sequence[Job]) -> list[Job]:
    """The same submission once more, as it was before the store took it: for replies that were lost."""
    twins = {id(job): job.copy() for job in jobs}
    for twin in twins.values():
        if twin.terms is not None:
            needs = tuple((twins.get(id(what), what), need) for what, need in twin.terms.depends_on)
            twin.terms = replace(twin.terms, depends_on=needs)
    return list(twins.values())


class Stage:
    """One scene's store, clock and witness.

    Attributes:
        store: under test.
        clock: its time, and everybody's.
        statuses: where each version stands, going by what the store said.
    """

    def __init__(self, store: Store, clock: VirtualClock) -> None:
        """Set the stage with an open store."""
        self.store = store
        self.clock = clock
        self.statuses: dict[int, JobStatus] = {}
        self._fences: dict[int, int] = {}
        self._made = 0

    @property
    def now(self) -> Micros:
        """The store's time."""
        return self.store.now()

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.advance(seconds)

    # submitting

    def job(
        self,
        job_id: str | None = None,
        *,
        payload: bytes = EMPTY_PAYLOAD,
        delay_s: float = 0.0,
        sort_key: int = 0,
        expires_s: float | None = None,
        terms: Terms | None = None,
        depends_on: Iterable[Dependency] = (),
        replace_older: bool = False,
        gates: Sequence[str] = (),
        tenant: Tenant | None = None,
        **spec: Any,
    ) -> Job:
        """A new job, not submitted; with an id it is named, otherwise its id is generated."""
        self._made += 1
        needs = tuple(entry if isinstance(entry, tuple) else (entry, Need.COMPLETED) for entry in depends_on)
        asked = terms or Terms()
        if job_id is not None or needs:
            named = asked.named or job_id is not None
            asked = replace(asked, named=named, replace=asked.replace or replace_older, depends_on=needs)
        now = self.now
        job = Job(
            job_id or f"generated-{self._made}",
            JobSpec(**{"task": "t", **spec}),
            payload,
            submitted_at=now,
            run_at=now + round(delay_s * SECOND),
            sort_key=sort_key,
            expires_at=None if expires_s is None else now + round(expires_s * SECOND),
            terms=None if asked == Terms() else asked,
        )
        job.gates, job.tenant = tuple(gates), tenant
        return job

    async def submit(self, *jobs: Job) -> list[Job]:
        """Submit a batch; returns what was kept, by position."""
        kept, changes = await self.store.submit(jobs)
        assert len(kept) == len(jobs)
        self.see(changes)
        return kept

    async def add(self, job_id: str | None = None, **options: Any) -> Job:
        """Submit one job."""
        (kept,) = await self.submit(self.job(job_id, **options))
        return kept

    # working

    async def worker(self, name: str = "w1", *, lease_s: float = LEASE_S) -> str:
        """Register a worker."""
        await self.store.register(WorkerInfo(id=name, lease_us=round(lease_s * SECOND), host="here", pid=1))
        return name

    async def turn(
        self,
        reports: Sequence[Report] = (),
        claim: ClaimRequest | None = None,
        returned: Sequence[tuple[int, int]] = (),
    ) -> Exchange:
        """Make one turn with the store, and look at its answer."""
        exchange = await self.store.exchange(list(reports), claim, list(returned))
        assert len(exchange.steps) == len(reports), "one step for each report, by position"
        for report, step in zip(reports, exchange.steps, strict=True):
            if step is not None:
                self.statuses[report.job.seq] = step.after
        self.see(exchange.changes)
        self._see_claims(exchange.claimed, claim)
        return exchange

    @staticmethod
    def request(
        limit: int = MOST,
        *,
        worker: str = "w1",
        lanes: Mapping[str, int] = LANES,
        queues: tuple[str, ...] | None = None,
        hold: Collection[str] = (),
        shares: QueueShares | None = None,
    ) -> ClaimRequest:
        """What a worker asks for."""
        return ClaimRequest(worker, limit, lanes, queues, hold, shares)

    async def claim(self, limit: int = MOST, **options: Any) -> list[Taken]:
        """Claim for a worker; the options are those of `request`."""
        exchange = await self.turn(claim=self.request(limit, **options))
        return [Taken(job, job.fence, job.attempt) for job in exchange.claimed]

    async def start(self, job_id: str | None = None, *, worker: str = "w1", **options: Any) -> Taken:
        """Submit a job and claim it, before any other; the worker is registered if it is not."""
        if worker not in {info.id for info, _ in await self.store.workers()}:
            await self.worker(worker)
        kept = await self.add(job_id, sort_key=-(2**40) - self._made, **options)
        (taken,) = await self.claim(1, worker=worker)
        assert taken.job.seq == kept.seq
        return taken

    async def report(self, taken: Taken, event: Event) -> Transition | None:
        """Report one event of a claimed job, under the fence of the claim."""
        return (await self.turn([Report(taken.job, taken.fence, event)])).steps[0]

    async def beat(
        self, held: Iterable[Taken] = (), running: Iterable[Taken] = (), *, worker: str = "w1"
    ) -> Beat:
        """Beat for a worker that knows of these attempts."""
        fences = [{one.job.seq: one.fence for one in each} for each in (held, running)]
        beat = await self.store.beat(worker, *fences)
        self.see(beat.changes)
        return beat

    async def cancel(self, job: Job, *, reason: str = "requested", abandon: bool = False) -> Cancellation:
        """Cancel a job."""
        answer = await self.store.cancel(job, reason=reason, abandon=abandon)
        self.see(answer.changes)
        return answer

    # looking

    def see(self, changes: Iterable[JobEvent]) -> None:
        """Write events down; each must begin where the job's last one ended."""
        for event in changes:
            assert self.statuses.get(event.seq) is event.before, f"{event} was not announced in order"
            self.statuses[event.seq] = event.after

    def _see_claims(self, claimed: Sequence[Job], claim: ClaimRequest | None) -> None:
        limit = 0 if claim is None else claim.limit
        assert len(claimed) <= limit, "a claim took more than it asked for"
        ranks = [(job.sort_key, job.seq) for job in claimed]
        assert ranks == sorted(ranks), "claimed jobs are not in order"
        for job in claimed:
            assert claim is not None
            assert self.statuses[job.seq] is JobStatus.READY, f"{job} was claimed"
            assert (job.status, job.worker) == (JobStatus.RUNNING, claim.worker)
            assert job.fence > self._fences.get(job.seq, 0), "fences only grow"
            self.statuses[job.seq], self._fences[job.seq] = JobStatus.RUNNING, job.fence

    async def state(self, job: Job) -> Job:
        """A job's present state, as a copy that stays."""
        found = await self.store.get(job)
        assert found is not None, f"{job} is not there"
        return found.copy()

    async def status(self, job: Job) -> JobStatus:
        """A job's present status."""
        return (await self.state(job)).status

    async def statuses_of(self, *jobs: Job) -> list[JobStatus]:
        """The present statuses of several jobs."""
        return [await self.status(job) for job in jobs]

    async def everything(self) -> list[Job]:
        """Copies of all jobs that the store holds, newest first."""
        found: list[Job] = []
        before: int | None = None
        while page := await self.store.jobs(JobFilter(limit=MOST, before=before)):
            found += [job.copy() for job in page]
            before = page[-1].seq
        return found

    async def snapshot(self) -> object:
        """All that can be seen of the store: two that are equal mean that nothing has changed in between."""
        jobs = {job.seq: values(job) for job in await self.everything()}
        schedules = await self.store.schedules(ScheduleFilter())
        return (
            jobs,
            await self.counts(),
            await self.store.parked(),
            await self.store.pruned(),
            await self.store.paused_queues(),
            await self.store.gates_under(None),
            schedules,
            {record.id: await self.store.fires(record.id) for record in schedules},
        )

    async def counts(self) -> dict[tuple[str, JobStatus], int]:
        """The store's counts, without zeros."""
        counts = await self.store.counts()
        return {(queue, status): n for queue, row in counts.items() for status, n in row.items() if n}

    async def check(self) -> None:
        """Compare what the store holds with what it has said; promise 10 in every scene."""
        jobs = {job.seq: job for job in await self.everything()}
        pruned = await self.store.pruned()
        gone = [status for seq, status in self.statuses.items() if seq not in jobs]
        assert all(status.is_terminal for status in gone), "a live job is not there any more"
        assert len(self.statuses) == len(jobs) + pruned, "submitted = live + finished + pruned"
        counted: dict[tuple[str, JobStatus], int] = {}
        for seq, job in jobs.items():
            assert violations(job) == [], job
            assert job.status is self.statuses[seq], f"{job}, but announced as {self.statuses[seq]}"
            if not job.status.is_terminal:
                where = (job.spec.queue, job.status)
                counted[where] = counted.get(where, 0) + 1
        assert await self.counts() == counted


Scene = Callable[[Any, Stage], Coroutine[Any, Any, None]]


def played(scene: Scene) -> Callable[[Any], None]:
    """Make a test of a scene: it is played on the store of the class it stands in."""

    def test(contract: Any) -> None:
        contract.play(lambda stage: scene(contract, stage))

    # The scene's own signature must not be seen: test runners would look for a fixture `stage`.
    test.__name__, test.__qualname__, test.__doc__ = scene.__name__, scene.__qualname__, scene.__doc__
    test.__module__ = scene.__module__
    return test
