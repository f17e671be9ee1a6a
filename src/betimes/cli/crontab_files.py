"""The files of a crontab: which there are, what they say, and whether that has changed.

The rules of Debian's cron: of a folder, only files whose names are letters, digits, `_` and `-` count, so
that `backup.dpkg-old` does not run; and root runs no system crontab that somebody else could have written.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from betimes.cli.crontab_tasks import Line, why_unfit
from betimes.core.crontab import TEXT_SHOWN, CrontabEntry, Problem, Remark, Source
from betimes.core.crontab_reading import read_crontabs
from betimes.core.triggers.zones import zone_of
from betimes.errors import InvalidTrigger
from betimes.executors.accounts import Account, find_account, own_account

MOST_BYTES = 1024 * 1024
"""The size of the largest file that is read."""

MOST_FILES = 1000
"""How many files of one folder are read."""

_NAME_IN_FOLDER = re.compile(r"[A-Za-z0-9_-]+")
_ZONES = "/zoneinfo/"
_OTHER_NAMES_OF_UTC = ("Etc/UTC", "Etc/UCT", "Etc/Universal", "Etc/Zulu", "UCT", "Universal", "Zulu")

Look: TypeAlias = tuple[tuple[str, int, int, int], ...]
"""What a glance at the files shows: path, time of change, size and number of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runnable:
    """What can be run of the files, and what is wrong.

    Attributes:
        lines: the entries, each with its user; what cannot be had of either is a problem.
        problems: by file and line.
        remarks: what to know about other lines than entries.
    """

    lines: tuple[Line, ...]
    problems: tuple[Problem, ...]
    remarks: tuple[Remark, ...]


class CrontabFiles:
    """Reads files, and folders of files, again and again; a file that cannot be read stays as it was.

    Args:
        paths: the files and folders.
        system: whether their entries have a user column.
        tz: the zone of schedules for which no CRON_TZ holds.
    """

    def __init__(self, paths: Sequence[Path], *, system: bool, tz: str) -> None:
        self.paths = tuple(paths)
        self.system = system
        self.tz = tz
        self._texts: dict[Path, str] = {}
        self._folders: dict[Path, list[Path]] = {}

    def look(self) -> Look:
        """Glance at the files; what it returns differs when any of them has changed, come or gone."""
        return tuple(_glance(path) for path in self._files())

    def read(self) -> Runnable:
        """Read the files; what cannot be read, or run, is a problem."""
        sources: list[Source] = []
        problems: list[Problem] = []
        texts: dict[Path, str] = {}
        for path in self._files(problems):
            try:
                texts[path] = self._read_file(path)
            except OSError as error:
                why = error.strerror or str(error)
                goes_on = path in self._texts
                if goes_on:
                    texts[path] = self._texts[path]
                advice = "it goes on as it was read last" if goes_on else "nothing of it runs"
                problems.append(
                    Problem(file=str(path), line=0, text="", message=f"it cannot be read ({why}): {advice}")
                )
        self._texts = texts
        sources = [Source(file=str(path), text=text) for path, text in texts.items()]
        crontab = read_crontabs(sources, system=self.system, tz=self.tz)
        lines: dict[str, Line] = {}
        for entry in crontab.entries:
            found = _account_of(entry)
            if isinstance(found, Account):
                lines[entry.id] = Line(entry=entry, account=found)
            else:
                problems.append(found)
        for each, why in why_unfit(lines.values()).items():
            problems.append(_problem(lines.pop(each).entry, why))
        problems += crontab.problems
        problems.sort(key=lambda problem: (problem.file, problem.line))
        return Runnable(lines=tuple(lines.values()), problems=tuple(problems), remarks=crontab.remarks)

    def _files(self, problems: list[Problem] | None = None) -> Iterator[Path]:
        """The files, each once: those named, and those of the folders named, which may be problems."""
        seen: set[Path] = set()
        for path in self.paths:
            for file in self._files_of(path, problems):
                if file not in seen:
                    seen.add(file)
                    yield file

    def _files_of(self, path: Path, problems: list[Problem] | None) -> Sequence[Path]:
        """A file itself, or those in a folder; in one that is gone or cannot be read, those it had."""
        known = self._folders.get(path)
        try:
            if not _is_folder(path) and (known is None or path.is_file()):
                return (path,)
            self._folders[path] = _in_folder(path)
        except OSError as error:
            advice = "nothing of it runs" if known is None else "it goes on with the files that it had"
            message = f"the folder cannot be read ({error.strerror or error}): {advice}"
            if problems is not None:
                problems.append(Problem(file=str(path), line=0, text="", message=message))
        return self._folders.get(path, ())

    def _read_file(self, path: Path) -> str:
        if path.is_fifo():  # to open it would wait for a writer
            raise OSError(f"{path} is no file")
        with path.open("rb") as file:
            shown = os.fstat(file.fileno())
            if not stat.S_ISREG(shown.st_mode):
                raise OSError(f"{path} is no file")
            if shown.st_size > MOST_BYTES:
                raise OSError(f"it is larger than {MOST_BYTES:,} bytes")
            if self.system and os.geteuid() == 0:
                _check_owner(shown)
            return file.read(MOST_BYTES + 1).decode("utf-8", "surrogateescape")


def _check_owner(shown: os.stat_result) -> None:
    if shown.st_uid != 0:
        raise OSError("it does not belong to root, and would run commands as root")
    if shown.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise OSError("others than root may write to it, and it would run commands as root: chmod go-w")


def _in_folder(folder: Path) -> list[Path]:
    names = sorted(name for name in os.listdir(folder) if _NAME_IN_FOLDER.fullmatch(name))  # noqa: PTH208
    return [folder / name for name in names[:MOST_FILES] if not _is_folder(folder / name)]


def _is_folder(path: Path) -> bool:
    """Say whether there is such a folder; unlike `Path.is_dir`, this never raises."""
    return os.path.isdir(path)  # noqa: PTH112


def _glance(path: Path) -> tuple[str, int, int, int]:
    try:
        shown = path.stat()
    except OSError:
        return str(path), 0, -1, 0
    return str(path), shown.st_mtime_ns, shown.st_size, shown.st_ino


def _account_of(entry: CrontabEntry) -> Account | Problem:
    """Return the user that an entry runs as, or why it cannot."""
    name = entry.user
    account = own_account() if name is None else find_account(name)
    if account is None:
        why = f"there is no user {name!r} on this machine: correct the user column"
    elif not account.may_be_taken:
        why = (
            f"only root can run a command as {account.name!r}: start betimes crontab as root, or as that user"
        )
    else:
        return account
    return _problem(entry, why)


def _problem(entry: CrontabEntry, why: str) -> Problem:
    return Problem(file=entry.file, line=entry.line, text=entry.text[:TEXT_SHOWN], message=why)


def host_zone() -> str | None:
    """Return the name of the zone that the host's clocks show; None: it is not to be found out.

    As other programs: by the variable TZ, by what /etc/localtime links to, or by /etc/timezone.
    """
    candidates = [os.environ.get("TZ", "").removeprefix(":")]
    local = Path("/etc/localtime")
    if local.is_symlink():
        candidates.append(os.path.realpath(local).partition(_ZONES)[2])
    with suppress(OSError, UnicodeDecodeError):
        candidates.append(Path("/etc/timezone").read_text("utf-8").strip())
    for name in candidates:
        try:
            if name:
                found = zone_of(name.removeprefix("posix/").removeprefix("right/")).name
                return "UTC" if found in _OTHER_NAMES_OF_UTC else found
        except InvalidTrigger:
            continue
    return None
