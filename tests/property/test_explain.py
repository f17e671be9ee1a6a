"""`explain` and the claim never contradict each other, whatever has happened in the store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from betimes.core.durations import from_us
from betimes.core.events import DeadlinePassed, Errored, Event, GivenBack, Snoozed, Succeeded
from betimes.core.explain import Explanation, explain
from betimes.core.job import TERMINAL, WAITING, ErrorInfo, Job, JobSpec, JobStatus, Need, Terms
from betimes.core.reason import ReasonCode
from betimes.core.situation import Here, Occupant
from betimes.errors import BetimesError
from betimes.ports import ClaimRequest, Report, WorkerInfo
from betimes.runtime.explaining import gather
from betimes.stores.memory import MemoryStore
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
ASIDE = {ReasonCode.TASK_UNKNOWN, ReasonCode.LANE_NOT_SERVED, ReasonCode.PARKED}


@dataclass
class World:
    """A memory store in which anything may have happened."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    jobs: list[Job] = field(default_factory=list)
    running: list[tuple[Job, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = MemoryStore(clock=self.clock)

    async def begin(self) -> None:
        await self.store.open(strategy="priority")
        await self.store.register(WorkerInfo(id="w", lease_us=YEAR))

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
    ) -> list[Job]:
        exchange = await self.store.exchange([], ClaimRequest("w", limit, lanes, queues, hold))
        self.running += [(job, job.fence) for job in exchange.claimed]
        return exchange.claimed

    async def report(self, which: int, event: Event) -> None:
        if self.running:
            job, fence = self.running.pop(which % len(self.running))
            await self.store.exchange([Report(job, fence, event)], None)


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
)


async def advance(world: World, us: int) -> None:
    world.clock.advance(us / SECOND)


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


def check(job: Job, said: Explanation, world: World, here: Here, paused: frozenset[str]) -> None:
    """Each kind of reason is given exactly when the record says so."""
    codes, now, spec = said.codes, world.store.now(), job.spec
    assert ReasonCode.EXPIRED not in codes
    older = any(other.id == job.id and other.status is JobStatus.RUNNING for other in world.jobs)
    assert (ReasonCode.OLDER_VERSION_RUNNING in codes) == (job.status is JobStatus.BLOCKED and older)
    if job.status is JobStatus.BLOCKED:
        assert codes & {ReasonCode.OLDER_VERSION_RUNNING, ReasonCode.WAITING_FOR_JOBS}
    assert bool(codes & LATER) == (job.status is not JobStatus.READY and job.run_at > now)
    assert (ReasonCode.QUEUE_PAUSED in codes) == (spec.queue in paused)
    is_served = here.queues is None or spec.queue in here.queues
    assert (ReasonCode.QUEUE_NOT_SERVED in codes) == (not is_served)
    wrong_lane = is_served and spec.lane not in SERVED_LANES
    assert bool(codes & ASIDE) == (job.parked is not None or wrong_lane)
    is_stuck = any(one.job_id == job.id and one.is_stuck for one in here.occupants)
    assert (ReasonCode.CODE_STILL_RUNNING in codes) == (is_served and is_stuck)


async def play(script: list[Act], queues: tuple[str, ...] | None, stuck: set[int], *, is_full: bool) -> None:
    world = World()
    await world.begin()
    for act in script:
        await act(world)
    here = here_of(world, queues, stuck, is_full=is_full)
    paused = await world.store.paused_queues()
    said = {job: explain(job, await gather(world.store, job, {}, here)) for job in world.jobs}
    before = {job: job.status for job in world.jobs}
    for job, explanation in said.items():
        if job.status in WAITING and explanation.codes != {ReasonCode.EXPIRED}:
            check(job, explanation, world, here, paused)
    hold = {one.job_id for one in here.occupants if one.is_stuck}
    lanes = dict.fromkeys(SERVED_LANES, PLENTY)
    taken = await world.claim(PLENTY, lanes, queues, hold)
    # The turn that claims first cancels what has expired, and that may release what waited for it.
    released = {JobStatus.BLOCKED} if any(ReasonCode.EXPIRED in e.codes for e in said.values()) else set()
    for job, explanation in said.items():
        if before[job] in released:
            continue
        assert (job in taken) == (before[job] in WAITING and explanation.codes <= IN_LINE)
        assert (explanation.codes == {ReasonCode.FINISHED}) == (before[job] in TERMINAL)
        assert (ReasonCode.RUNNING in explanation.codes) == (before[job] is JobStatus.RUNNING)
        if explanation.codes == {ReasonCode.EXPIRED}:
            assert job.status is JobStatus.CANCELLED
    starts = sorted((e.expected_start, job.seq, job) for job, e in said.items() if e.expected_start)
    for start, _, job in starts:
        world.clock.advance(max(start - from_us(world.store.now()), timedelta(0)))
        await world.claim(PLENTY, lanes, queues, hold)
        assert job.started_at is not None, "it started when that was expected"


@given(
    st.lists(acts, min_size=10, max_size=60),
    st.none() | st.sampled_from([("a",), ("a", "b"), ("c",)]),
    st.sets(st.integers(0, 2)),
    st.booleans(),
)
def test_p14_explain_says_that_nothing_keeps_a_job_exactly_when_the_claim_takes_it(
    script: list[Act], queues: tuple[str, ...] | None, stuck: set[int], is_full: bool
) -> None:
    asyncio.run(play(script, queues, stuck, is_full=is_full))
