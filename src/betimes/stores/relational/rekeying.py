"""Ordering a store's live jobs by another strategy, all in one transaction."""

from __future__ import annotations

from collections.abc import Callable

from betimes.core.job import Job, JobStatus
from betimes.core.shares import UNTAGGED
from betimes.errors import ConfigurationError
from betimes.ports import WorkerInfo
from betimes.stores.relational.leases import WORKERS, lease_holds
from betimes.stores.relational.rows import array, worker_of
from betimes.stores.relational.statements import ManyRows, Records, statement
from betimes.stores.relational.turn import Turn

CHUNK = 1000
"""How many jobs are read and written together."""

LIVE_AFTER = Records("live_after")
ORDER_JOB = ManyRows("order_job")
ALL_LINES = statement("all_lines")
HOLD_JOBS = statement("hold_jobs")
WRITE_STRATEGY = statement("write_strategy")


def rekey(
    turn: Turn, strategy: str, assign: Callable[[Job], None], is_gone: Callable[[WorkerInfo], bool]
) -> int:
    """Order all live jobs anew and remember the strategy; return how many there are.

    A job that has been ready and has a tenant is tagged now; another is once it becomes ready.

    Raises:
        ConfigurationError: a worker's lease holds.
    """
    if not turn.sql.is_alone:
        turn.sql.execute(HOLD_JOBS)  # a job that is just being submitted must not keep its old place
        turn.keep_order()
        turn.flush()
    _refuse_workers(turn, is_gone)
    turn.tags.begin_anew()
    count, last = 0, 0
    while rows := LIVE_AFTER.read(turn.sql, (last, CHUNK)):
        jobs = [turn.specs.job(row) for row in rows]
        for job in jobs:
            assign(job)
        turn.tags.tag([job for job in jobs if _is_to_be_tagged(job)])
        ORDER_JOB.write(
            turn.sql,
            [(job.seq, job.sort_key, None if job.tenant is None else array(job.tenant)) for job in jobs],
        )
        count += len(jobs)
        last = jobs[-1].seq
    for line in turn.sql.execute(ALL_LINES).fetchall():
        turn.lines.touch_line(line)
    turn.flush()
    turn.sql.execute(WRITE_STRATEGY, (strategy,))
    return count


def _is_to_be_tagged(job: Job) -> bool:
    has_been_ready = job.status in {JobStatus.READY, JobStatus.RUNNING}
    return job.tenant is not None and job.sort_key == UNTAGGED and has_been_ready


def _refuse_workers(turn: Turn, is_gone: Callable[[WorkerInfo], bool]) -> None:
    for row in turn.sql.execute(WORKERS).fetchall():
        if lease_holds(row, turn.boottime, turn.boot_id) and not is_gone(worker_of(row)):
            raise ConfigurationError(
                f"the worker {row[0]} (process {row[2]}) runs on this store: stop all workers, and order its "
                "jobs anew then; nothing was changed"
            )
