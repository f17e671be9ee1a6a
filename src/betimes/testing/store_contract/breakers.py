"""Circuit breakers: what trips lets nobody through but a probe now and then, until one succeeds."""

from __future__ import annotations

from collections.abc import Callable

from betimes.core.events import DeadlinePassed, Errored, Event, GivenBack, Succeeded
from betimes.core.job import Micros
from betimes.ports import Hint
from betimes.testing.store_contract.gate_stage import GateStage, at, seqs
from betimes.testing.store_contract.listing import Listener
from betimes.testing.store_contract.stage import BOOM, SECOND, Stage, played


class BreakerContract:
    """What a circuit breaker promises."""

    @played
    async def test_a_closed_circuit_lets_everything_through(self, stage: Stage) -> None:
        gates = GateStage(stage)
        breaker = await gates.breaker()
        jobs = await gates.add(20, breaker)
        await stage.worker()
        assert seqs(await stage.claim()) == seqs(jobs)
        assert [view.key for view in await stage.store.gates_under(breaker)] == [breaker]
        assert not (await gates.view(breaker)).gate.is_tripped

    @played
    async def test_an_open_circuit_lets_one_probe_through_for_each_span(self, stage: Stage) -> None:
        gates = GateStage(stage)
        breaker = await gates.breaker(open_for_s=10.0)
        jobs = await gates.add(4, breaker)
        await stage.worker(lease_s=1000.0)
        await stage.store.trip(breaker, is_open=True)
        assert (await gates.view(breaker)).gate.is_tripped
        assert await gates.wait_for_claims(seconds=35) == at([10, 20, 30], jobs[:3])
        assert await gates.waiting(breaker) == seqs(jobs[3:])

    @played
    async def test_who_waited_already_is_held_back_by_a_trip(self, stage: Stage) -> None:
        gates = GateStage(stage)
        breaker, limit = await gates.breaker(open_for_s=10.0), await gates.limit()
        holder = await gates.start(breaker, limit)
        jobs = await gates.add(2, breaker, limit)
        others = await gates.add(1, sort_key=1)
        await stage.store.trip(breaker, is_open=True)
        assert seqs(await stage.claim()) == seqs(others)
        stage.advance(1)
        await gates.tell(holder, Errored(stage.now, BOOM))
        assert await gates.wait_for_claims(seconds=12) == at([9], jobs[:1])

    @played
    async def test_the_success_of_a_probe_closes_the_circuit(self, stage: Stage) -> None:
        gates = GateStage(stage)
        breaker = await gates.breaker(open_for_s=10.0)
        jobs = await gates.add(4, breaker)
        await stage.worker()
        await stage.store.trip(breaker, is_open=True)
        stage.advance(10)
        (probe,) = await stage.claim()
        stage.advance(1)
        exchange = await stage.turn([gates.report(probe)], stage.request())
        assert seqs(exchange.claimed) == seqs(jobs[1:])
        assert not (await gates.view(breaker)).gate.is_tripped

    @played
    async def test_a_probe_that_takes_longer_than_the_span_closes_it_all_the_same(self, stage: Stage) -> None:
        gates = GateStage(stage)
        breaker = await gates.breaker(open_for_s=10.0)
        await stage.worker(lease_s=1000.0)
        jobs = await gates.add(5, breaker)
        await stage.store.trip(breaker, is_open=True)
        probes = []
        for _ in range(3):
            stage.advance(10)
            probes += await stage.claim()
        assert seqs(probes) == seqs(jobs[:3])
        await gates.tell(probes[0])
        assert seqs(await stage.claim()) == seqs(jobs[3:])

    @played
    async def test_the_success_of_what_began_before_the_trip_proves_nothing(self, stage: Stage) -> None:
        gates = GateStage(stage)
        breaker = await gates.breaker(open_for_s=10.0)
        older = [await gates.start(breaker) for _ in range(2)]
        (job,) = await gates.add(1, breaker, sort_key=1)
        stage.advance(1)
        await stage.store.trip(breaker, is_open=True)
        stage.advance(1)
        await gates.tell(older[0])
        assert await stage.claim() == []
        stage.advance(9)
        (probe,) = await stage.claim()
        assert probe.job.seq == job.seq
        await gates.tell(older[1])
        assert (await gates.view(breaker)).gate.is_tripped

    @played
    async def test_a_probe_that_does_not_succeed_leaves_it_open(self, stage: Stage) -> None:
        gates = GateStage(stage)
        breaker = await gates.breaker(open_for_s=10.0)
        await stage.worker(lease_s=1000.0)
        await gates.add(9, breaker)
        await stage.store.trip(breaker, is_open=True)
        ends: list[Callable[[Micros], Event]] = [
            lambda now: Errored(now, BOOM),
            lambda now: Errored(now, BOOM, 0),
            lambda now: DeadlinePassed(now, BOOM),
            GivenBack,
        ]
        for end in ends:
            stage.advance(10)
            (probe,) = await stage.claim()
            await gates.tell(probe, end(stage.now))
            assert await stage.claim() == []
            assert (await gates.view(breaker)).gate.is_tripped

    @played
    async def test_a_cancelled_probe_proves_nothing(self, stage: Stage) -> None:
        gates = GateStage(stage)
        breaker = await gates.breaker(open_for_s=10.0)
        await stage.worker()
        await gates.add(2, breaker)
        await stage.store.trip(breaker, is_open=True)
        stage.advance(10)
        (probe,) = await stage.claim()
        await stage.cancel(probe.job)
        await gates.tell(probe)
        assert (await gates.view(breaker)).gate.is_tripped

    @played
    async def test_p07_a_stale_success_closes_nothing(self, stage: Stage) -> None:
        gates = GateStage(stage)
        breaker = await gates.breaker(open_for_s=10.0)
        await stage.worker()
        await gates.add(1, breaker)
        await stage.store.trip(breaker, is_open=True)
        stage.advance(10)
        (probe,) = await stage.claim()
        stage.advance(31)
        stage.see(await stage.store.rescue({"t"}))
        assert await gates.tell(probe) is None
        assert (await gates.view(breaker)).gate.is_tripped

    @played
    async def test_a_probe_that_began_nothing_makes_way_for_another(self, stage: Stage) -> None:
        gates = GateStage(stage)
        breaker = await gates.breaker(open_for_s=10.0)
        jobs = await gates.add(2, breaker)
        await stage.worker()
        await stage.store.trip(breaker, is_open=True)
        stage.advance(10)
        (probe,) = await stage.claim()
        await gates.tell(probe, GivenBack(stage.now, parked="task:t"), has_begun=False)
        assert seqs(await stage.claim()) == [jobs[1].seq]

    @played
    async def test_who_began_nothing_before_the_trip_took_no_probe(self, stage: Stage) -> None:
        gates = GateStage(stage)
        breaker = await gates.breaker(open_for_s=10.0)
        taken = await gates.start(breaker)
        (job,) = await gates.add(1, breaker, sort_key=1)
        stage.advance(1)
        await stage.store.trip(breaker, is_open=True)
        await gates.tell(taken, GivenBack(stage.now, parked="task:t"), has_begun=False)
        assert await gates.wait_for_claims(seconds=12) == at([10], [job])

    @played
    async def test_a_second_trip_begins_the_span_anew(self, stage: Stage) -> None:
        gates = GateStage(stage)
        breaker = await gates.breaker(open_for_s=10.0)
        jobs = await gates.add(2, breaker)
        await stage.worker()
        await stage.store.trip(breaker, is_open=True)
        stage.advance(10)
        (probe,) = await stage.claim()
        stage.advance(5)
        await stage.store.trip(breaker, is_open=True)
        await gates.tell(probe)
        assert await gates.wait_for_claims(seconds=12) == at([10], jobs[1:])

    @played
    async def test_whoever_closes_a_circuit_is_heard(self, stage: Stage) -> None:
        gates = GateStage(stage)
        breaker = await gates.breaker(open_for_s=10.0)
        jobs = await gates.add(2, breaker)
        await stage.worker()
        await stage.store.trip(breaker, is_open=True)
        assert await stage.claim() == []
        ears = Listener()
        stop = stage.store.subscribe(ears.hear)
        await ears.hears(Hint.WORK, lambda: stage.store.trip(breaker, is_open=False))
        stop()
        assert seqs(await stage.claim()) == seqs(jobs)

    @played
    async def test_a_breaker_that_nobody_declared_does_not_trip(self, stage: Stage) -> None:
        before = await stage.snapshot()
        await stage.store.trip("breaker:unheard of", is_open=True)
        await stage.store.trip("breaker:unheard of", is_open=False)
        assert await stage.snapshot() == before

    @played
    async def test_each_task_has_its_own_circuit(self, stage: Stage) -> None:
        gates = GateStage(stage)
        one, two = await gates.breaker("one"), await gates.breaker("two")
        await gates.add(1, one)
        (other,) = await gates.add(1, two)
        await stage.worker()
        await stage.store.trip(one, is_open=True)
        assert seqs(await stage.claim()) == [other.seq]
        await gates.tell(await gates.start(two))
        assert [
            (view.key, view.gate.is_tripped) for view in await stage.store.gates_under(None) if view.full_at
        ] == [(one, True)]

    @played
    async def test_p29_a_clock_that_is_set_back_keeps_no_circuit_open(self, stage: Stage) -> None:
        gates = GateStage(stage)
        breaker = await gates.breaker(open_for_s=10.0)
        jobs = await gates.add(3, breaker)
        await stage.worker()
        await stage.store.trip(breaker, is_open=True)
        assert await stage.claim() == []
        stage.clock.jump(-86_400)
        assert (await stage.turn(claim=stage.request())).next_at == stage.now + 10 * SECOND
        stage.advance(10)
        (probe,) = await stage.claim()
        await gates.tell(probe, Succeeded(stage.now, b"1"))
        assert seqs(await stage.claim()) == seqs(jobs[1:])
