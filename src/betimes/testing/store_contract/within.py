"""What a store promises whose jobs may be submitted within a transaction of the caller's."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

from betimes.core.events import Succeeded
from betimes.core.job import Job, JobStatus, Tenant, Terms
from betimes.core.limits import GateKind, GateTerms
from betimes.core.shares import COST, UNTAGGED
from betimes.errors import ConfigurationError, DuplicateJob, UnknownJob
from betimes.ports import Joined
from betimes.testing.store_contract.playing import Played
from betimes.testing.store_contract.stage import SECOND, Stage, again, played, refused

BLOCKED, DELAYED, READY = JobStatus.BLOCKED, JobStatus.DELAYED, JobStatus.READY
RUNNING, CANCELLED = JobStatus.RUNNING, JobStatus.CANCELLED
LIMIT = GateTerms(kind=GateKind.LIMIT, name="l", max_running=1)


class Transaction(Protocol):
    """A caller's connection with an open transaction; asynchronous, since some connections are.

    Attributes:
        conn: the connection itself, as a store takes it.
    """

    @property
    def conn(self) -> object:
        """What is given to `submit_within`."""

    async def commit(self) -> None:
        """End the transaction: it has happened."""

    async def rollback(self) -> None:
        """End the transaction: it has not happened."""

    async def close(self) -> None:
        """Close the connection."""


class TransactionContract(Played):
    """What `submit_within` promises, in tests like those of `StoreContract`, to be run beside them.

    While a transaction of the scene's is open, the store itself only looks: it may have to wait to write.
    """

    @abstractmethod
    async def begin(self) -> Transaction:
        """Return a caller's connection to the store's data, with a transaction that can write."""

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """A connection with an open transaction; closed afterwards."""
        within = await self.begin()
        try:
            yield within
        finally:
            await within.close()

    @staticmethod
    async def within(
        stage: Stage, within: Transaction, *jobs: Job, terms: tuple[GateTerms, ...] = ()
    ) -> list[Job]:
        """Submit a batch within the transaction; returns what was kept, by position."""
        joined: Joined = await stage.store.submit_within(within.conn, jobs, terms=terms)
        assert len(joined.jobs) == len(jobs)
        assert not joined.is_over()
        return joined.jobs

    @staticmethod
    async def commit(stage: Stage, within: Transaction) -> None:
        """Commit, and write down what has become of jobs: nobody tells of it."""
        await within.commit()
        for job in await stage.everything():
            stage.statuses[job.seq] = job.status

    @played
    async def test_p04_a_job_is_there_once_the_transaction_has_committed(self, stage: Stage) -> None:
        before = await stage.snapshot()
        async with self.transaction() as within:
            first, late = await self.within(stage, within, stage.job("x"), stage.job(delay_s=5))
            assert await stage.snapshot() == before
            assert await stage.store.get(first) is None
            await self.commit(stage, within)
            assert await stage.statuses_of(first, late) == [READY, DELAYED]
        await stage.worker()
        assert [taken.job.id for taken in await stage.claim()] == ["x"]
        stage.advance(5)
        assert [taken.job.id for taken in await stage.claim()] == [late.id]

    @played
    async def test_p04_a_rollback_leaves_nothing_and_the_names_and_keys_are_free(self, stage: Stage) -> None:
        key = Terms(key="k", key_until=stage.now + 60 * SECOND, key_digest=b"1")
        other = Terms(key="k", key_until=stage.now + 60 * SECOND, key_digest=b"2")
        old = await stage.add("replaced", delay_s=9)
        before = await stage.snapshot()
        async with self.transaction() as within:
            named, keyed = stage.job("x"), stage.job(terms=key)
            newer = stage.job("replaced", replace_older=True, gates=(LIMIT.rule,), depends_on=[keyed])
            await self.within(stage, within, named, keyed, newer, terms=(LIMIT,))
            await within.rollback()
        assert await stage.snapshot() == before
        assert await stage.status(old) is DELAYED
        kept = await stage.submit(stage.job("x"), stage.job(terms=other))
        assert await stage.statuses_of(*kept) == [READY, READY]
        with refused(ConfigurationError):
            await stage.store.submit([stage.job(gates=(LIMIT.rule,))])

    @played
    async def test_p04_closing_the_connection_is_a_rollback(self, stage: Stage) -> None:
        before = await stage.snapshot()
        async with self.transaction() as within:
            joined = await stage.store.submit_within(within.conn, [stage.job("x")])
        assert joined.is_over()
        assert await stage.snapshot() == before

    @played
    async def test_p04_whether_a_transaction_is_over_can_be_asked(self, stage: Stage) -> None:
        async with self.transaction() as within:
            joined = await stage.store.submit_within(within.conn, [stage.job()])
            assert not joined.is_over()
            await self.commit(stage, within)
            assert joined.is_over()

    @played
    async def test_p04_what_is_refused_leaves_the_transaction_as_it_was(self, stage: Stage) -> None:
        await stage.add("taken")
        async with self.transaction() as within:
            (kept,) = await self.within(stage, within, stage.job("kept"))
            with refused(DuplicateJob):
                await self.within(stage, within, stage.job("lost"), stage.job("taken"))
            with refused(UnknownJob):
                await self.within(stage, within, stage.job("lost"), stage.job(depends_on=["nobody"]))
            with refused(DuplicateJob):
                await self.within(stage, within, stage.job("kept"))
            (later,) = await self.within(stage, within, stage.job("later"))
            await self.commit(stage, within)
        assert [job.id for job in await stage.everything()] == ["later", "kept", "taken"]
        assert kept.seq < later.seq

    @played
    async def test_p04_a_refused_record_can_be_submitted_again(self, stage: Stage) -> None:
        job = stage.job("x", depends_on=["parent"])
        async with self.transaction() as within:
            with refused(UnknownJob):
                await self.within(stage, within, job)
            await self.within(stage, within, stage.job("parent"))
            assert await self.within(stage, within, job) == [job]
            await self.commit(stage, within)
        assert await stage.status(job) is BLOCKED

    @played
    async def test_p04_jobs_of_one_transaction_know_each_other(self, stage: Stage) -> None:
        async with self.transaction() as within:
            (parent,) = await self.within(stage, within, stage.job("parent"))
            by_record, by_name = await self.within(
                stage, within, stage.job(depends_on=[parent]), stage.job(depends_on=["parent"])
            )
            (newer,) = await self.within(stage, within, stage.job("other"))
            (newest,) = await self.within(stage, within, stage.job("other", replace_older=True))
            await self.commit(stage, within)
        assert await stage.statuses_of(parent, by_record, by_name) == [READY, BLOCKED, BLOCKED]
        assert await stage.statuses_of(newer, newest) == [CANCELLED, READY]

    @played
    async def test_p03_p04_a_key_answers_with_the_first_job_in_and_after_its_transaction(
        self, stage: Stage
    ) -> None:
        def keyed(digest: bytes = b"1") -> Job:
            until = stage.now + 60 * SECOND
            return stage.job(terms=Terms(key="k", key_until=until, key_digest=digest))

        async with self.transaction() as within:
            (first,) = await self.within(stage, within, keyed())
            (second,) = await self.within(stage, within, keyed())
            assert (first.seq, first.id) == (second.seq, second.id)
            with refused(ConfigurationError):
                await self.within(stage, within, keyed(b"2"))
            await self.commit(stage, within)
        found = await stage.submit(keyed())
        assert [job.seq for job in found] == [first.seq]
        async with self.transaction() as within:
            assert [job.seq for job in await self.within(stage, within, keyed())] == [first.seq]
            await self.commit(stage, within)

    @played
    async def test_p02_p04_a_batch_repeated_after_its_commit_is_kept_once(self, stage: Stage) -> None:
        batch = [stage.job(), stage.job("x", terms=Terms(named=True, token="t"))]
        repeated = again(batch)
        async with self.transaction() as within:
            kept = await self.within(stage, within, *batch)
            await self.commit(stage, within)
        async with self.transaction() as within:
            found = await self.within(stage, within, *repeated)
            await self.commit(stage, within)
        assert [job.seq for job in found] == [job.seq for job in kept]

    @played
    async def test_p04_a_version_that_runs_is_waited_for_and_not_retried(self, stage: Stage) -> None:
        running = await stage.start("x")
        async with self.transaction() as within:
            (newer,) = await self.within(stage, within, stage.job("x", replace_older=True))
            await self.commit(stage, within)
        assert await stage.statuses_of(running.job, newer) == [RUNNING, BLOCKED]
        await stage.report(running, Succeeded(stage.now, b"1"))
        assert await stage.status(newer) is READY

    @played
    async def test_p04_a_failed_dependency_cancels_at_once(self, stage: Stage) -> None:
        lost = await stage.add()
        await stage.cancel(lost)
        async with self.transaction() as within:
            child, grandchild = stage.job("child", depends_on=[lost]), stage.job(depends_on=["child"])
            await self.within(stage, within, child, grandchild)
            await self.commit(stage, within)
        assert await stage.statuses_of(child, grandchild) == [CANCELLED, CANCELLED]

    @played
    async def test_p04_p20_numbers_follow_the_order_of_the_commits(self, stage: Stage) -> None:
        first = await stage.add()
        async with self.transaction() as within:
            inside = await self.within(stage, within, stage.job(), stage.job("x"), stage.job())
            await self.commit(stage, within)
        last = await stage.add()
        numbers = [job.seq for job in (first, *inside, last)]
        assert numbers == sorted(set(numbers))
        await stage.worker()
        assert [taken.job.seq for taken in await stage.claim()] == numbers

    @played
    async def test_p04_limits_hold_and_their_rules_come_with_the_jobs(self, stage: Stage) -> None:
        async with self.transaction() as within:
            with refused(ConfigurationError):
                await self.within(stage, within, stage.job(gates=(LIMIT.rule,)))
            jobs = [stage.job(gates=(LIMIT.rule,)) for _ in range(3)]
            await self.within(stage, within, *jobs, terms=(LIMIT,))
            await self.commit(stage, within)
        await stage.worker()
        (taken,) = await stage.claim()
        (view,) = await stage.store.gates([LIMIT.rule])
        assert (view.held, view.waiting) == (1, 2)
        assert taken.job.seq == jobs[0].seq

    @played
    async def test_p04_tenants_get_their_places_in_turn(self, stage: Stage) -> None:
        def of(name: str) -> Job:
            return stage.job(tenant=Tenant(name, COST), sort_key=UNTAGGED)

        await stage.submit(of("a"), of("a"))
        async with self.transaction() as within:
            await self.within(stage, within, of("b"), of("b"))
            await self.within(stage, within, of("a"))
            await self.commit(stage, within)
        await stage.submit(of("b"))
        await stage.worker()
        claimed = await stage.claim()
        assert "".join(taken.job.tenant.name for taken in claimed if taken.job.tenant) == "abab" + "ab"

    @played
    async def test_an_empty_batch_within_a_transaction_is_fine(self, stage: Stage) -> None:
        async with self.transaction() as within:
            assert await self.within(stage, within) == []
            await within.commit()

    @played
    async def test_what_is_no_connection_is_refused(self, stage: Stage) -> None:
        wrong: list[Any] = [None, "jobs.db", object(), stage.store]
        for conn in wrong:
            with refused(ConfigurationError):
                await stage.store.submit_within(conn, [stage.job()])
