"""Reports of attempts: what each does, and how stale and repeated ones are told apart."""

from __future__ import annotations

from collections.abc import Sequence

from betimes.core.events import DeadlinePassed, Errored, Event, GivenBack, Snoozed, Succeeded, Withdrawn
from betimes.core.job import AttemptOutcome, JobStatus, Micros, Need
from betimes.core.transition import Transition
from betimes.ports import Report
from betimes.testing.store_contract.stage import BOOM, MOST, SECOND, Stage, Taken, played

BLOCKED, DELAYED, READY, RUNNING = JobStatus.BLOCKED, JobStatus.DELAYED, JobStatus.READY, JobStatus.RUNNING
COMPLETED, FAILED = JobStatus.COMPLETED, JobStatus.FAILED
TIMED_OUT, CANCELLED = JobStatus.TIMED_OUT, JobStatus.CANCELLED


def all_ends(at: Micros) -> Sequence[Event]:
    """Every event that a worker can report."""
    return [
        Succeeded(at, b"1"),
        Errored(at, BOOM),
        Errored(at, BOOM, retry_in_us=5 * SECOND),
        DeadlinePassed(at, BOOM),
        DeadlinePassed(at, BOOM, retry_in_us=0),
        Snoozed(at, 5 * SECOND),
        Withdrawn(at, "enough"),
        GivenBack(at),
        GivenBack(at, parked="p"),
    ]


