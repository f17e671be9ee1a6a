"""What workers report: nearly always that a job of no further interest has succeeded.

Those go together, by one guarded statement that looks at fence and flags itself; it says in SQL what
`lifecycle.decide` says of a `Succeeded` that nothing stands against. All others are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

from betimes.core.events import Succeeded
from betimes.core.job import JobStatus
from betimes.core.lifecycle import is_current, is_repeated
from betimes.core.transition import Completion, Transition, repeated
from betimes.ports import Hint, Report
from betimes.stores.sqlite.rows import array, forget_at
from betimes.stores.sqlite.statements import ManyRows, Row, statement
from betimes.stores.sqlite.turn import DELETE_JOB, Turn

COMPLETED, RUNNING = JobStatus.COMPLETED, JobStatus.RUNNING

COMPLETE_JOBS = ManyRows("complete_jobs")
COPIED_JOBS = statement("copied_jobs")


def take_reports(turn: Turn, reports: Sequence[Report]) -> list[Transition | None]:
    """Carry out the reports whose fence is still the job's, and what follows from them."""
    done = _complete_together(turn, reports)
    steps: list[Transition | None] = [done.pop(report.job.seq, None) for report in reports]
    left = [place for place, step in enumerate(steps) if step is None]
    if left:
        for place, step in zip(left, _take_one_by_one(turn, [reports[place] for place in left]), strict=True):
            steps[place] = step
    return steps


def _complete_together(turn: Turn, reports: Sequence[Report]) -> dict[int, Transition]:
    """Complete the jobs of which nothing but success is to be recorded; return their steps by number."""
    rows: dict[int, Row] = {}
    steps: dict[int, Transition] = {}
    for report in reports:
        event = report.event
        job = report.job
        if type(event) is Succeeded and job.seq not in rows:
            at, result = event.at, event.result
            rows[job.seq] = (job.seq, report.fence, at, result.decode(), forget_at(job.spec, at))
            steps[job.seq] = Completion(at, result)
    if not rows:
        return steps
    sql = turn.sql
    if COMPLETE_JOBS.write(sql, list(rows.values())) < len(rows):
        copied = {seq for (seq,) in sql.execute(COPIED_JOBS, (array(rows),)).fetchall()}
        steps = {seq: step for seq, step in steps.items() if seq in copied}
    if steps:
        sql.execute(DELETE_JOB, (array(steps),))
        turn.hints.add(Hint.ENDED)
    for report in reports:
        if report.job.seq in steps:
            turn.tally.move(report.job.spec.queue, RUNNING, COMPLETED)
    return steps


def _take_one_by_one(turn: Turn, reports: Sequence[Report]) -> list[Transition | None]:
    jobs = turn.refer([report.job for report in reports])
    ended = turn.ended([report.job.seq for report in reports if report.job.seq not in jobs])
    steps: list[Transition | None] = []
    for report in reports:
        seq = report.job.seq
        job = jobs.get(seq) or ended.get(seq)
        if job is None:
            steps.append(None)
        elif is_current(job, report.fence):
            steps.append(turn.apply(job, report.event))
        else:
            steps.append(repeated(job) if is_repeated(job, report.fence) else None)
    turn.settle()
    return steps
