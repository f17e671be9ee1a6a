"""Schedules: saved by compare-and-set on the version, fired in batches, and moved by the ends of their jobs.

However many steps a batch has, it takes few statements: one look each at the schedules, their live jobs and
the instants decided before, and a few writes. What becomes of a step is `overlapping.settle`'s to say. All
of it, and what the end of a job does to its schedule, is in the transaction of the jobs' own change, so that
nothing is left half done or stuck whenever the process ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from betimes.core.events import CancelRequested
from betimes.core.job import CancelReason, FireKey, Job, JobEvent, JobStatus, Micros
from betimes.core.overlapping import Settled, settle
from betimes.core.schedule import Advance, Fire, Fired, FireOutcome, ScheduleRecord, followed
from betimes.ports import Hint
from betimes.stores.relational.arrivals import Admission, insert_plain, is_plain
from betimes.stores.relational.rows import array
from betimes.stores.relational.schedule_rows import fire_row, moved_row, schedule_of, schedule_row
from betimes.stores.relational.statements import ManyRows, Records, Row, statement
from betimes.stores.relational.submission import Submission
from betimes.stores.relational.turn import Turn

RUNNING = JobStatus.RUNNING

STANDING_SCHEDULES = Records("standing_schedules")
SCHEDULES_BY_ID = Records("schedules_by_id")
FOLLOWING_SCHEDULES = Records("following_schedules")
SAVE_SCHEDULE = statement("save_schedule")
DELETE_SCHEDULE = statement("delete_schedule")
DELETE_FIRES = statement("delete_fires")
TAKEN_INSTANTS = statement("taken_instants")
MOVE_SCHEDULE_ON = ManyRows("move_schedule_on")
ADD_FIRE = ManyRows("add_fire")


def save(turn: Turn, record: ScheduleRecord, expected_version: int | None, fires: Sequence[Fire]) -> bool:
    """Insert or replace a schedule; False, and no change, if that is not what stands."""
    turn.sql.lock_names({f"schedule {record.id}"})
    stands = _standing(turn, (record.id,)).get(record.id)
    if (None if stands is None else stands.version) != expected_version:
        return False
    if expected_version is not None:
        record = replace(record, version=expected_version + 1)
    turn.sql.execute(SAVE_SCHEDULE, schedule_row(record, turn.specs))
    ADD_FIRE.write(turn.sql, [fire_row(record.id, fire) for fire in fires])
    turn.hints.add(Hint.FIRE)
    return True


def remove(turn: Turn, schedule_id: str) -> bool:
    """Remove a schedule and its fires."""
    # First the schedule: whoever fires it just now is waited for, and leaves fires.
    was_there = turn.sql.execute(DELETE_SCHEDULE, (schedule_id,)).rowcount > 0
    turn.sql.execute(DELETE_FIRES, (schedule_id,))
    turn.hints.add(Hint.FIRE)
    return was_there


def follow(turn: Turn) -> dict[str, ScheduleRecord]:
    """Move the schedules for which the jobs that this turn has ended were waited for; return them by id."""
    ends, turn.ends_of_fires = turn.ends_of_fires, []
    if not ends:
        return {}
    records = _read(turn, FOLLOWING_SCHEDULES, {_fire(job).schedule for job in ends})
    moved: dict[str, ScheduleRecord] = {}
    for job in ends:
        record = records.get(_fire(job).schedule)
        after = None if record is None else followed(record, job.seq, job.finished_at or turn.now)
        if after is not None:
            records[after.id] = moved[after.id] = after
    _write(turn, moved.values())
    return moved


def note_retry(turn: Turn, job: Job) -> None:
    """Have the job's schedule, if it has one, count a job taken back among those that may be in the way."""
    if job.fire is None:
        return
    for record in _read(turn, SCHEDULES_BY_ID, (job.fire.schedule,)).values():
        jobs = tuple(sorted({*record.jobs, job.seq}))
        _write(turn, [replace(record, jobs=jobs, version=record.version + 1)])


