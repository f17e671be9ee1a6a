"""Between rows and schedules with their fires: as `rows` does it for jobs.

The view `betimes_plan` gives a whole schedule as a JSON array; its first columns are those of any job that
it makes.
"""

from __future__ import annotations

from betimes.core.schedule import Fire, FireOutcome, ScheduleRecord
from betimes.stores.relational.rows import Specs, array
from betimes.stores.relational.statements import Row

OUTCOME = {outcome.value: outcome for outcome in FireOutcome}
TEXT = {outcome: outcome.value for outcome in FireOutcome}


def schedule_of(row: Row, specs: Specs) -> ScheduleRecord:
    """Return the schedule that a record of `betimes_plan` describes."""
    spec = specs.spec((row[1], row[2], row[3], row[4], row[5]))
    trouble = specs.trouble(row[5])
    error = row[11] or (None if trouble is None else trouble.message)
    jobs = row[15]
    if not isinstance(jobs, list):
        jobs, error = [], error or f"the column jobs cannot be read: {jobs}"
    return ScheduleRecord(
        id=row[0],
        spec=spec,
        payload=row[6].encode(),
        definition=row[7],
        next_fire_at=row[8],
        version=row[9],
        paused=row[10] == 1,
        error=error,
        last_fire_at=row[12],
        fired=row[13],
        skipped=row[14],
        jobs=tuple(jobs),
        held_at=row[16],
        awaits=row[17],
        delay_us=row[18],
        ends_at=row[19],
    )


def schedule_row(record: ScheduleRecord, specs: Specs) -> Row:
    """Return the values of `save_schedule`."""
    return (
        record.id, *specs.columns(record.spec), record.payload.decode(), record.definition,
        record.next_fire_at, record.version, int(record.paused), record.error, record.last_fire_at,
        record.fired, record.skipped, _jobs(record), record.held_at, record.awaits, record.delay_us,
        record.ends_at,
    )  # fmt: skip


def moved_row(record: ScheduleRecord) -> Row:
    """Return the values of `move_schedule_on`."""
    return (
        record.id, record.next_fire_at, record.version, record.last_fire_at, record.fired, record.skipped,
        _jobs(record), record.held_at, record.awaits,
    )  # fmt: skip


def _jobs(record: ScheduleRecord) -> str | None:
    return array(record.jobs) if record.jobs else None


def fire_of(row: Row) -> Fire:
    """Return the fire that a record of `fires` describes."""
    return Fire(
        at=row[0],
        first_at=row[1],
        count=row[2],
        is_exact=row[3] == 1,
        outcome=OUTCOME[row[4]],
        decided_at=row[5],
        job_id=row[6],
        moved_from=row[7],
    )


def fire_row(schedule_id: str, fire: Fire, by_hand: int = 0) -> Row:
    """Return the values of `add_fire`; `by_hand` is the number of the job that somebody asked for, if so."""
    return (
        schedule_id, fire.at, by_hand, fire.first_at, fire.count, int(fire.is_exact), TEXT[fire.outcome],
        fire.decided_at, fire.job_id, fire.moved_from,
    )  # fmt: skip