class ReportContract:
    """What a report does under the fence that counts."""

    @played
    async def test_a_success_is_recorded_with_its_result(self, stage: Stage) -> None:
        taken = await stage.start()
        stage.advance(2)
        step = await stage.report(taken, Succeeded(stage.now, b"[1]"))
        assert isinstance(step, Transition)
        assert (step.before, step.after, step.result) == (RUNNING, COMPLETED, b"[1]")
        state = await stage.state(taken.job)
        assert (state.status, state.result, state.worker, state.error) == (COMPLETED, b"[1]", None, None)
        assert (state.started_at, state.finished_at) == (stage.now - 2 * SECOND, stage.now)
        assert (state.attempt, state.fence, state.attempts) == (1, 1, ())

    @played
    async def test_an_error_without_a_retry_ends_the_job(self, stage: Stage) -> None:
        for event, status in (
            (Errored(stage.now, BOOM), FAILED),
            (DeadlinePassed(stage.now, BOOM), TIMED_OUT),
        ):
            taken = await stage.start()
            await stage.report(taken, event)
            state = await stage.state(taken.job)
            assert (state.status, state.error, state.finished_at) == (status, BOOM, stage.now)
            assert (state.result, state.worker) == (None, None)

    @played
    async def test_p11_a_retry_waits_for_its_time_and_uses_an_attempt(self, stage: Stage) -> None:
        taken = await stage.start()
        stage.advance(2)
        await stage.report(taken, Errored(stage.now, BOOM, retry_in_us=5 * SECOND))
        state = await stage.state(taken.job)
        assert (state.status, state.run_at, state.error) == (DELAYED, stage.now + 5 * SECOND, BOOM)
        assert (await stage.turn()).next_at == stage.now + 5 * SECOND
        assert await stage.claim() == []
        stage.advance(5)
        (second,) = await stage.claim()
        assert (second.attempt, second.fence) == (2, 2)
        await stage.report(second, DeadlinePassed(stage.now, BOOM, retry_in_us=0))
        (third,) = await stage.claim()
        await stage.report(third, Succeeded(stage.now, b"1"))
        state = await stage.state(taken.job)
        assert (state.attempt, state.error, state.crashes) == (3, None, 0)
        start, second_at = stage.now - 7 * SECOND, stage.now
        assert state.attempts == (
            AttemptOutcome(
                attempt=1,
                fence=1,
                started_at=start,
                ended_at=start + 2 * SECOND,
                outcome="failed",
                error=BOOM,
            ),
            AttemptOutcome(
                attempt=2, fence=2, started_at=second_at, ended_at=second_at, outcome="timed_out", error=BOOM
            ),
        )

    @played
    async def test_a_snooze_comes_again_later_and_uses_no_attempt(self, stage: Stage) -> None:
        taken = await stage.start()
        await stage.report(taken, Snoozed(stage.now, 5 * SECOND))
        state = await stage.state(taken.job)
        assert (state.status, state.run_at, state.attempt) == (DELAYED, stage.now + 5 * SECOND, 0)
        stage.advance(5)
        (second,) = await stage.claim()
        assert (second.attempt, second.fence) == (1, 2)

    @played
    async def test_p21_a_job_that_is_given_back_can_be_claimed_at_once(self, stage: Stage) -> None:
        taken = await stage.start()
        await stage.report(taken, GivenBack(stage.now))
        await stage.worker("w2")
        (second,) = await stage.claim(worker="w2")
        assert (second.job.seq, second.attempt, second.fence) == (taken.job.seq, 1, 2)

    @played
    async def test_p28_a_parked_job_waits_outside_the_claims_reach(self, stage: Stage) -> None:
        parked = [await stage.start() for _ in range(3)]
        for taken, name in zip(parked, ("task u", "task u", "task v"), strict=True):
            await stage.report(taken, GivenBack(stage.now, parked=name))
        assert await stage.store.parked() == {"task u": 2, "task v": 1}
        assert await stage.claim() == []
        assert (await stage.turn()).next_at is None
        changes = await stage.store.unpark("task u")
        stage.see(changes)
        assert [(event.seq, event.after) for event in changes] == [
            (taken.job.seq, READY) for taken in parked[:2]
        ]
        assert await stage.store.unpark("task u") == []
        assert [taken.attempt for taken in await stage.claim()] == [1, 1]
        assert await stage.store.parked() == {"task v": 1}
        await stage.cancel(parked[2].job)
        assert await stage.store.parked() == {}

    @played
    async def test_p17_unparking_is_bounded_and_goes_on(self, stage: Stage) -> None:
        await stage.submit(*(stage.job() for _ in range(2_500)))
        await stage.worker()
        taken = [one for _ in range(3) for one in await stage.claim(MOST)]
        await stage.turn([Report(one.job, one.fence, GivenBack(stage.now, parked="p")) for one in taken])
        unparked = 0
        while changes := await stage.store.unpark("p"):
            stage.see(changes)
            assert len(changes) <= MOST
            unparked += len(changes)
        assert unparked == 2_500
        assert await stage.store.parked() == {}

    @played
    async def test_a_job_may_cancel_itself(self, stage: Stage) -> None:
        taken = await stage.start()
        await stage.report(taken, Withdrawn(stage.now, "nothing to do"))
        state = await stage.state(taken.job)
        assert (state.status, state.reason) == (CANCELLED, "nothing to do")

    @played
    async def test_many_reports_of_one_turn_are_taken_in_order(self, stage: Stage) -> None:
        ends = all_ends(stage.now)
        taken = [await stage.start() for _ in ends]
        reports = [Report(one.job, one.fence, event) for one, event in zip(taken, ends, strict=True)]
        exchange = await stage.turn(reports)
        expected = [COMPLETED, FAILED, DELAYED, TIMED_OUT, READY, DELAYED, CANCELLED, READY, READY]
        assert [step and step.after for step in exchange.steps] == expected
        assert await stage.statuses_of(*(one.job for one in taken)) == expected
        assert exchange.changes == []

    @played
    async def test_p13_a_cancelled_attempt_ends_cancelled_however_its_code_returns(
        self, stage: Stage
    ) -> None:
        for event in all_ends(stage.now):
            taken = await stage.start()
            await stage.cancel(taken.job, reason="not wanted")
            step = await stage.report(taken, event)
            assert step is not None
            state = await stage.state(taken.job)
            assert (step.after, state.status, state.reason) == (CANCELLED, CANCELLED, "not wanted")
            assert state.result is None