class Firing:
    """Steps of schedules, carried out by `run`; `acknowledge` tells their jobs' records, after the commit."""

    __slots__ = ("_advances", "_kept", "_records", "_settled", "_turn")

    def __init__(self, turn: Turn, advances: Sequence[Advance]) -> None:
        self._turn = turn
        self._advances = advances
        self._settled: list[Settled | None] = []
        self._records: list[ScheduleRecord] = []
        self._kept: Admission | Submission | None = None

    def run(self) -> None:
        """Carry out the steps that count, or raise as `Store.submit` does."""
        self._settle(self._counting())
        if any(self._settled):
            self._cancel()
            self._move_on(self._keep_jobs())
            moved = follow(self._turn)
            self._records = [moved.get(record.id, record) for record in self._records]

    def acknowledge(self) -> tuple[list[Fired | None], Sequence[JobEvent]]:
        """Return by position what each step came to, and every transition made."""
        kept, changes = ([], self._turn.changes) if self._kept is None else self._kept.acknowledge()
        jobs, records = iter(kept), iter(self._records)

        def answer(settled: Settled) -> Fired:
            own = tuple(next(jobs) for _ in settled.runs)
            return Fired(record=next(records), jobs=own, fires=settled.fires)

        return [None if settled is None else answer(settled) for settled in self._settled], changes

    def _counting(self) -> list[Advance | None]:
        """Return by position the steps that count: of several of one schedule, the first that stands."""
        standing = _standing(self._turn, {advance.record.id for advance in self._advances})
        counting: list[Advance | None] = []
        for advance in self._advances:
            counts = advance.stands(standing.get(advance.record.id))
            counting.append(advance if counts else None)
            if counts:
                del standing[advance.record.id]  # what it was seen to be, it is no longer
        return counting

    def _settle(self, advances: Sequence[Advance | None]) -> None:
        """Decide each step on the jobs that are live and the instants that have been decided."""
        turn = self._turn
        counting = [advance for advance in advances if advance is not None]
        jobs = turn.load([seq for advance in counting for seq in advance.record.jobs])
        taken = self._taken(counting)
        for advance in advances:
            if advance is None:
                self._settled.append(None)
                continue
            live = [jobs[seq] for seq in advance.record.jobs if seq in jobs]
            decided = taken.get(advance.record.id, ())
            self._settled.append(settle(advance, live=live, taken=decided, now=turn.now))

    def _taken(self, advances: Sequence[Advance]) -> dict[str, set[Micros]]:
        """Return by schedule which of the instants due have been decided before."""
        due = [
            (fire.schedule, fire.at)
            for advance in advances
            if not advance.by_hand
            for fire in map(_fire, advance.due)
        ]
        taken: dict[str, set[Micros]] = {}
        for schedule_id, at in self._turn.sql.execute(TAKEN_INSTANTS, (array(due),)).fetchall():
            taken.setdefault(schedule_id, set()).add(at)
        return taken

    def _cancel(self) -> None:
        """End what is to give way, the newest first: what waits for another is not released just to end."""
        turn = self._turn
        for settled in filter(None, self._settled):
            for job in reversed(settled.cancels):
                if not job.status.is_terminal:
                    turn.move(job, CancelRequested(turn.now, CancelReason.REPLACED))
                if job.status is RUNNING:
                    turn.hints.add(Hint.CANCEL)
        turn.flush()

    def _keep_jobs(self) -> Iterator[int]:
        """Keep the jobs of all steps, and return their numbers."""
        runs = [run for settled in filter(None, self._settled) for run in settled.runs]
        jobs = [job for job, _ in runs]
        waits = {id(job): live for job, live in runs if live}
        if not waits and not self._turn.changes and all(map(is_plain, jobs)):
            admitted = insert_plain(self._turn, [jobs])
            if admitted is not None:
                (self._kept,) = admitted
                return iter(self._kept.numbers())
        self._kept = submission = Submission(self._turn, jobs, waits)
        submission.run()
        return iter(submission.numbers())

    def _move_on(self, numbers: Iterator[int]) -> None:
        """Write the schedules as they stand now, and what became of each instant."""
        rows: list[Row] = []
        for settled in filter(None, self._settled):
            seqs = [next(numbers) for _ in settled.runs]
            record = settled.record_with(seqs)
            self._records.append(record)
            by_hand = iter(seqs)
            for fire in settled.fires:
                number = next(by_hand) if fire.outcome is FireOutcome.BY_HAND else 0
                rows.append(fire_row(record.id, fire, number))
        _write(self._turn, self._records)
        ADD_FIRE.write(self._turn.sql, rows)


class _Standing(NamedTuple):
    """How a schedule stands (`core.schedule.Standing`)."""

    version: int
    next_fire_at: Micros | None
    paused: bool


def _standing(turn: Turn, ids: Collection[str]) -> dict[str, _Standing]:
    """Return by id how schedules stand."""
    rows = STANDING_SCHEDULES.read(turn.sql, (array(ids),))
    return {row[0]: _Standing(row[1], row[2], row[3] == 1) for row in rows}


def _read(turn: Turn, query: Records, ids: Collection[str]) -> dict[str, ScheduleRecord]:
    """Return schedules by id."""
    rows = query.read(turn.sql, (array(ids),))
    return {row[0]: schedule_of(row, turn.specs) for row in rows}


def _write(turn: Turn, records: Collection[ScheduleRecord]) -> None:
    """Write what steps and ends have changed of schedules."""
    MOVE_SCHEDULE_ON.write(turn.sql, [moved_row(record) for record in records])
    if any(record.next_fire_at is not None for record in records):
        turn.hints.add(Hint.FIRE)


def _fire(job: Job) -> FireKey:
    assert job.fire is not None, "a job that a schedule makes names its fire"
    return job.fire
