"""Permits: who holds one, when it comes back, and that it never comes back twice."""

from __future__ import annotations

from betimes.core.events import DeadlinePassed, GivenBack, Succeeded
from betimes.core.job import JobStatus
from betimes.ports import Hint
from betimes.testing.store_contract.gate_stage import GateStage, seqs, with_code
from betimes.testing.store_contract.listing import Listener
from betimes.testing.store_contract.reporting import all_ends
from betimes.testing.store_contract.stage import BOOM, Stage, played

READY, RUNNING, COMPLETED = JobStatus.READY, JobStatus.RUNNING, JobStatus.COMPLETED
TIMED_OUT, CANCELLED = JobStatus.TIMED_OUT, JobStatus.CANCELLED


class PermitContract:
    """A permit is one attempt's until its code has returned or its worker's lease is over."""

    @played
    async def test_p19_a_permit_comes_back_however_an_attempt_ends(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limits = [await gates.limit("l"), await gates.limit("m", 5)]
        for event in all_ends(stage.now):
            taken = await gates.start(*limits)
            assert await gates.held(*limits) == [1, 1]
            await gates.tell(taken, event)
            assert await gates.held(*limits) == [0, 0], event

    @played
    async def test_p19_code_that_runs_on_after_its_timeout_keeps_its_permit(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        late = await gates.start(limit)
        (other,) = await gates.add(1, limit)
        await gates.tell(late, DeadlinePassed(stage.now, BOOM), has_returned=False)
        assert await stage.status(late.job) is TIMED_OUT
        for _ in range(2):
            await stage.beat(running=[late])
            assert await stage.claim() == []
        assert await gates.holders(limit) == [(late.job.seq, "w1")]
        exchange = await stage.turn([], stage.request(), [(late.job.seq, late.fence)])
        assert seqs(exchange.claimed) == [other.seq]

    @played
    async def test_p19_a_job_can_hold_one_permit_for_each_attempt_whose_code_runs(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit(max_running=2)
        late = await gates.start(limit)
        await gates.tell(late, DeadlinePassed(stage.now, BOOM, 0), has_returned=False)
        await stage.worker("w2")
        (second,) = await stage.claim(worker="w2")
        assert await gates.holders(limit) == [(late.job.seq, "w1"), (late.job.seq, "w2")]
        await gates.add(2, limit)
        assert await stage.claim() == []
        await gates.tell(second)
        assert await gates.holders(limit) == [(late.job.seq, "w1")]
        await gates.returned(late)
        assert await gates.held(limit) == [0]

    @played
    async def test_p19_a_permit_outlives_the_record_of_its_job(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        late = await gates.start(limit)
        await gates.tell(late, DeadlinePassed(stage.now, BOOM), has_returned=False)
        stage.advance(10)
        assert await stage.store.prune(keep_us=0) == 1
        (other,) = await gates.add(1, limit)
        await stage.beat(running=[late])
        assert await stage.claim() == []
        assert await gates.held(limit) == [1]
        await gates.returned(late)
        assert seqs(await stage.claim()) == [other.seq]

    @played
    async def test_p07_a_permit_never_comes_back_twice(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit(max_running=2)
        done, other = await gates.start(limit), await gates.start(limit)
        for _ in range(2):  # the reply of the first may have been lost
            await gates.tell(done, Succeeded(stage.now, b"1"))
        await gates.returned(done, done)
        await stage.turn(returned=[(other.job.seq, other.fence + 1), (987_654, 1)])
        await stage.beat([other])
        assert await gates.holders(limit) == [(other.job.seq, "w1")]

    @played
    async def test_p07_code_that_returns_while_its_report_is_on_its_way_is_counted_once(
        self, stage: Stage
    ) -> None:
        gates = GateStage(stage)
        limit = await gates.limit(max_running=2)
        late, other = await gates.start(limit), await gates.start(limit)
        report = gates.report(late, DeadlinePassed(stage.now, BOOM))
        await stage.turn([report], None, [(late.job.seq, late.fence)])
        assert await gates.holders(limit) == [(other.job.seq, "w1")]

    @played
    async def test_p07_a_stale_report_takes_nothing_from_who_holds_the_job_now(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        lost = await gates.start(limit)
        stage.advance(31)
        stage.see(await stage.store.rescue({"t"}))
        await stage.worker("w2")
        (second,) = await stage.claim(worker="w2")
        before = await stage.snapshot()
        for event in all_ends(stage.now):
            for begun in (True, False):
                assert await gates.tell(lost, event, has_begun=begun) is None
        await gates.returned(lost)
        assert await stage.snapshot() == before
        assert await gates.holders(limit) == [(second.job.seq, "w2")]

    @played
    async def test_p13_the_code_of_an_abandoned_job_keeps_its_permit(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        taken = await gates.start(limit)
        (other,) = await gates.add(1, limit)
        await stage.cancel(taken.job, abandon=True)
        assert await stage.claim() == []
        assert list((await stage.beat([taken])).lost) == [taken.job.seq]
        assert await stage.claim() == [], "its worker has only just heard of it"
        await stage.beat(running=[taken])
        assert await stage.claim() == []
        assert await gates.held(limit) == [1]
        await gates.returned(taken)
        assert seqs(await stage.claim()) == [other.seq]

    @played
    async def test_p24_the_stale_report_of_an_abandoned_job_leaves_no_permit_behind(
        self, stage: Stage
    ) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        taken = await gates.start(limit)
        await stage.cancel(taken.job, abandon=True)
        assert await gates.tell(taken) is None
        await stage.beat()
        assert await gates.held(limit) == [0]

    @played
    async def test_p24_permits_of_attempts_that_a_worker_does_not_know_come_back_with_its_beat(
        self, stage: Stage
    ) -> None:
        gates = GateStage(stage)
        limit = await gates.limit(max_running=3)
        late, known, lost = [await gates.start(limit) for _ in range(3)]
        others = await gates.start(worker="w2")
        await gates.tell(late, DeadlinePassed(stage.now, BOOM), has_returned=False)
        beat = await stage.beat([known], [late])
        assert [event.seq for event in beat.changes] == [lost.job.seq]
        assert await gates.holders(limit) == [(late.job.seq, "w1"), (known.job.seq, "w1")]
        await stage.beat([known])
        assert await gates.holders(limit) == [(known.job.seq, "w1")]
        assert await stage.status(others.job) is RUNNING

    @played
    async def test_p24_a_beat_takes_no_permits_of_other_workers(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit(max_running=2)
        mine, others = await gates.start(limit), await gates.start(limit, worker="w2")
        await gates.tell(others, DeadlinePassed(stage.now, BOOM), has_returned=False)
        await stage.beat([mine])
        await stage.beat(running=[others])  # a worker cannot speak for another's
        assert (others.job.seq, "w2") in await gates.holders(limit)
        await stage.beat(running=[others], worker="w2")
        assert await gates.held(limit) == [1]

    @played
    async def test_a_permit_that_comes_back_is_hinted_at(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        ears = Listener()
        stop = stage.store.subscribe(ears.hear)
        jobs = await gates.add(3, limit)
        await stage.worker()
        (first,) = await stage.claim()
        assert await stage.claim() == []
        await ears.hears(Hint.WORK, lambda: gates.tell(first))
        (second,) = await stage.claim()
        await gates.tell(second, DeadlinePassed(stage.now, BOOM), has_returned=False)
        assert await stage.claim() == []
        await ears.hears(Hint.WORK, lambda: gates.returned(second))
        assert seqs(await stage.claim()) == [jobs[2].seq]
        stop()


class LostPermitContract:
    """What becomes of the permits of a worker that is gone."""

    @played
    async def test_p08_the_permits_of_a_dead_worker_are_free_with_its_rescue(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit(max_running=2)
        lost, late = await gates.start(limit), await gates.start(limit)
        await gates.tell(late, DeadlinePassed(stage.now, BOOM), has_returned=False)
        waiting = await gates.add(2, limit)
        await stage.worker("w2")
        stage.advance(20)
        await stage.beat(worker="w2")
        assert await stage.claim(worker="w2") == []
        stage.advance(11)
        stage.see(await stage.store.rescue({"t"}))
        assert await gates.held(limit) == [0]
        assert seqs(await stage.claim(worker="w2")) == [lost.job.seq, waiting[0].seq]

    @played
    async def test_p08_the_permits_of_jobs_that_nobody_here_knows_are_free_too(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        lost = await gates.start(limit, task="elsewhere")
        (waiting,) = await gates.add(1, limit)
        await stage.worker("w2", lease_s=1000.0)
        stage.advance(31)
        assert list(await stage.store.rescue({"t"})) == []
        assert await stage.status(lost.job) is RUNNING
        (taken,) = await stage.claim(worker="w2")
        assert taken.job.seq == waiting.seq
        # Its permit is another's now: the worker must not come back and count on it.
        assert not (await stage.beat([lost])).is_alive
        assert await gates.tell(lost) is not None, "nobody has taken the job away"
        assert await stage.status(lost.job) is COMPLETED
        assert await gates.holders(limit) == [(waiting.seq, "w2")]

    @played
    async def test_p08_a_worker_whose_last_code_runs_on_without_a_lease_has_no_permit(
        self, stage: Stage
    ) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        late = await gates.start(limit)
        await gates.tell(late, DeadlinePassed(stage.now, BOOM), has_returned=False)
        stage.advance(31)
        assert list(await stage.store.rescue({"t"})) == []
        assert await gates.held(limit) == [0]
        assert not (await stage.beat(running=[late])).is_alive
        await gates.returned(late)
        assert await gates.held(limit) == [0]

    @played
    async def test_p24_a_beat_that_comes_late_keeps_the_permits_if_nobody_was_faster(
        self, stage: Stage
    ) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        taken = await gates.start(limit)
        await gates.add(1, limit)
        stage.advance(31)
        beat = await stage.beat([taken])
        if beat.is_alive:
            assert await gates.held(limit) == [1]
            assert await stage.claim() == []

    @played
    async def test_p21_the_permits_of_a_worker_that_retires_are_free(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit(max_running=2)
        held, late = await gates.start(limit), await gates.start(limit)
        await gates.tell(late, DeadlinePassed(stage.now, BOOM), has_returned=False)
        (waiting,) = await gates.add(1, limit)
        stage.see(await stage.store.retire("w1"))
        assert await gates.held(limit) == [0]
        await stage.worker("w2")
        assert seqs(await stage.claim(worker="w2")) == [held.job.seq, waiting.seq]

    @played
    async def test_p19_a_claim_that_began_nothing_gives_its_permit_back(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        taken = await gates.start(limit)
        await gates.tell(taken, GivenBack(stage.now), has_begun=False)
        assert await gates.held(limit) == [0]
        assert seqs(await stage.claim()) == [taken.job.seq]

    @played
    async def test_p27_gates_that_are_at_rest_are_not_kept(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit, rate = await gates.limit(by="x"), await gates.rate(by="x")
        pairs = [(gates.of(limit, str(n)), gates.of(rate, str(n))) for n in range(300)]
        await stage.submit(*(stage.job(gates=pair) for pair in pairs))
        await stage.worker()
        taken = await stage.claim()
        assert len(taken) == 300
        assert len(await stage.store.gates_under(limit)) == 300
        assert len(await stage.store.gates_under(None)) == 600
        assert len(await stage.store.gates_under(rate, limit=7)) == 7
        await stage.turn([with_code(gates.report(one)) for one in taken])
        assert [view.key for view in await stage.store.gates_under(limit)] == [limit]
        stage.advance(1)
        await stage.turn(claim=stage.request())
        assert [view.key for view in await stage.store.gates_under(None)] == sorted([limit, rate])
