"""What a comment `# betimes: timeout=5m overlap=skip` above an entry asks for."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from betimes.core.crontab_lines import LineError
from betimes.core.durations import duration_s
from betimes.core.options import nearest
from betimes.core.priority import check_priority
from betimes.core.restraints import Limit
from betimes.core.schedule import Missed, Overlap
from betimes.core.schedule_terms import MOST_CATCHUP
from betimes.core.triggers.zones import zone_of
from betimes.core.wording import listed, shown
from betimes.errors import BetimesError

MOST_ATTEMPTS = 100
NAME_LENGTH = 100
LARGEST_CODE = 255
MOST_AT_ONCE = 1000

_WORD = re.compile(
    r"""[ \t]*(?P<name>[^\s="']+)=(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<plain>[^\s"']+))"""
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]*")
_WHOLE = re.compile(r"-?[0-9]{1,9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryOptions:
    """How an entry's runs are treated.

    Attributes:
        name: its name for good, whatever the line becomes; None: derived from the line.
        timeout_s: after so long a run is ended; None: never.
        grace_s: how long it then has between SIGTERM and SIGKILL; None: as the scheduler says.
        overlap: what if a run has not ended when the next is due.
        missed: what of instants that passed while nothing ran.
        max_catchup: how many of them `missed=all` makes up for; None: 100.
        retry: the most attempts of a run, the first one included.
        retry_delay_s: the base of the back-off between them; None: a second.
        jitter_s: each run starts up to so much later; None: as RANDOM_DELAY says.
        limit: how many runs of all entries that name it go on at once; None: no limit.
        priority: of its jobs.
        keep_s: how long its finished jobs stay; None: as the scheduler says.
        at_most_once: whether a run is never repeated, not even when it died with the scheduler.
        ok_codes: the exit codes that are a success.
        tz: the zone of its schedule; None: as CRON_TZ says.
    """

    name: str | None = None
    timeout_s: float | None = None
    grace_s: float | None = None
    overlap: Overlap = Overlap.SKIP
    missed: Missed = Missed.LATEST
    max_catchup: int | None = None
    retry: int = 1
    retry_delay_s: float | None = None
    jitter_s: float | None = None
    limit: Limit | None = None
    priority: int = 1
    keep_s: float | None = None
    at_most_once: bool = False
    ok_codes: frozenset[int] = frozenset({0})
    tz: str | None = None


def read_options(text: str, given: dict[str, Any]) -> None:
    """Add what a line of options says to what the lines before it said.

    Args:
        text: what follows `# betimes:`.
        given: the fields of `EntryOptions` found so far; is added to.

    Raises:
        LineError: an option is unknown, wrong, or given twice; the text names it.
    """
    at = 0
    text = text.rstrip()
    if not text.strip():
        raise LineError(f"no option follows 'betimes:'; there are {', '.join(OPTIONS)}")
    while at < len(text):
        found = _WORD.match(text, at)
        if found is None:
            word = text[at:].split()[0]
            raise LineError(f"{word!r} is no option: each is written name=value, without blanks around the =")
        at = found.end()
        name = found["name"]
        value = next(found[group] for group in ("double", "single", "plain") if found[group] is not None)
        field, read = _reader(name)
        if field in given:
            raise LineError(f"{name} is given twice for one entry: leave one of them out")
        given[field] = _read(name, value, read)


def make_options(given: dict[str, Any]) -> EntryOptions:
    """Return the options of an entry.

    Raises:
        LineError: two of them do not go together.
    """
    options = replace(EntryOptions(), **given)
    if options.max_catchup is not None and options.missed is not Missed.ALL:
        raise LineError(
            "max_catchup counts only together with missed=all: add that, or leave max_catchup out"
        )
    if options.retry_delay_s is not None and options.retry == 1:
        raise LineError("retry_delay counts only together with retry=2 or more: add that, or leave it out")
    if options.at_most_once and options.retry > 1:
        raise LineError("what runs at most once is not tried again: leave out delivery, or retry")
    return options


def _reader(name: str) -> tuple[str, Callable[[str, str], object]]:
    if name in OPTIONS:
        return OPTIONS[name]
    near = nearest(name, OPTIONS)
    advice = f"did you mean {near!r}?" if near else f"the options are {', '.join(OPTIONS)}"
    raise LineError(f"there is no option {name!r}; {advice}")


def _read(name: str, value: str, read: Callable[[str, str], object]) -> object:
    try:
        return read(name, value)
    except BetimesError as error:
        raise LineError(str(error)) from None


def _name(name: str, value: str) -> str:
    if len(value) > NAME_LENGTH or not _NAME.fullmatch(value):
        raise LineError(
            f"{name} is {shown(value)}; it is up to {NAME_LENGTH} letters, digits and . _ @ + -, "
            "beginning with a letter or a digit"
        )
    return value


def _duration(name: str, value: str) -> float:
    return duration_s(value, name=name)


def _any_duration(name: str, value: str) -> float:
    return duration_s(0 if value == "0" else value, name=name, allow_zero=True)


def _overlap(name: str, value: str) -> Overlap:
    return Overlap(_one_of(name, value, [str(each) for each in Overlap]))


def _missed(name: str, value: str) -> Missed:
    return Missed(_one_of(name, value, [str(each) for each in Missed]))


def _delivery(name: str, value: str) -> bool:
    return _one_of(name, value, ["at_least_once", "at_most_once"]) == "at_most_once"


def _one_of(name: str, value: str, allowed: list[str]) -> str:
    if value in allowed:
        return value
    near = nearest(value, allowed)
    also = f"; did you mean {near!r}?" if near else ""
    raise LineError(f"{name} is {shown(value)}; it is one of {listed(allowed)}{also}")


def _whole(name: str, value: str, *, least: int, most: int) -> int:
    if not _WHOLE.fullmatch(value) or not least <= int(value) <= most:
        raise LineError(f"{name} is {shown(value)}; it is a whole number from {least:,} to {most:,}")
    return int(value)


def _attempts(name: str, value: str) -> int:
    return _whole(name, value, least=1, most=MOST_ATTEMPTS)


def _catchup(name: str, value: str) -> int:
    return _whole(name, value, least=1, most=MOST_CATCHUP)


def _priority(name: str, value: str) -> int:
    return check_priority(_whole(name, value, least=-1000, most=1000))


def _codes(name: str, value: str) -> frozenset[int]:
    return frozenset(_whole(name, code, least=0, most=LARGEST_CODE) for code in value.split(","))


def _limit(name: str, value: str) -> Limit:
    which, colon, most = value.partition(":")
    _name(name, which)
    return Limit(which, _whole(name, most, least=1, most=MOST_AT_ONCE) if colon else 1)


def _zone(name: str, value: str) -> str:
    del name
    return zone_of(value).name


OPTIONS: dict[str, tuple[str, Callable[[str, str], object]]] = {
    "name": ("name", _name),
    "timeout": ("timeout_s", _duration),
    "grace": ("grace_s", _any_duration),
    "overlap": ("overlap", _overlap),
    "missed": ("missed", _missed),
    "max_catchup": ("max_catchup", _catchup),
    "retry": ("retry", _attempts),
    "retry_delay": ("retry_delay_s", _duration),
    "jitter": ("jitter_s", _any_duration),
    "limit": ("limit", _limit),
    "priority": ("priority", _priority),
    "keep": ("keep_s", _any_duration),
    "delivery": ("at_most_once", _delivery),
    "ok_codes": ("ok_codes", _codes),
    "tz": ("tz", _zone),
}
"""The options by name: the field each fills, and how its value is read."""
