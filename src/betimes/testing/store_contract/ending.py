"""Cancel, an operator's retry, and pruning."""

from __future__ import annotations

from betimes.core.events import DeadlinePassed, Errored, Event, GivenBack, Succeeded, Withdrawn
from betimes.core.job import JobStatus
from betimes.errors import DuplicateJob, IllegalTransition, UnknownJob
from betimes.ports import CancelAnswer
from betimes.testing.store_contract.stage import BOOM, SECOND, Stage, played, refused

READY, RUNNING = JobStatus.READY, JobStatus.RUNNING
COMPLETED, FAILED, CANCELLED = JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED


class CancelContract:
    """What a cancel answers, and does."""

    @played
    async def test_p13_a_job_cancelled_before_it_started_never_starts(self, stage: Stage) -> None:
        parent = await stage.add(sort_key=9, queue="other")
        parked = await stage.start()
        await stage.report(parked, GivenBack(stage.now, parked="p"))
        jobs = await stage.submit(
            stage.job(), stage.job(delay_s=5), stage.job(depends_on=[parent]), stage.job(expires_s=5)
        )
        for job in (*jobs, parked.job):
            answer = await stage.cancel(job, reason="not wanted")
            assert (answer.answer, [event.seq for event in answer.changes]) == (
                CancelAnswer.CANCELLED,
                [job.seq],
            )
            state = await stage.state(job)
            assert (state.status, state.reason, state.finished_at) == (CANCELLED, "not wanted", stage.now)
        stage.advance(10)
        assert [taken.job.seq for taken in await stage.claim()] == [parent.seq]

    @played
    async def test_p13_a_running_job_is_told_and_goes_on_until_its_code_returns(self, stage: Stage) -> None:
        taken = await stage.start()
        for _ in range(2):
            answer = await stage.cancel(taken.job, reason="not wanted")
            assert answer.answer is CancelAnswer.REQUESTED
        state = await stage.state(taken.job)
        assert (state.status, state.cancel_requested, state.worker) == (RUNNING, True, "w1")
        assert (state.fence, state.finished_at) == (taken.fence, None)
        await stage.report(taken, Withdrawn(stage.now))
        state = await stage.state(taken.job)
        assert (state.status, state.reason) == (CANCELLED, "not wanted")

    @played
    async def test_p13_an_abandoned_job_is_over_at_once(self, stage: Stage) -> None:
        taken = await stage.start()
        answer = await stage.cancel(taken.job, reason="stuck", abandon=True)
        assert answer.answer is CancelAnswer.CANCELLED
        assert answer.job is not None
        assert answer.job.seq == taken.job.seq
        state = await stage.state(taken.job)
        assert (state.status, state.reason, state.worker) == (CANCELLED, "stuck", None)
        assert state.fence > taken.fence
        assert list((await stage.store.beat("w1", {taken.job.seq: taken.fence}, {})).lost) == [taken.job.seq]

    @played
    async def test_abandoning_a_job_that_waits_cancels_it(self, stage: Stage) -> None:
        job = await stage.add()
        assert (await stage.cancel(job, abandon=True)).answer is CancelAnswer.CANCELLED

    @played
    async def test_a_cancel_that_comes_too_late_changes_nothing(self, stage: Stage) -> None:
        for event in (Succeeded(stage.now, b"1"), Errored(stage.now, BOOM), Withdrawn(stage.now)):
            taken = await stage.start()
            await stage.report(taken, event)
            before = await stage.snapshot()
            for abandon in (False, True):
                answer = await stage.cancel(taken.job, abandon=abandon)
                assert (answer.answer, list(answer.changes)) == (CancelAnswer.FINISHED, [])
            assert await stage.snapshot() == before

    @played
    async def test_a_cancel_of_a_job_that_was_never_submitted_is_answered(self, stage: Stage) -> None:
        answer = await stage.cancel(stage.job())
        assert (answer.answer, answer.job) == (CancelAnswer.UNKNOWN, None)

    @played
    async def test_a_cancel_means_the_version_it_was_given(self, stage: Stage) -> None:
        old = await stage.start("x")
        await stage.report(old, Succeeded(stage.now, b"1"))
        new = await stage.add("x")
        assert (await stage.cancel(old.job)).answer is CancelAnswer.FINISHED
        assert await stage.status(new) is READY


