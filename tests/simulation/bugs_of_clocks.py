"""Planted bugs: grids, what was missed, and clocks that are set."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.simulation.bugs import bug

from betimes.core.firing import Plan
from betimes.core.job import Micros
from betimes.core.schedule import Advance, Fire, Missed, ScheduleRecord
from betimes.runtime.firing import Firing
from betimes.runtime.timetable import NewSchedule, Timetable
from betimes.stores.memory import schedules as memory_schedules


@bug("the grid of .* was moved", "memory", "sqlite")
def restart_shifts_the_grid(patch: pytest.MonkeyPatch) -> None:
    """Adding the same definition again begins a new grid."""
    new = Timetable._new

    def changed(self: Timetable, asked: NewSchedule, standing: ScheduleRecord) -> ScheduleRecord:
        return replace(
            new(self, asked),
            paused=standing.paused,
            last_fire_at=standing.last_fire_at,
            fired=standing.fired,
            skipped=standing.skipped,
            jobs=standing.jobs,
        )

    patch.setattr(Timetable, "_changed", changed)


@bug("later ones were due", "memory", "sqlite")
def catch_up_is_unbounded(patch: pytest.MonkeyPatch) -> None:
    """Everything missed is made up for, however much it is."""
    advance = Plan.advance

    def unbounded(self: Plan, record: ScheduleRecord) -> Advance:
        return advance(replace(self, terms=replace(self.terms, max_catchup=1000)), record)

    patch.setattr(Plan, "advance", unbounded)


@bug("µs late|later ones were due")
def what_was_missed_is_made_up_for(patch: pytest.MonkeyPatch) -> None:
    """A schedule that is to skip what it has missed makes up for it."""
    advance = Plan.advance

    def all_of_it(self: Plan, record: ScheduleRecord) -> Advance:
        is_to_skip = self.terms.missed is Missed.SKIP
        terms = replace(self.terms, missed=Missed.ALL) if is_to_skip else self.terms
        return advance(replace(self, terms=terms), record)

    patch.setattr(Plan, "advance", all_of_it)


@bug("neither fired nor skipped")
def merged_instants_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """One run stands for several instants, and nothing says so."""
    patch.setattr(Plan, "_earlier", lambda self, window: ())


@bug("µs before its time", "memory", "sqlite")
def instants_are_fired_a_second_early(patch: pytest.MonkeyPatch) -> None:
    """Who rounds up to the second fires what is not due yet."""
    due = Firing._due

    async def early(self: Firing, now: Micros) -> list[Advance]:
        return await due(self, now + 1_000_000)

    patch.setattr(Firing, "_due", early)


@bug("was resumed, and aims at")
def what_passed_while_paused_is_not_skipped(patch: pytest.MonkeyPatch) -> None:
    """A resumed schedule goes on where it was paused, with instants that have passed."""

    def resumed(self: Timetable, standing: ScheduleRecord) -> tuple[ScheduleRecord, tuple[Fire, ...]]:
        return replace(standing, paused=False), ()

    patch.setattr(Timetable, "_resumed", resumed)


@bug("is paused, and was fired")
def paused_schedule_is_fired(patch: pytest.MonkeyPatch) -> None:
    """A pause is written down, and nobody looks at it."""

    def key(record: ScheduleRecord | None) -> tuple[Micros, str] | None:
        return None if record is None or record.next_fire_at is None else (record.next_fire_at, record.id)

    def stands(self: Advance, record: ScheduleRecord | None) -> bool:
        return record is not None and record.version == self.record.version

    patch.setattr(memory_schedules, "_key", key)
    patch.setattr(Advance, "stands", stands)


@bug("fired ahead of the clock, and stands still", "memory", "sqlite")
def clock_set_back_is_not_noticed(patch: pytest.MonkeyPatch) -> None:
    """A schedule that has fired ahead of the clock waits until the clock is there again."""

    async def re_aim(self: Firing) -> None:
        return None

    patch.setattr(Firing, "re_aim", re_aim)


@bug("was paused by the scheduler itself")
def lost_change_is_taken_for_a_broken_schedule(patch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong while a schedule is re-aimed, it is paused for it."""
    re_aim = Timetable.re_aim

    async def paused(self: Timetable, record: ScheduleRecord) -> None:
        try:
            await re_aim(self, record)
        except Exception as error:  # noqa: BLE001 - that is the bug
            await self.break_off(record, error)  # type: ignore[arg-type]

    patch.setattr(Timetable, "re_aim", paused)
