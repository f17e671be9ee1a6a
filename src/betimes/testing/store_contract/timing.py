"""What waiting alone brings about: promotion and expiry, in bounded steps, and when to look again."""

from __future__ import annotations

from betimes.core.events import Errored, GivenBack, Snoozed, Succeeded
from betimes.core.job import JobStatus
from betimes.testing.store_contract.stage import BOOM, MOST, SECOND, Stage, played

BLOCKED, DELAYED, READY, RUNNING = JobStatus.BLOCKED, JobStatus.DELAYED, JobStatus.READY, JobStatus.RUNNING
CANCELLED = JobStatus.CANCELLED


class TimeContract:
    """What a store does when an instant comes."""

    @played
    async def test_p14_a_job_is_promoted_when_its_time_has_come(self, stage: Stage) -> None:
        later, sooner = await stage.submit(stage.job(delay_s=9), stage.job(delay_s=5))
        assert (await stage.turn()).next_at == stage.now + 5 * SECOND
        stage.advance(4.999999)
        assert (await stage.turn()).changes == []
        stage.advance(0.000001)
        exchange = await stage.turn()
        assert [(event.seq, event.before, event.after, event.at_us) for event in exchange.changes] == [
            (sooner.seq, DELAYED, READY, stage.now)
        ]
        assert exchange.next_at == stage.now + 4 * SECOND
        assert await stage.status(later) is DELAYED

    @played
    async def test_with_nothing_to_wait_for_there_is_no_next_time(self, stage: Stage) -> None:
        assert (await stage.turn()).next_at is None
        await stage.add()
        running = await stage.start(expires_s=60)
        await stage.add(depends_on=[running.job])
        assert (await stage.turn()).next_at is None

    @played
    async def test_what_is_cancelled_is_not_waited_for(self, stage: Stage) -> None:
        soon, late = await stage.submit(stage.job(delay_s=5), stage.job(expires_s=9))
        await stage.cancel(soon)
        assert (await stage.turn()).next_at == stage.now + 9 * SECOND
        await stage.cancel(late)
        assert (await stage.turn()).next_at is None

    @played
    async def test_p17_promotion_is_bounded_and_in_order_and_says_what_is_left(self, stage: Stage) -> None:
        jobs = await stage.submit(*(stage.job(delay_s=1 + (7 * n) % 3_000 / 1_000) for n in range(3_000)))
        stage.advance(10)
        promoted: list[int] = []
        while len(promoted) < len(jobs):
            exchange = await stage.turn()
            assert 0 < len(exchange.changes) <= MOST
            promoted += [event.seq for event in exchange.changes]
            is_more_due = len(promoted) < len(jobs)
            assert (exchange.next_at is not None and exchange.next_at <= stage.now) == is_more_due
        due = {job.seq: job.run_at for job in jobs}
        instants = [due[seq] for seq in promoted]
        assert instants == sorted(instants)

    @played
    async def test_p17_expiry_is_bounded_and_says_what_is_left(self, stage: Stage) -> None:
        await stage.submit(*(stage.job(expires_s=5) for _ in range(3_000)))
        stage.advance(5)
        for _ in range(3_000):
            exchange = await stage.turn()
            assert len(exchange.changes) <= MOST
            if exchange.next_at is None:
                break
            assert exchange.next_at <= stage.now
        assert await stage.counts() == {}

    @played
    async def test_what_has_not_started_by_then_expires_wherever_it_waits(self, stage: Stage) -> None:
        parent = await stage.add(delay_s=60)
        jobs = await stage.submit(
            stage.job(expires_s=5),
            stage.job(expires_s=5, delay_s=30),
            stage.job(expires_s=5, depends_on=[parent]),
            stage.job(expires_s=5.000001),
            stage.job(expires_s=5, queue="paused"),
        )
        await stage.store.pause_queue("paused")
        assert (await stage.turn()).next_at == stage.now + 5 * SECOND
        stage.advance(5)
        await stage.turn()
        assert await stage.statuses_of(*jobs) == [CANCELLED, CANCELLED, CANCELLED, READY, CANCELLED]
        for job in (jobs[0], jobs[2]):
            state = await stage.state(job)
            assert (state.reason, state.finished_at, state.started_at) == ("expired", stage.now, None)

    @played
    async def test_p14_a_job_that_expires_now_is_not_claimed(self, stage: Stage) -> None:
        job = await stage.add(expires_s=5)
        born_late = await stage.add(expires_s=0)
        await stage.worker()
        stage.advance(5)
        assert await stage.claim() == []
        assert await stage.statuses_of(job, born_late) == [CANCELLED, CANCELLED]

    @played
    async def test_a_job_is_not_started_late_because_many_others_expire_first(self, stage: Stage) -> None:
        await stage.submit(*(stage.job(expires_s=4, sort_key=1) for _ in range(2_500)))
        last = await stage.add(expires_s=5)
        await stage.worker()
        stage.advance(5)
        assert await stage.claim(1) == []
        assert await stage.status(last) in {READY, CANCELLED}

    @played
    async def test_a_job_that_has_started_never_expires(self, stage: Stage) -> None:
        runs = await stage.start(expires_s=5)
        retried = await stage.start(expires_s=5)
        snoozed = await stage.start(expires_s=5)
        given_back = await stage.start(expires_s=5)
        parked = await stage.start(expires_s=5)
        lost = await stage.start(expires_s=5, worker="w2", task="other")
        await stage.report(retried, Errored(stage.now, BOOM, retry_in_us=90 * SECOND))
        await stage.report(snoozed, Snoozed(stage.now, 90 * SECOND))
        await stage.report(given_back, GivenBack(stage.now))
        await stage.report(parked, GivenBack(stage.now, parked="p"))
        stage.advance(31)
        stage.see(await stage.store.rescue({"other"}))
        late, due = await stage.submit(stage.job(expires_s=0), stage.job(delay_s=1))
        stage.advance(1)
        assert {event.seq for event in (await stage.turn()).changes} == {late.seq, due.seq}
        jobs = [taken.job for taken in (runs, retried, snoozed, given_back, parked, lost)]
        assert await stage.statuses_of(*jobs) == [RUNNING, DELAYED, DELAYED, READY, READY, READY]

    @played
    async def test_a_job_that_an_operator_took_back_does_not_expire_again(self, stage: Stage) -> None:
        job = await stage.add(expires_s=5)
        stage.advance(5)
        await stage.turn()
        stage.see(await stage.store.retry(job, by="ops"))
        assert (await stage.turn()).changes == []
        await stage.worker()
        (taken,) = await stage.claim()
        await stage.report(taken, Succeeded(stage.now, b"1"))

    @played
    async def test_p29_a_wall_clock_set_back_makes_nothing_start_early(self, stage: Stage) -> None:
        job = await stage.add(delay_s=5)
        await stage.worker()
        stage.clock.jump(-3_600)
        assert (await stage.turn()).next_at == stage.now + 3_605 * SECOND
        assert await stage.claim() == []
        stage.clock.jump(3_605)
        assert [taken.job.seq for taken in await stage.claim()] == [job.seq]
