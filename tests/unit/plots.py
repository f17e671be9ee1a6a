"""What the unit tests of schedules share: instants in seconds, rules made of lists, jobs of a schedule."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from datetime import datetime

from betimes.core.firing import Plan
from betimes.core.grid import Grid
from betimes.core.job import FireKey, Job, JobSpec, JobStatus, Micros
from betimes.core.schedule import Advance, Fire, FireOutcome, Missed, Overlap, ScheduleRecord
from betimes.core.schedule_terms import ScheduleTerms
from betimes.core.triggers import Trigger, every

S = 1_000_000
MINUTE = 60 * S


class Listed(Trigger):
    """Fires at the instants given, in seconds, and counts how often it is asked."""

    def __init__(self, instants: Iterable[int], *, moved: Iterable[int] = ()) -> None:
        self.instants = sorted(each * S for each in instants)
        self.moved = {each * S for each in moved}
        self.asked = 0

    def next(self, after: datetime) -> datetime | None:
        raise AssertionError("asked in microseconds only")

    def next_us(self, after: Micros) -> Micros | None:
        self.asked += 1
        place = bisect_right(self.instants, after)
        return self.instants[place] if place < len(self.instants) else None

    def moved_from(self, at: Micros) -> str | None:
        return f"wall {at // S}" if at in self.moved else None


class Counted(Listed):
    """Knows how many instants it has between two."""

    def count(self, after: Micros, until: Micros) -> int:
        return bisect_right(self.instants, until) - bisect_right(self.instants, after)


class Wrong(Trigger):
    """Answers as it is told to, or raises that."""

    def __init__(self, answer: Callable[[Micros], Micros | None] | Exception) -> None:
        self.answer = answer

    def next(self, after: datetime) -> datetime | None:
        raise AssertionError("asked in microseconds only")

    def next_us(self, after: Micros) -> Micros | None:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer(after)

    def moved_from(self, at: Micros) -> str | None:
        raise ZeroDivisionError("moved")

    def count(self, after: Micros, until: Micros) -> int | None:
        raise ZeroDivisionError("counted")


def grid(*instants: int, moved: Iterable[int] = (), **bounds: Micros) -> Grid:
    """A grid of these seconds."""
    return Grid(trigger=Listed(instants, moved=moved), **bounds)


def record(next_fire_s: float | None = None, **fields: object) -> ScheduleRecord:
    """A schedule that is due at this second."""
    values: dict[str, object] = {"id": "s", "spec": JobSpec(task="t"), **fields}
    values["next_fire_at"] = None if next_fire_s is None else round(next_fire_s * S)
    return ScheduleRecord(**values)  # type: ignore[arg-type] # the fields are the test's own


def run(at_s: float, *, seq: int = 0, status: JobStatus = JobStatus.READY, by_hand: bool = False) -> Job:
    """A job that a schedule makes or has made."""
    job = Job(f"job-{seq}" if seq else f"new-{at_s:g}", JobSpec(task="t"))
    job.fire = FireKey("s", round(at_s * S), by_hand)
    job.seq, job.status = seq, status
    if status is JobStatus.RUNNING:
        job.started_at = round(at_s * S)
    return job


def plan(
    trigger: Trigger,
    now_s: float,
    *,
    overlap: str = "skip",
    missed: str = "latest",
    max_catchup: int = 100,
    ends_at: Micros | None = None,
) -> Plan:
    """What a schedule is planned with."""
    terms = ScheduleTerms(
        trigger={}, overlap=Overlap(overlap), missed=Missed(missed), max_catchup=max_catchup, ends_at=ends_at
    )
    return Plan(
        terms=terms,
        grid=Grid(trigger=trigger, ends_at=ends_at),
        now=round(now_s * S),
        new_job=lambda at: run(at / S),
    )


def minutely() -> Trigger:
    """Every minute of the epoch."""
    return every("1m").anchored(0)


def due_s(advance: Advance) -> list[float]:
    """The instants that are to become jobs, in seconds."""
    return [job.fire.at / S for job in advance.due if job.fire is not None]


def told(fires: Iterable[Fire]) -> list[tuple[FireOutcome, float, float, int]]:
    """What became of instants: outcome, first and last second, how many."""
    return [(fire.outcome, fire.first_at / S, fire.at / S, fire.count) for fire in fires]
