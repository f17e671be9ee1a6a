"""The lives of jobs behind gates: they retry, expire, are cancelled, replaced and rescued as all others."""

from __future__ import annotations

from betimes.core.events import Errored, Event, GivenBack, Snoozed, Succeeded
from betimes.core.job import JobStatus
from betimes.errors import DuplicateJob
from betimes.testing.store_contract.gate_stage import GateStage, seqs
from betimes.testing.store_contract.stage import BOOM, SECOND, Stage, played, refused

READY, CANCELLED = JobStatus.READY, JobStatus.CANCELLED


class GatedLifeContract:
    """Jobs behind gates live as all others do."""

    @played
    async def test_p13_who_is_cancelled_while_it_waits_never_starts_and_leaves_its_place(
        self, stage: Stage
    ) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        taken = await gates.start(limit)
        jobs = await gates.add(4, limit)
        assert await stage.claim() == []
        for job in (jobs[0], jobs[2]):
            await stage.cancel(job)
        assert await gates.waiting(limit) == seqs([jobs[1], jobs[3]])
        await gates.tell(taken)
        assert seqs(await stage.claim()) == [jobs[1].seq]
        await stage.cancel(jobs[3])
        assert await gates.waiting(limit) == []

    @played
    async def test_who_expires_while_it_waits_does_so_at_its_time(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        await gates.start(limit)
        first, second = await gates.add(1, limit, expires_s=5.0), await gates.add(1, limit)
        assert (await stage.turn(claim=stage.request())).next_at == stage.now + 5 * SECOND
        stage.advance(5)
        assert await stage.claim() == []
        assert await stage.statuses_of(*first, *second) == [CANCELLED, READY]
        assert await gates.waiting(limit) == seqs(second)

    @played
    async def test_who_comes_again_is_behind_the_gate_again(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        events: list[Event] = [
            Errored(stage.now, BOOM, retry_in_us=0),
            GivenBack(stage.now),
            Errored(stage.now, BOOM, retry_in_us=5 * SECOND),
            Snoozed(stage.now, 5 * SECOND),
        ]
        for event in events:
            taken = await gates.start(limit)
            (other,) = await gates.add(1, limit, sort_key=-(2**50))
            await gates.tell(taken, event)
            assert await gates.held(limit) == [0]
            (second,) = await stage.claim()
            assert second.job.seq == other.seq
            stage.advance(6)
            assert await stage.claim() == []
            assert await gates.waiting(limit) == [taken.job.seq]
            await gates.tell(second)
            (third,) = await stage.claim()
            assert third.job.seq == taken.job.seq
            await gates.tell(third)

    @played
    async def test_p08_who_is_rescued_is_behind_the_gate_again(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        taken = await gates.start(limit)
        (other,) = await gates.add(1, limit)
        stage.advance(31)
        stage.see(await stage.store.rescue({"t"}))
        await stage.worker("w2")
        (second,) = await stage.claim(worker="w2")
        assert second.job.seq == taken.job.seq, "it kept its place in the order"
        assert await gates.waiting(limit) == [other.seq]
        assert await gates.holders(limit) == [(taken.job.seq, "w2")]

    @played
    async def test_p09_who_is_retried_by_an_operator_is_behind_the_gate_again(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        first = await gates.start(limit)
        await gates.tell(first, Errored(stage.now, BOOM))
        second = await gates.start(limit)
        stage.see(await stage.store.retry(first.job, by="ops"))
        assert await stage.claim() == []
        assert await gates.waiting(limit) == [first.job.seq]
        await gates.tell(second)
        assert seqs(await stage.claim()) == [first.job.seq]

    @played
    async def test_p28_who_was_put_aside_is_behind_the_gate_when_it_comes_back(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        parked = await gates.start(limit)
        await gates.tell(parked, GivenBack(stage.now, parked="task:t"), has_begun=False)
        holder = await gates.start(limit)
        assert await gates.waiting(limit) == []
        stage.see(await stage.store.unpark("task:t"))
        assert await stage.claim() == []
        assert await gates.waiting(limit) == [parked.job.seq]
        await gates.tell(holder)
        assert seqs(await stage.claim()) == [parked.job.seq]

    @played
    async def test_p14_delayed_and_blocked_jobs_come_to_the_gate_when_they_are_ready(
        self, stage: Stage
    ) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        holder, parent = await gates.start(limit), await stage.start()
        (delayed,) = await gates.add(1, limit, delay_s=5.0, sort_key=1)
        (blocked,) = await gates.add(1, limit, depends_on=[parent.job])
        assert await gates.waiting(limit) == []
        assert (await stage.turn(claim=stage.request())).next_at == stage.now + 5 * SECOND
        stage.advance(5)
        await stage.report(parent, Succeeded(stage.now, b"1"))
        assert await stage.claim() == []
        assert await gates.waiting(limit) == seqs([blocked, delayed])
        await gates.tell(holder)
        assert seqs(await stage.claim()) == [blocked.seq]

    @played
    async def test_a_newer_version_takes_the_place_behind_its_own_gates(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit, other = await gates.limit("l"), await gates.limit("m")
        holders = [await gates.start(limit), await gates.start(other)]
        old = await stage.add("x", gates=[limit])
        assert await stage.claim() == []
        new = await stage.add("x", gates=[other], replace_older=True)
        assert await stage.claim() == []
        assert (await gates.waiting(limit), await gates.waiting(other)) == ([], [new.seq])
        assert await stage.status(old) is CANCELLED
        await gates.tell(holders[0])
        assert await stage.claim() == []
        await gates.tell(holders[1])
        assert seqs(await stage.claim()) == [new.seq]

    @played
    async def test_a_refused_batch_leaves_nobody_at_the_gate(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        await gates.start(limit)
        live = await stage.add("x")
        with refused(DuplicateJob):
            await stage.store.submit([stage.job(gates=[limit]), stage.job("x")])
        assert seqs(await stage.claim()) == [live.seq]
        assert await gates.waiting(limit) == []

    @played
    async def test_a_jobs_rank_counts_its_own_line_and_what_can_be_claimed(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit, other = await gates.limit("l"), await gates.limit("m")
        await gates.start(limit)
        await gates.start(other)
        await gates.add(7, other, sort_key=-2)
        line = await gates.add(3, limit)
        assert await stage.claim() == []
        await gates.add(1, sort_key=-1)
        plain = await stage.add(sort_key=5)
        assert await stage.store.ahead(line[2]) == 3
        assert await stage.store.ahead(line[2], most=2) == 2
        assert await stage.store.ahead(line[0]) == 1
        assert await stage.store.ahead(plain) == 1
