"""Why did this schedule not run? What it waits for, when it fires next, and what became of an instant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from betimes.core.durations import from_us
from betimes.core.grid import Grid, TriggerFailed
from betimes.core.job import JobStatus, Micros
from betimes.core.schedule import Fire, FireOutcome, ScheduleRecord
from betimes.core.schedule_reason import (
    NextFire,
    ScheduleExplanation,
    ScheduleReason,
    ScheduleReasonCode,
)
from betimes.core.schedule_terms import ScheduleTerms
from betimes.core.upcoming import next_fires
from betimes.core.wording import START_A_WORKER, listed, moment, span

NEXT_SHOWN = 5
"""How many of the next fires are shown."""

GAP_US = 3 * 3_600_000_000
GAP_STEPS = 200
"""How far back, and through how many instants, a skipped wall time is looked for."""

PROMPT_US = 1_000_000
"""What was decided this soon after its instant needs no remark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSituation:
    """What is known around a schedule at one instant.

    Attributes:
        now: the instant.
        record: the schedule.
        terms, grid: what its definition means; None: it cannot be read here, and `unreadable` says why.
        unreadable: see there.
        is_elsewhere: the definition is sound, but its trigger is known to another process only.
        fires: what is on record of the instant asked about, and of the newest ones.
        live: ids of its jobs that have not ended.
        statuses: of the jobs that `fires` names, by id, as far as they are still known.
        is_worked: whether somebody runs jobs of the store.
        is_task_known: whether a worker knows its task, or does not say which it knows.
    """

    now: Micros
    record: ScheduleRecord
    terms: ScheduleTerms | None = None
    grid: Grid | None = None
    unreadable: str = ""
    is_elsewhere: bool = False
    fires: Sequence[Fire] = ()
    live: Sequence[str] = ()
    statuses: Mapping[str, JobStatus] = field(default_factory=dict)
    is_worked: bool = True
    is_task_known: bool = True


def explain_schedule(s: ScheduleSituation, at: Micros | None = None) -> ScheduleExplanation:
    """Say what the schedule waits for; with `at`, what became or will become of that instant.

    Args:
        s: what is known around it.
        at: the instant asked about; None: now.
    """
    try:
        reasons = _of_now(s) if at is None else [_of_instant(s, at)]
    except TriggerFailed as error:
        reasons = [ScheduleReason(code=ScheduleReasonCode.BROKEN, text=f"It cannot be told: {error}")]
    return ScheduleExplanation(
        schedule_id=s.record.id,
        trigger=s.unreadable if s.grid is None else s.grid.sentence(),
        at=None if at is None else from_us(at),
        reasons=tuple(reasons),
        next_fires=tuple(_next_fires(s)),
    )


# --- now


def _of_now(s: ScheduleSituation) -> list[ScheduleReason]:
    halted = _halted(s)
    if halted is not None:
        return [halted]
    return [reason for reason in (_worker(s), _task(s), _waiting(s)) if reason is not None]


def _halted(s: ScheduleSituation) -> ScheduleReason | None:
    record = s.record
    if record.error is not None:
        return ScheduleReason(
            code=ScheduleReasonCode.BROKEN,
            text=f"The scheduler paused it: {record.error}",
            change="Mend the trigger and add the schedule again, or resume_schedule() once it works again.",
        )
    if record.paused:
        return ScheduleReason(
            code=ScheduleReasonCode.PAUSED, text="It is paused.", change="resume_schedule() lets it go on."
        )
    if s.grid is None:
        code = ScheduleReasonCode.TRIGGER_ELSEWHERE if s.is_elsewhere else ScheduleReasonCode.BROKEN
        return ScheduleReason(code=code, text=f"It cannot be read here: {s.unreadable}")
    return None


def _worker(s: ScheduleSituation) -> ScheduleReason | None:
    if s.is_worked:
        return None
    return ScheduleReason(
        code=ScheduleReasonCode.NO_WORKER,
        text="Nobody runs jobs of this store, so nobody fires its schedules.",
        change=START_A_WORKER,
    )


def _task(s: ScheduleSituation) -> ScheduleReason | None:
    if s.is_task_known or not s.is_worked:
        return None
    return ScheduleReason(
        code=ScheduleReasonCode.TASK_UNKNOWN,
        text=f"No worker that runs knows task {s.record.spec.task!r}: its jobs are put aside.",
        change="Start a worker that registers a task of this name; it takes them by itself.",
    )


