"""The end of a job moves its schedule: an instant that was held back, or the next run after a delay.

However a job ends, that is in the very step in which its end is recorded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from betimes.core.events import DeadlinePassed, Errored, GivenBack, Snoozed, Succeeded, Withdrawn
from betimes.core.job import Job, Micros
from betimes.core.lifecycle import CRASH_BUDGET
from betimes.core.schedule import Missed, Overlap
from betimes.ports import Hint, Report
from betimes.testing.store_contract.listing import Listener
from betimes.testing.store_contract.schedule_stage import MINUTE, ScheduleStage
from betimes.testing.store_contract.stage import BOOM, LEASE_S, SECOND, Stage, played

DELAY_S = 5
EXPIRES_S = 7.0


@dataclass(frozen=True, slots=True)
class Way:
    """A way in which a job ends."""

    name: str
    end: Callable[[ScheduleStage, Job], Awaitable[None]]
    at_most_once: bool = False
    expires_s: float | None = None


def ways() -> Iterator[Way]:
    """Every way in which a job can end."""

    def reported(event: type[Succeeded | Errored | DeadlinePassed | Withdrawn], *values: object) -> Way:
        async def end(schedules: ScheduleStage, job: Job) -> None:
            taken = await schedules.claim(job)
            await schedules.end(taken, event(schedules.stage.now, *values))  # type: ignore[arg-type]

        return Way(event.__name__, end)

    yield reported(Succeeded, b"1")
    yield reported(Errored, BOOM)
    yield reported(DeadlinePassed, BOOM)
    yield reported(Withdrawn, "enough")
    yield Way("cancelled before its start", _cancelled)
    yield Way("expired", _expired, expires_s=EXPIRES_S)
    yield Way("returned after a cancel", _returned)
    yield Way("given back after a cancel", _given_back)
    yield Way("abandoned", _abandoned)
    yield Way("lost, and may start only once", _lost, at_most_once=True)
    yield Way("a poison pill", _poisoned)
    yield Way("unknown to its worker after a cancel", _unknown)
    yield Way("its worker retired after a cancel", _retired)


async def _cancelled(schedules: ScheduleStage, job: Job) -> None:
    await schedules.stage.cancel(job)


async def _expired(schedules: ScheduleStage, _job: Job) -> None:
    schedules.stage.advance(EXPIRES_S)
    await schedules.stage.turn()


async def _returned(schedules: ScheduleStage, job: Job) -> None:
    taken = await schedules.claim(job)
    await schedules.stage.cancel(job)
    await schedules.end(taken, Succeeded(schedules.stage.now, b"1"))


async def _given_back(schedules: ScheduleStage, job: Job) -> None:
    taken = await schedules.claim(job)
    await schedules.stage.cancel(job)
    await schedules.end(taken, GivenBack(schedules.stage.now))


async def _abandoned(schedules: ScheduleStage, job: Job) -> None:
    await schedules.claim(job)
    await schedules.stage.cancel(job, abandon=True)


async def _lost(schedules: ScheduleStage, job: Job) -> None:
    await _lose(schedules, job)


async def _poisoned(schedules: ScheduleStage, job: Job) -> None:
    for _ in range(CRASH_BUDGET):
        await _lose(schedules, job)


async def _lose(schedules: ScheduleStage, job: Job) -> None:
    stage = schedules.stage
    await schedules.claim(job, worker=await stage.worker("lost"))
    stage.advance(LEASE_S + 1)
    stage.see(await stage.store.rescue({"t"}))


async def _unknown(schedules: ScheduleStage, job: Job) -> None:
    stage = schedules.stage
    await schedules.claim(job, worker=await stage.worker("forgetful"))
    await stage.cancel(job)
    stage.see((await stage.store.beat("forgetful", {}, {})).changes)


async def _retired(schedules: ScheduleStage, job: Job) -> None:
    stage = schedules.stage
    await schedules.claim(job, worker=await stage.worker("retiring"))
    await stage.cancel(job)
    stage.see(await stage.store.retire("retiring"))


class FollowContract:
    """What a store promises of schedules that wait for the end of a run."""

    async def _first(self, schedules: ScheduleStage, name: str, way: Way, **fields: object) -> Job:
        """Save a schedule that is due, and let its first run wait to be started."""
        seen = await schedules.due(name, **fields)
        at: Micros = seen.next_fire_at or 0
        job = schedules.run(seen, at, at_most_once=way.at_most_once, expires_s=way.expires_s)
        await schedules.fire_one(schedules.step(seen, job, missed=Missed.ALL))
        return job

    @played
    async def test_p17_an_instant_is_held_back_until_the_earlier_run_has_ended_however_it_ends(
        self, stage: Stage
    ) -> None:
        schedules = ScheduleStage(stage)
        await stage.worker()
        for way in ways():
            job = await self._first(schedules, way.name, way)
            at = (await schedules.stands(way.name)).next_fire_at
            held = await schedules.next(way.name, missed=Missed.ALL)
            assert (held.jobs, held.fires) == ((), ()), way.name
            assert (held.record.held_at, held.record.next_fire_at) == (at, None)
            assert (held.record.fired, held.record.skipped, held.record.jobs) == (1, 0, (job.seq,))
            assert await stage.store.next_fire() is None
            await way.end(schedules, job)
            assert (await stage.status(job)).is_terminal, way.name
            freed = await schedules.stands(way.name)
            assert (freed.held_at, freed.next_fire_at) == (None, at), way.name
            assert freed.version > held.record.version
            second = await schedules.run_next(way.name, missed=Missed.ALL)
            assert second.fire is not None
            assert second.fire.at == at
            await stage.cancel(second)
            await stage.store.remove_schedule(way.name)

    @played
    async def test_p18_a_fixed_delay_counts_from_the_end_of_the_run_however_it_ends(
        self, stage: Stage
    ) -> None:
        schedules = ScheduleStage(stage)
        await stage.worker()
        for way in ways():
            job = await self._first(schedules, way.name, way, delay_us=DELAY_S * SECOND)
            awaiting = await schedules.stands(way.name)
            assert (awaiting.awaits, awaiting.next_fire_at) == (job.seq, None)
            stage.advance(1)
            await way.end(schedules, job)
            ended = await stage.state(job)
            assert ended.finished_at is not None, way.name
            stands = await schedules.stands(way.name)
            assert (stands.awaits, stands.next_fire_at) == (None, ended.finished_at + DELAY_S * SECOND)
            assert stands.version > awaiting.version
            await stage.store.remove_schedule(way.name)

    @played
    async def test_p18_an_attempt_s_end_that_is_not_the_job_s_moves_nothing(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        await schedules.due("delayed", delay_us=DELAY_S * SECOND)
        taken = await schedules.started("delayed")
        for event in (Snoozed(stage.now, 0), GivenBack(stage.now), Errored(stage.now, BOOM, 0)):
            before = await schedules.stands("delayed")
            await schedules.end(taken, event)
            assert await schedules.stands("delayed") == before
            taken = await schedules.claim(taken.job)
        await schedules.end(taken, Errored(stage.now, BOOM))
        assert await stage.store.next_fire() == stage.now + DELAY_S * SECOND

    @played
    async def test_a_fixed_delay_does_not_lead_beyond_the_schedule_s_end(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        ends_at = stage.now + DELAY_S * SECOND
        for name, late_s in (("before", 0), ("beyond", 1)):
            await schedules.due(name, delay_us=DELAY_S * SECOND, ends_at=ends_at)
            taken = await schedules.started(name)
            stage.advance(late_s)
            await schedules.end(taken, Succeeded(stage.now, b"1"))
        nexts = [(await schedules.stands(name)).next_fire_at for name in ("before", "beyond")]
        assert nexts == [ends_at, None]
        assert (await schedules.stands("beyond")).awaits is None

    @played
    async def test_p18_a_fixed_delay_waits_for_whatever_was_in_the_way(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        seen = await schedules.due(delay_us=DELAY_S * SECOND)
        (by_hand,) = (await schedules.fire_one(schedules.by_hand(seen))).jobs
        skipped = await schedules.next()
        assert (skipped.jobs, skipped.record.awaits, skipped.record.next_fire_at) == ((), by_hand.seq, None)
        stage.advance(1)
        taken = await schedules.claim(by_hand)
        await schedules.end(taken, Succeeded(stage.now, b"1"))
        assert (await schedules.stands()).next_fire_at == stage.now + DELAY_S * SECOND

    @played
    async def test_p18_a_fixed_delay_goes_on_though_its_run_gave_way_to_one_by_hand(
        self, stage: Stage
    ) -> None:
        schedules = ScheduleStage(stage)
        await schedules.due(delay_us=DELAY_S * SECOND)
        await schedules.next(overlap=Overlap.REPLACE)
        awaiting = await schedules.stands()
        assert awaiting.awaits is not None
        stage.advance(1)
        stands = (await schedules.fire_one(schedules.by_hand(awaiting, overlap=Overlap.REPLACE))).record
        assert (stands.awaits, stands.next_fire_at) == (None, stage.now + DELAY_S * SECOND)
        assert len(stands.jobs) == 1

    @played
    async def test_p18_of_runs_beside_each_other_a_fixed_delay_awaits_the_last(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        seen = await schedules.due(delay_us=DELAY_S * SECOND)
        (by_hand,) = (await schedules.fire_one(schedules.by_hand(seen, overlap=Overlap.ALLOW))).jobs
        job = await schedules.run_next(overlap=Overlap.ALLOW)
        await stage.cancel(by_hand)
        assert (await schedules.stands()).awaits == job.seq
        await stage.cancel(job)
        assert (await schedules.stands()).next_fire_at == stage.now + DELAY_S * SECOND

    @played
    async def test_p18_several_ends_in_one_turn_move_their_schedules_one_after_the_other(
        self, stage: Stage
    ) -> None:
        schedules = ScheduleStage(stage)
        await schedules.due("held")
        first = await schedules.run_next("held", missed=Missed.ALL)
        by_hand = schedules.by_hand(await schedules.stands("held"))
        (second,) = (await schedules.fire_one(by_hand)).jobs
        held = await schedules.next("held", missed=Missed.ALL)
        assert held.record.jobs == (first.seq, second.seq)
        await schedules.due("delayed", delay_us=DELAY_S * SECOND)
        third = await schedules.run_next("delayed")
        await stage.cancel(first)
        freed = await schedules.stands("held")
        assert freed.next_fire_at is not None
        again = await schedules.next("held", missed=Missed.ALL)
        assert (again.record.held_at, again.record.jobs) == (freed.next_fire_at, (second.seq,))
        await stage.worker()
        claimed = await stage.claim()
        assert {taken.job.seq for taken in claimed} == {second.seq, third.seq}
        done = Succeeded(stage.now, b"1")
        await stage.turn([Report(taken.job, taken.fence, done) for taken in claimed])
        assert (await schedules.stands("held")).next_fire_at == freed.next_fire_at
        assert (await schedules.stands("delayed")).next_fire_at == stage.now + DELAY_S * SECOND

    @played
    async def test_p18_a_paused_schedule_hears_of_the_end_of_its_run(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        await schedules.due(delay_us=DELAY_S * SECOND)
        job = await schedules.run_next()
        await schedules.change(await schedules.stands(), paused=True)
        await stage.cancel(job)
        stands = await schedules.stands()
        assert (stands.paused, stands.awaits, stands.next_fire_at) == (
            True,
            None,
            stage.now + DELAY_S * SECOND,
        )
        assert await stage.store.next_fire() is None

    @played
    async def test_the_end_of_a_run_that_nothing_waits_for_leaves_its_schedule_alone(
        self, stage: Stage
    ) -> None:
        schedules = ScheduleStage(stage)
        await schedules.due()
        taken = await schedules.started()
        before = await schedules.stands()
        await schedules.end(taken, Succeeded(stage.now, b"1"))
        assert await schedules.stands() == before
        assert before.next_fire_at == stage.now + MINUTE

    @played
    async def test_a_next_fire_that_the_end_of_a_run_has_set_is_hinted_at(self, stage: Stage) -> None:
        schedules = ScheduleStage(stage)
        ears = Listener()
        stop = stage.store.subscribe(ears.hear)
        await schedules.due(delay_us=DELAY_S * SECOND)
        taken = await schedules.started()
        await ears.expect(Hint.FIRE)
        await ears.hears(Hint.FIRE, lambda: schedules.end(taken, Succeeded(stage.now, b"1")))
        stop()
