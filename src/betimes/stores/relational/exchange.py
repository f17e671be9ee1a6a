"""A worker's turn: reports, then what time has made due or void, then the claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from betimes.core.events import Expired, Promoted
from betimes.core.job import Job, Micros
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
    steps, not_now = take_reports(turn, reports) if reports else ([], [])
    if returned:
        take_returns(turn, returned)
    turn.flush()
    next_at, is_locked = _pass_time(turn)
    claimed: list[Job] = []
    if request is not None and claims:
        request = _less(request, [reports[place] for place in not_now])
        claimed, next_at = _claim(turn, request, next_at, is_locked=is_locked)
    if not_now:
        ended_at = max(reports[place].event.at for place in not_now)
        again = turn.now + _patience(turn.now - ended_at)
        next_at = again if next_at is None else min(next_at, again)
    return Exchange(steps, claimed, turn.changes, next_at, not_now)


def _patience(age: Micros) -> Micros:
    """Return how long to wait for what has been locked for so long: most locks are brief."""
    return min(max(age, PUT_OFF_US), LOCKED_US)


def _less(request: ClaimRequest, not_now: Sequence[Report]) -> ClaimRequest:
    """Return the request without the slots that would have been free by these reports."""
    if not not_now:
        return request
    lanes = Counter(request.lanes)
    lanes.subtract(report.job.spec.lane for report in not_now)
    return replace(request, limit=request.limit - len(not_now), lanes=lanes)


def _claim(
    turn: Turn, request: ClaimRequest, next_at: Micros | None, *, is_locked: bool
) -> tuple[list[Job], Micros | None]:
    """Claim, and say when there is more to do; `is_locked`: what is due already can only be tried again."""
    has_expired = next_at is not None and next_at <= turn.now
    claim = Claim(turn, request, has_expired=has_expired)
    claimed = claim.take() if request.limit > 0 else []
    has_moved_lines = turn.end_claim()
    turn.tally.write(turn.sql)
    if has_moved_lines or any(job.expires_at is not None for job in claimed):
        found = _next_at(turn)  # who has started does not expire, and gates open at another time
        next_at = next_at if is_locked and found is not None and found <= turn.now else found
    if claim.is_cut:
        next_at = turn.now
    elif claim.is_put_off:
        next_at = turn.now + PUT_OFF_US
    return claimed, next_at


def _pass_time(turn: Turn) -> tuple[Micros | None, bool]:
    """Expire, promote and let on what is due, a bounded number.

    Returns when there is more to do; and whether that is what others have locked.
    """
    if turn.set_back.is_unheeded:
        turn.set_back.is_heeded = True
        _look_at_gates(turn, turn.sql.execute(GATES_WITH_WAITERS).fetchall())
    next_at = _next_at(turn)
    if next_at is None or next_at > turn.now:
        return next_at, False
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
    ended_at = turn.settle_left()
    turn.flush()
    next_at = _next_at(turn)
    is_cut = STEP_LIMIT in {len(expired), len(due), len(gates)}
    if next_at is not None and next_at <= turn.now and not is_cut and not turn.sql.is_alone:
        # What is due, somebody else has locked.
        return turn.now + (LOCKED_US if ended_at is None else _patience(turn.now - ended_at)), True
    return next_at, False


def _look_at_gates(turn: Turn, keys: Sequence[tuple[str]]) -> None:
    """Let those move up who wait at these gates, as far as these have opened, and say when to look again."""
    gates = [key for (key,) in keys]
    if gates and turn.keep_order(wait=False):
        turn.lines.gates.due(gates)
        turn.lines.open(gates)
        turn.flush()


def _next_at(turn: Turn) -> Micros | None:
    return min((at for at in turn.sql.execute(NEXT_AT).fetchone() if at is not None), default=None)
