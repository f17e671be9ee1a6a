"""Steps of schedules in memory: all are settled, and their jobs looked at, before any is carried out."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from betimes.core.events import CancelRequested
from betimes.core.job import CancelReason, Job, Micros, Need, Terms
from betimes.core.overlapping import Settled, settle
from betimes.core.schedule import Advance, Fired
from betimes.stores.memory.gates import Gates
from betimes.stores.memory.history import History
from betimes.stores.memory.moves import Moves
from betimes.stores.memory.schedules import Schedules
from betimes.stores.memory.submits import Submission


def fire(
    advances: Sequence[Advance],
    schedules: Schedules,
    history: History,
    moves: Moves,
    *,
    gates: Gates,
    now: Micros,
) -> list[Fired | None]:
    """Carry out steps of schedules; None, and no change, where another was first."""
    all_settled = _settle(advances, schedules, now)
    steps = [settled for settled in all_settled if settled is not None]
    submission = Submission([job for settled in steps for job in _on_terms(settled)], history, gates, now)
    submission.check()
    for settled in steps:
        # Before anything ends: what the end of a job does to its schedule is done to what stands now.
        schedules.put(settled.record)
        for job in reversed(settled.cancels):
            if not job.status.is_terminal:
                moves.move(job, CancelRequested(now, CancelReason.REPLACED))
    jobs = iter(submission.keep(moves))
    return [
        None if settled is None else _move_on(settled, [next(jobs) for _ in settled.runs], schedules)
        for settled in all_settled
    ]


def _settle(advances: Sequence[Advance], schedules: Schedules, now: Micros) -> list[Settled | None]:
    """Decide the steps that count; of several of one schedule, the first that stands."""
    counted: set[str] = set()
    all_settled: list[Settled | None] = []
    for advance in advances:
        schedule_id = advance.record.id
        record = None if schedule_id in counted else schedules.get(schedule_id)
        if record is None or not advance.stands(record):
            all_settled.append(None)
            continue
        counted.add(schedule_id)
        instants = [job.fire.at for job in advance.due if job.fire is not None]
        taken = schedules.taken(schedule_id, instants)
        all_settled.append(settle(advance, live=schedules.live_jobs(record), taken=taken, now=now))
    return all_settled


def _on_terms(settled: Settled) -> list[Job]:
    """Return the jobs of a step, each of which asks to wait for those it has to wait for."""
    for job, waits_for in settled.runs:
        if waits_for:
            assert job.terms is None, "a schedule's job asks for nothing else"
            job.terms = Terms(depends_on=tuple((other, Need.ENDED) for other in waits_for))
    return [job for job, _ in settled.runs]


def _move_on(settled: Settled, jobs: Sequence[Job], schedules: Schedules) -> Fired:
    """Write the schedule as it stands now, and what became of each instant."""
    stands = schedules.get(settled.record.id)
    assert stands is not None, "it stood when the step was settled"
    after = replace(settled, record=stands).record_with([job.seq for job in jobs])
    schedules.remember(after.id, settled.fires)
    schedules.put(after)
    schedules.live.update((job.seq, job) for job in jobs)
    return Fired(record=after, jobs=tuple(jobs), fires=settled.fires)
