"""What a durable store promises on top: everything outlives its closing, and the process."""

from __future__ import annotations

from betimes.core.events import DeadlinePassed, Errored, GivenBack, Succeeded
from betimes.core.job import JobStatus, Tenant, Terms
from betimes.core.schedule import Missed, Overlap
from betimes.core.shares import COST
from betimes.errors import ConfigurationError
from betimes.ports import WorkerInfo
from betimes.testing.store_contract.contract import STRATEGY, StoreContract
from betimes.testing.store_contract.gate_stage import GateStage
from betimes.testing.store_contract.logs import page
from betimes.testing.store_contract.rekeying import REVERSED, rekeyed, reverse
from betimes.testing.store_contract.schedule_stage import MINUTE, ScheduleStage
from betimes.testing.store_contract.stage import BOOM, SECOND, Stage, again, played, refused
from betimes.testing.store_contract.tenants import filled, order

READY, RUNNING, COMPLETED = JobStatus.READY, JobStatus.RUNNING, JobStatus.COMPLETED


class DurableStoreContract(StoreContract):
    """The contract of a store whose jobs outlive the process: `make_store` opens the same data each time."""

    async def _reopen(self, stage: Stage, *, strategy: str = STRATEGY) -> None:
        """Close the store and put a new one in its place, as the next process would."""
        await stage.store.close()
        stage.store = self.make_store(stage.clock)
        await stage.store.open(strategy=strategy)

    @played
    async def test_p01_everything_is_there_after_a_restart(self, stage: Stage) -> None:
        assert stage.store.is_durable
        done, failed, parked, told = [await stage.start(keep_s=60.0) for _ in range(4)]
        await stage.report(done, Succeeded(stage.now, b"1"))
        await stage.report(failed, Errored(stage.now, BOOM))
        await stage.report(parked, GivenBack(stage.now, parked="p"))
        await stage.cancel(told.job, reason="not wanted")
        retried = await stage.start()
        await stage.report(retried, Errored(stage.now, BOOM, retry_in_us=5 * SECOND))
        await stage.submit(
            stage.job("x", tags=("a", "b"), retry={"max_attempts": 3}, timeout_s=1.5),
            stage.job(delay_s=5, expires_s=50, payload='[["ü"],{}]'.encode()),
            stage.job(depends_on=[told.job, done.job]),
        )
        await stage.store.pause_queue("q", by="ops")
        await ScheduleStage(stage).due()
        before, workers = await stage.snapshot(), await stage.store.workers()
        await self._reopen(stage)
        assert await stage.snapshot() == before
        assert await stage.store.workers() == workers

    @played
    async def test_p01_life_goes_on_after_a_restart(self, stage: Stage) -> None:
        parent = await stage.start()
        child = await stage.add(depends_on=[parent.job])
        delayed = await stage.add(delay_s=5)
        expiring = await stage.add(expires_s=3, sort_key=9)
        await self._reopen(stage)
        assert (await stage.turn()).next_at == stage.now + 3 * SECOND
        assert await stage.report(parent, Succeeded(stage.now, b"1")) is not None
        assert await stage.status(child) is READY
        stage.advance(5)
        assert [taken.job.seq for taken in await stage.claim()] == [child.seq, delayed.seq]
        assert await stage.status(expiring) is JobStatus.CANCELLED
        newest = await stage.add()
        assert newest.seq > expiring.seq

    @played
    async def test_p02_p03_tokens_and_keys_are_remembered(self, stage: Stage) -> None:
        named = stage.job("x", terms=Terms(named=True, token="t1"))
        keyed = stage.job(terms=Terms(key="k", key_until=stage.now + 60 * SECOND, key_digest=b"1"))
        repeated = again([named, keyed])
        kept = await stage.submit(named, keyed)
        await self._reopen(stage)
        assert [job.seq for job in await stage.submit(*repeated)] == [job.seq for job in kept]
        with refused(ConfigurationError):
            await stage.store.submit([stage.job(terms=Terms(key="k", key_digest=b"2"))])

    @played
    async def test_p02_a_batch_repeated_after_a_restart_is_kept_once(self, stage: Stage) -> None:
        first = stage.job()
        batch = [first, stage.job(depends_on=[first])]
        repeated = again(batch)
        kept = await stage.submit(*batch)
        await self._reopen(stage)
        for jobs in (repeated, batch):
            assert [job.seq for job in await stage.submit(*jobs)] == [job.seq for job in kept]

    @played
    async def test_p24_the_jobs_of_a_process_that_is_gone_are_rescued(self, stage: Stage) -> None:
        taken = await stage.start()
        await self._reopen(stage)
        assert await stage.status(taken.job) is RUNNING
        stage.advance(31)
        stage.see(await stage.store.rescue({"t"}))
        assert await stage.status(taken.job) is READY
        await stage.worker("w2")
        (second,) = await stage.claim(worker="w2")
        assert second.fence > taken.fence
        assert await stage.report(taken, Succeeded(stage.now, b"1")) is None

    @played
    async def test_p10_what_was_pruned_stays_counted(self, stage: Stage) -> None:
        taken = await stage.start()
        await stage.report(taken, Succeeded(stage.now, b"1"))
        stage.advance(60)
        assert await stage.store.prune(keep_us=0) == 1
        await self._reopen(stage)
        assert await stage.store.pruned() == 1
        assert await stage.store.get(taken.job) is None
        assert await stage.store.ended([taken.job]) == [(taken.job, None)]

    @played
    async def test_a_cancel_of_a_job_that_is_gone_is_answered(self, stage: Stage) -> None:
        taken = await stage.start()
        await stage.report(taken, Succeeded(stage.now, b"1"))
        stage.advance(60)
        await stage.store.prune(keep_us=0)
        assert (await stage.cancel(taken.job)).answer.value == "unknown"

    @played
    async def test_p20_the_strategy_is_remembered_and_another_refused(self, stage: Stage) -> None:
        await stage.add()
        before = await stage.snapshot()
        await stage.store.close()
        other = self.make_store(stage.clock)
        with refused(ConfigurationError) as caught:
            await other.open(strategy="another")
        assert STRATEGY in str(caught.error)
        await other.close()
        await self._reopen(stage)
        assert await stage.snapshot() == before

    @played
    async def test_p16_fires_are_remembered(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        seen = await schedules.due()
        await schedules.next()
        before = await stage.snapshot()
        await self._reopen(stage)
        schedules = ScheduleStage(stage)
        assert await stage.snapshot() == before
        assert await schedules.fire(schedules.step(seen)) == [None]
        stands = await schedules.stands()
        back = await schedules.change(stands, next_fire_at=seen.next_fire_at)
        assert (await schedules.fire_one(schedules.step(back, overlap=Overlap.ALLOW))).jobs == ()
        assert (await schedules.stands()).fired == 1

    @played
    async def test_p18_the_overlap_guard_and_what_waits_for_an_end_outlive_a_restart(
        self, stage: Stage
    ) -> None:
        schedules = ScheduleStage(stage)
        await schedules.due("skip")
        await schedules.due("held")
        await schedules.due("delayed", delay_us=5 * SECOND)
        jobs = [await schedules.run_next(name, missed=Missed.ALL) for name in ("skip", "held", "delayed")]
        await schedules.next("held", missed=Missed.ALL)
        await self._reopen(stage)
        schedules = ScheduleStage(stage)
        skipped = await schedules.next("skip")
        assert (skipped.jobs, skipped.fires[0].job_id) == ((), jobs[0].id)
        await stage.worker()
        for taken in await stage.claim():
            await stage.report(taken, Succeeded(stage.now, b"1"))
        held, delayed = await schedules.stands("held"), await schedules.stands("delayed")
        assert (held.held_at, held.next_fire_at) == (None, stage.now + MINUTE)
        assert (delayed.awaits, delayed.next_fire_at) == (None, stage.now + 5 * SECOND)

    @played
    async def test_a_worker_is_remembered_as_it_registered(self, stage: Stage) -> None:
        info = WorkerInfo(
            id="w", lease_us=30 * SECOND, host="h", pid=1, process_started=2, boot_id="b", tasks=("t",)
        )
        await stage.store.register(info)
        await self._reopen(stage)
        assert await stage.store.workers() == [(info, 30 * SECOND)]

    @played
    async def test_p01_gates_are_there_after_a_restart(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit, rate, breaker = (
            await gates.limit(by="x"),
            await gates.rate(every_s=10.0),
            await gates.breaker(),
        )
        key = gates.of(limit, "a")
        holder = await gates.start(key, rate)
        waiting = await gates.add(2, key, rate)
        behind = await gates.add(1, breaker)
        assert [one.job.seq for one in await stage.claim()] == [behind[0].seq]
        await stage.store.trip(breaker, is_open=True)
        await gates.change(limit, max_running=2)
        before = await stage.snapshot()
        holders = await gates.holders(key)
        await self._reopen(stage)
        gates = GateStage(stage)
        assert await stage.snapshot() == before
        assert await gates.holders(key) == holders == [(holder.job.seq, "w1")]
        assert await stage.claim() == []
        assert (await stage.turn()).next_at == stage.now + 10 * SECOND
        stage.advance(10)
        assert [one.job.seq for one in await stage.claim()] == [waiting[0].seq]
        assert (await gates.view(breaker)).gate.is_tripped

    @played
    async def test_p01_rules_that_were_changed_stay_so_after_a_restart(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit(max_running=5)
        await gates.change(limit, max_running=1)
        await self._reopen(stage)
        gates = GateStage(stage)
        await gates.limit(max_running=4)
        (view,) = await stage.store.gates([limit])
        assert (view.terms.max_running, view.is_changed) == (1, True)
        assert await stage.store.change_gates(limit, None) == gates.terms[limit]

    @played
    async def test_p08_the_permits_of_a_process_that_is_gone_come_back(self, stage: Stage) -> None:
        gates = GateStage(stage)
        limit = await gates.limit()
        late = await gates.start(limit)
        await gates.tell(late, DeadlinePassed(stage.now, BOOM), has_returned=False)
        (other,) = await gates.add(1, limit)
        await self._reopen(stage)
        await stage.worker("w2")
        assert await stage.claim(worker="w2") == []
        stage.advance(20)
        await stage.beat(worker="w2")
        stage.advance(11)
        stage.see(await stage.store.rescue({"t"}))
        assert [one.job.seq for one in await stage.claim(worker="w2")] == [other.seq]

    @played
    async def test_p01_a_probe_is_still_known_after_a_restart(self, stage: Stage) -> None:
        gates = GateStage(stage)
        breaker = await gates.breaker(open_for_s=10.0)
        older = await gates.start(breaker)
        await gates.add(1, breaker)
        (last,) = await gates.add(1, breaker)
        stage.advance(1)
        await stage.store.trip(breaker, is_open=True)
        stage.advance(10)
        (probe,) = await stage.claim()
        await self._reopen(stage)
        gates = GateStage(stage)
        await gates.tell(older)
        assert await stage.claim() == []
        await gates.tell(probe)
        assert [one.job.seq for one in await stage.claim()] == [last.seq]

    @played
    async def test_p20_the_tenants_places_go_on_after_a_restart(self, stage: Stage) -> None:
        await stage.worker()
        a, b, c = (Tenant(name, COST) for name in "abc")
        await filled(stage, (a, 9), (b, 3))
        assert await order(stage, 4) == "abab"
        await self._reopen(stage)
        await filled(stage, (c, 3), (b, 3))
        assert await order(stage, 9) == "cabcacbab"

    @played
    async def test_p01_logs_are_there_after_a_restart(self, stage: Stage) -> None:
        taken = await stage.start()
        await stage.store.write_log([page(stage, taken, "one", "two")])
        lines = await stage.store.log(taken.job)
        await self._reopen(stage)
        assert await stage.store.log(taken.job) == lines
        await stage.store.write_log([page(stage, taken, "three")])
        assert [line.number for line in await stage.store.log(taken.job)] == [1, 2, 3]

    @played
    async def test_p20_a_store_that_was_rekeyed_is_so_after_a_restart(self, stage: Stage) -> None:
        await stage.submit(*(stage.job() for _ in range(3)))
        assert await rekeyed(stage, REVERSED, reverse) == 3
        before = await stage.snapshot()
        await self._reopen(stage, strategy=REVERSED)
        assert await stage.snapshot() == before
