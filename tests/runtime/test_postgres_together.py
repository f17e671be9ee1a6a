"""Many who write at once to one schema: nothing is taken twice, exceeded, forgotten or left stuck."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import psycopg
import pytest

from betimes.core.events import Errored, Succeeded
from betimes.core.job import CancelReason, ErrorInfo, Job, JobSpec, JobStatus, Need, Tenant, Terms
from betimes.core.limits import GateKind, GateTerms, gate_key
from betimes.core.shares import COST, UNTAGGED
from betimes.ports import ClaimRequest, JobFilter, Report, WorkerInfo
from betimes.stores.postgres import PostgresStore
from betimes.stores.postgres.target import target_of
from betimes.stores.relational.exchange import LOCKED_US
from betimes.testing import VirtualClock

SECOND = 1_000_000
LANES = {"loop": 1000}
pass_time = asyncio.sleep  # noqa: TID251 - others need a moment of real time
BOOM = ErrorInfo(type="ValueError", message="boom")


class Crew:
    """Several stores on one schema, each with a worker of its own; time stands still."""

    def __init__(self, stores: list[PostgresStore], clock: VirtualClock) -> None:
        self.stores = stores
        self.clock = clock
        self.started: Counter[int] = Counter()
        self.running: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.again: dict[int, list[Report]] = {}
        self._made = 0

    def job(
        self,
        job_id: str | None = None,
        *,
        gates: tuple[str, ...] = (),
        tenant: str | None = None,
        terms: Terms | None = None,
        sort_key: int = 0,
    ) -> Job:
        """A new job, not submitted."""
        self._made += 1
        now = self.clock.now()
        key = sort_key if tenant is None else UNTAGGED
        job = Job(
            job_id or f"generated-{self._made}",
            JobSpec(task="t"),
            b"{}",
            submitted_at=now,
            run_at=now,
            sort_key=key,
        )
        job.gates, job.tenant, job.terms = gates, None if tenant is None else Tenant(tenant, COST), terms
        return job

    async def add(self, *jobs: Job) -> list[Job]:
        """Submit jobs, each store its part of them at the same time."""
        parts = [jobs[index :: len(self.stores)] for index in range(len(self.stores))]
        done = await asyncio.gather(
            *(store.submit(part) for store, part in zip(self.stores, parts, strict=True) if part)
        )
        return [job for kept, _ in done for job in kept]

    async def turn(self, index: int, reports: list[Report], limit: int) -> list[Job]:
        """Have one worker report and claim."""
        request = ClaimRequest(f"w{index}", limit, LANES, None, (), None)
        reports = self.again.pop(index, []) + reports
        for report in reports:  # from here on, somebody else may have what they held
            self.running.subtract(report.job.gates)
        exchange = await self.stores[index].exchange(reports, request)
        for job in exchange.claimed:
            self.started[job.seq] += 1
            self.running.update(job.gates)
        for key, count in self.running.items():
            self.most[key] = max(self.most[key], count)
        locked = [reports[place] for place in exchange.not_now]
        if locked:
            self.again[index] = locked
            for report in locked:
                self.running.update(report.job.gates)
        assert exchange.steps.count(None) == len(locked), "each report is of an attempt that holds"
        return exchange.claimed

    async def work(self, index: int, *, limit: int = 5, idle: int = 30) -> None:
        """Work until nothing has come for a while."""
        held: list[Job] = []
        left = idle
        while left or held or index in self.again:
            reports = [Report(job, job.fence, Succeeded(self.clock.now(), b"1")) for job in held]
            held = await self.turn(index, reports, limit)
            left = idle if held else left - 1
            await pass_time(0.002)

    async def work_together(self, **options: int) -> None:
        """Have all work at the same time."""
        await asyncio.gather(*(self.work(index, **options) for index in range(len(self.stores))))

    async def statuses(self) -> Counter[JobStatus]:
        """Count all jobs by status."""
        found: Counter[JobStatus] = Counter()
        before: int | None = None
        while page := await self.stores[0].jobs(JobFilter(limit=1000, before=before)):
            found.update(job.status for job in page)
            before = page[-1].seq
        return found


def play(url: str, scene: Callable[[Crew], Coroutine[Any, Any, None]], *, size: int = 4) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with AsyncExitStack() as stack:
            stores = []
            for index in range(size):
                store = PostgresStore(url, clock=clock, max_stall_us=0, goes_by_clock=True)
                await store.open(strategy="priority")
                stack.push_async_callback(store.close)
                await store.register(WorkerInfo(id=f"w{index}", lease_us=100_000 * SECOND))
                stores.append(store)
            await scene(Crew(stores, clock))

    asyncio.run(main())


def test_p06_each_job_is_claimed_by_one(postgres_url: str) -> None:
    async def scene(crew: Crew) -> None:
        await crew.add(*(crew.job(sort_key=number % 7) for number in range(600)))
        await crew.work_together()
        assert await crew.statuses() == {JobStatus.COMPLETED: 600}
        assert set(crew.started.values()) == {1}

    play(postgres_url, scene)


@pytest.mark.parametrize("most", [1, 3])
def test_p19_a_limit_holds_over_all_who_claim(postgres_url: str, most: int) -> None:
    async def scene(crew: Crew) -> None:
        terms = GateTerms(kind=GateKind.LIMIT, name="l", max_running=most, by="group")
        await crew.stores[0].declare_gates([terms])
        keys = [gate_key(GateKind.LIMIT, "l", str(group)) for group in range(5)]
        await crew.add(*(crew.job(gates=(keys[number % 5],)) for number in range(150)))
        await crew.work_together()
        assert await crew.statuses() == {JobStatus.COMPLETED: 150}
        assert set(crew.started.values()) == {1}
        assert max(crew.most.values()) <= most

    play(postgres_url, scene)


def test_p19_tokens_are_spent_once(postgres_url: str) -> None:
    async def scene(crew: Crew) -> None:
        terms = GateTerms(kind=GateKind.RATE, name="r", every_us=3600 * SECOND, burst=10)
        await crew.stores[0].declare_gates([terms])
        await crew.add(*(crew.job(gates=(terms.rule,)) for _ in range(60)))
        await crew.work_together(limit=3)
        assert await crew.statuses() == {JobStatus.COMPLETED: 10, JobStatus.READY: 50}
        crew.clock.advance(2 * 3600)
        await crew.work_together(limit=3)
        assert await crew.statuses() == {JobStatus.COMPLETED: 12, JobStatus.READY: 48}

    play(postgres_url, scene)


def test_p15_dependents_are_released_once_whoever_ends_the_last(postgres_url: str) -> None:
    async def scene(crew: Crew) -> None:
        parents = await crew.add(*(crew.job() for _ in range(60)))
        children = []
        for number in range(90):
            needs = tuple((parents[(number * 7 + step * 11) % 60], Need.COMPLETED) for step in range(4))
            children.append(crew.job(terms=Terms(depends_on=needs)))
        await crew.add(*children)
        await crew.work_together(limit=2)
        assert await crew.statuses() == {JobStatus.COMPLETED: 150}
        assert set(crew.started.values()) == {1}

    play(postgres_url, scene)


def test_p15_nothing_waits_for_ever_for_one_that_ends_during_the_submit(postgres_url: str) -> None:
    async def scene(crew: Crew) -> None:
        for _ in range(10):
            parents = await crew.add(*(crew.job() for _ in range(8)))
            children = [crew.job(terms=Terms(depends_on=((parent, Need.COMPLETED),))) for parent in parents]
            await asyncio.gather(
                crew.work_together(limit=2, idle=8), *(crew.add(child) for child in children)
            )
        await crew.work_together()
        assert await crew.statuses() == {JobStatus.COMPLETED: 160}

    play(postgres_url, scene)


def test_p15_a_failure_cascades_over_all_who_write(postgres_url: str) -> None:
    async def scene(crew: Crew) -> None:
        (first,) = await crew.add(crew.job())
        level = [first]
        for _ in range(4):
            level = await crew.add(
                *(
                    crew.job(terms=Terms(depends_on=((parent, Need.COMPLETED),)))
                    for parent in level
                    for _ in range(2)
                )
            )
        (taken,) = await crew.turn(0, [], 1)
        await asyncio.gather(
            crew.stores[0].exchange([Report(taken, taken.fence, Errored(crew.clock.now(), BOOM))], None),
            *(crew.stores[1].cancel(job, reason=CancelReason.REQUESTED) for job in level[:8]),
        )
        assert await crew.statuses() == {JobStatus.FAILED: 1, JobStatus.CANCELLED: 30}

    play(postgres_url, scene)


def test_p03_all_who_race_for_a_key_get_one_job(postgres_url: str) -> None:
    async def scene(crew: Crew) -> None:
        until = crew.clock.now() + 3600 * SECOND
        for key in ("a", "b", "c"):
            terms = Terms(key=key, key_digest=b"1", key_until=until)
            racers = [crew.job(terms=terms) for _ in range(12)]
            kept = await asyncio.gather(
                *(crew.stores[number % 4].submit([job]) for number, job in enumerate(racers))
            )
            assert len({jobs[0].seq for jobs, _ in kept}) == 1
        assert await crew.statuses() == {JobStatus.READY: 3}

    play(postgres_url, scene)


def test_p02_the_same_submit_by_many_makes_one_job(postgres_url: str) -> None:
    async def scene(crew: Crew) -> None:
        for number in range(10):
            twins = [crew.job(f"twin-{number}") for _ in crew.stores]
            kept = await asyncio.gather(
                *(store.submit([twin]) for store, twin in zip(crew.stores, twins, strict=True))
            )
            assert len({jobs[0].seq for jobs, _ in kept}) == 1
        assert await crew.statuses() == {JobStatus.READY: 10}

    play(postgres_url, scene)


def test_of_many_versions_that_replace_each_other_one_is_left(postgres_url: str) -> None:
    async def scene(crew: Crew) -> None:
        versions = [
            crew.job("report", terms=Terms(named=True, token=f"t{number}", replace=True))
            for number in range(24)
        ]
        await asyncio.gather(
            crew.work(0, limit=1, idle=5),
            *(crew.stores[number % 4].submit([job]) for number, job in enumerate(versions)),
        )
        await crew.work(0, limit=1)
        newest = await crew.stores[0].find("report")
        assert newest is not None
        assert newest.status is JobStatus.COMPLETED
        statuses = await crew.statuses()
        assert statuses[JobStatus.COMPLETED] + statuses[JobStatus.CANCELLED] == 24
        assert set(crew.started.values()) == {1}

    play(postgres_url, scene)


def test_tenants_who_submit_at_once_share_the_starts(postgres_url: str) -> None:
    async def scene(crew: Crew) -> None:
        await crew.add(*(crew.job(tenant=name) for name in "abcd" for _ in range(30)))
        first: list[Job] = []
        while len(first) < 40:
            claimed = await crew.turn(0, [], 8)
            first += claimed
        counts = Counter(job.tenant[0] for job in first if job.tenant is not None)
        assert counts == dict.fromkeys("abcd", 10)
        held = [Report(job, job.fence, Succeeded(crew.clock.now(), b"1")) for job in first]
        await crew.stores[0].exchange(held, None)
        await crew.work_together()
        assert await crew.statuses() == {JobStatus.COMPLETED: 120}
        assert set(crew.started.values()) == {1}

    play(postgres_url, scene)


def test_p09_a_cancel_and_an_end_that_meet_leave_one_outcome(postgres_url: str) -> None:
    async def scene(crew: Crew) -> None:
        for _ in range(15):
            await crew.add(*(crew.job() for _ in range(4)))
            claimed = await crew.turn(0, [], 4)
            reports = [Report(job, job.fence, Succeeded(crew.clock.now(), b"1")) for job in claimed]
            async with asyncio.TaskGroup() as group:
                ending = group.create_task(crew.stores[0].exchange(reports, None))
                cancelling = [
                    group.create_task(crew.stores[1].cancel(job, reason=CancelReason.REQUESTED, abandon=True))
                    for job in claimed
                ]
            exchange, cancels = ending.result(), [task.result() for task in cancelling]
            for job, step, cancel in zip(claimed, exchange.steps, cancels, strict=True):
                found = await crew.stores[2].get(job)
                assert found is not None
                assert found.status is (JobStatus.CANCELLED if step is None else step.after)
                assert (step is None) == bool(cancel.changes)

    play(postgres_url, scene)


def test_p08_who_rescues_and_who_ends_do_not_both_win(postgres_url: str) -> None:
    async def scene(crew: Crew) -> None:
        for round_number in range(8):
            worker = f"late-{round_number}"
            await crew.stores[0].register(WorkerInfo(id=worker, lease_us=SECOND))
            await crew.add(*(crew.job() for _ in range(6)))
            exchange = await crew.stores[0].exchange([], ClaimRequest(worker, 6, LANES, None, (), None))
            crew.clock.advance(2)
            reports = [Report(job, job.fence, Succeeded(crew.clock.now(), b"1")) for job in exchange.claimed]
            async with asyncio.TaskGroup() as group:
                ending = group.create_task(crew.stores[0].exchange(reports, None))
                rescuing = [group.create_task(store.rescue(["t"])) for store in crew.stores[1:]]
            rescued = [event.seq for task in rescuing for event in task.result()]
            steps = ending.result().steps
            completed = [job.seq for job, step in zip(exchange.claimed, steps, strict=True) if step]
            assert sorted(rescued + completed) == [job.seq for job in exchange.claimed]
            await crew.work_together(idle=5)  # a job that is taken back in three rounds would be given up
        assert set(await crew.statuses()) == {JobStatus.COMPLETED}

    play(postgres_url, scene)


@contextmanager
def locked(url: str, seq: int) -> Iterator[None]:
    """Somebody else has a job locked."""
    target = target_of(url)
    with psycopg.connect(**target.parameters) as conn:  # type: ignore[arg-type]
        conn.execute(f"SET search_path TO {target.schema}")
        conn.execute("SELECT FROM betimes_job WHERE seq = %s FOR UPDATE", (seq,))
        yield
        conn.rollback()


def test_p14_what_is_due_and_locked_by_somebody_is_asked_for_again_soon(postgres_url: str) -> None:
    async def scene(crew: Crew) -> None:
        late = crew.job()
        late.run_at += 5 * SECOND
        (kept,) = await crew.add(late)
        crew.clock.advance(5)
        now = crew.clock.now()
        with locked(postgres_url, kept.seq):
            exchange = await crew.stores[0].exchange([], ClaimRequest("w0", 1, LANES, None, (), None))
            assert exchange.claimed == []
            assert exchange.next_at == now + LOCKED_US
        assert len(await crew.turn(0, [], 1)) == 1

    play(postgres_url, scene, size=1)


def test_p06_a_worker_that_goes_leaves_nothing_that_it_is_just_claiming(postgres_url: str) -> None:
    async def scene(crew: Crew) -> None:
        for _ in range(10):
            await crew.add(*(crew.job() for _ in range(4)))
            await crew.stores[0].register(WorkerInfo(id="going", lease_us=100_000 * SECOND))
            async with asyncio.TaskGroup() as group:
                group.create_task(
                    crew.stores[0].exchange([], ClaimRequest("going", 4, LANES, None, (), None))
                )
                group.create_task(crew.stores[1].retire("going"))
        assert set(await crew.statuses()) == {JobStatus.READY}

    play(postgres_url, scene, size=2)
