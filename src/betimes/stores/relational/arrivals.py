"""Taking plain jobs, which ask for nothing but to be kept: many calls in one statement.

A record given by a caller is not touched before the commit: a turn that is rolled back must leave it as it
was, so that it can be submitted again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from betimes.core.job import Arrivals, Job, JobEvent, JobStatus
from betimes.core.lifecycle import place
from betimes.core.limits import rule_of
from betimes.ports import Hint
from betimes.stores.relational.gates import read_rules
from betimes.stores.relational.rows import array
from betimes.stores.relational.statements import ManyRows, statement
from betimes.stores.relational.tags import is_untagged
from betimes.stores.relational.turn import Turn

READY = JobStatus.READY

INSERT_JOB = ManyRows("insert_job")
KNOWN_IDS = statement("known_ids")


def is_plain(job: Job) -> bool:
    """Say whether the job asks for nothing but to be kept."""
    terms = job.terms
    return terms is None or not (terms.named or terms.replace or terms.key is not None or terms.depends_on)


def known_ids(turn: Turn, ids: Collection[str]) -> set[str]:
    """Return which of these ids have been seen before."""
    return {job_id for (job_id,) in turn.sql.execute(KNOWN_IDS, (array(ids),))}


def undeclared(turn: Turn, jobs: Iterable[Job]) -> tuple[Job, str] | None:
    """Return the first job with a gate that was never declared, and the gate's key; None: all were."""
    gated = [job for job in jobs if job.gates]
    if not gated:
        return None
    rules = read_rules(turn.sql, {key for job in gated for key in job.gates})
    missing = ((job, key) for job in gated for key in job.gates if rule_of(key) not in rules)
    return next(missing, None)


class Admission:
    """Plain jobs of one call, inserted; `acknowledge` tells their records, after the commit."""

    __slots__ = ("_jobs", "_keys", "_numbers", "_statuses")

    def __init__(
        self,
        jobs: Sequence[Job],
        numbers: Sequence[int],
        statuses: Sequence[JobStatus],
        keys: Mapping[int, int],
    ) -> None:
        self._jobs = jobs
        self._numbers = numbers
        self._statuses = statuses
        self._keys = keys

    def numbers(self) -> Sequence[int]:
        """Return by position the numbers of the jobs."""
        return self._numbers

    def acknowledge(self) -> tuple[list[Job], Sequence[JobEvent]]:
        """Write number and status into the records, and return them with their events."""
        for seq, job, status in zip(self._numbers, self._jobs, self._statuses, strict=True):
            job.seq = seq
            job.status = status
            job.terms = None
            if seq in self._keys:
                job.sort_key = self._keys[seq]
        return list(self._jobs), Arrivals(self._jobs)


def insert_plain(turn: Turn, batches: Sequence[Sequence[Job]]) -> list[Admission] | None:
    """Insert the plain jobs of many calls at once; None, and no change, if there is more to be said of any.

    That is, if an id has been seen before, or a gate was never declared.
    """
    jobs = [job for batch in batches for job in batch]
    ids = {job.id for job in jobs}
    if len(ids) < len(jobs) or known_ids(turn, ids) or undeclared(turn, jobs) is not None:
        return None
    now = turn.now
    numbers = turn.sql.numbers(len(jobs))
    new_row = turn.specs.new_row
    statuses = [place(job, now) for job in jobs]
    keys = _sort_keys(turn, jobs, statuses, numbers)
    rows = [
        new_row(job, seq=seq, status=status, sort_key=keys.get(seq))
        for seq, job, status in zip(numbers, jobs, statuses, strict=True)
    ]
    INSERT_JOB.write(turn.sql, rows)
    for job, status in zip(jobs, statuses, strict=True):
        turn.tally.move(job.spec.queue, None, status)
        if job.gates and status is READY:
            turn.touch_line(job)
    turn.flush()
    turn.hints.add(Hint.WORK)
    admissions = []
    start = 0
    for batch in batches:
        end = start + len(batch)
        admissions.append(Admission(batch, numbers[start:end], statuses[start:end], keys))
        start = end
    return admissions


def _sort_keys(
    turn: Turn, jobs: Sequence[Job], statuses: Sequence[JobStatus], numbers: Sequence[int]
) -> Mapping[int, int]:
    """Give tenants' jobs that are ready their sort keys; return these by the numbers of the jobs."""
    untagged = {
        seq: job for seq, job, status in zip(numbers, jobs, statuses, strict=True) if is_untagged(job, status)
    }
    if not untagged or not turn.sql.is_alone:  # where others write, too, the next keeper sees to it
        return {}
    return dict(zip(untagged, turn.tags.keys(list(untagged.values())), strict=True))
