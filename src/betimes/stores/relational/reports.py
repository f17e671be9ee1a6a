"""What workers report: nearly always that a job of no further interest has succeeded.

Those go together, by one guarded statement that looks at fence and flags itself; it says in SQL what
`lifecycle.decide` says of a `Succeeded` that nothing stands against. All others are looked at one by one.

The permits of a job are back as soon as its row runs no more, whichever way it went, unless its code has
not returned; then they are kept under its number and fence, until that is reported.

A transaction of a caller's may have locked a job, because another one is to wait for it. Nobody waits for
that transaction: the report is handed back, to be sent again, and all others go on.
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

LIVE_SEQS = statement("live_seqs")
RETURN_PERMITS = statement("return_permits")


def take_reports(turn: Turn, reports: Sequence[Report]) -> tuple[list[Transition | None], list[int]]:
    """Carry out the reports whose fence is still the job's, and what follows from them.

    Returns:
        The steps made; and the positions of reports of jobs that another transaction has locked.
    """
    done = _complete_together(turn, reports)
    steps: list[Transition | None] = [done.pop(report.job.seq, None) for report in reports]
    left = [place for place, step in enumerate(steps) if step is None]
    if not left:
        return steps, []
    taken, locked = _take_one_by_one(turn, [reports[place] for place in left])
    for place, step in zip(left, taken, strict=True):
        steps[place] = step
    return steps, [place for place in left if reports[place].job.seq in locked]


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


def _take_one_by_one(
    turn: Turn, reports: Sequence[Report]
) -> tuple[list[Transition | None], Collection[int]]:
    """Return the steps made, and the numbers of jobs that another transaction has locked."""
    jobs = turn.refer([report.job for report in reports], if_free=True)
    others = [report.job.seq for report in reports if report.job.seq not in jobs]
    locked = _locked(turn, others)
    ended = turn.ended([seq for seq in others if seq not in locked], as_they_are=True)
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
        (report.job.seq, report.fence)
        for report in reports
        if report.job.gates and report.has_returned and report.job.seq not in locked
    ]
    if returned:
        turn.flush()
        take_returns(turn, returned)
    return steps, locked


def _locked(turn: Turn, seqs: Sequence[int]) -> set[int]:
    """Tell which of these jobs are live, although they could not be loaded: another transaction has them.

    A job that ends between the two looks is found among the ended ones by the third; one that an operator
    takes back meanwhile has another fence, so that nothing of the report would count.
    """
    if turn.sql.is_alone or not seqs:
        return set()
    return {seq for (seq,) in turn.sql.execute(LIVE_SEQS, (array(seqs),)).fetchall()}


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
