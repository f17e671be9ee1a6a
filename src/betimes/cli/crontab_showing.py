"""How `betimes crontab --check` shows what crontabs say: for people, and for machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from betimes.cli.crontab_files import Runnable
from betimes.core.crontab import Problem
from betimes.core.crontab_check import EntryReport, NextFire, report_on
from betimes.core.durations import from_us
from betimes.core.job import Micros
from betimes.core.triggers.zones import zone_of

COMMAND_SHOWN = 100


def in_words(found: Runnable, *, tz: str, now: Micros) -> Iterator[str]:
    """Explain crontabs, line by line of the answer."""
    for report in report_on((line.entry for line in found.lines), now):
        yield from _entry_in_words(report)
        yield ""
    for remark in found.remarks:
        yield f"note: {remark.file}{f':{remark.line}' if remark.line else ''}: {remark.message}"
    for problem in found.problems:
        yield from _problem_in_words(problem)
    yield (
        f"{_counted(len(found.lines), 'entry', 'entries')} and "
        f"{_counted(len(found.problems), 'problem', 'problems')}; "
        f"where no CRON_TZ holds, times are {tz} time"
    )


def _entry_in_words(report: EntryReport) -> Iterator[str]:
    entry = report.entry
    user = "" if entry.user is None else f"  {entry.user}"
    yield f"{entry.file}:{entry.line}  {entry.schedule}{user}  {_cut(entry.command)}"
    yield f"    {report.sentence}"
    if report.fires:
        yield f"    next: {', '.join(_fire_in_words(fire, entry.tz) for fire in report.fires)}"
    yield f"    {entry.id}: {report.policies}"
    for hint in report.hints:
        yield f"    note: {hint}"


def _fire_in_words(fire: NextFire, tz: str) -> str:
    text = f"{zone_of(tz).local(fire.at):%a %Y-%m-%d %H:%M %Z}"
    return text if fire.stands_for is None else f"{text} (for {fire.stands_for})"


def _problem_in_words(problem: Problem) -> Iterator[str]:
    yield f"problem: {problem}"
    if problem.text:
        yield f"    {_cut(problem.text)}"


def _cut(text: str) -> str:
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= COMMAND_SHOWN else f"{text[: COMMAND_SHOWN - 1]}…"


def _counted(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def for_machines(found: Runnable, *, tz: str, now: Micros) -> dict[str, Any]:
    """Return the same as plain data: `entries`, `problems`, `notes` and the zone, `tz`."""
    return {
        "tz": tz,
        "entries": [
            _entry_as_data(report) for report in report_on((line.entry for line in found.lines), now)
        ],
        "problems": [
            {"file": each.file, "line": each.line, "text": _plain(each.text), "message": _plain(each.message)}
            for each in found.problems
        ],
        "notes": [
            {"file": each.file, "line": each.line, "message": _plain(each.message)} for each in found.remarks
        ],
    }


def _entry_as_data(report: EntryReport) -> dict[str, Any]:
    entry, options = report.entry, report.entry.options
    return {
        "file": entry.file,
        "line": entry.line,
        "id": entry.id,
        "schedule": entry.schedule,
        "tz": entry.tz,
        "user": entry.user,
        "command": _plain(entry.command),
        "reads": entry.stdin,
        "says": report.sentence,
        "next": [{"at": from_us(fire.at), "stands_for": fire.stands_for} for fire in report.fires],
        "overlap": options.overlap,
        "missed": options.missed,
        "timeout_s": options.timeout_s,
        "retry": options.retry,
        "notes": list(report.hints),
    }


def _plain(text: str) -> str:
    """Return text that can be written as UTF-8, whatever bytes the file had."""
    return text.encode("utf-8", "backslashreplace").decode()
