"""Schedules: compare-and-set on what was seen, and one job for each instant."""

from __future__ import annotations

from asyncio import gather
from dataclasses import replace
from itertools import pairwise

from betimes.core.job import EMPTY_PAYLOAD, JobSpec, JobStatus
from betimes.core.schedule import ScheduleRecord
from betimes.errors import DuplicateJob
from betimes.testing.store_contract.stage import SECOND, Stage, played, refused

MINUTE = 60 * SECOND


class ScheduleContract:
    """What a store promises of schedules."""

    def _record(self, stage: Stage, schedule_id: str = "nightly", *, in_s: float = 60.0) -> ScheduleRecord:
        return ScheduleRecord(
            id=schedule_id,
            spec=JobSpec(task="t", queue="q", retry={"max_attempts": 3}, tags=("a",)),
            payload=b'[["\xc3\xbc"],{}]',
            definition='{"cron": "0 9 * * *", "tz": "Europe/Berlin"}',
            next_fire_at=stage.now + round(in_s * SECOND),
        )

    async def _saved(self, stage: Stage, schedule_id: str = "nightly", **options: float) -> ScheduleRecord:
        record = self._record(stage, schedule_id, **options)
        assert await stage.store.save_schedule(record, expected_version=None)
        return await self._stands(stage, schedule_id)

    async def _stands(self, stage: Stage, schedule_id: str = "nightly") -> ScheduleRecord:
        (found,) = [one for one in await stage.store.schedules() if one.id == schedule_id]
        return found

    async def _fire(self, stage: Stage, record: ScheduleRecord, *, skip: bool = False) -> bool:
        """Fire a schedule's next instant, with the one a minute later as the next."""
        fire_at = record.next_fire_at
        assert fire_at is not None
        job = None if skip else stage.job(f"{record.id}@{fire_at}", task="t")
        is_first, changes = await stage.store.fire(
            record, fire_at=fire_at, next_fire_at=fire_at + MINUTE, job=job
        )
        stage.see(changes)
        assert is_first or changes == []
        return is_first

    @played
    async def test_a_schedule_comes_back_as_it_was_saved(self, stage: Stage) -> None:
        record = self._record(stage)
        assert await stage.store.save_schedule(record, expected_version=None)
        assert await stage.store.schedules() == [record]
        bare = ScheduleRecord(id="bare", spec=JobSpec(task="t"), paused=True)
        assert await stage.store.save_schedule(bare, expected_version=None)
        assert await stage.store.schedules() == [bare, record]
        assert bare.payload == EMPTY_PAYLOAD

    @played
    async def test_case_100_a_schedule_is_made_once(self, stage: Stage) -> None:
        records = [replace(self._record(stage), definition=f'"{n}"') for n in range(8)]
        saves = await gather(*(stage.store.save_schedule(one, expected_version=None) for one in records))
        assert saves.count(True) == 1
        assert await self._stands(stage) == records[saves.index(True)]

    @played
    async def test_p18_a_change_counts_only_against_what_was_seen(self, stage: Stage) -> None:
        seen = await self._saved(stage)
        changed = replace(seen, paused=True, version=seen.version + 1)
        assert await stage.store.save_schedule(changed, expected_version=seen.version)
        stands = await self._stands(stage)
        assert stands.paused
        assert stands.version > seen.version
        other = replace(seen, definition="{}", version=seen.version + 1)
        for stale in (seen.version, None, 99):
            assert not await stage.store.save_schedule(other, expected_version=stale)
        assert await self._stands(stage) == stands
        unknown = replace(other, id="unknown")
        assert not await stage.store.save_schedule(unknown, expected_version=1)
        assert len(await stage.store.schedules()) == 1

    @played
    async def test_p16_a_fire_makes_its_job_and_moves_the_schedule_on(self, stage: Stage) -> None:
        seen = await self._saved(stage)
        assert seen.next_fire_at is not None
        stage.advance(60)
        assert await self._fire(stage, seen)
        stands = await self._stands(stage)
        assert (stands.next_fire_at, stands.last_fire_at) == (seen.next_fire_at + MINUTE, seen.next_fire_at)
        assert (stands.fired, stands.skipped) == (1, 0)
        assert stands.version > seen.version
        assert (stands.spec, stands.payload, stands.definition) == (seen.spec, seen.payload, seen.definition)
        found = await stage.store.find(f"nightly@{seen.next_fire_at}")
        assert found is not None
        assert found.status is JobStatus.READY

    @played
    async def test_p16_of_many_workers_one_fires(self, stage: Stage) -> None:
        seen = await self._saved(stage)
        stage.advance(60)
        fires = await gather(*(self._fire(stage, seen) for _ in range(5)))
        assert fires.count(True) == 1
        assert len(await stage.everything()) == 1
        assert (await self._stands(stage)).fired == 1

    @played
    async def test_p16_whoever_saw_an_older_schedule_fires_nothing(self, stage: Stage) -> None:
        seen = await self._saved(stage)
        changed = replace(seen, definition="{}", version=seen.version + 1)
        assert await stage.store.save_schedule(changed, expected_version=seen.version)
        stands = await self._stands(stage)
        stage.advance(60)
        before = await stage.snapshot()
        assert not await self._fire(stage, seen)
        assert not await self._fire(stage, replace(stands, next_fire_at=stage.now - 1))
        assert not await self._fire(stage, replace(stands, id="unknown"))
        assert await stage.snapshot() == before

    @played
    async def test_a_paused_schedule_fires_nothing(self, stage: Stage) -> None:
        seen = await self._saved(stage)
        paused = replace(seen, paused=True, version=seen.version + 1)
        assert await stage.store.save_schedule(paused, expected_version=seen.version)
        stage.advance(60)
        before = await stage.snapshot()
        assert not await self._fire(stage, await self._stands(stage))
        assert await stage.snapshot() == before

    @played
    async def test_p16_an_instant_makes_one_job_though_the_schedule_is_set_back(self, stage: Stage) -> None:
        seen = await self._saved(stage)
        stage.advance(60)
        assert await self._fire(stage, seen)
        stands = await self._stands(stage)
        back = replace(stands, next_fire_at=seen.next_fire_at, version=stands.version + 1)
        assert await stage.store.save_schedule(back, expected_version=stands.version)
        await self._fire(stage, await self._stands(stage))
        assert len(await stage.everything()) == 1
        assert (await self._stands(stage)).fired == 1

    @played
    async def test_p17_every_instant_is_fired_or_counted_as_skipped_and_the_next_is_later(
        self, stage: Stage
    ) -> None:
        record = await self._saved(stage)
        stage.advance(3_600)
        instants = []
        for n in range(6):
            instants.append(record.next_fire_at or 0)
            assert await self._fire(stage, record, skip=n % 3 == 2)
            record = await self._stands(stage)
            assert record.last_fire_at == instants[-1]
        assert (record.fired, record.skipped) == (4, 2)
        assert [later - sooner for sooner, later in pairwise(instants)] == [MINUTE] * 5
        assert len(await stage.everything()) == 4

    @played
    async def test_a_last_fire_leaves_a_schedule_without_a_next(self, stage: Stage) -> None:
        seen = await self._saved(stage)
        stage.advance(60)
        is_first, changes = await stage.store.fire(
            seen, fire_at=seen.next_fire_at or 0, next_fire_at=None, job=stage.job()
        )
        stage.see(changes)
        assert is_first
        assert (await self._stands(stage)).next_fire_at is None
        assert await stage.store.schedules(due_by=stage.now + 10**15) == []

    @played
    async def test_p17_a_fire_whose_job_is_refused_changes_nothing(self, stage: Stage) -> None:
        seen = await self._saved(stage)
        await stage.add(f"nightly@{seen.next_fire_at}")
        before = await stage.snapshot()
        with refused(DuplicateJob):
            await self._fire(stage, seen)
        assert await stage.snapshot() == before

    @played
    async def test_p17_what_is_due_is_listed_earliest_first(self, stage: Stage) -> None:
        for name, in_s in (("c", 30.0), ("a", 60.0), ("b", 10.0), ("d", 61.0), ("paused", 5.0)):
            await self._saved(stage, name, in_s=in_s)
        paused = await self._stands(stage, "paused")
        changed = replace(paused, paused=True, version=paused.version + 1)
        assert await stage.store.save_schedule(changed, expected_version=paused.version)

        async def due(limit: int) -> list[str]:
            return [one.id for one in await stage.store.schedules(due_by=stage.now, limit=limit)]

        assert await due(9) == []
        stage.advance(60)
        assert await due(9) == ["b", "c", "a"]
        assert await due(2) == ["b", "c"]
        assert [one.id for one in await stage.store.schedules(limit=3)] == ["a", "b", "c"]

    @played
    async def test_a_schedule_that_is_removed_leaves_its_jobs(self, stage: Stage) -> None:
        seen = await self._saved(stage)
        stage.advance(60)
        await self._fire(stage, seen)
        assert await stage.store.remove_schedule("nightly")
        assert not await stage.store.remove_schedule("nightly")
        assert await stage.store.schedules() == []
        assert not await self._fire(stage, seen)
        assert len(await stage.everything()) == 1

    @played
    async def test_a_schedule_made_anew_has_no_past(self, stage: Stage) -> None:
        seen = await self._saved(stage)
        stage.advance(60)
        await self._fire(stage, seen)
        await stage.store.remove_schedule("nightly")
        fresh = replace(seen, next_fire_at=seen.next_fire_at)
        assert await stage.store.save_schedule(fresh, expected_version=None)
        job = stage.job()
        is_first, changes = await stage.store.fire(
            await self._stands(stage), fire_at=seen.next_fire_at or 0, next_fire_at=None, job=job
        )
        stage.see(changes)
        assert is_first