class FenceContract:
    """Promise 7: a write with a stale fence changes nothing at all."""

    async def _changes_nothing(self, stage: Stage, taken: Taken, *, fences: Sequence[int] = ()) -> None:
        is_running = await stage.status(taken.job) is RUNNING
        child = await stage.add(depends_on=[taken.job]) if is_running else None
        before = await stage.snapshot()
        for event in all_ends(stage.now):
            for fence in (taken.fence, *fences):
                exchange = await stage.turn([Report(taken.job, fence, event)])
                assert (exchange.steps, exchange.changes) == ([None], [])
                assert await stage.snapshot() == before
        assert child is None or await stage.status(child) is BLOCKED

    @played
    async def test_case_092_a_worker_that_slept_past_its_lease_writes_nothing(self, stage: Stage) -> None:
        first = await stage.start()
        await stage.add(depends_on=[first.job])
        stage.advance(31)
        stage.see(await stage.store.rescue({"t"}))
        await stage.worker("w2")
        (second,) = await stage.claim(worker="w2")
        assert second.fence > first.fence
        await self._changes_nothing(stage, first)
        assert not (await stage.store.beat("w1", {first.job.seq: first.fence}, {})).is_alive
        stage.see(await stage.store.retire("w1"))
        assert (await stage.state(second.job)).worker == "w2"
        await stage.report(second, Succeeded(stage.now, b'"of w2"'))
        assert (await stage.state(first.job)).result == b'"of w2"'
        await self._changes_nothing(stage, first)

    @played
    async def test_p07_after_a_rescue_nothing_of_the_lost_worker_counts(self, stage: Stage) -> None:
        taken = await stage.start()
        stage.advance(31)
        stage.see(await stage.store.rescue({"t"}))
        await self._changes_nothing(stage, taken)

    @played
    async def test_p07_an_earlier_attempt_writes_nothing_into_a_later_one(self, stage: Stage) -> None:
        for event in (
            Errored(stage.now, BOOM, retry_in_us=0),
            Snoozed(stage.now, 0),
            GivenBack(stage.now),
        ):
            first = await stage.start()
            await stage.report(first, event)
            (second,) = await stage.claim(1)
            assert second.job.seq == first.job.seq
            await self._changes_nothing(stage, first, fences=[0, second.fence + 1, -1])
            await stage.report(second, Succeeded(stage.now, b"1"))

    @played
    async def test_p07_an_abandoned_attempt_writes_nothing(self, stage: Stage) -> None:
        taken = await stage.start()
        await stage.cancel(taken.job, abandon=True)
        await self._changes_nothing(stage, taken)

    @played
    async def test_p07_an_earlier_life_writes_nothing_after_an_operators_retry(self, stage: Stage) -> None:
        first = await stage.start()
        await stage.report(first, Errored(stage.now, BOOM))
        stage.see(await stage.store.retry(first.job, by="ops"))
        (second,) = await stage.claim()
        assert (second.attempt, second.fence) == (1, first.fence + 1)
        await self._changes_nothing(stage, first)

    @played
    async def test_p07_a_report_of_a_job_that_is_gone_is_stale(self, stage: Stage) -> None:
        taken = await stage.start()
        await stage.cancel(taken.job, abandon=True)
        stage.advance(10)
        assert await stage.store.prune(keep_us=0) == 1
        exchange = await stage.turn([Report(taken.job, taken.fence, Succeeded(stage.now, b"1"))])
        assert exchange.steps == [None]

    @played
    async def test_p07_a_stale_report_does_not_harm_its_neighbours(self, stage: Stage) -> None:
        taken = [await stage.start() for _ in range(3)]
        await stage.cancel(taken[1].job, abandon=True)
        reports = [Report(one.job, one.fence, Succeeded(stage.now, b"1")) for one in taken]
        steps = (await stage.turn(reports)).steps
        assert [step and step.after for step in steps] == [COMPLETED, None, COMPLETED]

    @played
    async def test_p02_a_report_whose_reply_was_lost_is_answered_like_the_first_time(
        self, stage: Stage
    ) -> None:
        for event in all_ends(stage.now):
            taken = await stage.start()
            await stage.add(depends_on=[(taken.job, Need.ENDED)])
            first = await stage.report(taken, event)
            before = await stage.snapshot()
            second = await stage.report(taken, event)
            assert first is not None
            assert second is not None
            assert (second.before, second.after) == (first.before, first.after)
            assert (second.result, second.reason) == (first.result, first.reason)
            assert second.error == first.error
            assert await stage.snapshot() == before

    @played
    async def test_p02_a_report_twice_in_one_turn_counts_once(self, stage: Stage) -> None:
        taken = await stage.start()
        child = await stage.add(depends_on=[taken.job])
        report = Report(taken.job, taken.fence, Succeeded(stage.now, b"1"))
        exchange = await stage.turn([report, report])
        assert [step and step.after for step in exchange.steps] == [COMPLETED, COMPLETED]
        assert [event.seq for event in exchange.changes] == [child.seq]
