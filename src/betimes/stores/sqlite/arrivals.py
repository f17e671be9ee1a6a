"""Taking plain jobs, which ask for nothing but to be kept: many calls in one statement.

A record given by a caller is not touched before the commit: a turn that is rolled back must leave it as it
was, so that it can be submitted again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from betimes.core.job import Arrivals, Job, JobEvent, JobStatus
from betimes.core.lifecycle import place
from betimes.ports import Hint
from betimes.stores.sqlite.rows import array
from betimes.stores.sqlite.statements import ManyRows, statement
from betimes.stores.sqlite.turn import Turn

INSERT_JOB = ManyRows("insert_job")
KNOWN_IDS = statement("known_ids")
READ_LAST_SEQ = statement("read_last_seq")
WRITE_LAST_SEQ = statement("write_last_seq")


def is_plain(job: Job) -> bool:
    """Say whether the job asks for nothing but to be kept."""
    terms = job.terms
    return terms is None or not (terms.named or terms.replace or terms.key is not None or terms.depends_on)


def take_numbers(turn: Turn, count: int) -> int:
    """Return the last number given before, and take as many after it."""
    last: int = turn.sql.execute(READ_LAST_SEQ).fetchone()[0]
    turn.sql.execute(WRITE_LAST_SEQ, (last + count,))
    return last


def known_ids(turn: Turn, ids: Collection[str]) -> set[str]:
    """Return which of these ids have been seen before."""
    return {job_id for (job_id,) in turn.sql.execute(KNOWN_IDS, (array(ids),))}


class Admission:
    """Plain jobs of one call, inserted; `acknowledge` tells their records, after the commit."""

    __slots__ = ("_first", "_jobs", "_statuses")

    def __init__(self, jobs: Sequence[Job], first: int, statuses: Sequence[JobStatus]) -> None:
        self._jobs = jobs
        self._first = first
        self._statuses = statuses

    def numbers(self) -> Sequence[int]:
        """Return by position the numbers of the jobs."""
        return range(self._first, self._first + len(self._jobs))

    def acknowledge(self) -> tuple[list[Job], Sequence[JobEvent]]:
        """Write number and status into the records, and return them with their events."""
        for seq, (job, status) in enumerate(zip(self._jobs, self._statuses, strict=True), self._first):
            job.seq = seq
            job.status = status
            job.terms = None
        return list(self._jobs), Arrivals(self._jobs)


def insert_plain(turn: Turn, batches: Sequence[Sequence[Job]]) -> list[Admission] | None:
    """Insert the plain jobs of many calls at once; None, and no change, if any id has been seen before."""
    jobs = [job for batch in batches for job in batch]
    ids = {job.id for job in jobs}
    if len(ids) < len(jobs) or known_ids(turn, ids):
        return None
    now = turn.now
    last = take_numbers(turn, len(jobs))
    new_row = turn.specs.new_row
    statuses = [place(job, now) for job in jobs]
    rows = [
        new_row(job, seq=seq, status=status)
        for seq, (job, status) in enumerate(zip(jobs, statuses, strict=True), last + 1)
    ]
    INSERT_JOB.write(turn.sql, rows)
    for job, status in zip(jobs, statuses, strict=True):
        turn.tally.move(job.spec.queue, None, status)
    turn.tally.write(turn.sql)
    turn.hints.add(Hint.WORK)
    admissions = []
    start = 0
    for batch in batches:
        part = statuses[start : start + len(batch)]
        admissions.append(Admission(batch, last + 1 + start, part))
        start += len(batch)
    return admissions