def _waiting(s: ScheduleSituation) -> ScheduleReason:
    record = s.record
    live = f"job {listed(s.live)}" if s.live else "a job"
    if record.held_at is not None:
        return ScheduleReason(
            code=ScheduleReasonCode.HELD_BACK,
            text=f"The instant {moment(record.held_at, s.now)} waits until {live} has ended.",
            change="It fires in the step in which that end is recorded.",
            job_id=s.live[0] if s.live else None,
        )
    if record.awaits is not None:
        return ScheduleReason(
            code=ScheduleReasonCode.AFTER_END,
            text=f"It fires {span(record.delay_us or 0)} after the end of {live}, which has not ended.",
            change="Its next instant is set in the step in which that end is recorded.",
            job_id=s.live[0] if s.live else None,
        )
    if record.next_fire_at is None:
        return ScheduleReason(
            code=ScheduleReasonCode.OVER,
            text="It has no instant ahead.",
            change="Add it again with another trigger or end, or remove it.",
        )
    if record.next_fire_at <= s.now:
        return _due(record.next_fire_at, s.now)
    return ScheduleReason(
        code=ScheduleReasonCode.NOT_DUE,
        text=f"Its next instant is {moment(record.next_fire_at, s.now)}.",
        change="It fires then.",
    )


def _due(at: Micros, now: Micros) -> ScheduleReason:
    return ScheduleReason(
        code=ScheduleReasonCode.DUE,
        text=f"Its instant {moment(at, now)} has come.",
        change="The next turn of a worker fires it.",
    )


# --- an instant


_OUTCOMES = {
    FireOutcome.FIRED: (ScheduleReasonCode.FIRED, "It became job {job}."),
    FireOutcome.BY_HAND: (ScheduleReasonCode.BY_HAND, "Somebody asked for a run then: job {job}."),
    FireOutcome.OVERLAP: (ScheduleReasonCode.OVERLAP, "It was skipped: job {job} had not ended."),
    FireOutcome.MERGED: (
        ScheduleReasonCode.MERGED,
        "It was missed, and one run stands for all that were: job {job}.",
    ),
    FireOutcome.MISSED: (ScheduleReasonCode.MISSED, "It was missed, and missed='skip' makes up for nothing."),
    FireOutcome.CATCH_UP: (
        ScheduleReasonCode.CATCH_UP,
        "It was missed, and is older than the newest that max_catchup makes up for.",
    ),
    FireOutcome.PAUSED: (ScheduleReasonCode.PAUSED, "It passed while the schedule was paused."),
}
_CHANGES = {
    FireOutcome.OVERLAP: "overlap='queue_one', 'replace' or 'allow' would have run it.",
    FireOutcome.MERGED: "missed='all' gives each its own run.",
    FireOutcome.MISSED: "missed='latest' or 'all' makes up for it.",
    FireOutcome.CATCH_UP: "A larger max_catchup makes up for more.",
}


def _of_instant(s: ScheduleSituation, at: Micros) -> ScheduleReason:
    on_record = [fire for fire in s.fires if fire.first_at <= at <= fire.at]
    is_instant = s.grid is not None and at in (_pending(s.record), s.grid.next(at - 1))
    for fire in on_record:
        if fire.first_at == fire.at or is_instant or s.grid is None:
            return _recorded(s, fire)
    if s.grid is None or s.terms is None:
        return _halted(s) or ScheduleReason(
            code=ScheduleReasonCode.NOT_ON_RECORD, text="Nothing is on record."
        )
    return _out_of_reach(s, s.terms, at) or (_undecided(s, at) if is_instant else _no_instant(s, s.grid, at))