class RetryContract:
    """Promise 9: terminal is final, but for an operator's retry."""

    @played
    async def test_p09_a_finished_job_is_taken_back_and_that_is_recorded(self, stage: Stage) -> None:
        ends: list[Event] = [
            Succeeded(stage.now, b"1"),
            Errored(stage.now, BOOM),
            DeadlinePassed(stage.now, BOOM),
            Withdrawn(stage.now, "enough"),
        ]
        for event in ends:
            taken = await stage.start()
            step = await stage.report(taken, event)
            assert step is not None
            stage.advance(5)
            changes = await stage.store.retry(taken.job, by="Ann")
            stage.see(changes)
            assert [(one.before, one.after) for one in changes] == [(step.after, READY)]
            state = await stage.state(taken.job)
            assert (state.status, state.attempt, state.run_at) == (READY, 0, stage.now)
            assert (state.result, state.error, state.reason, state.finished_at) == (None,) * 4
            assert "Ann" in str(state.attempts[-1].note)
            (second,) = await stage.claim(1)
            assert (second.job.seq, second.attempt, second.fence) == (taken.job.seq, 1, taken.fence + 1)
            await stage.report(second, Succeeded(stage.now, b"2"))
            assert (await stage.state(taken.job)).result == b"2"

    @played
    async def test_p09_only_a_finished_job_can_be_taken_back(self, stage: Stage) -> None:
        running = await stage.start()
        jobs = await stage.submit(stage.job(), stage.job(delay_s=5), stage.job(depends_on=[running.job]))
        before = await stage.snapshot()
        for job in (running.job, *jobs):
            with refused(IllegalTransition) as caught:
                await stage.store.retry(job, by="ops")
            assert isinstance(caught.error, IllegalTransition)
            assert caught.error.event == "Retried"
        assert await stage.snapshot() == before

    @played
    async def test_p09_an_older_version_is_not_taken_back_beside_a_live_one(self, stage: Stage) -> None:
        old = await stage.start("x")
        await stage.report(old, Errored(stage.now, BOOM))
        new = await stage.start("x")
        with refused(DuplicateJob):
            await stage.store.retry(old.job, by="ops")
        await stage.report(new, Succeeded(stage.now, b"1"))
        stage.see(await stage.store.retry(old.job, by="ops"))
        with refused(DuplicateJob):
            await stage.store.submit([stage.job("x")])
        newest = await stage.add("x", replace_older=True)
        assert await stage.statuses_of(old.job, newest) == [CANCELLED, READY]

    @played
    async def test_a_job_that_is_gone_cannot_be_taken_back(self, stage: Stage) -> None:
        taken = await stage.start("x")
        await stage.report(taken, Errored(stage.now, BOOM))
        stage.advance(10)
        assert await stage.store.prune(keep_us=SECOND) == 1
        with refused(UnknownJob) as caught:
            await stage.store.retry(taken.job, by="ops")
        assert isinstance(caught.error, UnknownJob)
        assert caught.error.job_id == "x"


