"""Runs that would overlap: skipped, queued, replaced or held back, going by the jobs that are live."""

from __future__ import annotations

from betimes.core.events import DeadlinePassed, Errored, GivenBack, Snoozed, Succeeded, Withdrawn
from betimes.core.job import Job, JobStatus
from betimes.core.schedule import FireOutcome, Missed, Overlap
from betimes.ports import Hint
from betimes.testing.store_contract.listing import Listener
from betimes.testing.store_contract.schedule_stage import MINUTE, ScheduleStage, outcomes
from betimes.testing.store_contract.stage import BOOM, SECOND, Stage, played

BLOCKED, DELAYED, READY, RUNNING = JobStatus.BLOCKED, JobStatus.DELAYED, JobStatus.READY, JobStatus.RUNNING
COMPLETED, CANCELLED = JobStatus.COMPLETED, JobStatus.CANCELLED

LIVE = ("waits", "is delayed", "was given back", "runs", "was told to stop", "backs off", "snoozes")
"""How an earlier run can be live: not started (the first two), started, and between attempts."""


async def live_run(schedules: ScheduleStage, schedule_id: str, state: str) -> Job:
    """Save a schedule with a run that is live in one of these ways, and with the next instant due."""
    stage = schedules.stage
    await schedules.due(schedule_id)
    seen = await schedules.stands(schedule_id)
    delay_s = 1e6 if state == "is delayed" else 0.0
    job = schedules.run(seen, seen.next_fire_at or 0, delay_s=delay_s)
    await schedules.fire_one(schedules.step(seen, job))
    if state in {"waits", "is delayed"}:
        return job
    taken = await schedules.claim(job)
    if state == "was given back":
        await schedules.end(taken, GivenBack(stage.now, parked="p"))
    elif state == "was told to stop":
        await stage.cancel(job)
    elif state == "backs off":
        await schedules.end(taken, Errored(stage.now, BOOM, 10**6 * SECOND))
    elif state == "snoozes":
        await schedules.end(taken, Snoozed(stage.now, 10**6 * SECOND))
    return job


