"""Lines: jobs of one queue and lane behind the same gates; and who passes when lines meet at a gate.

What all of it comes down to: a claim takes the jobs that it would take if it went through all that are ready,
in order, and passed over each of which a gate is closed just then; but it looks only at the first of a line.
"""

from __future__ import annotations

from typing import Any

from betimes.core.job import JobStatus
from betimes.testing.store_contract.gate_stage import GateStage, at, seqs
from betimes.testing.store_contract.stage import SECOND, Stage, Taken, played


class LineContract:
    """What holds for those who wait at gates."""

    @played
    async def test_p20_lines_at_one_gate_pass_in_the_strategys_order(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit(max_running=2)
        extra = [await gates.limit(name, 99) for name in "xyz"]
        jobs = await stage.submit(
            *(
                stage.job(gates=[limit, *extra[: n % 4]], queue="ab"[n % 2], sort_key=7 * n % 5)
                for n in range(24)
            )
        )
        await stage.worker()
        expected = [job.seq for job in sorted(jobs, key=lambda job: (job.sort_key, job.seq))]
        got = []
        while taken := await stage.claim():
            got += seqs(taken)
            for one in taken:
                await gates.tell(one)
        assert got == expected

    @played
    async def test_p20_lines_that_wait_and_others_that_do_not_pass_in_order(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit(max_running=1)
        holder = await gates.start(limit)
        waiting = await gates.add(2, limit, sort_key=1)
        assert await stage.claim() == []
        early, late = await stage.add(sort_key=0), await stage.add(sort_key=2)
        exchange = await stage.turn([gates.report(holder)], stage.request(2))
        assert seqs(exchange.claimed) == seqs([early, waiting[0]])
        assert seqs(await stage.claim(2)) == [late.seq]

    @played
    async def test_a_job_needs_all_its_gates_open_and_is_charged_at_each(self, stage: Stage) -> None:
        gates = GateStage(stage)
        one, two = await gates.limit("one", 2), await gates.limit("two", 1)
        jobs = await gates.add(3, one, two)
        await stage.worker()
        (taken,) = await stage.claim()
        assert await gates.held(one, two) == [1, 1]
        await gates.tell(taken)
        assert await gates.held(one, two) == [0, 0]
        assert seqs(await stage.claim()) == [jobs[1].seq]

    @played
    async def test_who_finds_its_second_gate_closed_has_not_been_charged_at_the_first(
        self, stage: Stage
    ) -> None:
        gates = GateStage(stage)
        limit, rate = await gates.limit(), await gates.rate(every_s=10.0)
        first = await gates.start(limit, rate)
        both = await gates.add(1, limit, rate)
        (only,) = await gates.add(1, limit, sort_key=1)
        assert await stage.claim() == []
        await gates.tell(first)
        (taken,) = await stage.claim()
        assert taken.job.seq == only.seq, "the permit is no use to who still waits for a token"
        assert await gates.holders(limit) == [(only.seq, "w1")]
        stage.advance(10)
        assert await stage.claim() == []
        assert (await gates.view(rate)).gate.is_open(stage.now), "a token is charged with the permit"
        await gates.tell(taken)
        assert seqs(await stage.claim()) == seqs(both)

    @played
    async def test_many_lines_that_go_on_to_another_gate_leave_room_for_the_next(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        closed = [await gates.limit(f"closed {n}", 1) for n in range(5)]
        for key in closed:
            await gates.start(key)
        holder = await gates.start(limit)
        for key in closed:
            await gates.add(2, limit, key, sort_key=-1)
        (free,) = await gates.add(1, limit)
        assert await stage.claim() == []
        await gates.tell(holder)
        assert seqs(await stage.claim()) == [free.seq]

    @played
    async def test_a_gate_that_opens_for_several_lets_in_so_many(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit(max_running=3)
        other = await gates.limit("m", 9)
        taken = [await gates.start(limit) for _ in range(3)]
        one = await gates.add(3, limit, sort_key=1)
        two = await gates.add(3, limit, other, sort_key=2)
        assert await stage.claim() == []
        for each in taken:
            await gates.tell(each)
        assert seqs(await stage.claim(2)) == seqs(one[:2])
        assert seqs(await stage.claim()) == [one[2].seq]
        assert await stage.claim() == []
        assert await gates.waiting(limit) == seqs(two)

    @played
    async def test_a_paused_queue_takes_no_permit_from_the_others(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        paused = await gates.add(2, limit, queue="a", sort_key=-1)
        others = await gates.add(2, limit, queue="b")
        await stage.worker()
        await stage.store.pause_queue("a")
        (taken,) = await stage.claim()
        assert taken.job.seq == others[0].seq
        exchange = await stage.turn([gates.report(taken)], stage.request())
        assert seqs(exchange.claimed) == [others[1].seq]
        await stage.store.resume_queue("a")
        assert await stage.claim() == []
        (last,) = exchange.claimed
        await gates.tell(Taken(last, last.fence, last.attempt))
        assert seqs(await stage.claim()) == [paused[0].seq]

    @played
    async def test_a_lane_without_room_takes_no_permit_from_the_others(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        threads = await gates.add(2, limit, lane="thread", sort_key=-1)
        loops = await gates.add(2, limit, lane="loop")
        await stage.worker()
        (taken,) = await stage.claim(lanes={"thread": 0, "loop": 5})
        assert taken.job.seq == loops[0].seq
        await gates.tell(taken)
        assert seqs(await stage.claim(lanes={"loop": 5})) == [loops[1].seq]
        assert await stage.claim() == []
        assert await gates.waiting(limit) == seqs(threads)

    @played
    async def test_queues_that_a_worker_does_not_serve_take_no_permit(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        better = await gates.add(1, limit, queue="a", sort_key=-1)
        worse = await gates.add(1, limit, queue="b")
        await stage.worker()
        (taken,) = await stage.claim(queues=("b",))
        assert taken.job.seq == worse[0].seq
        assert await stage.claim(queues=("a",)) == []
        await gates.tell(taken)
        assert await stage.claim(queues=("b",)) == []
        assert seqs(await stage.claim(queues=("a",))) == seqs(better)

    @played
    async def test_an_open_gate_wakes_nobody_for_what_cannot_be_claimed(self, stage: Stage) -> None:
        gates = GateStage(stage)
        rate = await gates.rate(every_s=5.0)
        await gates.start(rate)
        jobs = await gates.add(2, rate, queue="a", lane="thread")
        assert (await stage.turn(claim=stage.request())).next_at == stage.now + 5 * SECOND
        await stage.store.pause_queue("a")
        stage.advance(5)
        ways: list[dict[str, Any]] = [{}, {"lanes": {"loop": 1}}, {"queues": ("b",)}, {"limit": 0}]
        for options in ways:
            exchange = await stage.turn(claim=stage.request(**options))
            assert exchange.claimed == []
            assert exchange.next_at is None or exchange.next_at > stage.now, options
            await stage.store.resume_queue("a")
        assert seqs(await stage.claim()) == [jobs[0].seq]

    @played
    async def test_p26_who_is_on_hold_hides_neither_its_line_nor_others(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit, other = await gates.limit(), await gates.limit("m", 9)
        holder = await gates.start(limit)
        line = await gates.add(2, limit, sort_key=-1)
        lonely = await gates.add(1, limit, other, sort_key=-2)
        assert await stage.claim() == []
        await gates.tell(holder)
        (taken,) = await stage.claim(hold={lonely[0].id, line[0].id})
        assert taken.job.seq == line[1].seq
        await gates.tell(taken)
        assert await stage.claim(hold={lonely[0].id, line[0].id}) == []
        assert await gates.held(limit, other) == [0, 0], "who is passed over is not charged"
        (taken,) = await stage.claim()
        assert taken.job.seq == lonely[0].seq, "it lost neither place nor chance"
        await gates.tell(taken)
        assert seqs(await stage.claim()) == [line[0].seq]

    @played
    async def test_who_is_on_hold_wakes_nobody(self, stage: Stage) -> None:
        gates = GateStage(stage)
        rate = await gates.rate(every_s=5.0)
        (job,) = await gates.add(1, rate)
        await stage.worker()
        exchange = await stage.turn(claim=stage.request(hold={job.id}))
        assert exchange.claimed == []
        assert exchange.next_at is None or exchange.next_at > stage.now
        assert (await gates.view(rate)).gate.is_open(stage.now)
        assert seqs(await stage.claim()) == [job.seq]

    @played
    async def test_who_has_expired_is_not_charged(self, stage: Stage) -> None:
        gates = GateStage(stage)
        rate = await gates.rate(every_s=5.0)
        expired = await gates.add(3, rate, expires_s=2.0)
        (job,) = await gates.add(1, rate, sort_key=1)
        await stage.worker()
        stage.advance(2)
        assert seqs(await stage.claim()) == [job.seq]
        assert await stage.statuses_of(*expired) == [JobStatus.CANCELLED] * 3

    @played
    async def test_a_job_waits_for_the_last_of_its_tokens(self, stage: Stage) -> None:
        gates = GateStage(stage)
        fast, slow = await gates.rate("fast", every_s=3.0), await gates.rate("slow", every_s=7.0)
        jobs = [*await gates.add(3, fast, slow), *await gates.add(3, slow, fast, sort_key=1)]
        await stage.worker(lease_s=1000.0)
        assert await gates.wait_for_claims(seconds=40) == at([0, 7, 14, 21, 28, 35], jobs)

    @played
    async def test_p20_a_claim_takes_no_more_from_a_line_than_it_asked_for(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit(max_running=50)
        jobs = [*await gates.add(10, limit), *await gates.add(10, limit, lane="thread")]
        await stage.worker()
        assert seqs(await stage.claim(3)) == seqs(jobs[:3])
        assert seqs(await stage.claim(9, lanes={"loop": 2, "thread": 2})) == seqs([*jobs[3:5], *jobs[10:12]])
        assert await gates.held(limit) == [7]

    @played
    async def test_no_worker_is_idle_while_somebody_may_pass(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit, rate = await gates.limit(max_running=2), await gates.rate(every_s=1.0, burst=2)
        behind_both = await gates.add(6, limit, rate)
        behind_limit = await gates.add(6, limit, sort_key=1)
        behind_rate = await gates.add(6, rate, sort_key=2)
        await stage.worker()
        taken = await stage.claim()
        assert seqs(taken) == seqs(behind_both[:2])
        stage.advance(1)
        assert seqs(await stage.claim()) == [behind_rate[0].seq]
        stage.advance(1)
        await gates.tell(taken[0])
        assert seqs(await stage.claim()) == [behind_both[2].seq]
        await gates.tell(taken[1])
        assert seqs(await stage.claim()) == [behind_limit[0].seq]

    @played
    async def test_lines_of_many_gates_leave_nothing_behind(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit(by="x")
        keys = [gates.of(limit, str(n)) for n in range(100)]
        await stage.submit(*(stage.job(gates=[key]) for key in keys for _ in range(3)))
        await stage.worker()
        rounds = 0
        while taken := await stage.claim():
            await stage.turn([gates.report(one) for one in taken])
            rounds += 1
        assert rounds == 3
        entries, live = stage.store.heap_entries()
        assert (live, entries <= 64) == (0, True)
