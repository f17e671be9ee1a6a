"""Ids as `git` has them: whoever types one may leave its end out, and lists show no more than is needed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from betimes.cli.exits import Exit, Failure

if TYPE_CHECKING:
    from betimes.scheduler import Scheduler

SHORTEST = 8
"""The fewest characters that a list shows of an id."""

MOST_NAMED = 5


async def whole_id(scheduler: Scheduler, text: str) -> str:
    """Return the id that is meant: this one, or the only one that begins so.

    Raises:
        Failure: there is none, or there are several; the text names some.
    """
    found = await scheduler.job_ids(text, limit=MOST_NAMED + 1)
    if len(found) == 1 or text in found:
        return text if text in found else found[0]
    if not found:
        raise Failure(f"there is no job {text!r}: it never was, or has been pruned", Exit.UNKNOWN)
    named = ", ".join(found[:MOST_NAMED]) + (", …" if len(found) > MOST_NAMED else "")
    raise Failure(f"several ids begin with {text!r}: {named}; write more of the one you mean", Exit.UNKNOWN)


def shortened(ids: Iterable[str]) -> dict[str, str]:
    """Return each id with the shortest beginning of it that none of the others has."""
    ordered = sorted(set(ids))
    short: dict[str, str] = {}
    for place, job_id in enumerate(ordered):
        neighbours = ordered[max(0, place - 1) : place] + ordered[place + 1 : place + 2]
        length = max([SHORTEST, *(_common(job_id, other) + 1 for other in neighbours)])
        short[job_id] = job_id if len(job_id) <= length + 1 else job_id[:length]
    return short


def _common(one: str, other: str) -> int:
    """Return how many characters two ids begin with in common."""
    number = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        number += 1
    return number
