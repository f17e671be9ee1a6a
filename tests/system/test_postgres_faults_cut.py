"""PostgreSQL's answer to a COMMIT is lost: whoever asked cannot know, and nothing is lost or done twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.postgres.server import Server
from tests.system.tcp_proxy import Proxy, Watch

from betimes import Context, DuplicateJob, JobStatus, Scheduler, StoreUnavailable, every
from betimes.clock import SystemClock
from betimes.core.job import Job, JobSpec
from betimes.ports import JobFilter
from betimes.stores.postgres import PostgresStore
from betimes.stores.relational.statements import text_of
from betimes.tasks import Task

PATIENCE_S = 30.0


def commits(*names: str) -> Watch:
    """Transactions in which one of these statements is carried out."""
    texts = {text_of("postgres", name) for name in names}
    return lambda statements: not texts.isdisjoint(statements)


def SUBMIT(statements: list[str]) -> bool:  # noqa: N802 - as the others
    """One that brings new jobs, whichever way."""
    return any("INSERT INTO betimes_job (" in statement for statement in statements)


CLAIM = commits("claim_job", "claim_at_once")
FINISH = commits("complete_jobs", "finish_job")
FIRE = commits("add_fire")
BEAT = commits("renew_lease")


@pytest.fixture
def proxy(postgres: Server) -> Iterator[Proxy]:
    with Proxy(postgres.port) as proxy:
        yield proxy


class Work:
    """A scheduler whose way to the store leads through a proxy, and what its jobs did."""

    def __init__(self, url: str) -> None:
        self.runs: list[tuple[str, int]] = []
        self.scheduler = Scheduler(url, lease="6s", poll="0.5s", grace="0.5s", watchdog=None)
        self.task: Task[..., str] = self.scheduler.task(name="work")(self._work)

    async def _work(self, ctx: Context, pause_s: float = 0.0) -> str:
        self.runs.append((ctx.job_id, ctx.fence))
        await asyncio.sleep(pause_s)
        return ctx.job_id


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - what is looked at tells nobody that it changes
            await asyncio.sleep(0.01)


@asynccontextmanager
async def elsewhere(url: str) -> AsyncIterator[Work]:
    """A client by a way of its own."""
    work = Work(url)
    async with work.scheduler.client():
        yield work


def play(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scene())


@pytest.mark.parametrize("is_run", [False, True], ids=["at-once", "when-it-has-ended"])
def test_p01_p02_p03_a_submit_whose_answer_was_lost_may_be_repeated(
    proxy: Proxy, postgres_url: str, is_run: bool
) -> None:
    async def scene() -> None:
        work = Work(proxy.url(postgres_url))
        keyed = work.task.using(key="only")
        async with work.scheduler.client() as client:
            proxy.cut_after_commit(SUBMIT)
            with pytest.raises(StoreUnavailable) as lost:
                await keyed.submit()
            assert (lost.value.why, proxy.cut) == ("connection", 1)
            if is_run:
                other = Work(postgres_url)
                async with other.scheduler:
                    await until(lambda: len(other.runs) == 1)
            again = await keyed.submit()
            assert [info.id for info in await client.jobs()] == [again.id], "it was kept, and found again"
            assert await again.status() is (JobStatus.COMPLETED if is_run else JobStatus.READY)

    play(scene)


def test_p02_an_id_whose_submit_was_not_answered_is_taken(proxy: Proxy, postgres_url: str) -> None:
    async def scene() -> None:
        work = Work(proxy.url(postgres_url))
        async with work.scheduler.client() as client:
            named = work.task.using(job_id="only")
            proxy.cut_after_commit(SUBMIT)
            with pytest.raises(StoreUnavailable):
                await named.submit()
            with pytest.raises(DuplicateJob):
                await named.submit()
            assert [info.id for info in await client.jobs()] == ["only"]

    play(scene)


def test_p02_the_same_jobs_may_be_given_to_the_store_again(proxy: Proxy, postgres_url: str) -> None:
    async def scene() -> None:
        store = PostgresStore(proxy.url(postgres_url), clock=SystemClock())
        await store.open(strategy="priority")
        now = store.now()
        jobs = [
            Job(f"job-{number}", JobSpec(task="t"), b"{}", submitted_at=now, run_at=now)
            for number in range(50)
        ]
        proxy.cut_after_commit(SUBMIT)
        answers = await asyncio.gather(*(store.submit([job]) for job in jobs), return_exceptions=True)
        assert {type(answer) for answer in answers} <= {tuple, StoreUnavailable}
        assert StoreUnavailable in {type(answer) for answer in answers}
        kept = await asyncio.gather(*(store.submit([job]) for job in jobs))
        assert [found.id for (found,), _ in kept] == [job.id for job in jobs]
        assert len(await store.jobs(JobFilter(limit=1000))) == len(jobs)
        assert proxy.cut == 1
        await store.close()

    play(scene)


def test_p06_p24_a_claim_whose_answer_was_lost_is_given_back_and_runs_once(
    proxy: Proxy, postgres_url: str
) -> None:
    async def scene() -> None:
        work = Work(proxy.url(postgres_url))
        async with work.scheduler as scheduler, elsewhere(postgres_url) as other:
            proxy.cut_after_commit(CLAIM)
            handles = await other.scheduler.submit_many([other.task.bind() for _ in range(5)])
            ids = [await handle.result(timeout=PATIENCE_S) for handle in handles]
            assert ids == [handle.id for handle in handles]
            assert proxy.cut == 1
            infos = [await handle.info() for handle in handles]
            metrics = await scheduler.metrics()
        outcomes = {tuple(each.outcome for each in info.attempts) for info in infos}
        assert ("given_back", "completed") in outcomes, "some had been claimed"
        assert outcomes <= {("given_back", "completed"), ("completed",)}
        assert sorted(job for job, _ in work.runs) == sorted(ids), "each began once"
        assert all(info.attempt == 1 for info in infos), "no attempt was used up"
        assert (metrics.lost_leases, metrics.stale_reports) == (0, 0)

    play(scene)


def test_p07_p09_p23_a_finish_whose_answer_was_lost_is_recorded_once(proxy: Proxy, postgres_url: str) -> None:
    async def scene() -> None:
        work = Work(proxy.url(postgres_url))
        ends: list[str] = []
        work.scheduler.listen(lambda event: ends.append(event.job_id) if event.after.is_terminal else None)
        async with work.scheduler as scheduler, elsewhere(postgres_url) as other:
            proxy.cut_after_commit(FINISH)
            handles = await other.scheduler.submit_many([other.task.bind() for _ in range(5)])
            ids = [await handle.result(timeout=PATIENCE_S) for handle in handles]
            await until(lambda: len(ends) == 5)
            assert proxy.cut == 1
            infos = [await handle.info() for handle in handles]
            metrics = await scheduler.metrics()
        assert sorted(ends) == sorted(ids), "each end was told once"
        assert sorted(job for job, _ in work.runs) == sorted(ids), "each ran once"
        assert all(info.status is JobStatus.COMPLETED for info in infos)
        assert (metrics.lost_leases, metrics.stale_reports, metrics.completed) == (0, 0, 5)

    play(scene)


def test_p16_a_fire_whose_answer_was_lost_makes_one_job(proxy: Proxy, postgres_url: str) -> None:
    async def scene() -> None:
        work = Work(proxy.url(postgres_url))
        begins = datetime.now(UTC) + timedelta(seconds=0.5)
        async with work.scheduler as scheduler:
            await scheduler.add_schedule(
                "grid", work.task.bind(), every(0.2), start=begins, end=begins + timedelta(seconds=1),
                missed="all", max_catchup=100,
            )  # fmt: skip
            proxy.cut_after_commit(FIRE)
            await until(lambda: len(work.runs) >= 6)
            await scheduler.drain()
            infos = await scheduler.jobs()
            instants = [info.scheduled_for for info in infos]
        assert proxy.cut == 1
        assert sorted(map(str, instants)) == sorted(
            str(begins + timedelta(seconds=0.2 * number)) for number in range(6)
        )
        assert len(work.runs) == 6

    play(scene)


def test_p24_a_beat_whose_answer_was_lost_costs_no_lease(proxy: Proxy, postgres_url: str) -> None:
    async def scene() -> None:
        work = Work(proxy.url(postgres_url))
        async with work.scheduler as scheduler:
            handle = await work.task.submit(4.0)
            await until(lambda: len(work.runs) == 1)
            proxy.cut_after_commit(BEAT)
            assert await handle.result(timeout=PATIENCE_S) == handle.id
            assert proxy.cut == 1
            metrics = await scheduler.metrics()
        assert (metrics.lost_leases, metrics.stale_reports) == (0, 0)
        assert work.runs == [(handle.id, 1)]

    play(scene)
