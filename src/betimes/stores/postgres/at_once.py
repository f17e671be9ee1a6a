"""Taking plain jobs by one statement that is a transaction of its own: one round trip, however many calls.

Only where that statement can say no to all that could be said of them: no gates, no tenants, no ids that have
been seen before. Whatever it does not take goes the long way, which says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import psycopg

from betimes.core.job import Job, JobStatus
from betimes.stores.postgres.arrays import columns_of
from betimes.stores.postgres.failures import is_lost
from betimes.stores.postgres.store_time import StoreTime
from betimes.stores.postgres.wire import Wire
from betimes.stores.relational.arrivals import Admission
from betimes.stores.relational.rows import STATUS, Specs, rare_text
from betimes.stores.relational.statements import Row, statement, text_of

ADD_AT_ONCE = statement("add_at_once")


def submit_at_once(
    wire: Wire, specs: Specs, time: StoreTime, calls: Sequence[Sequence[Job]]
) -> list[Admission] | None:
    """Keep plain jobs of many calls; None, and no change, if they have to go the long way.

    Raises:
        psycopg.Error: the connection was lost; they may or may not have been kept.
    """
    jobs = list(chain.from_iterable(calls))
    # Behind a pooler, nothing has been set for a statement outside of a transaction.
    if (
        wire.is_pooled
        or not jobs
        or not all(map(_is_bare, jobs))
        or len({job.id for job in jobs}) < len(jobs)
    ):
        return None
    given = time.now() if time.goes_by_clock else None
    values = [given, *columns_of([_row(specs, job) for job in jobs])]
    try:
        rows = wire.run(text_of("postgres", ADD_AT_ONCE), values).fetchall()
    except psycopg.Error as error:
        if is_lost(error):
            raise
        return None
    if not rows:
        return None
    time.see(rows[0][3])
    kept = {job_id: (seq, STATUS[status]) for seq, job_id, status, _ in rows}
    return [_admission(call, [kept[job.id] for job in call]) for call in calls]


def _is_bare(job: Job) -> bool:
    """Whether nothing needs to be looked up for it but its id."""
    return not job.seq and not job.gates and job.tenant is None and rare_text(job) is None


def _row(specs: Specs, job: Job) -> Row:
    return (
        job.id, *specs.columns(job.spec), job.payload.decode(), job.submitted_at, job.run_at, job.sort_key,
        job.expires_at,
    )  # fmt: skip


def _admission(jobs: Sequence[Job], kept: Sequence[tuple[int, JobStatus]]) -> Admission:
    return Admission(jobs, [seq for seq, _ in kept], [status for _, status in kept], {})
