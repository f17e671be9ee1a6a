"""Claims: the first claimable jobs of the queues and lanes asked for.

Each queue and lane is read by an index scan of its own, for at most its free slots, so that full lanes
neither hoard jobs nor hide those of others; several scans are merged.
"""

from __future__ import annotations

from betimes.core.job import Job, JobStatus
from betimes.core.transition import claim
from betimes.ports import ClaimRequest
from betimes.stores.sqlite.rows import array
from betimes.stores.sqlite.statements import ManyRows, Records, Row, statement
from betimes.stores.sqlite.turn import Turn

READY, RUNNING = JobStatus.READY, JobStatus.RUNNING

READY_QUEUES = statement("ready_queues")
PAUSED_QUEUES = statement("paused_queues")
LEASE_HOLDS = statement("lease_holds")
CLAIMABLE = Records("claimable")
CLAIM_JOB = ManyRows("claim_job")


def claim_jobs(turn: Turn, request: ClaimRequest) -> list[Job]:
    """Take the first claimable jobs of the queues and lanes asked for, in the order (sort_key, seq)."""
    holds = turn.sql.execute(LEASE_HOLDS, (request.worker, turn.boottime, turn.boot_id)).fetchone()[0]
    if not holds:
        return []
    jobs = [turn.specs.job(row) for row in _claimable(turn, request)]
    now = turn.now
    worker = request.worker
    rows: list[Row] = []
    claim(jobs, worker, now)
    for job in jobs:
        rows.append((job.seq, job.attempt, job.fence, worker, now))
        turn.tally.move(job.spec.queue, READY, RUNNING)
    CLAIM_JOB.write(turn.sql, rows)
    assert len(jobs) <= request.limit, "a claim never takes more than it asked for"
    return jobs


def _claimable(turn: Turn, request: ClaimRequest) -> list[Row]:
    """Read what may be claimed: each queue and lane by its own index scan, merged where there are several."""
    hold = array(request.hold)
    lanes = {lane: min(free, request.limit) for lane, free in request.lanes.items() if free > 0}
    rows: list[Row] = []
    scans = 0
    for queue in _queues(turn, request):
        for lane, limit in lanes.items():
            rows += CLAIMABLE.read(turn.sql, (queue, lane, turn.now, hold, limit))
            scans += 1
    return rows if scans <= 1 else _first(rows, request.limit, dict(lanes))


def _queues(turn: Turn, request: ClaimRequest) -> list[str]:
    if request.queues is None:
        return [queue for (queue,) in turn.sql.execute(READY_QUEUES)]
    paused = {queue for (queue,) in turn.sql.execute(PAUSED_QUEUES)}
    return [queue for queue in dict.fromkeys(request.queues) if queue not in paused]


def _first(rows: list[Row], limit: int, free: dict[str, int]) -> list[Row]:
    """Keep the first rows in the order (sort_key, seq), for each lane no more than it has free."""
    rows.sort(key=_rank)
    kept: list[Row] = []
    for row in rows:
        if len(kept) >= limit:
            break
        lane = row[4]
        if free[lane] > 0:
            free[lane] -= 1
            kept.append(row)
    return kept


def _rank(row: Row) -> tuple[int, int]:
    return row[10], row[0]
