"""Schedules that cannot go on: paused with a clear error and kept; the others are not affected."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.runtime.schedule_scene import HOUR, MINUTE, Work, World, when
from tests.runtime.stage import StoreMaker, pass_time

from betimes import BetimesError, Scheduler, ScheduleReasonCode, Trigger, cron, every
from betimes.core.grid import TriggerFailed


class FullHours(Trigger):
    """A user's own rule; no store can keep its code."""

    def next(self, after: datetime) -> datetime:
        return (after + timedelta(hours=1)).replace(minute=0, second=0, microsecond=0)


class Turning(Trigger):
    """Sound when it is added; later it does as it is told."""

    def __init__(self) -> None:
        self.wrong: Callable[[datetime], Any] | None = None

    def next(self, after: datetime) -> datetime:
        if self.wrong is not None:
            return self.wrong(after)  # type: ignore[no-any-return] # it may be anything
        return after + timedelta(minutes=1)


def raises(_: datetime) -> None:
    raise ZeroDivisionError("by zero")


def stays(after: datetime) -> datetime:
    return after


def goes_back(after: datetime) -> datetime:
    return after - timedelta(days=1)


def is_naive(after: datetime) -> datetime:
    return after.replace(tzinfo=None) + timedelta(minutes=1)


def is_none_such(_: datetime) -> str:
    return "tomorrow"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (raises, "its trigger raised ZeroDivisionError: by zero"),
        (stays, "its trigger does not advance: asked for what follows 2030-01-01T00:0"),
        (goes_back, "its trigger does not advance"),
        (is_naive, "has no time zone"),
        (is_none_such, "must be an aware datetime, not 'tomorrow'"),
    ],
)
def test_p17_a_schedule_whose_trigger_goes_wrong_is_paused_and_the_others_go_on(
    store: StoreMaker, wrong: Callable[[datetime], Any], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(store)

    async def main() -> None:
        trigger = Turning()
        async with world.working() as work:
            await work.add(trigger, "a-bad")
            await work.add(every("1m"), "good")
            await pass_time(90)
            trigger.wrong = wrong
            await pass_time(5 * MINUTE)
            bad = await work.scheduler.schedule("a-bad")
            assert bad.paused
            assert words in (bad.error or "")
            assert (await work.counts("good"))[0] == 6
            await refuses_to_resume(work)
            trigger.wrong = None
            resumed = await work.scheduler.resume_schedule("a-bad")
            assert (resumed.paused, resumed.error) == (False, None)
            await pass_time(MINUTE)
            assert (await work.counts("a-bad"))[0] == 2

    async def refuses_to_resume(work: Work) -> None:
        with pytest.raises(BetimesError):
            await work.scheduler.resume_schedule("a-bad")
        assert (await work.scheduler.schedule("a-bad")).paused

    with caplog.at_level(logging.ERROR):
        world.play(main)
    assert caplog.text.count("schedule a-bad is paused") == 1


@pytest.mark.parametrize("name", ["count", "moved_from", "anchored"])
def test_whatever_a_trigger_raises_breaks_only_its_own_schedule(store: StoreMaker, name: str) -> None:
    world = World(store)

    class Hostile(FullHours):
        armed = False

    def fails(self: Hostile, *_: object) -> Any:
        if Hostile.armed:
            raise ZeroDivisionError(name)
        return self if name == "anchored" else None

    setattr(Hostile, name, fails)

    async def main() -> None:
        async with world.working() as work:
            await work.add(Hostile(), "a-bad")
            await work.add(every("1h"), "good")
            Hostile.armed = True
            world.clock.advance(2000 * HOUR)
            await pass_time(MINUTE)
            assert (await work.scheduler.schedule("a-bad")).error == (
                f"its trigger raised ZeroDivisionError: {name}"
            )
            assert (await work.counts("good"))[0] == 1

    world.play(main)


def test_a_trigger_that_is_wrong_from_the_start_is_refused_and_nothing_is_kept(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        trigger = Turning()
        trigger.wrong = stays
        async with world.working() as work:
            with pytest.raises(TriggerFailed, match="does not advance"):
                await work.add(trigger)
            assert await work.scheduler.schedules() == []

    world.play(main)


def test_of_tasks_registered_on_a_running_scheduler_a_wrong_schedule_hinders_no_other(
    store: StoreMaker, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(store)

    async def main() -> None:
        trigger = Turning()
        trigger.wrong = raises
        async with world.scheduler() as scheduler:
            world.task(scheduler, name="a-bad", schedule=trigger)
            world.task(scheduler, name="good", schedule=every("1m"))
            await pass_time(61)
            assert [info.id for info in await scheduler.schedules()] == ["good"]
            assert world.planned == [60]

    with caplog.at_level(logging.ERROR):
        world.play(main)
    assert "a schedule that a task asks for cannot be kept: its trigger raised" in caplog.text


# ------------------------------------------------------------------------- what a store brings back


async def damage(scheduler: Scheduler, schedule_id: str, old: str, new: str) -> None:
    """Write something else into a stored definition."""
    record = await scheduler._store.schedule(schedule_id)
    assert record is not None
    assert old in record.definition
    damaged = replace(record, definition=record.definition.replace(old, new))
    assert await scheduler._store.save_schedule(damaged, expected_version=record.version)


@pytest.mark.parametrize(
    ("old", "new", "words", "made_up"),
    [
        ("Europe/Berlin", "Foo/Bar", "Foo/Bar", 1),
        ('"kind":"cron"', '"kind":"moon"', "moon", 1),
        ('"expr":"0 * * * *"', '"expr":"0 99 * * *"', "99", 1),
        # Of these not even the policies can be read, so it begins anew when it is added again.
        ('{"trigger"', '{"trigger', "stored definition cannot be read", 0),
        ('"overlap":"skip"', '"overlap":"later"', "stored definition cannot be read", 0),
    ],
)
def test_case_033_case_096_of_twenty_schedules_a_broken_one_is_kept_and_nineteen_go_on(
    store: StoreMaker, old: str, new: str, words: str, made_up: int, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(store, calm=True)
    berlin = cron("0 * * * *", tz="Europe/Berlin")

    async def main() -> None:
        async with world.working(concurrency=50) as work:
            for number in range(20):
                await work.add(berlin, f"s{number:02}")
            await damage(work.scheduler, "s07", old, new)
        async with world.working(concurrency=50) as work:
            await pass_time(HOUR + 1)
            assert len(world.runs) == 19
            broken = await work.scheduler.schedule("s07")
            assert broken.paused
            assert broken.error is not None
            assert words in broken.error
            assert len(await work.scheduler.schedules()) == 20
            explained = await work.scheduler.explain_schedule("s07")
            assert explained.codes == {ScheduleReasonCode.BROKEN}
            with pytest.raises(BetimesError):
                await work.scheduler.resume_schedule("s07")
        async with world.working(concurrency=50) as work:
            await work.add(berlin, "s07")  # as the program does at its start
            assert (await work.scheduler.schedule("s07")).error is None
            await pass_time(HOUR)
            assert len(world.runs) == 39 + made_up

    with caplog.at_level(logging.ERROR):
        world.play(main)
    assert caplog.text.count("schedule s07 is paused") == 1


def test_case_033_nothing_of_the_hosts_own_zone_matters(
    store: StoreMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(cron("0 12 * * *", tz="Europe/Berlin"))
        monkeypatch.setenv("TZ", "Pacific/Auckland")
        async with world.working() as work:
            assert await work.next_s() == 11 * HOUR
        monkeypatch.delenv("TZ")
        async with world.working() as work:
            await work.add(cron("0 12 * * *", tz="Europe/Berlin"))
            assert await work.next_s() == 11 * HOUR

    world.play(main)


def test_a_broken_schedule_can_be_removed(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("1m"))
            await damage(work.scheduler, "s", '{"trigger"', "")
            with pytest.raises(BetimesError, match="cannot be read"):
                await work.scheduler.trigger_now("s")
            await work.scheduler.remove_schedule("s")
            assert await work.scheduler.schedules() == []

    world.play(main)


def test_a_broken_schedule_that_is_added_again_keeps_its_counts(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("1m"))
            await pass_time(150)
            await damage(work.scheduler, "s", '{"trigger"', "")
            await work.add(every("1m"))
            assert await work.counts() == (2, 0)
            assert await work.next_s() == 210  # a new grid: the old one cannot be read

    world.play(main)


# ---------------------------------------------------------------------------- triggers of one's own


def test_a_trigger_of_ones_own_class_fires(store: StoreMaker) -> None:
    world = World(store, calm=True)

    async def main() -> None:
        for _ in range(2):  # also after a restart
            scheduler = world.scheduler()
            world.task(scheduler, schedule=FullHours())
            async with scheduler:
                assert (await scheduler.schedule("work")).trigger == "By the rule of FullHours."
                await pass_time(HOUR + 1)
        assert world.planned == [HOUR, 2 * HOUR]

    world.play(main)


def test_a_trigger_that_only_another_scheduler_knows_is_fired_there(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        knowing, other = world.scheduler(), world.scheduler()
        for scheduler in (knowing, other):
            world.task(scheduler)
        async with other:
            async with knowing:
                task = world.task(knowing, name="own")
                await knowing.add_schedule("own", task.bind(), FullHours())
                await pass_time(10)
            await other.add_schedule("s", world.task(other, name="t").bind(), every("1h"))
            await pass_time(HOUR + 1)
            # Nobody here can fire it; it waits, unbroken, and hinders neither the others nor a drain.
            assert world.planned == [HOUR + 10]
            await other.drain(timeout=1)
            info = await other.schedule("own")
            assert (info.paused, info.error, info.next_fire_at) == (False, None, when(HOUR))
            assert "FullHours" in info.trigger
            assert (await other.explain_schedule("own")).codes == {ScheduleReasonCode.TRIGGER_ELSEWHERE}
            async with knowing:
                await knowing.add_schedule("own", task.bind(), FullHours())
                await pass_time(5)
                assert HOUR in world.planned

    world.play(main)


def test_a_trigger_known_elsewhere_does_not_keep_a_worker_busy(store: StoreMaker) -> None:
    world = World(store, calm=True)

    async def main() -> None:
        async with world.working() as work:
            await work.add(FullHours())
        async with world.working() as work:
            await pass_time(HOUR + 1)
            store_asked = 0
            schedules = work.scheduler._store.schedules

            async def counted(which: Any) -> Any:
                nonlocal store_asked
                store_asked += 1
                return await schedules(which)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(work.scheduler._store, "schedules", counted)
                await pass_time(HOUR)
            assert store_asked <= 10

    world.play(main)


def test_a_schedule_that_is_kept_keeps_its_own_trigger(store: StoreMaker) -> None:
    world = World(store, calm=True)

    async def main() -> None:
        async with world.working() as work:
            await work.add(FullHours())
            await work.add(every("1m"), on_conflict="keep")
            await pass_time(HOUR + 1)
            assert world.planned == [HOUR]
            await work.add(every("1m"))
            await work.add(FullHours(), on_conflict="keep")
            await pass_time(MINUTE)
            assert world.planned == [HOUR, HOUR + 60]

    world.play(main)


def test_a_kept_trigger_of_ones_own_is_known_again_after_a_restart(store: StoreMaker) -> None:
    world = World(store, calm=True)

    async def main() -> None:
        for _ in range(2):
            async with world.working() as work:
                await work.add(FullHours(), on_conflict="keep")
                await pass_time(HOUR + 1)
        assert world.planned == [HOUR, 2 * HOUR]

    world.play(main)
