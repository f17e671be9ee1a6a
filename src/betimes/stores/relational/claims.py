"""Claims: the first claimable jobs of the queues and lanes asked for.

Each queue and lane is read by an index scan of its own, for at most its free slots, so that full lanes
neither hoard jobs nor hide those of others; several scans are merged. Jobs with gates come in by their
lines (`picking`), if there are any that wait nowhere.
"""

from __future__ import annotations

from betimes.core.job import Job, JobStatus
from betimes.core.transition import claim
from betimes.ports import ClaimRequest
from betimes.stores.relational.picking import Picking, Place
from betimes.stores.relational.rows import array
from betimes.stores.relational.statements import ManyRows, Records, Row, statement
from betimes.stores.relational.turn import Turn

READY, RUNNING = JobStatus.READY, JobStatus.RUNNING

READY_LINE_QUEUES = statement("ready_line_queues")
PAUSED_QUEUES = statement("paused_queues")
LEASE_HOLDS = statement("lease_holds")
CLAIMABLE = Records("claimable")
CLAIM_JOB = ManyRows("claim_job")


class Claim:
    """One claim; `take` carries it out.

    Args:
        turn: the operation's view of the transaction.
        request: what may be taken.
        has_expired: whether there may be jobs left that have expired.

    Attributes:
        has_lines: whether it looked at lines, and may have moved some.
        is_cut: whether there may be more that can be claimed at once.
        is_put_off: whether somebody else sees to jobs with gates just now.
    """

    __slots__ = ("_free", "_has_expired", "_hold", "_request", "_turn", "has_lines", "is_cut", "is_put_off")

    def __init__(self, turn: Turn, request: ClaimRequest, *, has_expired: bool) -> None:
        self.has_lines = self.is_cut = self.is_put_off = False
        self._turn = turn
        self._request = request
        self._has_expired = has_expired
        self._hold = array(request.hold)
        self._free = {lane: min(free, request.limit) for lane, free in request.lanes.items() if free > 0}

    def take(self) -> list[Job]:
        """Take the first claimable jobs of the queues and lanes asked for, in the order (sort_key, seq)."""
        turn, request = self._turn, self._request
        holds, has_lines = turn.sql.execute(
            LEASE_HOLDS, (request.worker, turn.boottime, turn.boot_id)
        ).fetchone()
        if not holds:
            return []
        self.has_lines = (bool(has_lines) or turn.has_ready_lines) and self._keeps_order()
        jobs = self._pick() if self.has_lines or request.shares is not None else self._plain()
        assert len(jobs) <= request.limit, "a claim never takes more than it asked for"
        return jobs

    def _keeps_order(self) -> bool:
        """Become the one who keeps the order; if another does, there is more to be claimed soon."""
        keeps = self._turn.keep_order(wait=False)
        self.is_put_off = not keeps
        if keeps:
            self._turn.flush()
        return keeps

    def _start(self, rows: list[Row]) -> list[Job]:
        """Start the attempts, and write them."""
        turn, worker, now = self._turn, self._request.worker, self._turn.now
        jobs = [turn.specs.job(row) for row in rows]
        claim(jobs, worker, now)
        CLAIM_JOB.write(turn.sql, [(job.seq, job.attempt, job.fence, worker, now) for job in jobs])
        return self._note(jobs)

    def _note(self, jobs: list[Job]) -> list[Job]:
        """Note what was started in the numbers kept, and for fair share."""
        turn = self._turn
        has_tenants = False
        for job in jobs:
            turn.tally.move(job.spec.queue, READY, RUNNING)
            has_tenants = has_tenants or job.tenant is not None
        if has_tenants:
            turn.tags.claimed(jobs)
        return jobs

    def _plain(self) -> list[Job]:
        """Take what may be claimed: each queue and lane by its own index scan, merged if several."""
        turn, request = self._turn, self._request
        places = [(queue, lane, free) for queue in self._queues() for lane, free in self._free.items()]
        claimed = turn.sql.claim_at_once(places, request.limit, request.worker, turn.now, self._hold)
        if claimed is not None:
            claimed.sort(key=_rank)
            return self._note([turn.specs.job(row) for row in claimed])
        rows: list[Row] = []
        for queue, lane, free in places:
            rows += CLAIMABLE.read(turn.sql, (queue, lane, turn.now, self._hold, free))
        return self._start(rows if len(places) <= 1 else _first(rows, request.limit, dict(self._free)))

    def _queues(self) -> list[str]:
        sql, request = self._turn.sql, self._request
        if request.queues is not None:
            queues = list(request.queues)
        else:
            queues = sql.ready_queues()
            if not self.has_lines:
                return queues
            queues += [queue for (queue,) in sql.execute(READY_LINE_QUEUES)]
            queues += self._turn.lines.ready_queues()
        paused = {queue for (queue,) in sql.execute(PAUSED_QUEUES)}
        return [queue for queue in dict.fromkeys(queues) if queue not in paused]

    def _pick(self) -> list[Job]:
        """Take jobs from lines, too, or as the shares of queues say."""
        turn, request = self._turn, self._request
        dealer = None if request.shares is None else request.shares.dealer()
        picking = Picking(self._places(), self._free, dealer)
        rows = picking.pick(turn, request.limit)
        self.is_cut = picking.is_cut
        return self._start(sorted(rows, key=_rank))

    def _places(self) -> list[Place]:
        turn = self._turn
        places = []
        for queue in self._queues():
            for lane, free in self._free.items():
                if free > 0:
                    plain = CLAIMABLE.read(turn.sql, (queue, lane, turn.now, self._hold, free))
                    place = Place(
                        turn,
                        (queue, lane),
                        plain,
                        room=free,
                        hold=self._hold,
                        has_lines=self.has_lines,
                        has_expired=self._has_expired,
                    )
                    places.append(place)
        return places


def _first(rows: list[Row], limit: int, free: dict[str, int]) -> list[Row]:
    """Keep the first rows in the order (sort_key, seq), for each lane no more than it has free."""
    rows.sort(key=_rank)
    kept: list[Row] = []
    for row in rows:
        if len(kept) >= limit:
            break
        lane = row[4]
        if free[lane] > 0:
            free[lane] -= 1
            kept.append(row)
    return kept


def _rank(row: Row) -> tuple[int, int]:
    return row[10], row[0]
