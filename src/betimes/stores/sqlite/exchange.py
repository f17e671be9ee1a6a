"""A worker's turn: reports, then what time has made due or void, then the claim."""

from __future__ import annotations

from collections.abc import Sequence

from betimes.core.events import Expired, Promoted
from betimes.core.job import Micros
from betimes.ports import ClaimRequest, Exchange, Report
from betimes.stores.sqlite.claims import claim_jobs
from betimes.stores.sqlite.reports import take_reports
from betimes.stores.sqlite.statements import Records, statement
from betimes.stores.sqlite.turn import STEP_LIMIT, Turn

NEXT_AT = statement("next_at")
EXPIRED = Records("expired")
DELAYED_DUE = Records("delayed_due")


def exchange(turn: Turn, reports: Sequence[Report], request: ClaimRequest | None) -> Exchange:
    """Carry out one turn of a worker."""
    steps = take_reports(turn, reports) if reports else []
    next_at = _pass_time(turn)
    turn.flush()
    claimed = [] if request is None or request.limit <= 0 else claim_jobs(turn, request)
    if claimed:
        turn.tally.write(turn.sql)
        next_at = _next_at(turn)
    return Exchange(steps, claimed, turn.changes, next_at)


def _pass_time(turn: Turn) -> Micros | None:
    """Expire and promote what is due, a bounded number, and return when there is more to do."""
    next_at = _next_at(turn)
    if next_at is None or next_at > turn.now:
        return next_at
    turn.flush()
    for job in turn.read(EXPIRED, (turn.now, STEP_LIMIT)):
        if not job.status.is_terminal:
            turn.move(job, Expired(turn.now))
    turn.flush()
    for job in turn.read(DELAYED_DUE, (turn.now, STEP_LIMIT)):
        turn.move(job, Promoted(turn.now))
    turn.flush()
    return _next_at(turn)


def _next_at(turn: Turn) -> Micros | None:
    return min((at for at in turn.sql.execute(NEXT_AT).fetchone() if at is not None), default=None)
