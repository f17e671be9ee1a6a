"""What users are shown of a schedule, and of what became of its instants."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from betimes.core.durations import from_us
from betimes.core.grid import Grid
from betimes.core.job import Micros
from betimes.core.schedule import Fire, FireOutcome, Missed, Overlap, ScheduleRecord
from betimes.core.schedule_terms import ScheduleTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleInfo:
    """What is known of a schedule at one instant. Instants are aware, in UTC.

    Attributes:
        id: its name.
        task, queue, priority: of the jobs it makes.
        trigger: when it fires, in English; where its definition cannot be read here, why.
        tz: the zone of its wall times; None: it has none.
        next_fire_at: the next instant; None: there is none, or none before a job has ended.
        last_fire_at: the newest instant that was decided, whether it ran or was skipped.
        fired, skipped: how many instants became jobs, and how many did not.
        paused: whether it fires nothing.
        error: why the scheduler paused it by itself; None: it did not.
        overlap, missed, max_catchup: its policies.
        jitter_s: each run starts up to so many seconds later than its instant.
        start, end: no fire is earlier or later.
        created_at: when it was added first.
    """

    id: str
    task: str
    queue: str
    priority: int
    trigger: str
    tz: str | None
    next_fire_at: datetime | None
    last_fire_at: datetime | None
    fired: int
    skipped: int
    paused: bool
    error: str | None
    overlap: Overlap
    missed: Missed
    max_catchup: int
    jitter_s: float
    start: datetime | None
    end: datetime | None
    created_at: datetime | None

    @classmethod
    def of(
        cls, record: ScheduleRecord, terms: ScheduleTerms | None, grid: Grid | None, why: str = ""
    ) -> ScheduleInfo:
        """Read it off a schedule's record; `why` says why there is no grid."""
        known = terms or ScheduleTerms(trigger={})
        return cls(
            id=record.id,
            task=record.spec.task,
            queue=record.spec.queue,
            priority=record.spec.priority,
            trigger=why if grid is None else grid.sentence(),
            tz=None if grid is None else grid.tz(),
            next_fire_at=_instant(record.next_fire_at),
            last_fire_at=_instant(record.last_fire_at),
            fired=record.fired,
            skipped=record.skipped,
            paused=record.paused,
            error=record.error,
            overlap=known.overlap,
            missed=known.missed,
            max_catchup=known.max_catchup,
            jitter_s=known.jitter_us / 1_000_000,
            start=_instant(known.starts_at),
            end=_instant(known.ends_at),
            created_at=None if terms is None else _instant(known.created_at),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FireInfo:
    """What became of one instant of a schedule, or of several in a row that shared their fate.

    Attributes:
        at: the instant; of several, the last (aware, UTC).
        first_at: of several, the first; else `at`.
        count: how many instants it stands for.
        is_exact: whether there were exactly so many; False: at least.
        outcome: what became of them.
        decided_at: when that was decided.
        job_id: the job it became, that stands for it, or that was in the way; None: there is none.
        moved_from: the wall time it stands for, if a change of the clocks skipped it.
    """

    at: datetime
    first_at: datetime
    count: int
    is_exact: bool
    outcome: FireOutcome
    decided_at: datetime
    job_id: str | None
    moved_from: str | None

    @classmethod
    def of(cls, fire: Fire) -> FireInfo:
        """Read it off a store's record."""
        return cls(
            at=from_us(fire.at),
            first_at=from_us(fire.first_at),
            count=fire.count,
            is_exact=fire.is_exact,
            outcome=fire.outcome,
            decided_at=from_us(fire.decided_at),
            job_id=fire.job_id,
            moved_from=fire.moved_from,
        )


def _instant(us: Micros | None) -> datetime | None:
    return None if us is None else from_us(us)
