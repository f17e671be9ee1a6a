"""Schedules: compare-and-set on the version, and each instant fired once."""

from __future__ import annotations

from betimes.core.job import Micros
from betimes.core.schedule import ScheduleRecord
from betimes.stores.sqlite.statements import statement
from betimes.stores.sqlite.turn import Turn

SCHEDULE_VERSION = statement("schedule_version")
SAVE_SCHEDULE = statement("save_schedule")
DELETE_SCHEDULE = statement("delete_schedule")
DELETE_FIRES = statement("delete_fires")
MOVE_SCHEDULE_ON = statement("move_schedule_on")
HAS_FIRED = statement("has_fired")
ADD_FIRE = statement("add_fire")
NAME_JOB_OF_FIRE = statement("name_job_of_fire")


def save(turn: Turn, record: ScheduleRecord, expected_version: int | None) -> bool:
    """Insert or replace a schedule; False, and no change, if that is not what stands."""
    row = turn.sql.execute(SCHEDULE_VERSION, (record.id,)).fetchone()
    if (None if row is None else row[0]) != expected_version:
        return False
    version = (expected_version or 0) + 1
    turn.sql.execute(SAVE_SCHEDULE, turn.specs.schedule_row(record, version=version))
    return True


def remove(turn: Turn, schedule_id: str) -> bool:
    """Remove a schedule and its fires."""
    turn.sql.execute(DELETE_FIRES, (schedule_id,))
    return turn.sql.execute(DELETE_SCHEDULE, (schedule_id,)).rowcount > 0


def fire(
    turn: Turn, record: ScheduleRecord, fire_at: Micros, next_fire_at: Micros | None, *, is_skipped: bool
) -> bool:
    """Move a schedule on by one instant; False, and no change, where another was first.

    The caller keeps the job in the same transaction, and names it by `name_job`.
    """
    sql = turn.sql
    if sql.execute(HAS_FIRED, (record.id, fire_at)).fetchone()[0]:
        return False
    fired, skipped = (0, 1) if is_skipped else (1, 0)
    seen = (record.id, record.version, record.next_fire_at)
    if not sql.execute(MOVE_SCHEDULE_ON, (next_fire_at, fire_at, fired, skipped, *seen)).rowcount:
        return False
    sql.execute(ADD_FIRE, (record.id, fire_at))
    return True


def name_job(turn: Turn, record: ScheduleRecord, fire_at: Micros, seq: int) -> None:
    """Say which job the fire became."""
    turn.sql.execute(NAME_JOB_OF_FIRE, (seq, record.id, fire_at))
