"""What users ask of a schedule, checked, as the engine takes it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

from betimes.core.durations import duration_us, instant_us
from betimes.core.job import JobSpec
from betimes.core.options import nearest
from betimes.core.schedule import Missed, Overlap
from betimes.core.schedule_terms import MAX_CATCHUP, MOST_CATCHUP, ScheduleTerms, stored_trigger
from betimes.core.triggers import Trigger
from betimes.core.wording import shown
from betimes.errors import ConfigurationError
from betimes.runtime.timetable import NewSchedule
from betimes.tasks import Duration, SubmitOptions, check_name

OverlapPolicy: TypeAlias = Overlap | Literal["skip", "queue_one", "replace", "allow"]
MissedPolicy: TypeAlias = Missed | Literal["latest", "skip", "all"]
OnConflict: TypeAlias = Literal["update", "keep", "error"]

ON_CONFLICT = ("update", "keep", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleOptions:
    """How a schedule deals with what is late, overlaps or is out of bounds; as given, not checked yet.

    Attributes:
        overlap: `skip`, `queue_one`, `replace` or `allow`.
        missed: `latest`, `skip` or `all`.
        max_catchup: of what was missed, `missed="all"` makes up for so many of the newest, 1 to 1,000; None:
            100.
        jitter: each run starts up to so much later than its instant; None: not at all.
        start, end: no fire is earlier or later; aware; None: no bound.
    """

    overlap: OverlapPolicy = "skip"
    missed: MissedPolicy = "latest"
    max_catchup: int | None = None
    jitter: Duration | None = None
    start: datetime | None = None
    end: datetime | None = None


def ask(
    schedule_id: str,
    spec: JobSpec,
    payload: bytes,
    trigger: object,
    options: ScheduleOptions,
    *,
    submit_options: SubmitOptions | None,
    on_conflict: str = "update",
    gates: tuple[str, ...] = (),
    is_declared: bool = False,
) -> NewSchedule:
    """Check what is asked of a schedule.

    Raises:
        ConfigurationError: something is wrong; the text names it.
    """
    check_name(schedule_id, "schedule id")
    trigger = check_trigger(trigger, spec.task)
    if on_conflict not in ON_CONFLICT:
        raise ConfigurationError(
            f"on_conflict is {shown(on_conflict)}; it is one of {', '.join(map(repr, ON_CONFLICT))}"
        )
    starts_at = None if options.start is None else instant_us(options.start, name="start")
    ends_at = None if options.end is None else instant_us(options.end, name="end")
    if starts_at is not None and ends_at is not None and ends_at < starts_at:
        raise ConfigurationError("end lies before start: nothing would ever fire")
    terms = ScheduleTerms(
        trigger=stored_trigger(trigger),
        overlap=Overlap(_one_of(options.overlap, Overlap, "overlap")),
        missed=Missed(_one_of(options.missed, Missed, "missed")),
        max_catchup=_max_catchup(options),
        jitter_us=0
        if options.jitter is None
        else duration_us(options.jitter, name="jitter", allow_zero=True),
        starts_at=starts_at,
        ends_at=ends_at,
        expires_us=_expires_us(submit_options),
        is_declared=is_declared,
        gates=gates,
    )
    return NewSchedule(
        id=schedule_id, spec=spec, payload=payload, trigger=trigger, terms=terms, on_conflict=on_conflict
    )


def check_trigger(trigger: object, task: str) -> Trigger:
    """Return the trigger.

    Raises:
        ConfigurationError: it is none; the text says how one is made.
    """
    if isinstance(trigger, Trigger):
        return trigger
    hint = "cron('0 9 * * *'), every('5m'), calendar(…)"
    if isinstance(trigger, str):
        is_expression = " " in trigger.strip() or trigger.startswith("@")
        hint = f"cron({trigger!r})" if is_expression else f"every({trigger!r})"
    raise ConfigurationError(f"the schedule of {task} is {shown(trigger)}; it is a trigger: write {hint}")


def _one_of(value: object, kind: type[Overlap | Missed], name: str) -> str:
    allowed = [str(each) for each in kind]
    if isinstance(value, str) and value in allowed:
        return value
    hint = nearest(value, allowed) if isinstance(value, str) else None
    also = f"; did you mean {hint!r}?" if hint else ""
    raise ConfigurationError(f"{name} is {shown(value)}; it is one of {', '.join(map(repr, allowed))}{also}")


def _max_catchup(options: ScheduleOptions) -> int:
    value: Any = options.max_catchup
    if value is None:
        return MAX_CATCHUP
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_CATCHUP:
        raise ConfigurationError(
            f"max_catchup is {shown(value)}; it is a whole number from 1 to {MOST_CATCHUP:,}"
        )
    if options.missed != Missed.ALL:
        raise ConfigurationError("max_catchup counts only together with missed='all'")
    return value


def _expires_us(options: SubmitOptions | None) -> int | None:
    """Return how long the jobs may wait; options that hold for one job only are refused."""
    if options is None:
        return None
    wrong = {
        "job_id": options.job_id is not None,
        "key": options.key is not None,
        "depends_on": bool(options.depends_on),
        "delay": options.delay_us != 0,
        "run_at": options.run_at is not None,
        "conn": options.conn is not None,
        "expires as an instant": options.expires_at is not None,
    }
    for name, is_given in wrong.items():
        if is_given:
            raise ConfigurationError(
                f"a schedule makes many jobs, and {name} holds for one only: leave it out of using(…)"
            )
    return options.expires_us
