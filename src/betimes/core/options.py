"""Names that nobody knows: refused at the call, with the nearest one that exists."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that looks most like this one, or None when none is near.

    Example:
        >>> nearest("prioritty", ["priority", "delay"])
        'priority'
    """
    matches = difflib.get_close_matches(name, list(known), n=1)
    return matches[0] if matches else None


def reject_unknown(options: Iterable[str], allowed: Iterable[str], *, where: str) -> None:
    """Raise a `TypeError` for the first option that is not allowed; it names the nearest one that is.

    Args:
        options: the names that were given, such as the keys of `**options`.
        allowed: the names that exist.
        where: what was called, such as `using()`; it begins the message.

    Raises:
        TypeError: an option is unknown.

    Example:
        >>> reject_unknown({"prioritty": 5}, ["priority", "delay"], where="using()")
        Traceback (most recent call last):
        TypeError: using() got an unknown option 'prioritty'; did you mean 'priority'?
    """
    known = list(allowed)
    for name in options:
        if name not in known:
            near = nearest(name, known)
            advice = f"did you mean {near!r}?" if near else f"the options are {', '.join(sorted(known))}"
            raise TypeError(f"{where} got an unknown option {name!r}; {advice}")
