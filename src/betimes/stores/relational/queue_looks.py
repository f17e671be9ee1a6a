"""Looking at queues: what stands first in one, what is kept back, and how long the oldest has waited."""

from __future__ import annotations

from betimes.core.job import Job, Micros
from betimes.core.queue_view import QueueView
from betimes.stores.relational.gates import Gates
from betimes.stores.relational.rows import Specs, array
from betimes.stores.relational.statements import Records, Sql, statement
from betimes.stores.relational.turn import LIVE_BY_SEQ

QUEUE_HEADS = Records("queue_heads")
QUEUE_LINES = Records("queue_lines")
QUEUE_PARKED = statement("queue_parked")
QUEUE_DUE = statement("queue_due")
OLDEST_DUE = statement("oldest_due")

LINES_LOOKED_AT = 1000
DELAYED_LOOKED_AT = 10_000
OLDEST_LOOKED_AT = 1000
"""How many rows of each kind are read at most."""
GATES_SHOWN = 100
"""How many gates are named at most."""


def look_at_queue(sql: Sql, specs: Specs, name: str, now: Micros) -> QueueView:
    """Show one queue."""
    heads = [specs.job(row) for row in QUEUE_HEADS.read(sql, (name,))]
    gates = Gates(sql, specs, now)
    waited_at: dict[str, None] = {}
    open_heads = []
    for _, text, _, seq, _ in QUEUE_LINES.read(sql, (name, LINES_LOOKED_AT)):
        keys = specs.gates(text)
        gates.load(keys)
        closed = gates.first_closed(keys)
        if closed is None:
            open_heads.append(seq)
        else:
            waited_at[closed] = None
    heads += [specs.job(row) for row in LIVE_BY_SEQ.read(sql, (array(open_heads),))]
    return QueueView(
        heads=_firsts(heads),
        gates=tuple(waited_at)[:GATES_SHOWN],
        parked=dict(sql.execute(QUEUE_PARKED, (name,)).fetchall()),
        next_due_at=sql.execute(QUEUE_DUE, (name, DELAYED_LOOKED_AT)).fetchone()[0],
    )


def _firsts(heads: list[Job]) -> tuple[Job, ...]:
    """Return the first of each lane, in the order of claims."""
    firsts: dict[str, Job] = {}
    for job in sorted(heads, key=lambda job: (job.sort_key, job.seq)):
        firsts.setdefault(job.spec.lane, job)
    return tuple(firsts.values())


def oldest_due(sql: Sql, now: Micros) -> dict[str, Micros]:
    """Return since when the oldest claimable job has been due, by queue."""
    return dict(sql.execute(OLDEST_DUE, (now, OLDEST_LOOKED_AT)).fetchall())
