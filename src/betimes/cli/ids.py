"""Ids as `git` has them: whoever types one may leave its end out, and lists show no more than is needed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from betimes.cli.exits import Exit, Failure

if TYPE_CHECKING:
    from betimes.scheduler import Scheduler

SHORTEST = 8
"""The fewest characters that a list shows of an id."""

STEP = 5
"""How many more it shows at a time, so that beginnings of UUIDs end with one of their groups."""

MOST_SHORTENED = 1000
"""Of so many ids, at most, the others that begin like each are looked for."""

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


async def shortened(scheduler: Scheduler, ids: Iterable[str]) -> dict[str, str]:
    """Return each id with a beginning of it that no other job of the store has: what is shown can be typed.

    A long answer has its ids whole: nobody types those.
    """
    ids = set(ids)
    if len(ids) > MOST_SHORTENED:
        return {each: each for each in ids}
    return {each: await _short(scheduler, each) for each in ids}


async def _short(scheduler: Scheduler, job_id: str) -> str:
    for length in range(SHORTEST, len(job_id) - 1, STEP):
        if len(await scheduler.job_ids(job_id[:length], limit=2)) < 2:  # noqa: PLR2004 - it alone
            return job_id[:length]
    return job_id
