"""A worker's turn: reports, then what time has made due or void, then the claim."""

from __future__ import annotations

from collections.abc import Sequence

from betimes.core.events import Event, Expired, Promoted, Succeeded
from betimes.core.job import Job, JobStatus, Micros
from betimes.core.lifecycle import is_current, is_repeated
from betimes.core.transition import Transition, claim, complete, repeated
from betimes.ports import ClaimRequest, Exchange, Report
from betimes.stores.sqlite.rows import array
from betimes.stores.sqlite.statements import ManyRows, Records, Row, statement
from betimes.stores.sqlite.turn import Turn

STEP_LIMIT = 500
"""The most jobs promoted, expired, rescued or unparked in one turn; the next turn goes on."""

READY, RUNNING = JobStatus.READY, JobStatus.RUNNING

NEXT_AT = statement("next_at")
EXPIRED = Records("expired")
DELAYED_DUE = Records("delayed_due")
READY_QUEUES = statement("ready_queues")
PAUSED_QUEUES = statement("paused_queues")
LEASE_HOLDS = statement("lease_holds")
CLAIMABLE = Records("claimable")
CLAIM_JOB = ManyRows("claim_job")


def exchange(turn: Turn, reports: Sequence[Report], request: ClaimRequest | None) -> Exchange:
    """Carry out one turn of a worker."""
    steps = take_reports(turn, reports) if reports else []
    next_at = _pass_time(turn)
    turn.flush()
    claimed = [] if request is None or request.limit <= 0 else claim_jobs(turn, request)
    if claimed:
        turn.tally.write(turn.sql)
        next_at = _next_at(turn)
    return Exchange(steps, claimed, turn.changes, next_at)


def take_reports(turn: Turn, reports: Sequence[Report]) -> list[Transition | None]:
    """Carry out the reports whose fence is still the job's, and what follows from them."""
    jobs = turn.refer([report.job for report in reports])
    missing = [report.job.seq for report in reports if report.job.seq not in jobs]
    ended = turn.ended(missing)
    steps: list[Transition | None] = []
    for report in reports:
        seq = report.job.seq
        job = jobs.get(seq) or ended.get(seq)
        if job is None:
            steps.append(None)
        elif is_current(job, report.fence):
            steps.append(_carry_out(turn, job, report.event))
        else:
            steps.append(repeated(job) if is_repeated(job, report.fence) else None)
    turn.settle()
    return steps


def _carry_out(turn: Turn, job: Job, event: Event) -> Transition:
    if type(event) is Succeeded and not job.cancel_requested:
        step = complete(job, event.at, event.result)
        turn.note(job, RUNNING)
        return step
    return turn.apply(job, event)


def _pass_time(turn: Turn) -> Micros | None:
    """Expire and promote what is due, a bounded number, and return when there is more to do."""
    next_at = _next_at(turn)
    if next_at is None or next_at > turn.now:
        return next_at
    turn.flush()
    for job in turn.read(EXPIRED, (turn.now, STEP_LIMIT)):
        if not job.status.is_terminal:
            turn.move(job, Expired(turn.now))
    turn.flush()
    for job in turn.read(DELAYED_DUE, (turn.now, STEP_LIMIT)):
        turn.move(job, Promoted(turn.now))
    turn.flush()
    return _next_at(turn)


def _next_at(turn: Turn) -> Micros | None:
    return min((at for at in turn.sql.execute(NEXT_AT).fetchone() if at is not None), default=None)


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
