"""A worker's turn: reports, then what time has made due or void, then the claim."""

from __future__ import annotations

from collections.abc import Sequence

from betimes.core.events import Expired, Promoted
from betimes.core.job import Micros
from betimes.ports import ClaimRequest, Exchange, Report
from betimes.stores.relational.claims import Claim
from betimes.stores.relational.reports import take_reports, take_returns
from betimes.stores.relational.statements import Records, statement
from betimes.stores.relational.turn import STEP_LIMIT, Turn

PUT_OFF_US = 5_000
"""When to ask again for what somebody else sees to just now."""
LOCKED_US = 100_000
"""When to ask again for what another transaction has locked."""

NEXT_AT = statement("next_at")
GATES_DUE = statement("gates_due")
GATES_WITH_WAITERS = statement("gates_with_waiters")
EXPIRED = Records("expired")
DELAYED_DUE = Records("delayed_due")


def exchange(
    turn: Turn,
    reports: Sequence[Report],
    request: ClaimRequest | None,
    returned: Sequence[tuple[int, int]] = (),
) -> Exchange:
    """Carry out one turn of a worker."""
    claims = request is not None and request.limit > 0
    if claims:
        turn.begin_claim()
        if any(report.job.gates for report in reports):
            turn.keep_order(wait=False)  # what is freed can then be claimed at once, without being noted down
    steps = take_reports(turn, reports) if reports else []
    if returned:
        take_returns(turn, returned)
    turn.flush()
    next_at = _pass_time(turn)
    if request is None or not claims:
        return Exchange(steps, [], turn.changes, next_at)
    claim = Claim(turn, request, has_expired=next_at is not None and next_at <= turn.now)
    claimed = claim.take()
    has_moved_lines = turn.end_claim()
    turn.tally.write(turn.sql)
    if has_moved_lines or any(job.expires_at is not None for job in claimed):
        next_at = _next_at(turn)  # who has started does not expire, and gates open at another time
    if claim.is_cut:
        next_at = turn.now
    elif claim.is_put_off:
        next_at = turn.now + PUT_OFF_US
    return Exchange(steps, claimed, turn.changes, next_at)


def _pass_time(turn: Turn) -> Micros | None:
    """Expire, promote and let on what is due, a bounded number, and return when there is more to do."""
    if turn.set_back.is_unheeded:
        turn.set_back.is_heeded = True
        _look_at_gates(turn, turn.sql.execute(GATES_WITH_WAITERS).fetchall())
    next_at = _next_at(turn)
    if next_at is None or next_at > turn.now:
        return next_at
    expired = turn.read(EXPIRED, (turn.now, STEP_LIMIT))
    for job in expired:
        if not job.status.is_terminal:
            turn.move(job, Expired(turn.now))
    turn.flush()
    due = turn.read(DELAYED_DUE, (turn.now, STEP_LIMIT))
    for job in due:
        turn.move(job, Promoted(turn.now))
    turn.flush()
    gates = turn.sql.execute(GATES_DUE, (turn.now, STEP_LIMIT)).fetchall()
    _look_at_gates(turn, gates)
    next_at = _next_at(turn)
    is_cut = STEP_LIMIT in {len(expired), len(due), len(gates)}
    if next_at is not None and next_at <= turn.now and not is_cut and not turn.sql.is_alone:
        return turn.now + LOCKED_US  # what is due, somebody else has locked
    return next_at


def _look_at_gates(turn: Turn, keys: Sequence[tuple[str]]) -> None:
    """Let those move up who wait at these gates, as far as these have opened, and say when to look again."""
    gates = [key for (key,) in keys]
    if gates and turn.keep_order(wait=False):
        turn.lines.gates.due(gates)
        turn.lines.open(gates)
        turn.flush()


def _next_at(turn: Turn) -> Micros | None:
    return min((at for at in turn.sql.execute(NEXT_AT).fetchone() if at is not None), default=None)
