"""Limits: how many of the jobs that name one run at once, and who waits."""

from __future__ import annotations

from asyncio import gather

from betimes.core.job import JobStatus
from betimes.core.limits import GateKind, GateTerms
from betimes.errors import ConfigurationError
from betimes.ports import Hint
from betimes.testing.store_contract.gate_stage import GateStage, seqs
from betimes.testing.store_contract.listing import Listener
from betimes.testing.store_contract.stage import Stage, played, refused

READY, RUNNING = JobStatus.READY, JobStatus.RUNNING


class LimitContract:
    """What a limit promises."""

    @played
    async def test_p19_no_more_run_than_the_limit_allows(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit(max_running=2)
        jobs = await gates.add(5, limit)
        for name in ("w1", "w2", "w3"):
            await stage.worker(name)
        first, *rest = await gather(*(stage.claim(worker=name) for name in ("w1", "w2", "w3")))
        assert (seqs(first), rest) == (seqs(jobs[:2]), [[], []])
        assert await gates.held(limit) == [2]
        await gates.tell(first[1])
        assert seqs(await stage.claim(worker="w2")) == [jobs[2].seq]
        assert await stage.claim() == []

    @played
    async def test_p19_what_is_reported_makes_room_in_the_same_turn(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        jobs = await gates.add(3, limit)
        await stage.worker()
        (taken,) = await stage.claim()
        exchange = await stage.turn([gates.report(taken)], stage.request())
        assert seqs(exchange.claimed) == [jobs[1].seq]

    @played
    async def test_p20_who_waits_at_a_limit_passes_in_the_strategys_order(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        jobs = await stage.submit(*(stage.job(gates=[limit], sort_key=key) for key in (5, 1, 3, 1, -2)))
        await stage.worker()
        expected = [job.seq for job in sorted(jobs, key=lambda job: (job.sort_key, job.seq))]
        got = []
        while taken := await stage.claim():
            got += seqs(taken)
            assert await gates.waiting(limit) == expected[len(got) :]
            await gates.tell(taken[0])
        assert got == expected

    @played
    async def test_p20_a_better_job_that_comes_while_its_line_waits_goes_first(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        taken = await gates.start(limit)
        worse = await gates.add(2, limit, sort_key=1)
        assert await stage.claim() == []
        (better,) = await gates.add(1, limit, sort_key=0)
        assert await stage.claim() == []
        assert await gates.waiting(limit) == seqs([better, *worse])
        await gates.tell(taken)
        assert seqs(await stage.claim()) == [better.seq]

    @played
    async def test_case_141_who_waits_holds_up_nobody_else(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        jobs = await gates.add(100, limit, sort_key=-1)
        others = await gates.add(3)
        await stage.worker()
        assert seqs(await stage.claim(3)) == seqs([jobs[0], *others[:2]])
        assert seqs(await stage.claim(3)) == [others[2].seq]
        assert await stage.store.counts() == {"default": {READY: 99, RUNNING: 4}}

    @played
    async def test_who_waits_at_a_limit_is_ready_and_not_parked(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        await gates.start(limit)
        (job,) = await gates.add(1, limit)
        assert await stage.claim() == []
        state = await stage.state(job)
        assert (state.status, state.parked, state.gates) == (READY, None, (limit,))
        assert await stage.store.parked() == {}
        assert (await stage.turn()).next_at is None, "the passing of time does not open a limit"

    @played
    async def test_each_value_has_a_limit_of_its_own(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit(max_running=2, by="customer")
        a, b, odd = [gates.of(limit, value) for value in ("a", "b", 'ü "\t"; --')]
        jobs = [*await gates.add(4, a, sort_key=-1), *await gates.add(3, b), *await gates.add(1, odd)]
        await stage.worker()
        claimed = await stage.claim()
        assert seqs(claimed) == seqs([*jobs[:2], *jobs[4:6], jobs[7]])
        assert await gates.held(a, b, odd) == [2, 2, 1]
        await gates.tell(claimed[2])
        assert seqs(await stage.claim()) == [jobs[6].seq]
        in_use = await stage.store.gates_under(limit)
        assert [view.key for view in in_use] == sorted([a, b, odd])
        assert [(view.held, view.holders, view.waiters) for view in in_use] == [
            (2, (), ()) if view.key != odd else (1, (), ()) for view in in_use
        ]

    @played
    async def test_a_limit_is_shared_over_queues_lanes_and_tasks(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit(max_running=2)
        places = [("a", "loop", "t"), ("a", "thread", "u"), ("b", "loop", "u"), ("b", "thread", "t")]
        jobs = await stage.submit(
            *(
                stage.job(gates=[limit], sort_key=n, queue=queue, lane=lane, task=task)
                for n, (queue, lane, task) in enumerate(places)
            )
        )
        await stage.worker()
        taken = await stage.claim()
        assert seqs(taken) == seqs(jobs[:2])
        assert await gates.waiting(limit) == seqs(jobs[2:])
        await gates.tell(taken[0])
        await gates.tell(taken[1])
        assert seqs(await stage.claim()) == seqs(jobs[2:])

    @played
    async def test_jobs_under_undeclared_rules_are_refused_and_nothing_is_kept(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit(by="x")
        before = await stage.snapshot()
        plain = stage.job()
        with refused(ConfigurationError) as caught:
            await stage.store.submit([plain, stage.job(gates=[limit, "limit:unheard of\tx"])])
        assert "unheard of" in str(caught.error)
        assert await stage.snapshot() == before
        await gates.add(1, gates.of(limit, "any value"), limit)

    @played
    async def test_rules_are_shown_before_anybody_uses_them(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit, rate = await gates.limit("b", 5), await gates.rate("a", every_s=2.0, burst=3, by="x")
        for rule in (limit, rate):
            (view,) = await stage.store.gates_under(rule)
            assert (view.key, view.terms, view.is_changed) == (rule, gates.terms[rule], False)
            assert (view.held, view.waiting, view.gate.is_at_rest(stage.now)) == (0, 0, True)
        assert [view.key for view in await stage.store.gates_under(None)] == sorted([limit, rate])
        assert list(await stage.store.gates_under("limit:unheard of")) == []

    @played
    async def test_holders_and_waiters_can_be_listed(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit(max_running=2)
        first = await gates.start(limit)
        stage.advance(1)
        second = await gates.start(limit, worker="w2")
        jobs = await gates.add(5, limit)
        assert await stage.claim() == []
        assert await gates.holders(limit) == [(first.job.seq, "w1"), (second.job.seq, "w2")]
        assert await gates.waiting(limit) == seqs(jobs)
        (view,) = await stage.store.gates([limit], most=1)
        assert view.holders == ((first.job.id, first.job.seq, "w1"),)
        assert view.waiters == ((jobs[0].id, jobs[0].seq),)
        assert view.held == 2


class LimitChangeContract:
    """What a change of a limit promises, by the code and at run time."""

    @played
    async def test_p19_a_limit_that_is_lowered_lets_nobody_in_until_enough_have_left(
        self, stage: Stage
    ) -> None:
        gates = GateStage(stage)
        limit = await gates.limit(max_running=3)
        jobs = await gates.add(5, limit)
        await stage.worker()
        taken = await stage.claim()
        await gates.change(limit, max_running=1)
        assert await gates.held(limit) == [3]
        for one in taken[:2]:
            await gates.tell(one)
            assert await stage.claim() == []
        await gates.tell(taken[2])
        assert seqs(await stage.claim()) == [jobs[3].seq]
        assert await stage.claim() == []

    @played
    async def test_a_limit_that_is_raised_lets_in_those_who_wait_at_once(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        jobs = await gates.add(4, limit)
        await stage.worker()
        await stage.claim()
        assert await stage.claim() == []
        ears = Listener()
        stop = stage.store.subscribe(ears.hear)
        await ears.hears(Hint.WORK, lambda: gates.change(limit, max_running=3))
        stop()
        assert seqs(await stage.claim()) == seqs(jobs[1:3])

    @played
    async def test_a_limit_that_is_declared_anew_holds_at_once(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        jobs = await gates.add(4, limit)
        await stage.worker()
        await stage.claim()
        assert await stage.claim() == []
        await gates.limit(max_running=3)
        assert seqs(await stage.claim()) == seqs(jobs[1:3])
        (view,) = await stage.store.gates([limit])
        assert (view.terms.max_running, view.is_changed) == (3, False)

    @played
    async def test_what_was_changed_at_run_time_stays_until_it_is_taken_back(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit(max_running=2, by="x")
        await gates.change(limit, max_running=1)
        await gates.limit(max_running=4, by="x")
        key = gates.of(limit, "a")
        await gates.add(5, key)
        await stage.worker()
        assert len(await stage.claim()) == 1
        for view in [*await stage.store.gates([key]), *await stage.store.gates_under(limit)]:
            assert (view.terms.max_running, view.is_changed) == (1, True)
        assert await stage.store.change_gates(limit, None) == gates.terms[limit]
        assert len(await stage.claim()) == 3
        (view,) = await stage.store.gates([key])
        assert (view.terms.max_running, view.is_changed) == (4, False)

    @played
    async def test_a_rule_that_nobody_declared_cannot_be_changed(self, stage: Stage) -> None:
        terms = GateTerms(kind=GateKind.LIMIT, name="unheard of", max_running=1)
        assert await stage.store.change_gates(terms.rule, terms) is None
        assert await stage.store.change_gates(terms.rule, None) is None
        with refused(ConfigurationError):
            await stage.store.submit([stage.job(gates=[terms.rule])])

    @played
    async def test_a_limit_can_be_closed_altogether(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        (job,) = await gates.add(1, limit)
        await stage.worker()
        await gates.change(limit, max_running=0)
        assert await stage.claim() == []
        assert (await stage.turn()).next_at is None
        await gates.change(limit, max_running=1)
        assert seqs(await stage.claim()) == [job.seq]