def _recorded(s: ScheduleSituation, fire: Fire) -> ScheduleReason:
    code, text = _OUTCOMES[fire.outcome]
    if fire.job_id is None:  # the one that stands for it was made before the clock was set back
        text = text.replace(": job {job}", "")
    status = None if fire.outcome is FireOutcome.OVERLAP else s.statuses.get(fire.job_id or "")
    is_now = "" if status is None else f", which is {status.name}"
    text = text.format(job=f"{fire.job_id}{is_now}")
    if fire.outcome is not FireOutcome.FIRED or fire.decided_at - fire.at > PROMPT_US:
        text += f" That was decided {moment(fire.decided_at, s.now)}."
    if fire.moved_from is not None:
        text += f" It stands for {fire.moved_from}, a wall time that a change of the clocks skipped."
    return ScheduleReason(code=code, text=text, change=_CHANGES.get(fire.outcome, ""), job_id=fire.job_id)


def _out_of_reach(s: ScheduleSituation, terms: ScheduleTerms, at: Micros) -> ScheduleReason | None:
    if at < terms.created_at:
        added = moment(terms.created_at, s.now)
        return ScheduleReason(
            code=ScheduleReasonCode.BEFORE_ADDED, text=f"The schedule was added later: {added}."
        )
    for bound, is_outside, word in (
        (terms.starts_at, terms.starts_at is not None and at < terms.starts_at, "starts"),
        (terms.ends_at, terms.ends_at is not None and at > terms.ends_at, "ends"),
    ):
        if is_outside and bound is not None:
            return ScheduleReason(
                code=ScheduleReasonCode.OUT_OF_BOUNDS,
                text=f"The schedule {word} {moment(bound, s.now)}.",
                change=f"Add it again with another {word[:-1]}=….",
            )
    return None


def _undecided(s: ScheduleSituation, at: Micros) -> ScheduleReason:
    record, pending = s.record, _pending(s.record)
    if at > s.now:
        return _halted(s) or ScheduleReason(
            code=ScheduleReasonCode.NOT_DUE,
            text=f"It is ahead: {moment(at, s.now)}.",
            change="It fires then.",
        )
    if record.paused or record.error is not None:
        return _halted(s) or _due(at, s.now)
    if pending is not None and at >= pending:
        return _worker(s) or (_waiting(s) if record.held_at is not None else _due(at, s.now))
    if record.awaits is not None:
        return _waiting(s)
    return ScheduleReason(
        code=ScheduleReasonCode.NOT_ON_RECORD,
        text="Nothing is on record of it: it is longer ago than fires are kept, or the schedule's definition "
        "was another one then.",
    )


def _pending(record: ScheduleRecord) -> Micros | None:
    """Return the first instant that is not decided yet, if it is known."""
    return record.next_fire_at if record.held_at is None else record.held_at


def _no_instant(s: ScheduleSituation, grid: Grid, at: Micros) -> ScheduleReason:
    delay_us = s.record.delay_us
    if delay_us is not None:
        is_known = "there was none then" if at <= s.now else "none is known to be then"
        text = f"Its instants come {span(delay_us)} after the end of each run, and {is_known}."
        return ScheduleReason(code=ScheduleReasonCode.NO_INSTANT, text=text)
    following = grid.next(at)
    text = "The trigger has no instant then"
    before = _moved_just_before(grid, at)
    if before is not None:
        moved = grid.moved_from(before)
        text += (
            f"; the one before it is {moment(before, s.now)}, in place of {moved}, which the clocks skipped"
        )
    if following is not None:
        moved = grid.moved_from(following)
        text += f"; the next one after it is {moment(following, s.now)}"
        if moved is not None:
            text += f", in place of {moved}, a wall time that a change of the clocks skips"
    return ScheduleReason(code=ScheduleReasonCode.NO_INSTANT, text=f"{text}.")


def _moved_just_before(grid: Grid, at: Micros) -> Micros | None:
    """Return an instant shortly before that stands for a skipped wall time, perhaps the one meant."""
    instant = grid.next(at - GAP_US)
    for _ in range(GAP_STEPS):
        if instant is None or instant >= at:
            return None
        if grid.moved_from(instant) is not None:
            return instant
        instant = grid.next(instant)
    return None


# --- ahead


def _next_fires(s: ScheduleSituation) -> list[NextFire]:
    grid, record = s.grid, s.record
    if grid is None or record.error is not None:
        return []
    pending = _pending(record)
    if record.delay_us is not None:
        return [] if pending is None else [NextFire(at=from_us(pending))]
    after = s.now if pending is None or record.paused else pending - 1
    return next_fires(grid, after, NEXT_SHOWN)
