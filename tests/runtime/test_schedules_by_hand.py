"""What users do with schedules by hand: pause, resume, run now; and what `explain_schedule` answers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.runtime.schedule_scene import DAY, HOUR, MINUTE, Work, World, when
from tests.runtime.stage import StoreMaker, pass_time

from betimes import Context, Scheduler, ScheduleReasonCode, Trigger, cron, every
from betimes.clock import SystemClock

Code = ScheduleReasonCode


def test_a_paused_schedule_fires_nothing_and_says_what_passed(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("1m"))
            await pass_time(61)
            paused = await work.scheduler.pause_schedule("s")
            assert paused.paused
            assert await work.scheduler.pause_schedule("s") == paused
            await pass_time(10 * MINUTE)
            assert world.planned == [60]
            resumed = await work.scheduler.resume_schedule("s")
            assert (resumed.paused, resumed.next_fire_at, resumed.skipped) == (False, when(720), 10)
            assert await work.history() == [("fired", 60, 1), ("paused", 660, 10)]
            assert (await work.scheduler.metrics()).skipped_fires == 10
            assert await work.scheduler.resume_schedule("s") == resumed
            await pass_time(MINUTE)
            assert world.planned == [60, 720]

    world.play(main)


def test_a_pause_without_an_instant_in_it_changes_nothing(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("1m"))
            await work.scheduler.pause_schedule("s")
            await pass_time(30)
            await work.scheduler.resume_schedule("s")
            await pass_time(31)
            assert (world.planned, await work.counts()) == ([60], (1, 0))

    world.play(main)


def test_a_pause_holds_over_restarts_and_the_same_definition_again(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("1m"))
            await work.scheduler.pause_schedule("s")
        async with world.working() as work:
            await work.add(every("1m"))
            await work.add(every("2m"))  # a changed one, too
            await pass_time(HOUR)
            assert world.runs == []
            assert (await work.scheduler.schedule("s")).paused

    world.play(main)


def test_a_schedule_that_was_paused_when_it_was_over_stays_over(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("1m"), end=when(90))
            await pass_time(70)
            await work.scheduler.pause_schedule("s")
            await work.scheduler.resume_schedule("s")
            await pass_time(HOUR)
            assert (world.planned, await work.next_s()) == ([60], None)

    world.play(main)


def test_a_fixed_delay_that_is_paused_while_it_runs_goes_on_after_the_resume(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working(takes=30) as work:
            await work.add(every("1m", after="finish"))
            await pass_time(70)
            await work.scheduler.pause_schedule("s")
            await pass_time(10)
            await work.scheduler.resume_schedule("s")
            await pass_time(71)
            assert world.began == [60, 150]

    world.play(main)


def test_case_023_a_run_now_moves_nothing(store: StoreMaker) -> None:
    world = World(store, start=datetime(2030, 1, 1, 1, tzinfo=UTC), calm=True)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("24h"))
            next_at = (await work.scheduler.schedule("s")).next_fire_at
            await pass_time(10.5 * HOUR)
            handle = await work.scheduler.trigger_now("s")
            await handle.result()
            info = await handle.info()
            assert (info.schedule, info.scheduled_for) == ("s", info.submitted_at)
            assert info.submitted_at == datetime(2030, 1, 1, 11, 30, tzinfo=UTC)
            await work.scheduler.pause_schedule("s")
            await work.scheduler.resume_schedule("s")
            after = await work.scheduler.schedule("s")
            assert after.next_fire_at == next_at == datetime(2030, 1, 2, 1, tzinfo=UTC)
            assert (after.fired, after.skipped, after.last_fire_at) == (0, 0, None)
            (fire,) = await work.scheduler.schedule_history("s")
            assert (fire.outcome, fire.job_id, fire.at) == ("by_hand", handle.id, info.submitted_at)
            await pass_time(14 * HOUR)
            assert (len(world.runs), await work.counts()) == (2, (1, 0))

    world.play(main)


@pytest.mark.parametrize("overlap", ["skip", "queue_one", "replace", "allow"])
def test_p18_a_run_now_keeps_to_the_overlap_policy(store: StoreMaker, overlap: str) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working(takes=100) as work:
            await work.add(every("1h"), overlap=overlap)
            first = await work.scheduler.trigger_now("s")
            await pass_time(10)
            await work.scheduler.trigger_now("s")
            await pass_time(200)
            second_began = {"replace": 10, "allow": 10}.get(overlap, 100)
            assert world.began == [0, second_began]
            assert (await first.status() == "cancelled") is (overlap == "replace")
            assert world.most == (2 if overlap == "allow" else 1)

    world.play(main)


def test_a_paused_schedule_can_be_run_now(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("1h"))
            await work.scheduler.pause_schedule("s")
            await (await work.scheduler.trigger_now("s")).result()
            assert len(world.runs) == 1
            assert (await work.scheduler.schedule("s")).paused

    world.play(main)


def test_a_client_can_look_and_change_and_run_now(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        scheduler = world.scheduler()
        task = world.task(scheduler)
        async with scheduler.client():
            await scheduler.add_schedule("s", task.bind(), every("1m"), overlap="allow")
            await pass_time(90)  # a client fires nothing
            explained = await scheduler.explain_schedule("s")
            assert explained.codes == {Code.NO_WORKER, Code.DUE}
            await scheduler.trigger_now("s")
        async with scheduler:
            await pass_time(1)
            assert set(world.planned) == {60, 90}

    world.play(main)


# ---------------------------------------------------------------------------------------- explained


async def codes(work: Work, at_s: float | None = None, schedule_id: str = "s") -> set[Code]:
    at = None if at_s is None else when(at_s)
    return set((await work.scheduler.explain_schedule(schedule_id, at)).codes)


def test_explain_tells_of_each_fate_of_an_instant(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working(takes=lambda before: 90 if before == 1 else 0) as work:
            await pass_time(30)
            await work.add(every("1m", align=True), end=when(HOUR))
            assert await codes(work) == await codes(work, 120) == {Code.NOT_DUE}
            await pass_time(31)  # 60: fired
            await work.scheduler.trigger_now("s")  # 61: runs for 90 s
            await pass_time(60)  # 120: overlap
            await pass_time(60)  # 180: fired
            await work.scheduler.pause_schedule("s")
            await pass_time(120)  # 240, 300: paused
            assert await codes(work) == await codes(work, 240) == await codes(work, 360) == {Code.PAUSED}
            await work.scheduler.resume_schedule("s")
        world.clock.advance(200)  # 360, 420: merged; 480: fired late
        async with world.working() as work:
            await pass_time(1)
            fates = {
                0: Code.BEFORE_ADDED, 60: Code.FIRED, 61: Code.BY_HAND, 62: Code.NO_INSTANT,
                120: Code.OVERLAP, 180: Code.FIRED, 240: Code.PAUSED, 300: Code.PAUSED, 270: Code.NO_INSTANT,
                360: Code.MERGED, 420: Code.MERGED, 480: Code.FIRED, 540: Code.NOT_DUE,
                2 * HOUR: Code.OUT_OF_BOUNDS,
            }  # fmt: skip
            assert {at_s: await codes(work, at_s) for at_s in fates} == {
                at_s: {code} for at_s, code in fates.items()
            }
            overlap = (await work.scheduler.explain_schedule("s", when(120))).reasons[0]
            assert overlap.job_id == world.runs[1].job_id
            text = str(await work.scheduler.explain_schedule("s", when(480)))
            assert "It became job" in text
            assert "That was decided" in text
            await pass_time(HOUR)
            assert await codes(work) == {Code.OVER}

    world.play(main)


def test_explain_tells_of_what_was_missed_and_not_made_up_for(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every("1m"), "skip", missed="skip")
            await work.add(every("1m"), "all", missed="all", max_catchup=2)
        world.clock.advance(5 * MINUTE + 40)
        async with world.working() as work:
            await pass_time(1)
            assert await codes(work, 180, "skip") == {Code.MISSED}
            assert await codes(work, 180, "all") == {Code.CATCH_UP}
            assert await codes(work, 240, "all") == {Code.FIRED}

    world.play(main)


def test_explain_tells_of_what_waits_for_a_run(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working(takes=100) as work:
            await work.add(every("1m"), "all", missed="all")
            await work.add(every("1m", after="finish"), "delay")
        world.clock.advance(5 * MINUTE)
        async with world.working(takes=100) as work:
            await pass_time(1)
            running = {
                (await (await work.scheduler.job(run.job_id)).info()).schedule: run.job_id
                for run in world.runs
            }
            for name, code in (("all", Code.HELD_BACK), ("delay", Code.AFTER_END)):
                explained = await work.scheduler.explain_schedule(name)
                assert explained.codes == {code}
                assert explained.reasons[0].job_id == running[name]
            assert await codes(work, 240, "all") == {Code.HELD_BACK}
            assert await codes(work, 60, "delay") == {Code.FIRED}
            await pass_time(110)
            explained = await work.scheduler.explain_schedule("delay")
            assert explained.codes == {Code.NOT_DUE}
            assert [fire.at for fire in explained.next_fires] == [when(400 + 60)]

    world.play(main)


def test_explain_finds_an_instant_far_back(store: StoreMaker) -> None:
    world = World(store)

    async def main() -> None:
        async with world.working() as work:
            await work.add(every(1))
            await pass_time(560.5)
            assert await codes(work, 3) == {Code.FIRED}
            assert await codes(work, 3.5) == {Code.NO_INSTANT}
            assert await codes(work, 550) == {Code.FIRED}

    world.play(main)


def test_explain_does_not_say_that_a_job_ran_which_was_cancelled_before(store: StoreMaker) -> None:
    world = World(store, calm=True)

    async def main() -> None:
        async with world.working(takes=100) as work:
            await work.add(every("1m"), overlap="queue_one")
            await pass_time(130)
            (queued, *_) = await work.scheduler.schedule_history("s")
            assert "which is BLOCKED" in str(await work.scheduler.explain_schedule("s", when(120)))
            await work.scheduler.cancel(str(queued.job_id))
            assert "which is CANCELLED" in str(await work.scheduler.explain_schedule("s", when(120)))
            assert "which is RUNNING" in str(await work.scheduler.explain_schedule("s", when(60)))

    world.play(main)


def test_explain_says_that_what_is_forgotten_is_not_on_record(store: StoreMaker) -> None:
    world = World(store, calm=True, keep=HOUR)

    async def main() -> None:
        async with world.working() as work:
            await work.add(cron("0 * * * *"))
            await pass_time(27 * HOUR + 10 * MINUTE)  # a day is remembered at least, on SQLite
            assert await codes(work, 27 * HOUR) == {Code.FIRED}
            assert await codes(work, HOUR) == {Code.NOT_ON_RECORD}

    world.play(main)


def test_explain_names_the_wall_time_that_a_change_of_the_clocks_skipped(store: StoreMaker) -> None:
    world = World(store, start=datetime(2030, 3, 30, 12, tzinfo=UTC), calm=True)

    async def main() -> None:
        async with world.working() as work:
            await work.add(cron("30 2 * * *", tz="Europe/Berlin"))
            moved_to = datetime(2030, 3, 31, 1, tzinfo=UTC)
            first = (await work.scheduler.explain_schedule("s")).next_fires[0]
            assert (first.at, first.moved_from) == (moved_to, "2030-03-31T02:30[Europe/Berlin]")
            await pass_time(DAY)
            explained = await work.scheduler.explain_schedule("s", moved_to)
            assert explained.codes == {Code.FIRED}
            assert "stands for 2030-03-31T02:30[Europe/Berlin]" in str(explained)
            (fire,) = await work.scheduler.schedule_history("s")
            assert fire.moved_from == "2030-03-31T02:30[Europe/Berlin]"
            meant = await work.scheduler.explain_schedule("s", moved_to + timedelta(minutes=30))
            assert meant.codes == {Code.NO_INSTANT}
            assert "which the clocks skipped" in str(meant)

    world.play(main)


def test_explain_says_why_a_trigger_cannot_tell(store: StoreMaker) -> None:
    world = World(store)

    class Failing(Trigger):
        next_of: Callable[[datetime], datetime] | None = None

        def next(self, after: datetime) -> datetime:
            if self.next_of is None:
                raise ZeroDivisionError("by zero")
            return self.next_of(after)

    async def main() -> None:
        async with world.working() as work:
            trigger = Failing()
            trigger.next_of = lambda after: after + timedelta(hours=1)
            await work.add(trigger)
            trigger.next_of = None
            explained = await work.scheduler.explain_schedule("s", when(60))
            assert explained.codes == {Code.BROKEN}
            assert "ZeroDivisionError: by zero" in str(explained)

    world.play(main)


# ----------------------------------------------------------------------------------------- blocking


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_code_without_a_loop_has_the_same_calls(kind: str, tmp_path: Path) -> None:
    scheduler = Scheduler("memory:" if kind == "memory" else tmp_path / "jobs.db", clock=SystemClock())

    @scheduler.task(name="work")
    def work(ctx: Context) -> bool:
        return ctx.scheduled_for is not None

    with scheduler.blocking() as blocking:
        added = blocking.add_schedule("s", work.bind(), every("1h"), overlap="allow")
        assert blocking.schedule("s") == added
        assert [info.id for info in blocking.schedules()] == ["s"]
        assert blocking.trigger_now("s").result(timeout=20) is True
        assert [fire.outcome for fire in blocking.schedule_history("s")] == ["by_hand"]
        assert blocking.pause_schedule("s").paused
        assert blocking.explain_schedule("s").codes == {Code.PAUSED}
        assert not blocking.resume_schedule("s").paused
        blocking.remove_schedule("s")
        assert blocking.schedules() == []
