"""A schedule: what stores keep of it, what became of its instants, and one step of it.

How a step is planned is `firing`'s, how runs that would overlap are dealt with is `overlapping`'s. A store
keeps these values and compares versions; it decides nothing.

The values here are `msgspec.Struct`s rather than dataclasses: several are made for each fire, and a frozen
dataclass takes five times as long to make, and thirty times as long to `replace`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

import msgspec
from msgspec.structs import replace

from betimes.core.job import EMPTY_PAYLOAD, Job, JobSpec, Micros


class Overlap(StrEnum):
    """What becomes of a fire while an earlier run of the schedule has not ended."""

    SKIP = "skip"
    """It does not become a job; it is counted, with the id of the job in the way."""
    QUEUE_ONE = "queue_one"
    """It waits until the other has ended; while one waits already, it is skipped."""
    REPLACE = "replace"
    """The other is cancelled, and it runs as soon as the other's code has returned."""
    ALLOW = "allow"
    """It runs beside the other."""


class Missed(StrEnum):
    """What becomes of instants that passed while nobody could fire them."""

    LATEST = "latest"
    """One run, that of the newest instant, stands for all of them."""
    SKIP = "skip"
    """None of them runs."""
    ALL = "all"
    """Each of the newest `max_catchup` gets its own run, in order."""


class FireOutcome(StrEnum):
    """What became of an instant of a schedule."""

    FIRED = "fired"
    """It became a job."""
    BY_HAND = "by_hand"
    """No instant of the schedule: somebody asked for a run now."""
    OVERLAP = "overlap"
    """Skipped: the job named had not ended."""
    MERGED = "merged"
    """Missed: the run of a later instant stands for it too."""
    MISSED = "missed"
    """Missed, and not made up for, as the schedule says."""
    CATCH_UP = "catch_up"
    """Missed, and older than the `max_catchup` newest."""
    PAUSED = "paused"
    """It passed while the schedule was paused."""

    @property
    def is_skip(self) -> bool:
        """Whether no job was made."""
        return self not in (FireOutcome.FIRED, FireOutcome.BY_HAND)


class Fire(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one instant, or of several in a row that shared their fate.

    Attributes:
        at: the instant; of several, the last.
        first_at: of several, the first; else `at`.
        count: how many instants it stands for.
        is_exact: whether there were exactly so many; False: at least.
        outcome: what became of them.
        decided_at: when that was decided.
        job_id: the job it became, that stands for it, or that was in the way; None: there is none.
        moved_from: the wall time it stands for, if a change of the clocks skipped it.
    """

    at: Micros
    first_at: Micros
    outcome: FireOutcome
    decided_at: Micros
    count: int = 1
    is_exact: bool = True
    job_id: str | None = None
    moved_from: str | None = None


class ScheduleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A stored trigger + task + arguments.

    Attributes:
        id: chosen by the user.
        spec, payload: the jobs it makes.
        definition: trigger and policies as JSON text (`ScheduleTerms`); a store only keeps it.
        next_fire_at: the instant of the next fire; None: there is none, or none before a job has ended.
        version: grows with each change of the schedule and each fire; every write compares it. It begins with
            the instant at which the schedule is added, so that what was seen of one that has been removed
            since does not stand for another of the same id.
        paused: fires nothing while set.
        error: why the scheduler itself paused it; None: it did not.
        last_fire_at: the newest instant that was decided, skipped ones included.
        fired, skipped: how many instants became jobs, and how many did not.
        jobs: `seq` of its jobs that had not ended when it last fired, oldest first; empty if its runs may
            overlap.
        held_at: the instant that waits until none of `jobs` is live; None: no such.
        awaits: `seq` of the job whose end sets `next_fire_at` (fixed delay); None: no such.
        delay_us: fixed delay: how long after the end of a run the next one is due; None: not so.
        ends_at: no fire is later; None: no end.
    """

    id: str
    spec: JobSpec
    payload: bytes = EMPTY_PAYLOAD
    definition: str = "{}"
    next_fire_at: Micros | None = None
    version: int = 1
    paused: bool = False
    error: str | None = None
    last_fire_at: Micros | None = None
    fired: int = 0
    skipped: int = 0
    jobs: tuple[int, ...] = ()
    held_at: Micros | None = None
    awaits: int | None = None
    delay_us: int | None = None
    ends_at: Micros | None = None

    @property
    def is_due_after_an_end(self) -> bool:
        """Whether the end of one of its jobs may set `next_fire_at`."""
        return self.held_at is not None or self.awaits is not None


class Standing(Protocol):
    """What of a schedule a step is compared with; the whole schedule need not be read for it."""

    @property
    def version(self) -> int:
        """Its version."""

    @property
    def next_fire_at(self) -> Micros | None:
        """The instant of its next fire."""

    @property
    def paused(self) -> bool:
        """Whether it fires nothing."""


class Advance(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a schedule, planned on what was seen; the store settles it on what is (`settle`).

    Attributes:
        record: the schedule as it was seen.
        overlap, missed: its policies.
        due: the jobs to be made, in the order of their instants; each carries its `fire`.
        skips: the instants that will not become jobs, whatever else is found.
        next_fire_at: the next instant: strictly later than all of these.
        is_late: whether the first of `due` was missed, and is being caught up with.
        by_hand: a run that somebody asked for: it moves nothing, and may be made of a paused schedule.
        moved: for instants that stand for a wall time which a change of the clocks skipped, that wall time.
    """

    record: ScheduleRecord
    overlap: Overlap = Overlap.SKIP
    missed: Missed = Missed.LATEST
    due: tuple[Job, ...] = ()
    skips: tuple[Fire, ...] = ()
    next_fire_at: Micros | None = None
    is_late: bool = False
    by_hand: bool = False
    moved: Mapping[Micros, str] = msgspec.field(default_factory=dict)

    def stands(self, record: Standing | None) -> bool:
        """Say whether the schedule is still as it was seen, so that the step counts.

        Args:
            record: the schedule, or what says how it stands; None: it is not there any more.
        """
        seen = self.record
        return (
            record is not None
            and record.version == seen.version
            and record.next_fire_at == seen.next_fire_at
            and (self.by_hand or not record.paused)
        )


class Fired(msgspec.Struct, frozen=True, kw_only=True):
    """What a step came to.

    Attributes:
        record: the schedule as it stands now.
        jobs: the jobs made.
        fires: what became of each instant.
    """

    record: ScheduleRecord
    jobs: tuple[Job, ...]
    fires: tuple[Fire, ...]


def followed(record: ScheduleRecord, seq: int, ended_at: Micros) -> ScheduleRecord | None:
    """Return the schedule as the end of one of its jobs leaves it; None: that changes nothing.

    Args:
        record: the schedule as it stands.
        seq: the job's number.
        ended_at: when it ended.
    """
    if record.held_at is not None:
        return replace(record, version=record.version + 1, next_fire_at=record.held_at, held_at=None)
    if record.awaits == seq and record.delay_us is not None:
        due_at = delayed(record, ended_at)
        return replace(record, version=record.version + 1, next_fire_at=due_at, awaits=None)
    return None


def delayed(record: ScheduleRecord, since: Micros) -> Micros | None:
    """Return the instant a fixed delay after `since`; None: the schedule is over by then."""
    at = since + (record.delay_us or 0)
    return None if record.ends_at is not None and at > record.ends_at else at
