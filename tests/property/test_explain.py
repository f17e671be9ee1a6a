"""`explain` and the claim never contradict each other, whatever has happened in the store."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from betimes.core.durations import from_us
from betimes.core.events import DeadlinePassed, Errored, Event, GivenBack, Snoozed, Succeeded
from betimes.core.explain import Explanation, explain
from betimes.core.job import TERMINAL, WAITING, ErrorInfo, Job, JobSpec, JobStatus, Need, Terms
from betimes.core.limits import GateKind, GateTerms
from betimes.core.reason import ReasonCode
from betimes.core.situation import Here, Occupant
from betimes.errors import BetimesError
from betimes.ports import ClaimRequest, Report, Store, WorkerInfo
from betimes.runtime.explaining import gather
from betimes.stores.memory import MemoryStore
from betimes.stores.sqlite import SqliteStore
from betimes.testing import VirtualClock

SECOND = 1_000_000
YEAR = 365 * 86_400 * SECOND
BOOM = ErrorInfo(type="ValueError", message="boom")
LANES = ("loop", "thread", "process")
SERVED_LANES = ("loop", "thread")
PLENTY = 1000

IN_LINE = {
    ReasonCode.NOTHING_IN_THE_WAY,
    ReasonCode.BEHIND_OTHERS,
    ReasonCode.NO_FREE_SLOT,
    ReasonCode.WILL_EXPIRE,
}
"""With these alone, a claim that asks for enough takes the job."""

LATER = {ReasonCode.NOT_DUE, ReasonCode.BACKING_OFF, ReasonCode.SNOOZED}
GATED = {ReasonCode.LIMIT_REACHED, ReasonCode.NO_TOKEN, ReasonCode.CIRCUIT_OPEN}
ASIDE = {ReasonCode.TASK_UNKNOWN, ReasonCode.LANE_NOT_SERVED, ReasonCode.PARKED}


SMALL = GateTerms(kind=GateKind.LIMIT, name="small", max_running=1)
LARGE = GateTerms(kind=GateKind.LIMIT, name="large", max_running=3)
RATE = GateTerms(kind=GateKind.RATE, name="rate", every_us=2 * SECOND, burst=2)
BREAKER = GateTerms(kind=GateKind.BREAKER, name="t", every_us=3 * SECOND)
TERMS = {terms.rule: terms for terms in (SMALL, LARGE, RATE, BREAKER)}


class Late(Report):
    """An outcome that is recorded while the code goes on: it keeps its permits."""

    __slots__ = ()
    has_returned = False


class NotBegun(Report):
    """A claim of which nothing has begun: it gives its tokens back."""

    __slots__ = ()
    has_begun = False


@dataclass(frozen=True, kw_only=True)
class Another:
    """A second worker, elsewhere."""

    queues: tuple[str, ...] | None = None
    tasks: tuple[str, ...] | None = None
    lanes: tuple[str, ...] | None = None
    is_alive: bool = True

    @property
    def info(self) -> WorkerInfo:
        lease_us = YEAR if self.is_alive else 0
        return WorkerInfo(id="v", lease_us=lease_us, queues=self.queues, tasks=self.tasks, lanes=self.lanes)

    def serves(self, queue: str) -> bool:
        return self.is_alive and (self.queues is None or queue in self.queues)

    def can_run(self, spec: JobSpec) -> bool:
        """Whether it takes such a job, and does not give it back."""
        knows = self.tasks is None or spec.task in self.tasks
        return self.serves(spec.queue) and knows and (self.lanes is None or spec.lane in self.lanes)


NOBODY = Another(is_alive=False)


@dataclass
class World:
    """A store in which anything may have happened."""

    store: Store
    clock: VirtualClock
    jobs: list[Job] = field(default_factory=list)
    running: list[tuple[Job, int]] = field(default_factory=list)
    late: list[tuple[Job, int]] = field(default_factory=list)
    most: dict[str, int] = field(default_factory=lambda: {SMALL.rule: 1, LARGE.rule: 3})

    async def begin(self) -> None:
        await self.store.declare_gates(list(TERMS.values()))
        await self.store.register(WorkerInfo(id="w", lease_us=YEAR))

    async def look(self) -> dict[int, Job]:
        """How all jobs stand now, by number."""
        self.jobs = [found for job in self.jobs if (found := await self.store.get(job)) is not None]
        return {job.seq: job for job in self.jobs}

    async def submit(self, job: Job) -> None:
        try:
            await self.store.submit([job])
        except BetimesError:
            return  # a live job has the id: nothing has changed
        self.jobs.append(job)

    async def claim(
        self,
        limit: int,
        lanes: Mapping[str, int] = dict.fromkeys(LANES, PLENTY),
        queues: tuple[str, ...] | None = None,
        hold: Collection[str] = (),
        worker: str = "w",
    ) -> list[Job]:
        exchange = await self.store.exchange([], ClaimRequest(worker, limit, lanes, queues, hold))
        self.running += [(job, job.fence) for job in exchange.claimed]
        return exchange.claimed

    async def refuse(self, job: Job) -> None:
        """Give back what a worker has claimed whose task it does not know."""
        self.running.remove((job, job.fence))
        parked = f"task:{job.spec.task}"
        await self.store.exchange([NotBegun(job, job.fence, GivenBack(self.store.now(), parked))], None)

    async def report(self, which: int, event: Event) -> None:
        if self.running:
            job, fence = self.running.pop(which % len(self.running))
            await self.store.exchange([Report(job, fence, event)], None)

    async def report_late(self, which: int, event: Event) -> None:
        if self.running:
            job, fence = self.running.pop(which % len(self.running))
            self.late.append((job, fence))
            await self.store.exchange([Late(job, fence, event)], None)

    async def returns(self, which: int) -> None:
        if self.late:
            job, fence = self.late.pop(which % len(self.late))
            await self.store.exchange([], None, [(job.seq, fence)])

    async def limit(self, terms: GateTerms, most: int | None) -> None:
        self.most[terms.rule] = terms.max_running if most is None else most
        changed = None if most is None else replace(terms, max_running=most)
        await self.store.change_gates(terms.rule, changed)

    def is_full(self, key: str) -> bool:
        """Whether as many attempts that have not returned name the limit as it lets run."""
        return sum(key in job.gates for job, _ in self.running + self.late) >= self.most[key]


Act = Callable[[World], Awaitable[object]]
seconds = st.integers(0, 6).map(lambda n: n * SECOND)


@st.composite
def submits(draw: st.DrawFn) -> Act:
    spec = JobSpec(
        task="t",
        queue=draw(st.sampled_from("aaab")),
        lane=draw(st.sampled_from(LANES[:1] * 3 + LANES)),
        priority=draw(st.integers(0, 2)),
    )
    name = draw(st.none() | st.none() | st.sampled_from(["x", "y"]))
    delay, expires = draw(st.just(0) | seconds), draw(st.none() | st.none() | seconds)
    parents = draw(st.just([]) | st.lists(st.integers(0, 20), max_size=2))
    need = draw(st.sampled_from(Need))
    gates = draw(st.just(()) | st.lists(st.sampled_from(sorted(TERMS)), unique=True, max_size=3).map(tuple))

    async def act(world: World) -> None:
        now = world.store.now()
        depends_on = tuple((world.jobs[n], need) for n in parents if n < len(world.jobs))
        job = Job(
            name or f"job-{len(world.jobs)}",
            spec,
            submitted_at=now,
            run_at=now + delay,
            sort_key=-spec.priority,
            expires_at=None if expires is None else now + expires,
            terms=Terms(named=name is not None, replace=name is not None, depends_on=depends_on),
        )
        job.gates = gates
        await world.submit(job)

    return act


events: dict[str, Callable[[int], Event]] = {
    "succeeded": lambda now: Succeeded(now, b"1"),
    "failed": lambda now: Errored(now, BOOM),
    "retried": lambda now: Errored(now, BOOM, retry_in_us=4 * SECOND),
    "retried at once": lambda now: DeadlinePassed(now, BOOM, retry_in_us=0),
    "timed out": lambda now: DeadlinePassed(now, BOOM, retry_in_us=2 * SECOND),
    "snoozed": lambda now: Snoozed(now, 3 * SECOND),
    "given back": GivenBack,
    "unknown task": lambda now: GivenBack(now, "task:gone"),
    "unknown lane": lambda now: GivenBack(now, "lane:process"),
    "put aside": lambda now: GivenBack(now, "somewhere"),
}

claims = st.builds(lambda n: lambda world: world.claim(n), st.integers(1, 3))
reports = st.builds(
    lambda which, kind: lambda world: world.report(which, events[kind](world.store.now())),
    st.integers(0, 9),
    st.sampled_from(sorted(events)),
)
acts = st.one_of(
    submits(),
    submits(),
    submits(),
    claims,
    claims,
    reports,
    reports,
    st.builds(lambda queue: lambda world: world.store.pause_queue(queue), st.sampled_from("abbb")),
    st.builds(lambda queue: lambda world: world.store.resume_queue(queue), st.sampled_from("ab")),
    st.builds(lambda us: lambda world: advance(world, us), seconds),
    st.builds(
        lambda which, kind: lambda world: world.report_late(which, events[kind](world.store.now())),
        st.integers(0, 9),
        st.sampled_from(["timed out", "retried at once"]),
    ),
    st.builds(lambda which: lambda world: world.returns(which), st.integers(0, 9)),
    st.builds(
        lambda terms, most: lambda world: world.limit(terms, most),
        st.sampled_from([SMALL, LARGE]),
        st.none() | st.integers(0, 4),
    ),
    st.builds(lambda is_open: lambda world: world.store.trip(BREAKER.rule, is_open=is_open), st.booleans()),
)


async def advance(world: World, us: int) -> None:
    world.clock.advance(us / SECOND)


async def is_closed(world: World, job: Job) -> bool:
    views = await world.store.gates(job.gates)
    return not all(view.gate.is_open(world.store.now()) for view in views)


def occupant(job: Job, *, is_stuck: bool) -> Occupant:
    return Occupant(
        seq=job.seq, job_id=job.id, task="t", lane=job.spec.lane, attempt=1, since=None, is_stuck=is_stuck
    )


def here_of(world: World, queues: tuple[str, ...] | None, stuck: set[int], *, is_full: bool) -> Here:
    """The worker `w`: what runs under it, and code of earlier attempts that has not returned."""
    occupants = tuple(
        occupant(job, is_stuck=job.status is not JobStatus.RUNNING)
        for job in world.jobs
        if job.status is JobStatus.RUNNING or (job.attempts and job.seq % 3 in stuck)
    )
    most = len(occupants) if is_full else PLENTY
    slots = dict.fromkeys(SERVED_LANES, PLENTY)
    return Here(worker="w", queues=queues, tasks={"t"}, slots=slots, concurrency=most, occupants=occupants)


def check(
    job: Job, said: Explanation, world: World, here: Here, other: Another, paused: Collection[str]
) -> None:
    """Each kind of reason is given exactly when the record says so."""
    codes, now, spec = said.codes, world.store.now(), job.spec
    assert ReasonCode.EXPIRED not in codes
    older = any(each.id == job.id and each.status is JobStatus.RUNNING for each in world.jobs)
    assert (ReasonCode.OLDER_VERSION_RUNNING in codes) == (job.status is JobStatus.BLOCKED and older)
    if job.status is JobStatus.BLOCKED:
        assert codes & {ReasonCode.OLDER_VERSION_RUNNING, ReasonCode.WAITING_FOR_JOBS}
    assert bool(codes & LATER) == (job.status is not JobStatus.READY and job.run_at > now)
    assert (ReasonCode.QUEUE_PAUSED in codes) == (spec.queue in paused)
    is_served_here = here.queues is None or spec.queue in here.queues
    is_served = is_served_here or other.serves(spec.queue)
    assert (ReasonCode.QUEUE_NOT_SERVED in codes) == (not is_served)
    can_run = (is_served_here and spec.lane in SERVED_LANES) or other.can_run(spec)
    assert bool(codes & ASIDE) == (job.parked is not None or (is_served and not can_run))
    is_stuck = any(one.job_id == job.id and one.is_stuck for one in here.occupants)
    is_kept_here = is_served_here and is_stuck and not other.can_run(spec)
    assert (ReasonCode.CODE_STILL_RUNNING in codes) == is_kept_here
    is_there = job.status is not JobStatus.BLOCKED and (job.status is JobStatus.READY or job.run_at <= now)
    is_full = any(world.is_full(key) for key in job.gates if key in world.most)
    assert (ReasonCode.LIMIT_REACHED in codes) == (is_there and is_full)
    assert is_there or not codes & GATED


async def take_all(world: World, here: Here, other: Another) -> set[int]:
    """Have both workers claim whatever they can; return the numbers of what they run."""
    hold = {one.job_id for one in here.occupants if one.is_stuck}
    lanes = dict.fromkeys(SERVED_LANES, PLENTY)
    queues = None if here.queues is None else tuple(here.queues)
    taken: set[int] = set()
    for _ in range(2):
        taken |= {job.seq for job in await world.claim(PLENTY, lanes, queues, hold)}
        if other.is_alive:
            others = dict.fromkeys(LANES if other.lanes is None else other.lanes, PLENTY)
            for job in await world.claim(PLENTY, others, other.queues, worker="v"):
                if other.can_run(job.spec):
                    taken.add(job.seq)
                else:
                    await world.refuse(job)
            await world.store.unpark("task:t")  # which the worker of this process knows
    return taken


async def play(
    world: World,
    script: list[Act],
    queues: tuple[str, ...] | None,
    stuck: set[int],
    *,
    is_full: bool,
    other: Another,
) -> None:
    await world.begin()
    for act in script:
        await act(world)
    if other is not NOBODY:
        await world.store.register(other.info)
    jobs = await world.look()
    here = here_of(world, queues, stuck, is_full=is_full)
    paused = await world.store.paused_queues()
    said = {seq: explain(job, await gather(world.store, job, {}, here)) for seq, job in jobs.items()}
    before = {seq: job.status for seq, job in jobs.items()}
    for seq, explanation in said.items():
        if before[seq] in WAITING and explanation.codes != {ReasonCode.EXPIRED}:
            check(jobs[seq], explanation, world, here, other, paused)
    taken = await take_all(world, here, other)
    jobs = await world.look()
    # The turn that claims first cancels what has expired, and that may release what waited for it.
    released = {JobStatus.BLOCKED} if any(ReasonCode.EXPIRED in e.codes for e in said.values()) else set()
    for seq, explanation in said.items():
        if before[seq] in released:
            continue
        job = jobs[seq]
        is_free = before[seq] in WAITING and explanation.codes <= IN_LINE
        assert is_free or seq not in taken
        # Of several who may pass a gate, the first ones do; it must be closed behind them.
        assert seq in taken or not is_free or await is_closed(world, job)
        assert (explanation.codes == {ReasonCode.FINISHED}) == (before[seq] in TERMINAL)
        assert (ReasonCode.RUNNING in explanation.codes) == (before[seq] is JobStatus.RUNNING)
        if explanation.codes == {ReasonCode.EXPIRED}:
            assert job.status is JobStatus.CANCELLED
    starts = sorted((e.expected_start, seq) for seq, e in said.items() if e.expected_start)
    for start, seq in starts:
        if jobs[seq].gates:
            continue  # others that come meanwhile may take its place
        world.clock.advance(max(start - from_us(world.store.now()), timedelta(0)))
        await take_all(world, here, other)
        found = await world.store.get(jobs[seq])
        assert found is not None
        assert found.started_at is not None, "it started when that was expected"


@asynccontextmanager
async def a_world(folder: Path | None) -> AsyncIterator[World]:
    """A fresh store: in memory, or in a file in this folder."""
    clock = VirtualClock()
    store: Store = MemoryStore(clock=clock)
    if folder is not None:
        store = SqliteStore(folder / "jobs.db", clock=clock, inline=True)
    await store.open(strategy="priority")
    try:
        yield World(store, clock)
    finally:
        await store.close()


scripts = st.lists(acts, min_size=10, max_size=60)
served = st.none() | st.sampled_from([("a",), ("a", "b"), ("c",)])
stuck_codes = st.sets(st.integers(0, 2))
another = st.just(NOBODY) | st.builds(
    Another,
    queues=st.none() | st.sampled_from([("a",), ("b",)]),
    tasks=st.none() | st.sampled_from([("t", "u"), ("u",)]),
    lanes=st.none() | st.sampled_from([("loop",), ("process",)]),
    is_alive=st.sampled_from([True, True, False]),
)


@given(scripts, served, stuck_codes, st.booleans(), another)
def test_p14_explain_says_that_nothing_keeps_a_job_exactly_when_the_claim_takes_it(
    script: list[Act], queues: tuple[str, ...] | None, stuck: set[int], is_full: bool, other: Another
) -> None:
    async def main() -> None:
        async with a_world(None) as world:
            await play(world, script, queues, stuck, is_full=is_full, other=other)

    asyncio.run(main())


@settings(max_examples=30)
@given(scripts, served, stuck_codes, st.booleans(), another)
def test_p14_explain_and_the_claim_agree_in_a_file_too(
    script: list[Act], queues: tuple[str, ...] | None, stuck: set[int], is_full: bool, other: Another
) -> None:
    async def main() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with a_world(Path(folder)) as world:
                await play(world, script, queues, stuck, is_full=is_full, other=other)

    asyncio.run(main())
