"""Schedules as they are kept: compare-and-set on what was seen, and lists in a fixed order."""

from __future__ import annotations

from asyncio import gather

from msgspec.structs import replace

from betimes.core.job import EMPTY_PAYLOAD, JobSpec
from betimes.core.schedule import Fire, FireOutcome, ScheduleRecord
from betimes.ports import Hint, ScheduleFilter
from betimes.testing.store_contract.listing import Listener
from betimes.testing.store_contract.schedule_stage import MINUTE, ScheduleStage
from betimes.testing.store_contract.stage import SECOND, Stage, played


def paused_at(at: int) -> Fire:
    """An instant that passed while its schedule was paused."""
    return Fire(at=at, first_at=at - MINUTE, count=2, outcome=FireOutcome.PAUSED, decided_at=at + SECOND)


class ScheduleContract:
    """What a store promises of schedules while nothing fires."""

    @played
    async def test_a_schedule_comes_back_as_it_was_saved(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        record = schedules.record(
            error="its trigger raised",
            last_fire_at=stage.now - SECOND,
            fired=7,
            skipped=3,
            jobs=(3, 4),
            held_at=stage.now,
            awaits=4,
            delay_us=5 * SECOND,
            ends_at=stage.now + 10**12,
        )
        assert await stage.store.save_schedule(record, expected_version=None)
        assert await stage.store.schedule("nightly") == record
        bare = ScheduleRecord(id="bare", spec=JobSpec(task="t"), paused=True)
        assert await stage.store.save_schedule(bare, expected_version=None)
        assert await stage.store.schedules(ScheduleFilter()) == [bare, record]
        assert bare.payload == EMPTY_PAYLOAD
        assert await stage.store.schedule("unknown") is None

    @played
    async def test_case_100_a_schedule_is_made_once(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        records = [schedules.record(definition=f'"{n}"') for n in range(8)]
        saves = await gather(*(stage.store.save_schedule(one, expected_version=None) for one in records))
        assert saves.count(True) == 1
        assert await schedules.stands() == records[saves.index(True)]

    @played
    async def test_p18_a_change_counts_only_against_what_was_seen(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        seen = await schedules.save()
        stands = await schedules.change(seen, paused=True)
        assert stands.paused
        assert stands.version > seen.version
        other = replace(seen, definition="{}")
        lost = paused_at(stage.now)
        for stale in (seen.version, None, 99):
            assert not await stage.store.save_schedule(other, expected_version=stale, fires=[lost])
        assert await schedules.stands() == stands
        unknown = replace(other, id="unknown")
        assert not await stage.store.save_schedule(unknown, expected_version=1, fires=[lost])
        assert await stage.store.schedules(ScheduleFilter()) == [stands]
        assert await stage.store.fires("nightly") == await stage.store.fires("unknown") == []

    @played
    async def test_p17_instants_that_passed_while_paused_are_remembered_with_the_change(
        self, stage: Stage
    ) -> None:
        schedules = ScheduleStage(stage)
        seen = await schedules.save(paused=True)
        passed = [paused_at(stage.now - MINUTE), paused_at(stage.now)]
        resumed = replace(seen, paused=False, skipped=4)
        assert await stage.store.save_schedule(resumed, expected_version=seen.version, fires=passed)
        assert await stage.store.fires("nightly") == passed[::-1]
        assert (await schedules.stands()).skipped == 4

    @played
    async def test_p17_what_is_due_is_listed_earliest_first(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        for name, in_s in (("c", 30.0), ("a", 60.0), ("e", 60.0), ("b", 10.0), ("d", 61.0)):
            await schedules.save(name, in_s=in_s)
        await schedules.save("paused", in_s=5.0, paused=True)
        await schedules.change(await schedules.save("never"), next_fire_at=None)

        async def due(after: ScheduleRecord | None = None, limit: int = 9) -> list[ScheduleRecord]:
            return await stage.store.schedules(ScheduleFilter(due_by=stage.now, after=after, limit=limit))

        assert await due() == []
        stage.advance(60)
        listed = await due()
        assert [one.id for one in listed] == ["b", "c", "a", "e"]
        assert await due(limit=2) == listed[:2]
        for place, one in enumerate(listed):
            assert await due(one, 2) == listed[place + 1 : place + 3]
        stage.advance(1)
        assert [one.id for one in await due()] == ["b", "c", "a", "e", "d"]

    @played
    async def test_all_are_listed_by_id_page_by_page(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        names = ["a", "a b", "ab", "z", "ä", "\U0001f600"]
        for name in reversed(names):
            await schedules.save(name, paused=name == "ab")
        found: list[ScheduleRecord] = []
        while page := await stage.store.schedules(
            ScheduleFilter(after=found[-1] if found else None, limit=4)
        ):
            found += page
        assert [one.id for one in found] == names

    @played
    async def test_p29_those_that_have_fired_ahead_of_an_instant_are_found(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        for name in "dbca":
            await schedules.save(name, last_fire_at=None if name == "d" else stage.now + ord(name) * SECOND)
        after = stage.now + ord("a") * SECOND

        async def found(**which: object) -> list[str]:
            asked = ScheduleFilter(**{"fired_after": after, **which})  # type: ignore[arg-type]
            return [one.id for one in await stage.store.schedules(asked)]

        assert await found() == ["b", "c"]
        assert await found(fired_after=after - 1, limit=2) == ["a", "b"]
        assert await found(after=await schedules.stands("b")) == ["c"]
        assert await found(due_by=stage.now + MINUTE) == ["b", "c"]
        assert await found(due_by=stage.now) == []

    @played
    async def test_the_next_fire_is_the_earliest_of_those_that_are_not_paused(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        assert await stage.store.next_fire() is None
        later = await schedules.save("later", in_s=90.0)
        assert await stage.store.next_fire() == later.next_fire_at
        sooner = await schedules.save("sooner", in_s=30.0)
        assert await stage.store.next_fire() == sooner.next_fire_at
        paused = await schedules.change(sooner, paused=True)
        assert await stage.store.next_fire() == later.next_fire_at
        await schedules.change(paused, paused=False)
        assert await stage.store.next_fire() == sooner.next_fire_at
        assert await stage.store.remove_schedule("sooner")
        assert await stage.store.next_fire() == later.next_fire_at
        await schedules.change(later, next_fire_at=None)
        assert await stage.store.next_fire() is None

    @played
    async def test_a_next_fire_that_may_be_another_one_is_hinted_at(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        ears = Listener()
        stop = stage.store.subscribe(ears.hear)
        await ears.hears(Hint.FIRE, schedules.due)
        await ears.hears(Hint.FIRE, schedules.next)
        stop()
