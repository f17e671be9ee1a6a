"""Planted bugs: fires, and runs that overlap."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace
from tests.simulation.bugs import bug

from betimes.core import overlapping
from betimes.core.job import Job, Micros
from betimes.core.overlapping import Settled
from betimes.core.schedule import Advance, Fire, Overlap, ScheduleRecord, followed
from betimes.errors import StoreUnavailable
from betimes.runtime.attempt import Attempt
from betimes.runtime.context import Context
from betimes.runtime.firing import Firing
from betimes.stores.memory import firing as memory_firing
from betimes.stores.memory import schedules as memory_schedules
from betimes.stores.memory.schedules import Schedules
from betimes.stores.relational import firing as relational_firing


def change_settled(patch: pytest.MonkeyPatch, change: Callable[[Advance, Settled], Settled]) -> None:
    """Change what is decided in the store's step, on every store."""
    original = overlapping.settle

    def settle(advance: Advance, **found: Any) -> Settled:
        return change(advance, original(advance, **found))

    patch.setattr(memory_firing, "settle", settle)
    patch.setattr(relational_firing, "settle", settle)


# --- one job for each instant


@bug("neither fired nor skipped", "memory", "sqlite")
def fire_is_advanced_apart_from_its_job(patch: pytest.MonkeyPatch) -> None:
    """First the schedule moves on, then its jobs are submitted: who dies in between has lost them."""

    async def fire(self: Firing, due: Sequence[Advance]) -> None:
        bare = [replace(advance, due=(), skips=()) for advance in due]
        fired, _ = await self._store.fire(bare)
        for advance, out in zip(due, fired, strict=True):
            if out is not None:
                await self._store.submit(list(advance.due))

    patch.setattr(Firing, "_fire", fire)


@bug("has become #.* before")
def lost_reply_of_a_fire_means_it_was_not_done(patch: pytest.MonkeyPatch) -> None:
    """Whoever hears nothing of a fire makes its jobs once more."""
    original = Firing._fire

    async def fire(self: Firing, due: Sequence[Advance]) -> None:
        try:
            await original(self, due)
        except StoreUnavailable:
            for advance in due:
                await self._store.submit(list(advance.due))

    patch.setattr(Firing, "_fire", fire)


@bug("was run, not nothing")
def instant_is_fired_again_after_the_clock_was_set_back(patch: pytest.MonkeyPatch) -> None:
    """What was decided before is not looked up."""
    patch.setattr(Schedules, "taken", lambda self, schedule_id, instants: set())


@bug("remembers None")
def skip_is_not_recorded(patch: pytest.MonkeyPatch) -> None:
    """The history of a schedule knows of its runs only."""
    remember = Schedules.remember

    def remember_runs(self: Schedules, schedule_id: str, fires: Collection[Fire]) -> None:
        remember(self, schedule_id, [fire for fire in fires if not fire.outcome.is_skip])

    patch.setattr(Schedules, "remember", remember_runs)


@bug("was told that it is scheduled for")
def scheduled_for_is_the_start(patch: pytest.MonkeyPatch) -> None:
    """A run is told when it was made, and not which instant it is for."""

    def scheduled_for(self: Context) -> datetime | None:
        assert isinstance(self._attempt, Attempt)
        job = self._attempt.job
        return None if job.fire is None else datetime.fromtimestamp(job.submitted_at / 1e6).astimezone()

    patch.setattr(Context, "scheduled_for", property(scheduled_for))


@bug("moved schedule")
def run_by_hand_moves_the_grid(patch: pytest.MonkeyPatch) -> None:
    """After a run by hand the next one comes later."""

    def change(advance: Advance, settled: Settled) -> Settled:
        next_at = settled.record.next_fire_at
        if not advance.by_hand or next_at is None:
            return settled
        return replace(settled, record=replace(settled.record, next_fire_at=next_at + 1_000_000))

    change_settled(patch, change)


# --- runs that overlap


@bug("was run, not (skipped|held back)", "memory", "sqlite")
def overlap_guard_only_in_one_process(patch: pytest.MonkeyPatch) -> None:
    """Each worker knows of the runs under way in its own process, and of no others."""
    original = Firing._fire

    async def fire(self: Firing, due: Sequence[Advance]) -> None:
        mine = [attempt.job.fire for attempt in self._worker.state.in_flight.values()]
        running = {key.schedule for key in mine if key is not None}
        guarded = [
            advance if advance.record.id in running else replace(advance, overlap=Overlap.ALLOW)
            for advance in due
        ]
        await original(self, guarded)

    patch.setattr(Firing, "_fire", fire)


@bug("belongs to blocked", "memory", "sqlite")
def next_run_does_not_wait_for_the_one_before(patch: pytest.MonkeyPatch) -> None:
    """The run that is queued behind another one, or replaces it, starts at once."""
    change_settled(
        patch, lambda _, settled: replace(settled, runs=tuple((job, ()) for job, _ in settled.runs))
    )


@bug("was to give way")
def replaced_run_is_not_told_to_stop(patch: pytest.MonkeyPatch) -> None:
    """What is to be replaced goes on, or waits on."""
    change_settled(patch, lambda _, settled: replace(settled, cancels=()))


@bug("waits for the end of a run, and none is live")
def held_instant_is_never_released(patch: pytest.MonkeyPatch) -> None:
    """The end of a run does not move its schedule on."""

    def follow(record: ScheduleRecord, seq: int, ended_at: Micros) -> ScheduleRecord | None:
        return None if record.held_at is not None else followed(record, seq, ended_at)

    patch.setattr(memory_schedules, "followed", follow)


@bug(r"µs after \d+")
def fixed_delay_is_counted_from_the_start(patch: pytest.MonkeyPatch) -> None:
    """The delay begins with a run, and not with its end."""
    ended = Schedules.ended

    def ended_as_it_started(self: Schedules, job: Job) -> None:
        twin = job.copy()
        twin.finished_at = job.started_at or job.finished_at
        ended(self, twin)

    patch.setattr(Schedules, "ended", ended_as_it_started)


@bug("waits for no run's end")
def fixed_delay_ends_with_a_failure(patch: pytest.MonkeyPatch) -> None:
    """Only a run that has COMPLETED is followed by another one."""
    ended = Schedules.ended

    def ended_well(self: Schedules, job: Job) -> None:
        if job.result is None:
            del self.live[job.seq]
        else:
            ended(self, job)

    patch.setattr(Schedules, "ended", ended_well)
