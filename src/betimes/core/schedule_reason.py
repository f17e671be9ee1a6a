"""What can be said of a schedule: the reasons, its next fires, and the answer they make."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class ScheduleReasonCode(StrEnum):
    """What kind of reason it is. The list is closed: every answer is one of these."""

    BROKEN = "broken"
    """The scheduler paused it by itself: its trigger cannot be read, raised, or does not advance."""
    PAUSED = "paused"
    """Somebody paused it, now or when the instant passed."""
    TRIGGER_ELSEWHERE = "trigger_elsewhere"
    """Its trigger is of somebody's own class, which is not known here."""
    NO_WORKER = "no_worker"
    """Nobody runs jobs of this store, and only who does fires schedules."""
    TASK_UNKNOWN = "task_unknown"
    """No worker knows its task: what it fires is put aside."""
    HELD_BACK = "held_back"
    """An instant that was missed waits until the run before it has ended."""
    AFTER_END = "after_end"
    """Its next fire comes a fixed delay after the end of a run that has not ended."""
    OVER = "over"
    """It has no instant ahead."""
    NOT_DUE = "not_due"
    """Its next instant is ahead."""
    DUE = "due"
    """The instant has come; the next turn of a worker fires it."""
    FIRED = "fired"
    """The instant became a job."""
    BY_HAND = "by_hand"
    """Somebody asked for a run then; it is no instant of its own."""
    OVERLAP = "overlap"
    """The instant was skipped, because an earlier run had not ended."""
    MERGED = "merged"
    """The instant was missed, and the run of a later one stands for it too."""
    MISSED = "missed"
    """The instant was missed, and is not made up for."""
    CATCH_UP = "catch_up"
    """The instant was missed, and is older than what is made up for."""
    BEFORE_ADDED = "before_added"
    """The schedule was added later."""
    OUT_OF_BOUNDS = "out_of_bounds"
    """It lies before the schedule's start, or after its end."""
    NO_INSTANT = "no_instant"
    """The trigger has no instant then."""
    NOT_ON_RECORD = "not_on_record"
    """Nothing is known of it any more, or the definition was another one then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleReason:
    """One reason.

    Attributes:
        code: its kind.
        text: what is so, in a sentence with the names and times.
        change: what would change it; empty where nothing would.
        job_id: the job it speaks of; None: of none.
    """

    code: ScheduleReasonCode
    text: str
    change: str = ""
    job_id: str | None = None

    def __str__(self) -> str:
        return f"{self.text}\n  {self.change}" if self.change else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class NextFire:
    """One of the next instants.

    Attributes:
        at: the instant (aware, UTC).
        local: the same in the schedule's zone; None: it has none.
        moved_from: the wall time it stands for, if a change of the clocks skips it.
    """

    at: datetime
    local: datetime | None = None
    moved_from: str | None = None

    def __str__(self) -> str:
        text = f"{self.at:%Y-%m-%d %H:%M:%S} UTC"
        if self.local is not None:
            text = f"{self.local:%a %Y-%m-%d %H:%M:%S %Z} = {text}"
        return f"{text}, in place of {self.moved_from}" if self.moved_from else text


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleExplanation:
    """What a schedule waits for and when it fires next, or why it did or did not run at an instant.

    Attributes:
        schedule_id: the schedule.
        trigger: when it fires, in English.
        at: the instant asked about; None: now.
        reasons: the reasons, the most important first; never empty.
        next_fires: the next instants, unless it is broken or over; a paused schedule's, if it were resumed.

    Example:
        print(await scheduler.explain_schedule("nightly", at=datetime(2026, 3, 29, 2, 30, tzinfo=berlin)))
    """

    schedule_id: str
    trigger: str
    at: datetime | None
    reasons: tuple[ScheduleReason, ...]
    next_fires: tuple[NextFire, ...] = ()

    @property
    def codes(self) -> frozenset[ScheduleReasonCode]:
        """The reasons' kinds."""
        return frozenset(reason.code for reason in self.reasons)

    def __str__(self) -> str:
        about = "" if self.at is None else f" at {self.at:%Y-%m-%d %H:%M:%S} UTC"
        lines = [f"Schedule {self.schedule_id}{about}: {self.trigger}"]
        lines += [f"- {reason}" for reason in self.reasons]
        lines += [f"Next: {fire}" for fire in self.next_fires]
        return "\n".join(lines)