class OverlapContract:
    """What a store promises of a step while an earlier run of its schedule has not ended."""

    @played
    async def test_p18_skip_skips_whatever_an_earlier_run_is_about_and_says_so(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        for state in LIVE:
            earlier = await live_run(schedules, state, state)
            before = len(await stage.everything())
            fired = await schedules.next(state, overlap=Overlap.SKIP)
            assert fired.jobs == (), state
            assert len(await stage.everything()) == before
            (fire,) = fired.fires
            assert (fire.outcome, fire.job_id) == (FireOutcome.OVERLAP, earlier.id)
            record = fired.record
            assert (record.fired, record.skipped, record.jobs) == (1, 1, (earlier.seq,))
            assert record.next_fire_at == stage.now + 2 * MINUTE
            await stage.cancel(earlier, abandon=True)
            newer = await schedules.run_next(state)
            assert await stage.status(newer) is READY, "nothing is in the way any more"
            await stage.cancel(newer)

    @played
    async def test_p18_skip_names_the_run_in_the_way_time_and_again(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        await schedules.due()
        taken = await schedules.started()
        for _ in range(3):
            (fire,) = (await schedules.next()).fires
            assert (fire.outcome, fire.job_id) == (FireOutcome.OVERLAP, taken.job.id)
        await schedules.end(taken, Succeeded(stage.now, b"1"))
        assert len((await schedules.next()).jobs) == 1
        record = await schedules.stands()
        assert (record.fired, record.skipped) == (2, 3)

    @played
    async def test_p18_queue_one_lets_one_wait_for_the_run_that_has_started(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        for state in LIVE[3:]:
            earlier = await live_run(schedules, state, state)
            waiting = await schedules.run_next(state, overlap=Overlap.QUEUE_ONE)
            found = await stage.state(waiting)
            assert (found.status, found.depends_on) == (BLOCKED, (earlier.id,)), state
            assert (await schedules.stands(state)).jobs == (earlier.seq, waiting.seq)
            (fire,) = (await schedules.next(state, overlap=Overlap.QUEUE_ONE)).fires
            assert (fire.outcome, fire.job_id) == (FireOutcome.OVERLAP, waiting.id)
            await stage.cancel(earlier, abandon=True)
            assert await stage.status(waiting) is READY, "it waits for an end, not for a success"
            await stage.cancel(waiting)

    @played
    async def test_p18_queue_one_skips_while_the_earlier_run_has_not_started(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        for state in LIVE[:2]:
            earlier = await live_run(schedules, state, state)
            fired = await schedules.next(state, overlap=Overlap.QUEUE_ONE)
            assert (fired.jobs, fired.fires[0].job_id) == ((), earlier.id)

    @played
    async def test_p18_a_queued_run_starts_when_the_other_has_ended(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        await schedules.due()
        taken = await schedules.started()
        waiting = await schedules.run_next(overlap=Overlap.QUEUE_ONE)
        assert await stage.claim() == []
        await schedules.end(taken, Succeeded(stage.now, b"1"))
        second = await schedules.claim(waiting)
        third = await schedules.run_next(overlap=Overlap.QUEUE_ONE)
        assert (await stage.state(third)).depends_on == (second.job.id,)
        assert (await schedules.stands()).jobs == (waiting.seq, third.seq)

    @played
    async def test_p18_replace_ends_what_has_not_returned_and_waits_for_what_runs(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        for state in LIVE:
            earlier = await live_run(schedules, state, state)
            newer = await schedules.run_next(state, overlap=Overlap.REPLACE)
            old = await stage.state(earlier)
            if state in {"runs", "was told to stop"}:
                assert (old.status, old.cancel_requested, old.reason) == (RUNNING, True, "replaced")
                assert await stage.status(newer) is BLOCKED
                await stage.cancel(earlier, abandon=True)
            else:
                assert (old.status, old.reason) == (CANCELLED, "replaced"), state
            assert await stage.status(newer) is READY
            await stage.cancel(newer)

    @played
    async def test_p18_replace_tells_the_worker_and_the_newer_run_starts_once_the_code_returned(
        self, stage: Stage
    ) -> None:
        schedules = ScheduleStage(stage)
        await schedules.due()
        taken = await schedules.started()
        ears = Listener()
        stop = stage.store.subscribe(ears.hear)
        waiting = await schedules.run_next(overlap=Overlap.REPLACE)
        await ears.expect(Hint.CANCEL)
        stop()
        newest = await schedules.run_next(overlap=Overlap.REPLACE)
        assert await stage.statuses_of(taken.job, waiting, newest) == [RUNNING, CANCELLED, BLOCKED]
        assert (await schedules.stands()).jobs == (taken.job.seq, newest.seq)
        await schedules.end(taken, Errored(stage.now, BOOM, 5 * SECOND))
        assert await stage.statuses_of(taken.job, newest) == [CANCELLED, READY]
        assert (await schedules.claim(newest)).job.fire == newest.fire

    @played
    async def test_p18_allow_runs_beside_whatever_is_live(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        for state in LIVE:
            earlier = await live_run(schedules, state, state)
            before = await stage.state(earlier)
            fired = await schedules.next(state, overlap=Overlap.ALLOW)
            assert (await stage.status(fired.jobs[0]), fired.record.jobs) == (READY, ()), state
            assert (await stage.state(earlier)).status is before.status
            await stage.cancel(earlier, abandon=True)
            await stage.cancel(fired.jobs[0])

    @played
    async def test_p18_the_guard_holds_for_whoever_fires_next(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        names = ["skip", "queue", "replace", "allow", "free"]
        for name in names:
            await schedules.due(name)
        first = await schedules.fire(*[schedules.step(await schedules.stands(name)) for name in names[:4]])
        assert all(fired and fired.jobs for fired in first)
        policies = [Overlap.SKIP, Overlap.QUEUE_ONE, Overlap.REPLACE, Overlap.ALLOW, Overlap.SKIP]
        await stage.worker()
        assert len(await stage.claim()) == 4
        second = await schedules.fire(
            *[
                schedules.step(await schedules.stands(name), overlap=policy)
                for name, policy in zip(names, policies, strict=True)
            ]
        )
        made = [fired and [await stage.status(job) for job in fired.jobs] for fired in second]
        assert made == [[], [BLOCKED], [BLOCKED], [READY], [READY]]

    # by hand

    @played
    async def test_p18_a_run_by_hand_waits_for_what_is_live_unless_runs_may_overlap(
        self, stage: Stage
    ) -> None:
        schedules = ScheduleStage(stage)
        for policy in Overlap:
            earlier = await live_run(schedules, policy, "runs")
            seen = await schedules.stands(policy)
            (job,) = (await schedules.fire_one(schedules.by_hand(seen, overlap=policy))).jobs
            expected = READY if policy is Overlap.ALLOW else BLOCKED
            assert await stage.status(job) is expected, policy
            assert (await stage.state(earlier)).cancel_requested is (policy is Overlap.REPLACE)
            await stage.cancel(earlier, abandon=True)
            assert await stage.status(job) is READY
            await stage.cancel(job)

    @played
    async def test_p18_a_run_by_hand_is_in_the_way_of_the_next_instant(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        seen = await schedules.due()
        (job,) = (await schedules.fire_one(schedules.by_hand(seen))).jobs
        (fire,) = (await schedules.next()).fires
        assert (fire.outcome, fire.job_id) == (FireOutcome.OVERLAP, job.id)

    # an operator's retry

    @played
    async def test_p18_a_run_that_an_operator_takes_back_is_in_the_way_again(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        await schedules.due()
        taken = await schedules.started()
        await schedules.end(taken, Errored(stage.now, BOOM))
        other = await schedules.run_next()
        await stage.cancel(other)
        seen = await schedules.stands()
        stage.see(await stage.store.retry(taken.job, by="ops"))
        assert await schedules.fire(schedules.step(seen)) == [None], "who did not see it must look again"
        stands = await schedules.stands()
        assert set(stands.jobs) >= {taken.job.seq}
        assert (stands.next_fire_at, stands.fired) == (seen.next_fire_at, seen.fired)
        (fire,) = (await schedules.next()).fires
        assert (fire.outcome, fire.job_id) == (FireOutcome.OVERLAP, taken.job.id)
        again = await schedules.claim(taken.job)
        await schedules.end(again, Succeeded(stage.now, b"1"))
        assert len((await schedules.next()).jobs) == 1

    @played
    async def test_p18_catch_up_goes_on_one_after_the_other(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        await schedules.due()
        begun = stage.now
        stage.advance(600)
        await stage.worker()
        ran = []
        for _ in range(3):
            taken = await schedules.started(missed=Missed.ALL, is_late=True)
            held = await schedules.next(missed=Missed.ALL, is_late=True)
            assert (held.jobs, held.fires) == ((), ())
            assert await stage.store.next_fire() is None
            await schedules.end(taken, Withdrawn(stage.now, "enough") if _ == 1 else timed_out(stage))
            assert taken.job.fire is not None
            ran.append(taken.job.fire.at)
        assert ran == [begun + n * MINUTE for n in range(3)]
        assert (await schedules.stands()).skipped == 0
        assert outcomes(await stage.store.fires("nightly")) == [FireOutcome.FIRED] * 3


def timed_out(stage: Stage) -> DeadlinePassed:
    """The end of an attempt that took too long."""
    return DeadlinePassed(stage.now, BOOM)
