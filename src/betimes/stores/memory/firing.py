"""One step of a schedule in memory: settled on what is live, and carried out at once."""

from __future__ import annotations

from betimes.core.events import CancelRequested
from betimes.core.job import CancelReason, Micros, Need, Terms
from betimes.core.overlapping import settle
from betimes.core.schedule import Advance, Fired
from betimes.stores.memory.history import History
from betimes.stores.memory.moves import Moves
from betimes.stores.memory.schedules import Schedules
from betimes.stores.memory.submits import Submission


def fire(
    advance: Advance, schedules: Schedules, history: History, moves: Moves, *, now: Micros
) -> Fired | None:
    """Carry out a step of a schedule; None, and no change, where another was first."""
    seen = advance.record
    record = schedules.get(seen.id)
    if record is None or not advance.stands(record):
        return None
    live = schedules.live_jobs(record)
    instants = [job.fire.at for job in advance.due if job.fire is not None]
    settled = settle(advance, live=live, taken=schedules.taken(seen.id, instants), now=now)
    for job in settled.cancels:
        moves.move(job, CancelRequested(now, CancelReason.REPLACED))
    for job, waits_for in settled.runs:
        if waits_for:
            job.terms = Terms(depends_on=tuple((other, Need.ENDED) for other in waits_for))
    submission = Submission([job for job, _ in settled.runs], history, now)
    submission.check()
    jobs = tuple(submission.keep(moves))
    after = settled.record_with([job.seq for job in jobs])
    schedules.remember(seen.id, settled.fires)
    schedules.put(after)
    if settled.keeps_jobs or settled.awaits_run:
        schedules.live.update((job.seq, job) for job in jobs)
    return Fired(record=after, jobs=jobs, fires=settled.fires)
