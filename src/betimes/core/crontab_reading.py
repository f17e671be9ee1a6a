"""Reading crontabs: from the texts of files to entries and problems.

What is decided where programs differ:

1. *A setting holds for the lines below it*, as in Debian's cron, up to the next of the same name.
2. *`CRON_TZ` is the zone of the schedules below it*; without it, that is the zone of the host, which the
   caller names. *`TZ` is for the commands only*, as in Debian, and says nothing about when they run.
3. *An entry that has anything wrong does not run*: neither without the timeout that was meant for it, nor in
   another zone. It is a problem with its line number, and all other entries run.
4. *An entry is the same entry as long as its user, its schedule and its command are the same*, wherever it
   stands; `name=` gives it a name that outlives changes of all three. Equal lines are told apart by counting.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

from betimes.core.crontab import REBOOT, TEXT_SHOWN, Crontab, CrontabEntry, Problem, Remark, Source
from betimes.core.crontab_lines import (
    Comment,
    EntryLine,
    LineError,
    OptionsLine,
    Setting,
    read_line,
    split_percent,
)
from betimes.core.crontab_options import make_options, read_options
from betimes.core.options import nearest
from betimes.core.restraints import Limit
from betimes.core.triggers.cron_fields import ALIASES
from betimes.core.triggers.cron_trigger import CronTrigger, cron
from betimes.core.triggers.zones import zone_of
from betimes.errors import InvalidTrigger

_FIXED = ("LOGNAME", "USER")
_MOST_RANDOM_MINUTES = 7 * 24 * 60
_WORDS_IN_ID = 2
_WORD_LENGTH_IN_ID = 24
_WORD_OF_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._]*(?:-[A-Za-z0-9._]+)*")
_IN_BACKGROUND = re.compile(r"(?<![&\\])&\s*$")
_TO_NOWHERE = re.compile(r"&>\s*/dev/null|>\s*/dev/null\s+2>&1")


def read_crontabs(sources: Iterable[Source], *, system: bool, tz: str) -> Crontab:
    r"""Read crontabs; whatever their text, this raises nothing.

    Args:
        sources: the files.
        system: whether entries have a user column.
        tz: the zone of schedules for which no CRON_TZ holds, of the IANA database.

    Example:
        >>> source = Source(file="mine", text="@daily backup\n")
        >>> read_crontabs([source], system=False, tz="UTC").entries[0].command
        'backup'
    """
    entries: list[CrontabEntry] = []
    problems: list[Problem] = []
    remarks: list[Remark] = []
    for source in sources:
        reader = _Reader(source, system=system, tz=tz)
        reader.read()
        entries += reader.entries
        problems += reader.problems
        remarks += reader.remarks
    kept, clashes = _told_apart(entries)
    return Crontab(entries=tuple(kept), problems=(*problems, *clashes), remarks=tuple(remarks))


@dataclass(slots=True)
class _Pending:
    """The lines of options right above the line that is read; mutable, since it gathers."""

    line: int = 0
    text: str = ""
    given: dict[str, Any] = field(default_factory=dict)
    is_wrong: bool = False


class _Reader:
    """Reads one file; gathers what it finds."""

    def __init__(self, source: Source, *, system: bool, tz: str) -> None:
        self.entries: list[CrontabEntry] = []
        self.problems: list[Problem] = []
        self.remarks: list[Remark] = []
        self._source = source
        self._system = system
        self._host_tz = self._tz = tz
        self._wrong_zone = 0
        self._jitter_s: float | None = None
        self._settings: dict[str, str] = {}
        self._pending: _Pending | None = None
        self._line = 0
        self._text = ""

    def read(self) -> None:
        text = self._source.text
        if "\r\n" in text:
            text = text.replace("\r\n", "\n")
            self._remark(
                "the lines end as on DOS; cron would hand the CR to the commands, and it is left out here"
            )
        if text and not text.endswith("\n"):
            self._remark("the last line has no end; cron would not take the file, and it is taken here")
        for self._line, self._text in enumerate(text.split("\n"), start=1):
            self._read_line()
        self._drop_options()

    def _read_line(self) -> None:
        try:
            line = read_line(self._text, system=self._system)
            if isinstance(line, OptionsLine):
                self._gather(line)
                return
            if isinstance(line, EntryLine):
                self._add(line)
            elif isinstance(line, Setting):
                self._set(line)
        except LineError as error:
            self._problem(str(error))
            if self._text.lstrip().startswith("#"):  # options written wrongly: those of the entry below it
                self._gathered().is_wrong = True
                return
            self._pending = None
            return
        if not isinstance(line, Comment):
            self._drop_options()

    def _problem(self, message: str, line: int | None = None, text: str | None = None) -> None:
        shown = (self._text if text is None else text).strip()[:TEXT_SHOWN]
        number = self._line if line is None else line
        self.problems.append(Problem(file=self._source.file, line=number, text=shown, message=message))

    def _remark(self, message: str) -> None:
        self.remarks.append(Remark(file=self._source.file, line=self._line, message=message))

    # --- options

    def _gathered(self) -> _Pending:
        if self._pending is None:
            self._pending = _Pending(self._line, self._text)
        return self._pending

    def _gather(self, line: OptionsLine) -> None:
        pending = self._gathered()
        try:
            read_options(line.text, pending.given)
        except LineError as error:
            self._problem(str(error))
            pending.is_wrong = True

    def _drop_options(self) -> None:
        """Say of options that no entry follows that nobody heeds them."""
        pending, self._pending = self._pending, None
        if pending is not None:
            message = "no entry follows these options: write them right above the entry that they are for"
            self._problem(message, pending.line, pending.text)

    # --- settings

    def _set(self, setting: Setting) -> None:
        name, value = setting.name, setting.value
        if name in _FIXED:
            self._remark(f"{name} is the user's name and cannot be set: the setting is left out")
            return
        if name == "CRON_TZ":
            self._set_zone(value)
        elif name == "RANDOM_DELAY":
            self._set_jitter(value)
        elif name in {"MAILTO", "MAILFROM"}:
            self._remark(
                f"no mail is sent, whatever {name} says: what commands write goes to their jobs' logs"
            )
        elif name == "TZ":
            self._remark("TZ is passed to the commands; when they run is by CRON_TZ, or by the host's zone")
        self._settings[name] = value
        if not setting.was_quoted and " #" in value:
            self._remark(
                f"the value of {name} goes on to the end of the line: what looks like a comment belongs to it"
            )
        if "$" in value or value.startswith("~"):
            self._remark(f"nothing expands $ or ~ in a setting: {name} is {value!r} as it stands")

    def _set_zone(self, value: str) -> None:
        try:
            self._tz = zone_of(value).name if value else self._host_tz
        except InvalidTrigger as error:
            self._wrong_zone = self._line
            raise LineError(f"CRON_TZ is wrong, and no entry below it runs: {error}") from None
        self._wrong_zone = 0

    def _set_jitter(self, value: str) -> None:
        if not (value.isascii() and value.isdecimal() and int(value[:9]) <= _MOST_RANDOM_MINUTES):
            self._jitter_s = None
            raise LineError(
                f"RANDOM_DELAY is {value[:40]!r}; it is a whole number of minutes, up to "
                f"{_MOST_RANDOM_MINUTES:,}"
            )
        self._jitter_s = float(value) * 60 or None

    # --- entries

    def _add(self, line: EntryLine) -> None:
        pending, self._pending = self._pending or _Pending(), None
        if pending.is_wrong:
            raise LineError("the options above it are wrong, so it does not run: correct them")
        options = make_options(pending.given)
        if options.jitter_s is None:
            options = replace(options, jitter_s=self._jitter_s)
        if self._wrong_zone and options.tz is None:
            raise LineError(f"CRON_TZ in line {self._wrong_zone} is wrong, so it does not run: correct it")
        tz = options.tz or self._tz
        schedule = " ".join(line.schedule.split())
        trigger = _trigger(schedule, tz)
        command, stdin = split_percent(line.command)
        if not command.strip():
            raise LineError("nothing stands before the first %, which begins what the command reads")
        if stdin is not None and not _is_text(stdin):
            raise LineError("what the command reads (after the first %) is not UTF-8: write it as UTF-8")
        self.entries.append(
            CrontabEntry(
                id=options.name or _derived_id(line.user, schedule, line.command),
                file=self._source.file,
                line=self._line,
                text=self._text.strip(),
                schedule=schedule,
                trigger=trigger,
                tz=tz,
                user=line.user,
                command=command,
                stdin=stdin,
                settings=tuple(self._settings.items()),
                options=options,
                remarks=tuple(self._remarks_on(line, command, stdin)),
            )
        )

    def _remarks_on(self, line: EntryLine, command: str, stdin: str | None) -> Iterator[str]:
        if stdin is not None:
            yield (
                "the command ends before its first %, and reads the rest with a new line for each %; "
                "write \\% for a percent sign."
            )
        if line.user is None and line.command.split()[0] == "root":
            yield "the command begins with the word root: if that is a user column, pass --system."
        if _IN_BACKGROUND.search(command):
            yield (
                "what a command leaves in the background is killed at its end: leave out the &, "
                "or have setsid start it."
            )
        if _TO_NOWHERE.search(line.command):
            yield "what it writes goes to /dev/null, so its job's log stays empty."


def _trigger(schedule: str, tz: str) -> CronTrigger | None:
    lower = schedule.lower()
    if lower == REBOOT:
        return None
    if lower.startswith("@") and lower not in ALIASES:
        known = [*ALIASES, REBOOT]
        near = nearest(lower, known)
        advice = f"did you mean {near}?" if near else f"write one of {', '.join(known)}, or five fields"
        raise LineError(f"there is no schedule {schedule[:40]!r}; {advice}")
    if schedule.startswith("-"):
        raise LineError(
            "a - before the schedule, which keeps some crons from logging, is not taken: leave it out"
        )
    if "~" in schedule:
        raise LineError(
            "a random time such as 0~59 is not taken: write the earliest time, and above the entry "
            "'# betimes: jitter=59m'"
        )
    try:
        return cron(schedule, tz=tz)
    except InvalidTrigger as error:
        raise LineError(str(error)) from None


def _derived_id(user: str | None, schedule: str, command: str) -> str:
    """Name an entry by its first words, for people, and by a digest of all that makes it itself."""
    words = [word.rpartition("/")[2] for word in command.split()]
    named = [word for word in words if _WORD_OF_ID.fullmatch(word)][:_WORDS_IN_ID]
    identity = "\n".join([user or "", schedule.lower(), command.strip()])
    digest = sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return "-".join([*(word[:_WORD_LENGTH_IN_ID] for word in named), digest])


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # bytes that were no UTF-8 came in as lone surrogates
        return False
    return True


def _told_apart(entries: list[CrontabEntry]) -> tuple[list[CrontabEntry], list[Problem]]:
    """Number equal lines, and refuse names and limits that contradict an earlier one."""
    named = {entry.options.name: entry for entry in reversed(entries) if entry.options.name is not None}
    limits: dict[str, tuple[Limit, CrontabEntry]] = {}
    taken: set[str] = set(named)
    kept: list[CrontabEntry] = []
    problems: list[Problem] = []
    for entry in entries:
        own, limit = entry.options.name, entry.options.limit
        if own is not None and named[own] is not entry:
            first = named[own]
            message = f"the name {own!r} is taken by {first.file}:{first.line}: give one of them another name"
            problems.append(_clash(entry, message))
            continue
        if limit is not None:
            standing, first = limits.setdefault(limit.name, (limit, entry))
            if standing != limit:
                message = (
                    f"the limit {limit.name!r} is {limit.max_running} here, and {standing.max_running} in "
                    f"{first.file}:{first.line}: one limit has one number"
                )
                problems.append(_clash(entry, message))
                continue
        if own is None:
            entry = replace(entry, id=_numbered(entry.id, taken))  # noqa: PLW2901 - the same entry, by its own id
            taken.add(entry.id)
        kept.append(entry)
    return kept, problems


def _numbered(wanted: str, taken: set[str]) -> str:
    number, found = 1, wanted
    while found in taken:
        number += 1
        found = f"{wanted}-{number}"
    return found


def _clash(entry: CrontabEntry, message: str) -> Problem:
    return Problem(file=entry.file, line=entry.line, text=entry.text[:TEXT_SHOWN], message=message)
