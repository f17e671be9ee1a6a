"""Runs by hand, what is remembered of fires, and what is left of a schedule that is removed."""

from __future__ import annotations

from msgspec.structs import replace

from betimes.core.events import Succeeded
from betimes.core.job import FireKey, Job, JobStatus
from betimes.core.schedule import Fire, FireOutcome, Overlap, ScheduleRecord
from betimes.ports import ScheduleFilter
from betimes.testing.store_contract.schedule_stage import MINUTE, ScheduleStage
from betimes.testing.store_contract.stage import DAY, Stage, played

READY, RUNNING = JobStatus.READY, JobStatus.RUNNING
ALLOW = Overlap.ALLOW


class FireHistoryContract:
    """What a store promises of runs by hand, and of a schedule's past."""

    @played
    async def test_p18_a_run_by_hand_does_not_move_the_grid(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        seen = await schedules.save()
        fired = await schedules.fire_one(schedules.by_hand(seen))
        (job,) = fired.jobs
        after = replace(seen, version=fired.record.version, jobs=(job.seq,))
        assert fired.record == after, "nothing else has changed"
        assert job.fire == FireKey("nightly", stage.now, by_hand=True)
        (fire,) = await stage.store.fires("nightly")
        assert (fire.outcome, fire.at, fire.job_id) == (FireOutcome.BY_HAND, stage.now, job.id)
        assert await stage.status(job) is READY

    @played
    async def test_p16_a_run_by_hand_takes_no_instant_of_the_schedule(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        await schedules.due()
        made: list[Job] = []
        for _ in range(2):
            by_hand = schedules.by_hand(await schedules.stands(), overlap=ALLOW)
            made += (await schedules.fire_one(by_hand)).jobs
        made.append(await schedules.run_next(overlap=ALLOW))
        assert await stage.statuses_of(*made) == [READY] * 3
        fires = await stage.store.fires("nightly")
        assert {(fire.at, fire.job_id) for fire in fires} == {(stage.now, job.id) for job in made}
        assert (await schedules.stands()).fired == 1

    @played
    async def test_a_paused_schedule_can_be_run_by_hand(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        paused = await schedules.due(paused=True, error="its trigger raised")
        fired = await schedules.fire_one(schedules.by_hand(paused))
        assert len(fired.jobs) == 1
        assert (fired.record.paused, fired.record.error) == (True, "its trigger raised")
        assert await stage.store.next_fire() is None

    # history

    @played
    async def test_a_history_is_listed_newest_first_page_by_page(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        await schedules.due()
        await schedules.due("other")
        begun = stage.now
        for n in range(7):
            await schedules.next(overlap=ALLOW)
            await schedules.next("other", overlap=ALLOW)
            if n == 3:
                stage.advance(200.5)
                await schedules.fire_one(schedules.by_hand(await schedules.stands(), overlap=ALLOW))
        found: list[Fire] = []
        while page := await stage.store.fires("nightly", before=found[-1].at if found else None, limit=3):
            assert len(page) <= 3
            found += page
        instants = [begun + n * MINUTE for n in (6, 5, 4)]
        rest = [begun + n * MINUTE for n in (3, 2, 1, 0)]
        assert [fire.at for fire in found] == [*instants, begun + 200_500_000, *rest]
        assert await stage.store.fires("nightly", before=begun) == []
        assert await stage.store.fires("unknown") == []

    @played
    async def test_p27_old_fires_are_forgotten_and_their_instants_do_not_come_again(
        self, stage: Stage
    ) -> None:
        schedules = ScheduleStage(stage)
        await schedules.due()
        for _ in range(3):
            await schedules.next(overlap=ALLOW)
            stage.advance(60)
        stage.advance(2 * 86_400)
        fresh = await schedules.run_next(overlap=ALLOW, next_fire_at=stage.now + MINUTE)
        before = await schedules.stands()
        await stage.store.prune(keep_us=DAY)
        fires = await stage.store.fires("nightly")
        assert fresh.id in {fire.job_id for fire in fires} or fires == []
        assert len(fires) <= 1
        assert await schedules.stands() == before
        assert len(await stage.everything()) == 4, "live jobs stay"
        stale = replace(before, next_fire_at=stage.now - DAY)
        assert await schedules.fire(schedules.step(stale, overlap=ALLOW)) == [None]

    @played
    async def test_a_schedule_that_is_removed_leaves_its_jobs(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        await schedules.due()
        taken = await schedules.started()
        seen = await schedules.stands()
        assert await stage.store.remove_schedule("nightly")
        assert not await stage.store.remove_schedule("nightly")
        assert await stage.store.schedules(ScheduleFilter()) == []
        assert await stage.store.schedule("nightly") is None
        assert await stage.store.fires("nightly") == []
        assert await schedules.fire(schedules.step(seen)) == [None]
        await schedules.end(taken, Succeeded(stage.now, b"1"))
        assert (await stage.state(taken.job)).fire == taken.job.fire
        stage.see(await stage.store.retry(taken.job, by="ops"))
        assert await stage.status(taken.job) is READY

    @played
    async def test_a_schedule_made_anew_has_no_past(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        seen = await schedules.due()
        taken = await schedules.started()
        assert await stage.store.remove_schedule("nightly")
        fresh = ScheduleRecord(id="nightly", spec=seen.spec, next_fire_at=seen.next_fire_at)
        assert await stage.store.save_schedule(fresh, expected_version=None)
        job = await schedules.run_next()
        assert await stage.statuses_of(taken.job, job) == [RUNNING, READY]
        await schedules.end(taken, Succeeded(stage.now, b"1"))
        assert (await schedules.stands()).jobs == (job.seq,)
