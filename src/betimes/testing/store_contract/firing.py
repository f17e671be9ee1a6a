"""Fires: one job for each instant, whoever fires, and a history that says what became of each."""

from __future__ import annotations

from asyncio import gather
from itertools import pairwise
from typing import Any

from msgspec.structs import replace

from betimes.core.events import Errored, Succeeded
from betimes.core.job import FireKey, JobStatus
from betimes.core.schedule import Fire, FireOutcome, Overlap
from betimes.errors import DuplicateJob
from betimes.ports import Hint, JobFilter, ScheduleFilter
from betimes.testing.store_contract.listing import Listener
from betimes.testing.store_contract.schedule_stage import MINUTE, ScheduleStage, outcomes
from betimes.testing.store_contract.stage import BOOM, SECOND, Stage, played, refused

BLOCKED, DELAYED, READY, RUNNING = JobStatus.BLOCKED, JobStatus.DELAYED, JobStatus.READY, JobStatus.RUNNING
ALLOW = Overlap.ALLOW


class FireContract:
    """What a store promises of steps that find nothing in their way."""

    @played
    async def test_p16_a_fire_makes_its_job_and_moves_the_schedule_on(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        seen = await schedules.due()
        at = stage.now
        stage.advance(2)
        fired = await schedules.next()
        (job,) = fired.jobs
        stands = fired.record
        assert (stands.next_fire_at, stands.last_fire_at) == (at + MINUTE, at)
        assert (stands.fired, stands.skipped, stands.jobs) == (1, 0, (job.seq,))
        assert stands.version > seen.version
        assert (stands.spec, stands.payload, stands.definition) == (seen.spec, seen.payload, seen.definition)
        assert await stage.status(job) is READY
        fire = Fire(at=at, first_at=at, outcome=FireOutcome.FIRED, decided_at=at + 2 * SECOND, job_id=job.id)
        assert list(fired.fires) == await stage.store.fires("nightly") == [fire]

    @played
    async def test_p16_of_many_workers_one_fires(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        seen = await schedules.due()
        fires = await gather(*(schedules.fire(schedules.step(seen)) for _ in range(5)))
        assert [fired for (fired,) in fires].count(None) == 4
        assert len(await stage.everything()) == 1
        assert (await schedules.stands()).fired == 1

    @played
    async def test_p16_whoever_saw_an_older_schedule_fires_nothing(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        seen = await schedules.due()
        stands = await schedules.change(seen, definition="{}")
        before = await stage.snapshot()
        for stale in (seen, replace(stands, next_fire_at=stage.now - 1), replace(stands, id="unknown")):
            assert await schedules.fire(schedules.step(stale)) == [None]
            assert await schedules.fire(schedules.by_hand(stale)) == [None]
        assert await stage.snapshot() == before

    @played
    async def test_p16_of_a_batch_those_that_stand_count_and_the_others_change_nothing(
        self, stage: Stage
    ) -> None:
        schedules = ScheduleStage(stage)
        seen = {name: await schedules.due(name) for name in ("a", "b", "c", "d", "e")}
        await schedules.change(seen["b"], definition="{}")
        assert await stage.store.remove_schedule("d")
        steps = [schedules.step(record) for record in seen.values()]
        answers = await schedules.fire(*steps, schedules.step(seen["a"]))
        made = [fired.jobs[0] for fired in answers if fired is not None]
        assert [fired is not None for fired in answers] == [True, False, True, False, True, False]
        assert [job.fire and job.fire.schedule for job in made] == ["a", "c", "e"]
        assert [job.seq for job in await stage.everything()] == [job.seq for job in reversed(made)]
        for fired in filter(None, answers):
            assert await schedules.stands(fired.record.id) == fired.record
        assert await stage.store.fires("b") == []
        assert (await schedules.stands("b")).fired == 0
        assert await schedules.fire() == []

    @played
    async def test_p17_a_batch_of_which_a_job_is_refused_changes_nothing(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        first, second = await schedules.due("a"), await schedules.due("b")
        taken = await stage.add("taken")
        assert taken.id == "taken"
        before = await stage.snapshot()
        named = stage.job("taken")
        named.fire = FireKey("b", stage.now)
        steps = [schedules.step(first), schedules.step(second, named)]
        with refused(DuplicateJob):
            await stage.store.fire(steps)
        assert await stage.snapshot() == before
        assert [fired is not None for fired in await schedules.fire(*steps[:1])] == [True]

    @played
    async def test_a_paused_schedule_fires_nothing(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        stands = await schedules.change(await schedules.due(), paused=True)
        before = await stage.snapshot()
        assert await schedules.fire(schedules.step(stands)) == [None]
        assert await stage.snapshot() == before

    @played
    async def test_p16_an_instant_makes_one_job_though_the_schedule_is_set_back(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        seen = await schedules.due()
        at = stage.now
        first = await schedules.run_next(overlap=ALLOW)
        stands = await schedules.change(await schedules.stands(), next_fire_at=seen.next_fire_at)
        fired = await schedules.fire_one(schedules.step(stands, overlap=ALLOW))
        assert (fired.jobs, fired.fires) == ((), ()), "it is stepped over"
        assert (fired.record.next_fire_at, fired.record.fired, fired.record.skipped) == (at + MINUTE, 1, 0)
        assert [job.seq for job in await stage.everything()] == [first.seq]
        assert len(await stage.store.fires("nightly")) == 1

    @played
    async def test_p16_of_several_instants_only_those_decided_before_are_stepped_over(
        self, stage: Stage
    ) -> None:
        schedules = ScheduleStage(stage)
        seen = await schedules.due()
        instants = [stage.now + n * MINUTE for n in range(4)]
        skipped = Fire(at=instants[1], first_at=instants[1], outcome=FireOutcome.PAUSED, decided_at=stage.now)
        assert await stage.store.save_schedule(seen, expected_version=seen.version, fires=[skipped])
        stage.advance(600)
        stands = await schedules.stands()
        jobs = tuple(schedules.run(stands, at) for at in instants)
        fired = await schedules.fire_one(schedules.step(stands, due=jobs, overlap=ALLOW))
        assert [job.fire and job.fire.at for job in fired.jobs] == [instants[0], *instants[2:]]
        assert fired.record.fired == 3
        history = await stage.store.fires("nightly")
        assert [fire.at for fire in history] == instants[::-1]
        assert skipped in history, "what was decided first stays"

    @played
    async def test_p17_every_instant_is_fired_or_counted_as_skipped_and_the_next_is_later(
        self, stage: Stage
    ) -> None:
        schedules = ScheduleStage(stage)
        record = await schedules.due()
        stage.advance(3_600)
        instants = []
        for n in range(6):
            at = record.next_fire_at
            assert at is not None
            instants.append(at)
            skip = Fire(at=at, first_at=at, outcome=FireOutcome.MISSED, decided_at=stage.now)
            parts: dict[str, Any] = {"due": (), "skips": (skip,)} if n % 3 == 2 else {}
            record = (await schedules.next(overlap=ALLOW, **parts)).record
            assert record.last_fire_at == at
        assert (record.fired, record.skipped) == (4, 2)
        assert [later - sooner for sooner, later in pairwise(instants)] == [MINUTE] * 5
        assert len(await stage.everything()) == 4
        fired, missed = FireOutcome.FIRED, FireOutcome.MISSED
        expected = [missed, fired, fired] * 2
        assert outcomes(await stage.store.fires("nightly")) == expected

    @played
    async def test_p17_what_was_merged_is_remembered_with_the_run_that_stands_for_it(
        self, stage: Stage
    ) -> None:
        schedules = ScheduleStage(stage)
        seen = await schedules.due()
        first, last, at = stage.now, stage.now + 8 * MINUTE, stage.now + 9 * MINUTE
        stage.advance(545)
        merged = Fire(
            at=last,
            first_at=first,
            count=9,
            is_exact=False,
            outcome=FireOutcome.MERGED,
            decided_at=stage.now,
        )
        job = schedules.run(seen, at)
        fired = await schedules.fire_one(
            schedules.step(
                seen, job, skips=(merged,), next_fire_at=at + MINUTE, moved={at: "2025-03-30T02:30"}
            )
        )
        newest, older = await stage.store.fires("nightly")
        assert older == replace(merged, job_id=job.id)
        assert (newest.at, newest.job_id, newest.moved_from) == (at, job.id, "2025-03-30T02:30")
        assert (fired.record.fired, fired.record.skipped, fired.record.last_fire_at) == (1, 9, at)

    @played
    async def test_a_last_fire_leaves_a_schedule_without_a_next(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        await schedules.due()
        assert (await schedules.next(next_fire_at=None)).record.next_fire_at is None
        assert await stage.store.schedules(ScheduleFilter(due_by=stage.now + 10**15)) == []
        assert await stage.store.next_fire() is None

    @played
    async def test_a_fire_may_start_later_than_its_instant(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        seen = await schedules.due()
        job = schedules.run(seen, stage.now, delay_s=3.0)
        await schedules.fire_one(schedules.step(seen, job))
        assert await stage.status(job) is DELAYED
        stage.advance(3)
        assert (await schedules.claim(job)).job.fire == FireKey("nightly", stage.now - 3 * SECOND)

    @played
    async def test_p18_a_job_says_which_fire_made_it_for_as_long_as_it_is_kept(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        await schedules.due()
        key = FireKey("nightly", stage.now)
        stage.advance(1)
        job = await schedules.run_next()
        asked = schedules.by_hand(await schedules.stands(), overlap=ALLOW)
        (by_hand,) = (await schedules.fire_one(asked)).jobs
        hand_key = FireKey("nightly", stage.now, by_hand=True)
        plain = await stage.add(sort_key=9)
        keys = {job.seq: key, by_hand.seq: hand_key, plain.seq: None}

        async def check() -> None:
            for listed in await stage.store.jobs(JobFilter()):
                state = await stage.state(listed)
                found = await stage.store.find(listed.id)
                assert found is not None
                assert listed.fire == state.fire == found.fire == keys[listed.seq]

        await check()
        await stage.worker()
        taken = await stage.claim()
        assert {one.job.seq: one.job.fire for one in taken} == keys
        await stage.report(taken[0], Errored(stage.now, BOOM, 5 * SECOND))
        await check()
        stage.advance(31)
        stage.see(await stage.store.rescue({"t"}))
        await check()
        await stage.worker("w2")
        for one in await stage.claim(worker="w2"):
            assert one.job.fire == keys[one.job.seq]
            await stage.report(one, Succeeded(stage.now, b"1"))
        await check()
        stage.see(await stage.store.retry(job, by="ops"))
        await check()

    @played
    async def test_p24_the_jobs_of_a_fire_are_hinted_at(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        await schedules.due()
        ears = Listener()
        stop = stage.store.subscribe(ears.hear)
        await ears.hears(Hint.WORK, schedules.next)
        stop()
