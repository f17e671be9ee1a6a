"""The lines of a crontab, one by one: what each is, and the texts in it. By crontab(5) of Debian.

A line is empty, a comment (its first character that is no blank is `#`), the setting of a variable, or an
entry. A comment after something else on its line is no comment, but part of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SETTING = re.compile(
    r"""(?: "(?P<double>[^"]*)" | '(?P<single>[^']*)' | (?P<plain>[^\s='"]+) )
        [ \t]* = [ \t]* (?P<value>.*)""",
    re.VERBOSE,
)
_OPTIONS = re.compile(r"#+[ \t]*betimes:(?P<options>.*)")
_NEARLY_OPTIONS = re.compile(r"#+[ \t]*betimes\b", re.IGNORECASE)
_FIELDS = re.compile(r"(?P<schedule>@\S*|\S+(?:[ \t]+\S+){4})(?:[ \t]+(?P<rest>.*))?")
_WORD = re.compile(r"[^ \t]+")
_FIRST_WORD = re.compile(r"(?P<first>\S+)(?:[ \t]+(?P<rest>.*))?")


class LineError(ValueError):
    """A line is wrong; the text says what to do. Raised and caught while a crontab is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blank:
    """Nothing but blanks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment that means nothing to anybody but its reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionsLine:
    """A comment `# betimes: …`; what follows the colon."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A variable and its value, as all lines below see it.

    Attributes:
        name, value: without quotes and the blanks around them.
        was_quoted: whether the value stood in quotes.
    """

    name: str
    value: str
    was_quoted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryLine:
    """When, who and what.

    Attributes:
        schedule: the five fields, or the word that begins with `@`.
        user: of the column that system crontabs have; None: there is no such column.
        command: the rest of the line, as it stands there.
    """

    schedule: str
    user: str | None
    command: str


Line = Blank | Comment | OptionsLine | Setting | EntryLine


def read_line(text: str, *, system: bool) -> Line:
    """Return what a line is.

    Args:
        text: the line, without its end.
        system: whether entries have a user column.

    Raises:
        LineError: it is a setting or an entry, and wrong.

    Example:
        >>> read_line("MAILTO = ''", system=False)
        Setting(name='MAILTO', value='', was_quoted=True)
    """
    text = text.lstrip(" \t")
    if not text.strip():
        return Blank()
    if "\0" in text:
        raise LineError("the line holds a NUL character, and no program can be given one: take it out")
    if "\r" in text:
        raise LineError("the line holds a CR that does not end it, as files of old Macs do: write LF for it")
    if text.startswith("#"):
        return _comment(text.rstrip())
    found = _SETTING.fullmatch(text)
    if found is not None:
        return _setting(found)
    return _entry(text, system=system)


def _comment(text: str) -> Comment | OptionsLine:
    found = _OPTIONS.fullmatch(text)
    if found is not None:
        return OptionsLine(text=found["options"])
    if _NEARLY_OPTIONS.match(text):
        raise LineError(
            "options of an entry are written '# betimes: timeout=5m overlap=skip', with the colon"
        )
    return Comment()


def _setting(found: re.Match[str]) -> Setting:
    name = next(found[group] for group in ("double", "single", "plain") if found[group] is not None)
    if not _NAME.fullmatch(name):
        raise LineError(
            f"{name!r} is no name of a variable: letters, digits and _, and no digit first; an entry begins "
            "with five fields, or with a word such as @daily"
        )
    value = found["value"].rstrip(" \t")
    quote = value[:1]
    if quote not in {'"', "'"} or quote == "":
        if value == "":
            raise LineError(f'{name} has no value: write {name}="" for an empty one')
        return Setting(name=name, value=value, was_quoted=False)
    end = value.find(quote, 1)
    if end < 0:
        raise LineError(f"the value of {name} begins with {quote} and does not end with it: close the quotes")
    if value[end + 1 :].strip():
        raise LineError(
            f"something follows the closing {quote} of {name}: a setting stands alone on its line, and a "
            "comment on a line of its own"
        )
    return Setting(name=name, value=value[1:end], was_quoted=True)


def _entry(text: str, *, system: bool) -> EntryLine:
    found = _FIELDS.fullmatch(text)
    if found is None:
        count = len(_WORD.findall(text))  # of what the fields are parted by: no other blanks
        raise LineError(
            f"five fields (minute hour day-of-month month day-of-week) and a command were expected, and the "
            f"line has only {count} {'word' if count == 1 else 'words'}"
        )
    schedule, rest = found["schedule"], found["rest"] or ""
    if not rest.strip():
        wanted = "a user and a command are" if system else "a command is"
        raise LineError(f"{wanted} missing after {schedule!r}")
    if not system:
        return EntryLine(schedule=schedule, user=None, command=rest)
    words = _FIRST_WORD.fullmatch(rest)
    assert words is not None, "the rest begins with a word"
    if not (words["rest"] or "").strip():
        raise LineError(
            f"there is no command after the user {words['first']!r}: entries of a system crontab name the "
            "user before the command; without --system the file is read as a user's own"
        )
    return EntryLine(schedule=schedule, user=words["first"], command=words["rest"])


def split_percent(command: str) -> tuple[str, str | None]:
    r"""Return the command for the shell, and what it reads: from the first `%` on, each `%` a new line.

    `\%` is a percent sign. None: there is no `%`, and it reads nothing.

    Example:
        >>> split_percent(r"date +\%F; cat%one%two")
        ('date +%F; cat', 'one\ntwo\n')
    """
    texts: list[list[str]] = [[]]
    is_escaped = False
    for char in command:
        if is_escaped:
            texts[-1].append(char if char == "%" else f"\\{char}")
            is_escaped = False
        elif char == "\\":
            is_escaped = True
        elif char == "%":
            texts.append([])
        else:
            texts[-1].append(char)
    if is_escaped:
        texts[-1].append("\\")
    first, *others = ("".join(text) for text in texts)
    if not others:
        return first, None
    stdin = "\n".join(others)
    return first, stdin if stdin.endswith("\n") else f"{stdin}\n"
