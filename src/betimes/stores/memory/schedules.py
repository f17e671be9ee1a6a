"""Schedules in memory: compare-and-set on the version, each instant once, and a heap of what is due."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice

from msgspec.structs import replace

from betimes.core.heap import LazyHeap
from betimes.core.job import Job, Micros
from betimes.core.schedule import Fire, FireOutcome, ScheduleRecord, followed
from betimes.ports import ScheduleFilter
from betimes.stores.memory.decided import Decided

FIRES_KEPT = 1000
"""How many of a schedule's fires are remembered."""

ALL_FIRES_KEPT = 100_000
"""How many fires are remembered in all."""


class Schedules:
    """The schedules by id.

    Attributes:
        has_moved: whether some schedule's next fire has changed since last asked.
        live: the live jobs of schedules, by number: how runs may overlap can change while they run.
    """

    def __init__(self) -> None:
        """Start without schedules."""
        self._records: dict[str, ScheduleRecord] = {}
        self._numbers: dict[str, int] = {}
        self._last_number = 0
        self._due: LazyHeap[tuple[Micros, str], str] = LazyHeap()
        # By schedule, by instant and, for a run by hand, its job, in the order in which they were decided.
        self._fires: dict[str, dict[tuple[Micros, str | None], Fire]] = {}
        self._all_fires: deque[tuple[str, tuple[Micros, str | None]]] = deque()
        # What is still known of instants whose fires are forgotten: that they must not come again.
        self._decided: dict[str, Decided] = {}
        self.has_moved = False
        self.live: dict[int, Job] = {}

    def get(self, schedule_id: str) -> ScheduleRecord | None:
        """Return a schedule."""
        return self._records.get(schedule_id)

    def put(self, record: ScheduleRecord) -> None:
        """Keep a schedule as it stands now."""
        before = self._records.get(record.id)
        if before is None:
            self._last_number += 1
            self._numbers[record.id] = self._last_number
        self._records[record.id] = record
        number, key_before, key = self._numbers[record.id], _key(before), _key(record)
        if key_before != key:
            if key_before is not None:
                self._due.discard(number)
            if key is not None:
                self._due.push(key, number, record.id)
            self.has_moved = True

    def save(self, record: ScheduleRecord, expected_version: int | None, fires: Iterable[Fire]) -> bool:
        """Insert or replace by compare-and-set on the version."""
        before = self._records.get(record.id)
        if (None if before is None else before.version) != expected_version:
            return False
        self.put(record if expected_version is None else replace(record, version=expected_version + 1))
        self.remember(record.id, fires)
        return True

    def remove(self, schedule_id: str) -> bool:
        """Remove a schedule and its fires."""
        record = self._records.pop(schedule_id, None)
        if record is None:
            return False
        if _key(record) is not None:
            self._due.discard(self._numbers[schedule_id])
        del self._numbers[schedule_id]
        self._fires.pop(schedule_id, None)
        self._decided.pop(schedule_id, None)
        return True

    def matching(self, which: ScheduleFilter) -> list[ScheduleRecord]:
        """List schedules by id, or those due, earliest first."""
        if which.due_by is not None:
            return self._list_due(which.due_by, which)
        after = "" if which.after is None else which.after.id
        found = (
            self._records[schedule_id]
            for schedule_id in sorted(self._records)
            if schedule_id > after and _has_fired_after(self._records[schedule_id], which.fired_after)
        )
        return list(islice(found, which.limit))

    def _list_due(self, due_by: Micros, which: ScheduleFilter) -> list[ScheduleRecord]:
        after = None if which.after is None else _key(which.after)
        found: list[ScheduleRecord] = []
        taken = []
        while len(found) < which.limit:
            entry = self._due.peek()
            if entry is None or entry[0][0] > due_by:
                break
            self._due.pop()
            taken.append(entry)
            record = self._records[entry[2]]
            if (after is None or entry[0] > after) and _has_fired_after(record, which.fired_after):
                found.append(record)
        for entry in taken:
            self._due.push(*entry)
        return found

    def next_fire(self) -> Micros | None:
        """Return the earliest next fire."""
        entry = self._due.peek()
        return None if entry is None else entry[0][0]

    def taken(self, schedule_id: str, instants: Iterable[Micros]) -> set[Micros]:
        """Return those of the instants that were decided before."""
        fires = self._fires.get(schedule_id, {})
        decided = self._decided.get(schedule_id)
        return {at for at in instants if (at, None) in fires or (decided is not None and at in decided)}

    def remember(self, schedule_id: str, fires: Iterable[Fire]) -> None:
        """Keep what became of instants; of each schedule, and of all, the oldest are forgotten."""
        of_schedule = self._fires.setdefault(schedule_id, {})
        for fire in fires:
            key = (fire.at, fire.job_id if fire.outcome is FireOutcome.BY_HAND else None)
            if key not in of_schedule:
                of_schedule[key] = fire
                self._all_fires.append((schedule_id, key))
        while len(of_schedule) > FIRES_KEPT:
            self._forget(schedule_id, next(iter(of_schedule)))
        while len(self._all_fires) > ALL_FIRES_KEPT:
            self._forget(*self._all_fires.popleft())

    def _forget(self, schedule_id: str, key: tuple[Micros, str | None]) -> None:
        """Forget what became of an instant, but not that it was decided."""
        fire = self._fires.get(schedule_id, {}).pop(key, None)
        if fire is None or fire.outcome is FireOutcome.BY_HAND:
            return
        record = self._records.get(schedule_id)
        if record is not None and record.delay_us is None:  # after a fixed delay, no instant comes again
            self._decided.setdefault(schedule_id, Decided()).add(fire)

    def fires(self, schedule_id: str, before: Micros | None, limit: int) -> Sequence[Fire]:
        """List what became of a schedule's instants, newest first."""
        fires = sorted(self._fires.get(schedule_id, {}).values(), key=lambda fire: fire.at, reverse=True)
        return [fire for fire in fires if before is None or fire.at < before][:limit]

    def forget_fires(self, before: Micros) -> None:
        """Forget the fires of instants up to this one."""
        while self._all_fires and self._all_fires[0][1][0] <= before:
            self._forget(*self._all_fires.popleft())

    def live_jobs(self, record: ScheduleRecord) -> list[Job]:
        """Return the jobs of a schedule that have not ended, oldest first."""
        return [job for seq in record.jobs if (job := self.live.get(seq)) is not None]

    def ended(self, job: Job) -> None:
        """Let the end of a job move its schedule."""
        del self.live[job.seq]
        record = None if job.fire is None else self._records.get(job.fire.schedule)
        if record is not None:
            after = followed(record, job.seq, job.finished_at or 0)
            if after is not None:
                self.put(after)

    def retried(self, job: Job) -> None:
        """See a job again that an operator has taken back, so that later fires find it live."""
        record = None if job.fire is None else self._records.get(job.fire.schedule)
        if record is not None:
            jobs = tuple(sorted({*record.jobs, job.seq}))
            self.put(replace(record, version=record.version + 1, jobs=jobs))
            self.live[job.seq] = job


def _key(record: ScheduleRecord | None) -> tuple[Micros, str] | None:
    """Return what a schedule is sorted by while it may become due; None: it may not."""
    if record is None or record.paused or record.next_fire_at is None:
        return None
    return record.next_fire_at, record.id


def _has_fired_after(record: ScheduleRecord, instant: Micros | None) -> bool:
    return instant is None or (record.last_fire_at is not None and record.last_fire_at > instant)
