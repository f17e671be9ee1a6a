"""Runs of one schedule that would overlap: decided where the step is carried out, on what is live then.

The store calls `settle` inside the step that inserts the jobs. So the guard holds over any number of
workers: whoever fires next sees the jobs that were made before.

A run *overlaps* as long as an earlier job of the schedule has not ended, whether it runs, waits to start or
waits to be tried again. With `missed="all"`, every instant counts: one that was missed, and one that came
before an earlier run had even started, is not skipped but held back (`ScheduleRecord.held_at`) until the
earlier run has ended. The instants behind it wait with it, since a schedule moves on in order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from betimes.core.job import FireKey, Job, JobStatus, Micros
from betimes.core.schedule import Advance, Fire, FireOutcome, Missed, Overlap, ScheduleRecord, delayed

# Looked up once: an enumeration's members are found slowly.
FIRED, BY_HAND, ALLOW = FireOutcome.FIRED, FireOutcome.BY_HAND, Overlap.ALLOW


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """What a step does to the store.

    Attributes:
        record: the schedule afterwards, but for the numbers of its new jobs.
        runs: the jobs to keep, each with the live jobs whose end it waits for.
        cancels: live jobs to cancel first.
        fires: what became of each instant.
        keeps_jobs: whether the schedule remembers its live jobs.
        awaits_run: whether the end of the new job sets the next fire.
    """

    record: ScheduleRecord
    runs: tuple[tuple[Job, tuple[Job, ...]], ...] = ()
    cancels: tuple[Job, ...] = ()
    fires: tuple[Fire, ...] = ()
    keeps_jobs: bool = False
    awaits_run: bool = False

    def record_with(self, seqs: Sequence[int]) -> ScheduleRecord:
        """Return the schedule afterwards, with the numbers that the store gave the new jobs."""
        if not seqs or not (self.keeps_jobs or self.awaits_run):
            return self.record
        return replace(
            self.record,
            jobs=(*self.record.jobs, *seqs) if self.keeps_jobs else (),
            awaits=seqs[-1] if self.awaits_run else self.record.awaits,
        )


def settle(advance: Advance, *, live: Sequence[Job], taken: Collection[Micros], now: Micros) -> Settled:
    """Decide a step of a schedule, given the jobs of it that are live.

    Args:
        advance: the step as it was planned.
        live: the jobs of `advance.record.jobs` that have not ended, oldest first.
        taken: those of the instants in `advance.due` that were decided before (after the clock was set
            back): they are stepped over.
        now: the instant of the step.
    """
    due: Sequence[Job] = advance.due
    if taken and not advance.by_hand:
        due = [job for job in due if _key(job).at not in taken]
    if not due or not live or advance.overlap is ALLOW:
        return _settled(advance, runs=[(job, ()) for job in due], live=live, now=now)
    first = due[0]
    if _is_patient(advance, _key(first).at, live[-1]):
        return _held(advance, _key(first).at, live)
    if advance.overlap is Overlap.REPLACE:
        running = tuple(job for job in live if job.status is JobStatus.RUNNING)
        return _settled(advance, runs=[(first, running)], live=running, now=now, cancels=tuple(live))
    waiting = [job for job in live if job.started_at is None]
    if advance.by_hand or (advance.overlap is Overlap.QUEUE_ONE and not waiting):
        return _settled(advance, runs=[(first, tuple(live))], live=live, now=now)
    in_the_way = (waiting if advance.overlap is Overlap.QUEUE_ONE else live)[0]
    skip = Fire(
        at=_key(first).at,
        first_at=_key(first).at,
        outcome=FireOutcome.OVERLAP,
        decided_at=now,
        job_id=in_the_way.id,
        moved_from=advance.moved.get(_key(first).at),
    )
    return _settled(advance, runs=[], live=live, now=now, skip=skip)


def _is_patient(advance: Advance, at: Micros, newest: Job) -> bool:
    """Say whether the first instant due is held back rather than dealt with as the overlap policy says."""
    if advance.missed is not Missed.ALL or advance.by_hand:
        return False
    return advance.is_late or newest.started_at is None or newest.started_at >= at


def _held(advance: Advance, at: Micros, live: Sequence[Job]) -> Settled:
    jobs = tuple(job.seq for job in live)
    counts = _counted(advance, advance.skips)
    held = replace(advance.record, **counts, next_fire_at=None, held_at=at, jobs=jobs)
    return Settled(record=held, fires=advance.skips)


def _settled(
    advance: Advance,
    *,
    runs: list[tuple[Job, tuple[Job, ...]]],
    live: Sequence[Job],
    now: Micros,
    cancels: tuple[Job, ...] = (),
    skip: Fire | None = None,
) -> Settled:
    stands_for = runs[-1][0].id if runs else None
    fires = [_earlier(each, stands_for, skip) for each in advance.skips]
    fires += [_fired(advance, job, now) for job, _ in runs]
    if skip is not None:
        fires.append(skip)
    delay_us = advance.record.delay_us
    may_overlap = advance.overlap is ALLOW
    # One value is made of all that changes, since 10,000 schedules may be due at once.
    changes = _counted(advance, fires)
    changes["jobs"] = () if may_overlap else tuple(job.seq for job in live)
    if not advance.by_hand:
        changes |= {"next_fire_at": advance.next_fire_at, "held_at": None, "awaits": None}
        if delay_us is not None and not runs:
            # No run whose end could be waited for: the one in the way is, or else time alone.
            changes |= _after(advance, skip, live, now)
    return Settled(
        record=replace(advance.record, **changes),
        runs=tuple(runs),
        cancels=cancels,
        fires=tuple(fires),
        keeps_jobs=not may_overlap,
        awaits_run=delay_us is not None and not advance.by_hand,
    )


def _after(advance: Advance, skip: Fire | None, live: Sequence[Job], now: Micros) -> dict[str, Any]:
    if skip is not None:
        return {"awaits": next(job.seq for job in live if job.id == skip.job_id)}
    return {"next_fire_at": delayed(advance.record, now)}


def _earlier(fire: Fire, job_id: str | None, skip: Fire | None) -> Fire:
    """Return what became of earlier instants: merged into a run, they share the fate of its instant."""
    if fire.outcome is not FireOutcome.MERGED:
        return fire
    if skip is not None:
        return replace(fire, outcome=skip.outcome, job_id=skip.job_id)
    return replace(fire, job_id=job_id)


def _fired(advance: Advance, job: Job, now: Micros) -> Fire:
    at = _key(job).at
    return Fire(
        at=at,
        first_at=at,
        outcome=BY_HAND if advance.by_hand else FIRED,
        decided_at=now,
        job_id=job.id,
        moved_from=advance.moved.get(at),
    )


def _counted(advance: Advance, fires: Sequence[Fire]) -> dict[str, Any]:
    """Return what changes of the schedule when these instants are counted, and it is one version on."""
    record = advance.record
    fired, skipped, last = record.fired, record.skipped, record.last_fire_at
    for fire in fires:
        outcome = fire.outcome
        if outcome is BY_HAND:
            continue
        if outcome is FIRED:
            fired += 1
        else:
            skipped += fire.count
        if last is None or fire.at > last:
            last = fire.at
    return {"version": record.version + 1, "last_fire_at": last, "fired": fired, "skipped": skipped}


def _key(job: Job) -> FireKey:
    assert job.fire is not None, "a job that a schedule makes names its fire"
    return job.fire
