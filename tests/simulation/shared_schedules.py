"""The calls on schedules, carried out at the one real store, and witnessed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace
from tests.simulation.carrying_out import carried_out
from tests.simulation.tally import Met

from betimes.core.job import JobEvent, Micros
from betimes.core.schedule import Advance, Fire, Fired, ScheduleRecord
from betimes.ports import ScheduleFilter

if TYPE_CHECKING:
    from tests.simulation.shared_store import SharedStore

ALL = ScheduleFilter()
PAGE = 1000


class SharedSchedules:
    """Carries out calls on schedules.

    Attributes:
        are_simulated: whether there are any; else nobody need ask.
    """

    def __init__(self, shared: SharedStore) -> None:
        self._shared = shared
        self.are_simulated = False

    def _now(self, schedule_id: str) -> ScheduleRecord | None:
        return carried_out(self._shared.store.schedule(schedule_id))

    def save(
        self,
        host: str,
        record: ScheduleRecord,
        expected_version: int | None,
        fires: Sequence[Fire],
        sent_at: Micros,
    ) -> bool:
        """Insert or replace a schedule by compare-and-set."""
        before = self._now(record.id)
        saved = carried_out(
            self._shared.of(host).save_schedule(record, expected_version=expected_version, fires=fires)
        )
        timekeeping, after = self._shared.seen_by.schedules.timekeeping, self._now(record.id)
        if saved and after is not None:
            timekeeping.saved(before, after, fires, sent_at)
        else:
            timekeeping.refused(before, expected_version)
        return saved

    def remove(self, host: str, schedule_id: str) -> bool:
        """Remove a schedule, after a last look at its past."""
        before = self._now(schedule_id)
        history = self._history(schedule_id)
        removed = carried_out(self._shared.of(host).remove_schedule(schedule_id))
        if before is not None:
            self._shared.seen_by.model.tally[Met.SCHEDULE_REMOVED] += 1
            self._shared.seen_by.schedules.removed(before, history)
        return removed

    def _history(self, schedule_id: str) -> list[Fire]:
        history: list[Fire] = []
        before: Micros | None = None
        while page := carried_out(self._shared.store.fires(schedule_id, before=before, limit=PAGE)):
            history += page
            before = page[-1].at
        return history

    def get(self, host: str, schedule_id: str) -> ScheduleRecord | None:
        """Look at a schedule."""
        return carried_out(self._shared.of(host).schedule(schedule_id))

    def listed(self, host: str, which: ScheduleFilter) -> list[ScheduleRecord]:
        """List schedules."""
        return list(carried_out(self._shared.of(host).schedules(which)))

    def next_fire(self, host: str) -> Micros | None:
        """Look for the next fire."""
        return carried_out(self._shared.of(host).next_fire())

    def fires(self, host: str, schedule_id: str, before: Micros | None, limit: int) -> list[Fire]:
        """List a schedule's past."""
        return list(carried_out(self._shared.of(host).fires(schedule_id, before=before, limit=limit)))

    def fire(
        self, host: str, advances: Sequence[Advance], planned_at: Micros
    ) -> tuple[list[Fired | None], list[JobEvent]]:
        """Carry out steps of schedules."""
        sent = [replace(advance, due=tuple(job.copy() for job in advance.due)) for advance in advances]
        befores = {advance.record.id: self._now(advance.record.id) for advance in advances}
        fired, changes = carried_out(self._shared.of(host).fire(advances))
        for each in fired:
            self._shared.keep_in_view(() if each is None else each.jobs)
        self._shared.seen_by.fired(sent, befores, fired, list(changes), planned_at)
        return [None if each is None else _copied(each) for each in fired], list(changes)

    # --- looking

    def all(self) -> list[ScheduleRecord]:
        """Return all schedules as they stand."""
        return carried_out(self._shared.store.schedules(ALL)) if self.are_simulated else []

    def next_due(self) -> Micros | None:
        """Return the earliest next fire."""
        return carried_out(self._shared.store.next_fire()) if self.are_simulated else None

    def look(self) -> None:
        """Compare all that the store holds with what has been witnessed."""
        if self.are_simulated:
            self._shared.seen_by.schedules.look(self.all())


def _copied(fired: Fired) -> Fired:
    """Copy what a fire came to on its way out."""
    return replace(fired, jobs=tuple(job.copy() for job in fired.jobs))
