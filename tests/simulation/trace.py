"""What happened, call by call: to be printed when a run fails, and compared when it is replayed."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

from betimes.core.job import Job, JobEvent
from betimes.core.schedule import Fired, ScheduleRecord
from betimes.ports import Beat, Cancellation, Exchange, WorkerInfo

SHOWN = 60


class Trace:
    """The lines of one run. Two runs of one seed write the same."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.lines: list[str] = []

    def add(self, line: str) -> None:
        """Write a line, with its instant."""
        self.lines.append(f"{self._now():10.4f} {line}")

    @property
    def digest(self) -> str:
        """What stands for all lines."""
        return sha256("\n".join(self.lines).encode()).hexdigest()

    def tail(self, lines: int = SHOWN) -> str:
        """The last lines, as text."""
        return "\n".join(self.lines[-lines:])


def in_short(value: object) -> str:
    """What the trace shows of an answer; nothing that is the real machine's or process's own."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(in_short, value))}]"
    if value is None:
        return ""
    for kind, show in _SHOWN.items():
        if isinstance(value, kind):
            return show(value)
    return str(value)


def _show_exchange(exchange: Exchange) -> str:
    ended = [step and step.after.value for step in exchange.steps]
    return f"ended {ended} {in_short(exchange.changes)} claimed {in_short(exchange.claimed)}"


def _show_fired(fired: Fired) -> str:
    fires = [(fire.at, fire.outcome.value) for fire in fired.fires]
    return f"{in_short(fired.record)} jobs {in_short(fired.jobs)} {fires}"


_SHOWN: dict[type[Any], Callable[[Any], str]] = {
    Job: lambda job: f"#{job.seq} {job.status.value}/{job.fence}",
    JobEvent: lambda event: f"#{event.seq} {event.before and event.before.value}→{event.after.value}",
    WorkerInfo: lambda worker: worker.id,
    Cancellation: lambda cancellation: cancellation.answer.name,
    Beat: lambda beat: (
        f"alive={beat.is_alive} lost={beat.lost} cancels={beat.cancels} {in_short(beat.changes)}"
    ),
    Exchange: _show_exchange,
    ScheduleRecord: lambda one: f"{one.id} v{one.version} next {one.next_fire_at} held {one.held_at}",
    Fired: _show_fired,
    frozenset: lambda names: str(sorted(names)),
}
