"""Crontabs as values: their entries, each with all that holds for it, and what is wrong, by its line."""

from __future__ import annotations

from dataclasses import dataclass

from betimes.core.crontab_options import EntryOptions
from betimes.core.triggers.cron_trigger import CronTrigger

REBOOT = "@reboot"
"""The schedule of what runs once in each boot of the machine."""

TEXT_SHOWN = 200
"""Characters of a line that its problem shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The text of one file, and the name that its messages begin with."""

    file: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A line that is wrong.

    Attributes:
        file, line: where; lines count from 1, and 0 is the file as a whole.
        text: the line, cut at 200 characters.
        message: what is wrong, and what to do.
    """

    file: str
    line: int
    text: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}{f':{self.line}' if self.line else ''}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """Something to know about a line that is not wrong; the fields are those of `Problem`."""

    file: str
    line: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CrontabEntry:
    """A line that runs a command.

    Attributes:
        id: names its schedule and its task.
        file, line, text: where it stands, and how.
        schedule: the five fields with single blanks between them, or the word that begins with `@`.
        trigger: when it runs; None: once in each boot of the machine (`@reboot`).
        tz: the zone of its schedule.
        user: of the user column; None: there is none.
        command: what the shell is given.
        stdin: what the command reads; None: nothing.
        settings: the variables in force at the line, as the file sets them.
        options: how its runs are treated.
        remarks: what to know about it.
    """

    id: str
    file: str
    line: int
    text: str
    schedule: str
    trigger: CronTrigger | None
    tz: str
    user: str | None
    command: str
    stdin: str | None
    settings: tuple[tuple[str, str], ...]
    options: EntryOptions
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Crontab:
    """What one or several files say together.

    Attributes:
        entries: in the order of the files and lines; no two have the same id.
        problems: what is wrong; the entries run all the same.
        remarks: what to know about other lines than entries.
    """

    entries: tuple[CrontabEntry, ...] = ()
    problems: tuple[Problem, ...] = ()
    remarks: tuple[Remark, ...] = ()
