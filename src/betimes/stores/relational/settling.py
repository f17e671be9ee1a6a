"""Those who wait for jobs: counted off when these end, and told later if another transaction has locked them.

A transaction of a caller's may stay open for as long as its owner likes, and have locked a job that waits for
others. The end of these others must not wait for it: it is noted as unsettled, and whoever comes along tells
the rest when it can. Until then they wait, as if the job had not ended.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from betimes.core.dependencies import Ended
from betimes.core.job import JobStatus, Micros, Need
from betimes.stores.relational.rows import array
from betimes.stores.relational.statements import ManyRows, Sql, statement

DEPENDENTS = statement("dependents")
DELETE_DEPENDENTS = statement("delete_dependents")
COUNT_OFF = ManyRows("count_off")
STILL_AWAITED = statement("still_awaited")
NOTE_UNSETTLED = ManyRows("note_unsettled")
UNSETTLED = statement("unsettled")
FORGET_UNSETTLED = statement("forget_unsettled")

Edges: TypeAlias = list[tuple[Ended, int, Need]]
"""Who waits for whom: the ended one, the number of the one that waits, and what it needs."""


@dataclass(frozen=True, slots=True)
class Noted:
    """A job that has ended before, and that not all who wait for it have been told of."""

    id: str
    status: JobStatus
    ended_at: Micros


def take_edges(sql: Sql, ended: Mapping[int, Ended]) -> tuple[Edges, set[int]]:
    """Take away that anybody waits for these jobs, and return who did.

    Returns:
        Who waited; and those jobs for which somebody still does, whom another transaction has locked.
    """
    numbers = (array(ended),)
    rows = sql.execute(DEPENDENTS, numbers).fetchall()
    left: set[int] = set()
    if sql.is_alone:
        sql.execute(DELETE_DEPENDENTS, numbers)
    else:
        COUNT_OFF.write(sql, [(parent, child) for parent, child, _ in rows])
        left = {parent for (parent,) in sql.execute(STILL_AWAITED, numbers).fetchall()}
    return [(ended[parent], child, Need(need)) for parent, child, need in rows], left


def note_unsettled(sql: Sql, ended: Mapping[int, Ended], at: Micros) -> None:
    """Note that not all who wait for these jobs have been told."""
    NOTE_UNSETTLED.write(sql, [(seq, job.id, job.status.value, at) for seq, job in sorted(ended.items())])


def unsettled(sql: Sql, most: int) -> dict[int, Noted]:
    """Return jobs that not all who wait for them have been told of, by number; nobody else has them now."""
    rows = sql.execute(UNSETTLED, (most,)).fetchall()
    return {seq: Noted(job_id, JobStatus(status), at) for seq, job_id, status, at in rows}


def forget_unsettled(sql: Sql, settled: Collection[int]) -> None:
    """Forget that somebody was to be told of these jobs: all have been."""
    if settled:
        sql.execute(FORGET_UNSETTLED, (array(settled),))
