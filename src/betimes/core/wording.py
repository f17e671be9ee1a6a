"""How messages show values, short and never an error of their own; and advice that several of them give."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from betimes.core.job import EPOCH, Micros

START_A_WORKER = (
    "Start a worker on it: 'async with scheduler:', scheduler.run() or, in a shell, betimes worker."
)

_LONGEST = 80
_SPANS_US = (("d", 86_400_000_000), ("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1000))


def shown(value: object) -> str:
    """Return the value's `repr`, cut at 80 characters; where it has none, the name of its type.

    Example:
        >>> shown("a" * 100) == "'" + "a" * 79 + "…"
        True
    """
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a value that cannot be shown must not hide what is wrong with it
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def span(us: int) -> str:
    """Return a length of time in its two largest units; below a millisecond it is nothing.

    Example:
        >>> span(3_723_000_000), span(1_500_000), span(0)
        ('1h 2m', '1s 500ms', '0s')
    """
    parts: list[str] = []
    left = abs(us)
    for unit, size in _SPANS_US:
        amount, left = divmod(left, size)
        if amount:
            parts.append(f"{amount}{unit}")
        elif parts:
            break
    return " ".join(parts[:2]) or "0s"


def moment(at: Micros, now: Micros) -> str:
    """Return an instant to the second, in UTC, and how far off it is.

    Example:
        >>> moment(90_000_000, now=0)
        '1970-01-01 00:01:30 UTC (in 1m 30s)'
    """
    try:
        text = (EPOCH + timedelta(microseconds=at)).strftime("%Y-%m-%d %H:%M:%S UTC")
    except OverflowError:
        text = f"{at} µs after 1970"
    if at == now:
        return f"{text} (now)"
    return f"{text} (in {span(at - now)})" if at > now else f"{text} ({span(now - at)} ago)"


def listed(names: Sequence[str], *, most: int = 5) -> str:
    """Return names as a list in a sentence, cut after `most`.

    Example:
        >>> listed(["a", "b", "c"]), listed(["a", "b", "c"], most=1)
        ('a, b and c', 'a and 2 more')
    """
    some = list(names[:most])
    if len(names) > most:
        some.append(f"{len(names) - most} more")
    *first, last = some or [""]
    return f"{', '.join(first)} and {last}" if first else last


def sized(count: int) -> str:
    """Return a number of bytes in the largest unit of which there is one.

    Example:
        >>> sized(0), sized(1_536), sized(3 * 1024**3)
        ('0 B', '1.5 KiB', '3.0 GiB')
    """
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:  # noqa: PLR2004 - by definition
            break
        size, unit = size / 1024, larger
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