class PruneContract:
    """What is forgotten, and when."""

    @played
    async def test_p10_what_ended_long_ago_is_forgotten_and_counted(self, stage: Stage) -> None:
        old = await stage.start("x")
        await stage.report(old, Succeeded(stage.now, b"1"))
        stage.advance(30)
        fresh = await stage.start(worker="w2")
        await stage.report(fresh, Succeeded(stage.now, b"1"))
        live = await stage.submit(stage.job(), stage.job(delay_s=900), stage.job(depends_on=[fresh.job]))
        stage.advance(31)
        assert await stage.store.prune(keep_us=60 * SECOND) == 1
        assert await stage.store.prune(keep_us=60 * SECOND) == 0
        assert await stage.store.pruned() == 1
        left = [job.seq for job in await stage.everything()]
        assert left == [job.seq for job in (*reversed(live), fresh.job)]

    @played
    async def test_a_job_may_be_kept_longer_or_shorter_than_the_rest(self, stage: Stage) -> None:
        short, plain, long = [await stage.start(keep_s=keep_s) for keep_s in (5.0, None, 500.0)]
        for taken in (short, plain, long):
            await stage.report(taken, Errored(stage.now, BOOM))
        left = [3]
        for seconds in (6, 55, 440):
            stage.advance(seconds)
            await stage.store.prune(keep_us=60 * SECOND)
            left.append(len(await stage.everything()))
        assert left == [3, 2, 1, 0]

    @played
    async def test_p27_pruning_is_bounded(self, stage: Stage) -> None:
        jobs = await stage.submit(*(stage.job() for _ in range(7)))
        for job in reversed(jobs):
            stage.advance(1)
            await stage.cancel(job)
        stage.advance(60)
        assert [await stage.store.prune(keep_us=0, limit=3) for _ in range(4)] == [3, 3, 1, 0]
        assert await stage.store.pruned() == 7

    @played
    async def test_an_operators_retry_takes_a_job_out_of_pruning(self, stage: Stage) -> None:
        taken = await stage.start()
        await stage.report(taken, Errored(stage.now, BOOM))
        stage.see(await stage.store.retry(taken.job, by="ops"))
        stage.advance(60)
        assert await stage.store.prune(keep_us=0) == 0
        (second,) = await stage.claim(worker=await stage.worker("w2"))
        await stage.report(second, Succeeded(stage.now, b"1"))
        assert await stage.status(taken.job) is COMPLETED

    @played
    async def test_what_would_be_pruned_can_be_counted_first(self, stage: Stage) -> None:
        for keep_s in (None, None, 3600.0, 1.0):
            taken = await stage.start(keep_s=keep_s)
            await stage.report(taken, Succeeded(stage.now, b"1"))
        await stage.add()
        keep_us = 60_000_000
        assert await stage.store.prunable(keep_us=keep_us) == 0
        stage.clock.advance(61)
        assert await stage.store.prunable(keep_us=keep_us) == 3
        assert await stage.store.prune(keep_us=keep_us, limit=2) == 2
        assert await stage.store.prunable(keep_us=keep_us) == 1
        assert await stage.store.prune(keep_us=keep_us, limit=2) == 1
        assert await stage.store.prunable(keep_us=keep_us) == 0

    @played
    async def test_a_pruned_id_is_free_again(self, stage: Stage) -> None:
        old = await stage.start("x")
        await stage.report(old, Errored(stage.now, BOOM))
        stage.advance(60)
        assert await stage.store.prune(keep_us=0) == 1
        new = await stage.add("x")
        found = await stage.store.find("x")
        assert found is not None
        assert (found.seq, found.status) == (new.seq, READY)

    @played
    async def test_case_132_a_pruned_dependency_leaves_nothing_blocked(self, stage: Stage) -> None:
        parent = await stage.start()
        child = await stage.add(depends_on=[parent.job])
        await stage.report(parent, Succeeded(stage.now, b"1"))
        stage.advance(10)
        assert await stage.store.prune(keep_us=0) == 1
        assert await stage.status(child) is READY

    @played
    async def test_after_the_newest_version_is_gone_an_older_one_is_found_if_it_is_kept(
        self, stage: Stage
    ) -> None:
        old = await stage.start("x", keep_s=1_000.0)
        await stage.report(old, Succeeded(stage.now, b"1"))
        new = await stage.start("x")
        await stage.report(new, Errored(stage.now, BOOM))
        stage.advance(60)
        assert await stage.store.prune(keep_us=SECOND) == 1
        found = await stage.store.find("x")
        assert found is not None
        assert (found.seq, found.status) == (old.job.seq, COMPLETED)
        assert FAILED not in {job.status for job in await stage.everything()}
