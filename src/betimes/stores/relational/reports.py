"""What workers report: nearly always that a job of no further interest has succeeded.

Those go together, by one guarded statement that looks at fence and flags itself; it says in SQL what
`lifecycle.decide` says of a `Succeeded` that nothing stands against. All others are looked at one by one.

The permits of a job are back as soon as its row runs no more, whichever way it went, unless its code has
not returned; then they are kept under its number and fence, until that is reported.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from betimes.core.events import Succeeded
from betimes.core.job import Job, JobStatus, Micros
from betimes.core.lifecycle import is_current, is_repeated
from betimes.core.limits import GateKind
from betimes.core.transition import Completion, Transition, repeated
from betimes.ports import Hint, Report
from betimes.stores.relational.rows import array, forget_at
from betimes.stores.relational.statements import Row, statement
from betimes.stores.relational.turn import Turn

COMPLETED, RUNNING = JobStatus.COMPLETED, JobStatus.RUNNING

RETURN_PERMITS = statement("return_permits")


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
        if type(event) is Succeeded and job.seq not in rows and (report.has_returned or not job.gates):
            at, result = event.at, event.result
            rows[job.seq] = (job.seq, report.fence, at, result.decode(), forget_at(job.spec, at))
            steps[job.seq] = Completion(at, result)
    if not rows:
        return steps
    moved = turn.sql.complete(list(rows.values()))
    if len(moved) < len(rows):
        steps = {seq: steps[seq] for seq in moved}
    if steps:
        turn.hints.add(Hint.ENDED)
    proofs: list[tuple[Job, Micros | None]] = []
    for report in reports:
        job = report.job
        if job.seq in steps:
            turn.tally.move(job.spec.queue, RUNNING, COMPLETED)
            if job.gates:
                turn.free_gates(job.gates)
                proofs.append((job, None))
    if proofs:
        _close_circuits(turn, proofs)
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
            steps.append(_take(turn, job, report))
        else:
            steps.append(repeated(job) if is_repeated(job, report.fence) else None)
    turn.settle()
    returned = [
        (report.job.seq, report.fence) for report in reports if report.job.gates and report.has_returned
    ]
    if returned:
        turn.flush()
        take_returns(turn, returned)
    return steps


def _take(turn: Turn, job: Job, report: Report) -> Transition:
    """Carry out a report that is current, with what it means for the job's gates."""
    if not job.gates:
        return turn.apply(job, report.event)
    started_at = job.started_at
    step = turn.apply(job, report.event, is_left_running=not report.has_returned)
    if not report.has_begun:
        refund(turn, job)
    elif step.after is COMPLETED:
        _close_circuits(turn, [(job, started_at)])
    return step


def refund(turn: Turn, job: Job) -> None:
    """Take the tokens of a claim back that began nothing; those who wait may have them."""
    turn.lines.gates.refund(job.gates, job.started_at or 0)
    turn.lines.open(job.gates)


def take_returns(turn: Turn, returned: Collection[tuple[int, int]]) -> None:
    """Take back the permits of attempts (number, fence) whose code has returned, if they still hold any."""
    for (text,) in turn.sql.execute(RETURN_PERMITS, (array(returned),)).fetchall():
        turn.free_gates(turn.specs.gates(text))


def _close_circuits(turn: Turn, successes: Iterable[tuple[Job, Micros | None]]) -> None:
    """Close the circuits that are open and were so already when these jobs were claimed (None: look)."""
    of_breakers = [
        (key, job.seq, started_at)
        for job, started_at in successes
        for key in job.gates
        if key.startswith(GateKind.BREAKER.value)
    ]
    if not of_breakers:
        return
    gates = turn.lines.gates
    gates.load(key for key, _, _ in of_breakers)
    tripped = [each for each in of_breakers if gates[each[0]].is_tripped]
    ended = turn.ended([seq for _, seq, started_at in tripped if started_at is None])
    for key, seq, started_at in tripped:
        claimed_at = started_at if started_at is not None else ended[seq].started_at
        if gates[key].is_proof(claimed_at or 0):
            gates[key].reset()
            gates.stir(key)
            turn.lines.open((key,))
