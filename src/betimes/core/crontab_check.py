"""What is to be said of each entry of a crontab: when it runs, in English, and what may surprise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from betimes.core.crontab import REBOOT, CrontabEntry
from betimes.core.job import Micros
from betimes.core.wording import span

FIRES_SHOWN = 3

_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NextFire:
    """An instant of an entry.

    Attributes:
        at: when, in UTC.
        stands_for: the wall time for which it stands, because the clock skips that; None: its own.
    """

    at: Micros
    stands_for: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryReport:
    """One entry, explained.

    Attributes:
        entry: which.
        sentence: when it runs, in English.
        policies: how its runs are treated, in words.
        fires: its next instants; () for `@reboot`.
        hints: what may surprise, a sentence each.
    """

    entry: CrontabEntry
    sentence: str
    policies: str
    fires: tuple[NextFire, ...]
    hints: tuple[str, ...]


def report_on(entries: Iterable[CrontabEntry], now: Micros) -> list[EntryReport]:
    """Explain entries, as of an instant."""
    return [_report(entry, now) for entry in entries]


def _report(entry: CrontabEntry, now: Micros) -> EntryReport:
    trigger = entry.trigger
    if trigger is None:
        sentence = "Once in each boot of the machine, when the crontab is first run in it."
        hints = _hints_on_reboot(entry)
    else:
        sentence = trigger.sentence()
        hints = trigger.hints_after(now)
    return EntryReport(
        entry=entry,
        sentence=sentence,
        policies=_policies(entry),
        fires=_fires(entry, now),
        hints=(*hints, *entry.remarks),
    )


def _fires(entry: CrontabEntry, now: Micros) -> tuple[NextFire, ...]:
    fires: list[NextFire] = []
    trigger, after = entry.trigger, now
    while trigger is not None and len(fires) < FIRES_SHOWN:
        at = trigger.next_us(after)
        if at is None:
            break
        fires.append(NextFire(at=at, stands_for=trigger.moved_from(at)))
        after = at
    return tuple(fires)


def _policies(entry: CrontabEntry) -> str:
    options = entry.options
    said = [] if entry.trigger is None else [f"overlap={options.overlap}", f"missed={options.missed}"]
    durations = {
        "timeout": options.timeout_s,
        "grace": options.grace_s,
        "jitter": options.jitter_s,
        "keep": options.keep_s,
    }
    said += [f"{name}={span(round(value * _SECOND_US))}" for name, value in durations.items() if value]
    if options.timeout_s is None:
        said.append("no timeout")
    if options.retry > 1:
        said.append(f"up to {options.retry} attempts")
    if options.at_most_once:
        said.append("at most once")
    if options.limit is not None:
        said.append(f"limit={options.limit.name}:{options.limit.max_running}")
    if options.max_catchup is not None:
        said.append(f"max_catchup={options.max_catchup}")
    return ", ".join(said)


def _hints_on_reboot(entry: CrontabEntry) -> tuple[str, ...]:
    if entry.options.jitter_s is None and entry.options.max_catchup is None:
        return ()
    return (f"{REBOOT} runs at once and has no instants: jitter and max_catchup say nothing about it.",)
