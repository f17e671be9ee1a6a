"""Schedules in memory: compare-and-set on the version, and each instant fired once."""

from __future__ import annotations

from dataclasses import replace

from betimes.core.job import Micros
from betimes.core.schedule import ScheduleRecord

FIRES_KEPT = 1000
"""How many fired instants a schedule remembers; `next_fire_at` only grows, so older ones cannot recur."""


class Schedules:
    """The schedules by id."""

    def __init__(self) -> None:
        """Start without schedules."""
        self._records: dict[str, ScheduleRecord] = {}
        self._fires: dict[str, dict[Micros, None]] = {}

    def save(self, record: ScheduleRecord, expected_version: int | None) -> bool:
        """Insert or replace by compare-and-set on the version."""
        before = self._records.get(record.id)
        if (None if before is None else before.version) != expected_version:
            return False
        self._records[record.id] = replace(record, version=(expected_version or 0) + 1)
        return True

    def remove(self, schedule_id: str) -> bool:
        """Remove a schedule and its fires."""
        self._fires.pop(schedule_id, None)
        return self._records.pop(schedule_id, None) is not None

    def list(self, due_by: Micros | None, limit: int) -> list[ScheduleRecord]:
        """List all by id, or the due ones, earliest first."""
        if due_by is None:
            return sorted(self._records.values(), key=lambda record: record.id)[:limit]
        due = [
            (record.next_fire_at, record.id, record)
            for record in self._records.values()
            if not record.paused and record.next_fire_at is not None and record.next_fire_at <= due_by
        ]
        return [record for _, _, record in sorted(due, key=lambda entry: entry[:2])[:limit]]

    def can_fire(self, record: ScheduleRecord, fire_at: Micros) -> bool:
        """Say whether the schedule still stands as seen, and the instant has not fired."""
        stands = self._records.get(record.id)
        return (
            stands is not None
            and stands.version == record.version
            and stands.next_fire_at == record.next_fire_at
            and not stands.paused
            and fire_at not in self._fires.get(record.id, {})
        )

    def fire(
        self, record: ScheduleRecord, fire_at: Micros, next_fire_at: Micros | None, *, is_skipped: bool
    ) -> None:
        """Move the schedule on by one instant; only after `can_fire` said yes in the same step."""
        stands = self._records[record.id]
        fires = self._fires.setdefault(record.id, {})
        fires[fire_at] = None
        while len(fires) > FIRES_KEPT:
            del fires[next(iter(fires))]
        self._records[record.id] = replace(
            stands,
            version=stands.version + 1,
            next_fire_at=next_fire_at,
            last_fire_at=fire_at,
            fired=stands.fired + (not is_skipped),
            skipped=stands.skipped + is_skipped,
        )
