"""Rates: tokens that are charged by claims and gather with time."""

from __future__ import annotations

from betimes.core.events import Errored, GivenBack, Snoozed
from betimes.core.job import JobStatus
from betimes.testing.store_contract.gate_stage import GateStage, at, seqs
from betimes.testing.store_contract.stage import BOOM, SECOND, Stage, played

READY = JobStatus.READY


class RateContract:
    """What a rate promises."""

    @played
    async def test_case_141_starts_are_spread_as_the_rate_says(self, stage: Stage) -> None:
        gates = GateStage(stage)
        rate = await gates.rate(every_s=2.0)
        jobs = await gates.add(4, rate)
        await stage.worker()
        assert await gates.wait_for_claims(seconds=20) == at([0, 2, 4, 6], jobs)

    @played
    async def test_so_many_tokens_gather_as_the_burst_says(self, stage: Stage) -> None:
        gates = GateStage(stage)
        rate = await gates.rate(every_s=2.0, burst=3)
        await stage.worker(lease_s=1000.0)
        jobs = await gates.add(5, rate)
        assert await gates.wait_for_claims(seconds=5) == at([0, 0, 0, 2, 4], jobs)
        stage.advance(100)
        jobs = await gates.add(5, rate)
        assert await gates.wait_for_claims(seconds=5) == at([0, 0, 0, 2, 4], jobs)

    @played
    async def test_the_next_token_is_told_and_never_given_early(self, stage: Stage) -> None:
        gates = GateStage(stage)
        rate = await gates.rate(every_s=1 / 3)
        jobs = await gates.add(2, rate)
        await stage.worker()
        exchange = await stage.turn(claim=stage.request())
        assert (seqs(exchange.claimed), exchange.next_at) == ([jobs[0].seq], stage.now + 333_333)
        stage.advance(0.333_332)
        exchange = await stage.turn(claim=stage.request())
        assert (exchange.claimed, exchange.next_at) == ([], stage.now + 1)
        stage.advance(0.000_001)
        assert seqs(await stage.claim()) == [jobs[1].seq]
        assert (await stage.turn()).next_at is None, "nobody waits for the next one"

    @played
    async def test_a_token_is_charged_by_the_claim_and_not_by_its_end(self, stage: Stage) -> None:
        gates = GateStage(stage)
        rate = await gates.rate(every_s=10.0)
        taken = await gates.start(rate)
        (other,) = await gates.add(1, rate)
        stage.advance(4)
        await gates.tell(taken)
        assert await gates.wait_for_claims(seconds=7) == at([6], [other])

    @played
    async def test_who_comes_again_is_charged_again(self, stage: Stage) -> None:
        gates = GateStage(stage)
        rate = await gates.rate(every_s=10.0)
        await stage.worker(lease_s=1000.0)
        for event in (Errored(stage.now, BOOM, 0), Snoozed(stage.now, 0), GivenBack(stage.now)):
            taken = await gates.start(rate)
            await gates.tell(taken, event)
            assert await gates.wait_for_claims(seconds=11) == at([10], [taken.job])
            stage.advance(10)

    @played
    async def test_a_claim_that_began_nothing_gives_its_token_back(self, stage: Stage) -> None:
        gates = GateStage(stage)
        rate = await gates.rate(every_s=10.0, burst=2)
        parked, back = await gates.start(rate), await gates.start(rate)
        await gates.tell(parked, GivenBack(stage.now, parked="task:t"), has_begun=False)
        assert (await gates.view(rate)).gate.free(stage.now, 9) == 1
        await gates.tell(back, GivenBack(stage.now), has_begun=False)
        assert (await gates.view(rate)).gate.free(stage.now, 9) == 2
        assert seqs(await stage.claim()) == [back.job.seq]

    @played
    async def test_p07_a_token_comes_back_once(self, stage: Stage) -> None:
        gates = GateStage(stage)
        rate = await gates.rate(every_s=10.0, burst=3)
        taken = await gates.start(rate)
        await gates.start(rate)
        await gates.start(rate)
        for _ in range(3):  # the replies of the first were lost
            await gates.tell(taken, GivenBack(stage.now, parked="task:t"), has_begun=False)
        assert (await gates.view(rate)).gate.free(stage.now, 9) == 1

    @played
    async def test_p24_a_claim_whose_reply_was_lost_has_cost_no_token(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit, rate = await gates.limit(), await gates.rate(every_s=10.0)
        lost = await gates.start(limit, rate)
        beat = await stage.beat()
        assert [event.seq for event in beat.changes] == [lost.job.seq]
        assert seqs(await stage.claim()) == [lost.job.seq]
        await stage.beat()
        await stage.cancel(lost.job)
        assert await gates.held(limit) == [0]
        assert len(await gates.add(1, rate)) == len(await stage.claim()) == 1

    @played
    async def test_who_is_cancelled_takes_no_token_with_it(self, stage: Stage) -> None:
        gates = GateStage(stage)
        rate = await gates.rate(every_s=10.0)
        await gates.start(rate)
        jobs = await gates.add(3, rate)
        assert await stage.claim() == []
        for job in jobs[:2]:
            await stage.cancel(job)
        assert await gates.wait_for_claims(seconds=15) == at([10], jobs[2:])

    @played
    async def test_each_value_has_a_bucket_of_its_own(self, stage: Stage) -> None:
        gates = GateStage(stage)
        rate = await gates.rate(every_s=5.0, by="host")
        a = await gates.add(2, gates.of(rate, "a"))
        b = await gates.add(2, gates.of(rate, "b"))
        await stage.worker()
        stage.advance(1)
        assert await gates.wait_for_claims(seconds=6) == at([0, 0, 5, 5], [a[0], b[0], a[1], b[1]])

    @played
    async def test_a_rate_is_shared_over_queues_and_lanes(self, stage: Stage) -> None:
        gates = GateStage(stage)
        rate = await gates.rate(every_s=1.0)
        places = [("a", "loop"), ("b", "thread"), ("a", "thread"), ("b", "loop")]
        jobs = await stage.submit(
            *(
                stage.job(gates=[rate], queue=queue, lane=lane, sort_key=-n)
                for n, (queue, lane) in enumerate(places)
            )
        )
        await stage.worker()
        assert await gates.wait_for_claims(seconds=9) == at([0, 1, 2, 3], jobs[::-1])

    @played
    async def test_a_rate_whose_queue_is_paused_loses_no_token_to_it(self, stage: Stage) -> None:
        gates = GateStage(stage)
        rate = await gates.rate(every_s=5.0)
        paused = await gates.add(2, rate, queue="a", sort_key=-1)
        others = await gates.add(2, rate, queue="b")
        await stage.worker(lease_s=1000.0)
        await stage.store.pause_queue("a")
        assert await gates.wait_for_claims(seconds=6) == at([0, 5], others)
        await stage.store.resume_queue("a")
        assert await gates.wait_for_claims(seconds=20) == at([4, 9], paused)


class RateChangeContract:
    """What a change of a rate promises, and a change of the clock."""

    @played
    async def test_a_rate_that_is_made_faster_holds_for_those_who_wait(self, stage: Stage) -> None:
        gates = GateStage(stage)
        rate = await gates.rate(every_s=20.0)
        await gates.start(rate)
        jobs = await gates.add(2, rate)
        assert await stage.claim() == []
        stage.advance(10)  # half of the token is there
        await gates.change(rate, every_us=4 * SECOND)
        assert await gates.wait_for_claims(seconds=10) == at([2, 6], jobs)

    @played
    async def test_a_rate_that_is_made_slower_gives_no_token_early(self, stage: Stage) -> None:
        gates = GateStage(stage)
        rate = await gates.rate(every_s=2.0)
        await gates.start(rate)
        jobs = await gates.add(2, rate)
        assert await stage.claim() == []
        stage.advance(1)
        await gates.change(rate, every_us=10 * SECOND)
        assert await gates.wait_for_claims(seconds=20) == at([5, 15], jobs)

    @played
    async def test_a_change_holds_for_the_buckets_of_all_values(self, stage: Stage) -> None:
        gates = GateStage(stage)
        rate = await gates.rate(every_s=20.0, by="host")
        keys = [gates.of(rate, value) for value in "ab"]
        waiting = []
        for key in keys:
            await gates.start(key)
            waiting += await gates.add(1, key)
        assert await stage.claim() == []
        await gates.change(rate, every_us=SECOND)
        waiting += await gates.add(2, gates.of(rate, "c"))
        assert await gates.wait_for_claims(seconds=5) == at(
            [0, 1, 1, 1], [waiting[2], waiting[0], waiting[1], waiting[3]]
        )

    @played
    async def test_a_bigger_burst_holds_at_once_and_a_smaller_one_takes_tokens_away(
        self, stage: Stage
    ) -> None:
        gates = GateStage(stage)
        rate = await gates.rate(every_s=10.0)
        await gates.start(rate)
        jobs = await gates.add(4, rate)
        assert await stage.claim() == []
        await gates.change(rate, burst=3)
        assert seqs(await stage.claim()) == seqs(jobs[:2])
        await gates.change(rate, burst=1)
        assert await gates.wait_for_claims(seconds=15) == at([10], jobs[2:3])

    @played
    async def test_p29_a_clock_that_is_set_back_lengthens_no_wait(self, stage: Stage) -> None:
        gates = GateStage(stage)
        rate = await gates.rate(every_s=10.0)
        await gates.start(rate)
        jobs = await gates.add(2, rate)
        assert await stage.claim() == []
        stage.clock.jump(-86_400)
        assert await stage.claim() == []  # somebody looks, as workers do
        assert await gates.wait_for_claims(seconds=21) == at([10, 20], jobs)

    @played
    async def test_p29_a_clock_that_is_set_forward_fills_the_bucket_and_no_more(self, stage: Stage) -> None:
        gates = GateStage(stage)
        rate = await gates.rate(every_s=10.0, burst=2)
        await gates.start(rate)
        await gates.start(rate)
        jobs = await gates.add(4, rate)
        assert await stage.claim() == []
        stage.clock.jump(86_400)
        assert await gates.wait_for_claims(seconds=21) == at([0, 0, 10, 20], jobs)
