"""Looking: what readers ask, on a connection of their own, beside the writer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from heapq import merge
from itertools import islice

from betimes.core.job import Job, JobStatus, Micros
from betimes.core.log import LogLine
from betimes.core.queue_view import Pause, QueueView
from betimes.core.schedule import Fire, ScheduleRecord
from betimes.ports import JobFilter, ScheduleFilter, WorkerInfo
from betimes.stores.relational.firing import SCHEDULES_BY_ID
from betimes.stores.relational.gate_looks import GateLook
from betimes.stores.relational.leases import WORKERS, lease_left
from betimes.stores.relational.logs import line_of
from betimes.stores.relational.queue_looks import look_at_queue, oldest_due
from betimes.stores.relational.rows import STATUS, TEXT, Specs, array, texts_of, worker_of
from betimes.stores.relational.schedule_rows import fire_of, schedule_of
from betimes.stores.relational.statements import Records, Row, Sql, statement
from betimes.stores.relational.turn import ENDED_BY_SEQ, LIVE_BY_SEQ, NEWEST_ENDED, NEWEST_LIVE

LIST_LIVE = Records("list_live")
LIST_ENDED = Records("list_ended")
IDS = statement("ids")
LIVE_SEQS = statement("live_seqs")
COUNTS = statement("counts")
COUNT_FORGETTABLE = statement("count_forgettable")
READ_PRUNED = statement("read_pruned")
COUNT_PARKED = statement("count_parked")
PAUSES = statement("pauses")
KNOWN = statement("known")
SCHEDULES = Records("schedules")
DUE_SCHEDULES = Records("due_schedules")
NEXT_FIRE = statement("next_fire")
FIRES = Records("fires")
LOG = Records("log")

END_OF_TIME = 2**63 - 1
LAST_CHARACTER = chr(0x10FFFF)
"""No id has it, since it cannot be printed; so every id with a prefix comes before the prefix with it."""


class Look:
    """One look at the store, on a snapshot that includes all that was acknowledged before."""

    __slots__ = ("_specs", "_sql")

    def __init__(self, sql: Sql, specs: Specs) -> None:
        self._sql = sql
        self._specs = specs

    def version(self, seq: int) -> Job | None:
        """Return one version, live or ended."""
        rows = LIVE_BY_SEQ.read(self._sql, (array((seq,)),)) or ENDED_BY_SEQ.read(self._sql, (array((seq,)),))
        return self._specs.job(rows[0]) if rows else None

    def ended(self, seqs: Sequence[int]) -> dict[int, Job | None]:
        """Return those of these versions that have ended; None: pruned."""
        wanted = (array(seqs),)
        live = {seq for (seq,) in self._sql.execute(LIVE_SEQS, wanted).fetchall()}
        found: dict[int, Job | None] = {
            row[0]: self._specs.job(row) for row in ENDED_BY_SEQ.read(self._sql, wanted)
        }
        return found | {seq: None for seq in seqs if seq not in live and seq not in found}

    def newest(self, job_id: str) -> Job | None:
        """Return the newest version of an id."""
        rows = [*NEWEST_LIVE.read(self._sql, (job_id,)), *NEWEST_ENDED.read(self._sql, (job_id,))]
        return self._specs.job(max(rows, key=_seq)) if rows else None

    def ids(self, prefix: str, limit: int) -> list[str]:
        """Return ids that begin so, in their order."""
        wanted = (prefix, prefix + LAST_CHARACTER, limit)
        return [job_id for (job_id,) in self._sql.execute(IDS, wanted).fetchall()]

    def prunable(self, now: Micros, keep_us: int) -> int:
        """Count ended jobs that are not to be kept any longer."""
        number: int = self._sql.execute(COUNT_FORGETTABLE, (now, now - keep_us)).fetchone()[0]
        return number

    def jobs(self, which: JobFilter) -> list[Job]:
        """List jobs, newest first."""
        status = which.status
        queries = [LIST_LIVE, LIST_ENDED]
        if status is not None:
            queries = [LIST_ENDED if status.is_terminal else LIST_LIVE]
        text = None if status is None else TEXT[status]
        before = END_OF_TIME if which.before is None else which.before
        values = (text, which.task, which.queue, which.tag, before, which.limit)
        rows = merge(*(query.read(self._sql, values) for query in queries), key=_seq, reverse=True)
        return [self._specs.job(row) for row in islice(rows, which.limit)]

    def counts(self) -> dict[str, dict[JobStatus, int]]:
        """Count the live jobs of each queue by status."""
        counts: dict[str, dict[JobStatus, int]] = {}
        for queue, status, jobs in self._sql.execute(COUNTS).fetchall():
            counts.setdefault(queue, {})[STATUS[status]] = jobs
        return counts

    def gates(self, now: Micros) -> GateLook:
        """Look at gates, as they stand at this instant."""
        return GateLook(self._sql, self._specs, now)

    def log(self, seq: int, after: int, limit: int) -> list[LogLine]:
        """Return the lines of a version's log behind the one of this number."""
        return [line_of(row) for row in LOG.read(self._sql, (seq, after, limit))]

    def pruned(self) -> int:
        """Return how many jobs have been forgotten so far."""
        count: int = self._sql.execute(READ_PRUNED).fetchone()[0]
        return count

    def parked(self) -> dict[str, int]:
        """Count the parked jobs by name."""
        return dict(self._sql.execute(COUNT_PARKED).fetchall())

    def workers(self, boottime: int, boot_id: str) -> list[tuple[WorkerInfo, Micros]]:
        """List the workers with what they know, each with how long its lease holds."""
        known = {
            worker: (texts_of(lanes), texts_of(tasks))
            for worker, lanes, tasks in self._sql.execute(KNOWN).fetchall()
        }
        found = []
        for row in self._sql.execute(WORKERS).fetchall():
            lanes, tasks = known.get(row[0], (None, None))
            info = replace(worker_of(row), lanes=lanes, tasks=tasks)
            found.append((info, lease_left(row, boottime, boot_id)))
        return found

    def paused_queues(self) -> dict[str, Pause]:
        """Return the paused queues, by name."""
        return {queue: Pause(at=at, by=by) for queue, at, by in self._sql.execute(PAUSES).fetchall()}

    def queue(self, name: str, now: Micros) -> QueueView:
        """Show one queue."""
        return look_at_queue(self._sql, self._specs, name, now)

    def oldest_due(self, now: Micros) -> dict[str, Micros]:
        """Return since when the oldest claimable job has been due, by queue."""
        return oldest_due(self._sql, now)

    def schedule(self, schedule_id: str) -> ScheduleRecord | None:
        """Return a schedule."""
        rows = SCHEDULES_BY_ID.read(self._sql, (array((schedule_id,)),))
        return schedule_of(rows[0], self._specs) if rows else None

    def schedules(self, which: ScheduleFilter) -> list[ScheduleRecord]:
        """List schedules by id, or the due ones, earliest first."""
        after, since = which.after, which.fired_after
        behind = "" if after is None else after.id
        if which.due_by is None:
            rows = SCHEDULES.read(self._sql, (behind, since, which.limit))
        else:
            behind_at = -END_OF_TIME if after is None else after.next_fire_at
            rows = DUE_SCHEDULES.read(self._sql, (which.due_by, behind_at, behind, since, which.limit))
        return [schedule_of(row, self._specs) for row in rows]

    def next_fire(self) -> Micros | None:
        """Return the earliest next fire of a schedule that is not paused."""
        earliest: Micros | None = self._sql.execute(NEXT_FIRE).fetchone()[0]
        return earliest

    def fires(self, schedule_id: str, before: Micros | None, limit: int) -> list[Fire]:
        """List what became of a schedule's instants, newest first."""
        until = END_OF_TIME if before is None else before
        return [fire_of(row) for row in FIRES.read(self._sql, (schedule_id, until, limit))]


def _seq(row: Row) -> int:
    return int(row[0])
