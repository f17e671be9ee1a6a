"""One turn of the memory store: reports in, time passed, jobs out."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from betimes.core.claiming import is_expired
from betimes.core.events import Expired, Promoted
from betimes.core.job import TERMINAL, Job, Micros
from betimes.core.lifecycle import is_current, is_repeated
from betimes.core.transition import Transition, claim, repeated
from betimes.ports import ClaimRequest, Report
from betimes.stores.memory.leases import Leases
from betimes.stores.memory.moves import Moves
from betimes.stores.memory.permits import Permits
from betimes.stores.memory.picking import Picking
from betimes.stores.memory.waiting import Waiting

STEP_LIMIT = 500
"""The most jobs promoted, expired, rescued or unparked in one turn; the next turn goes on."""


class Turns:
    """Carries out the parts of `Store.exchange`, each in one step of the loop."""

    def __init__(self, waiting: Waiting, leases: Leases, moves: Moves, permits: Permits) -> None:
        """Work on these places."""
        self._permits = permits
        self._waiting = waiting
        self._leases = leases
        self._moves = moves

    def take_reports(self, reports: Sequence[Report]) -> list[Transition | None]:
        """Carry out what is reported under a fence that is still the job's; None for what is stale."""
        steps: list[Transition | None] = []
        while len(steps) < len(reports):
            self._moves.complete_plainly(reports, steps)
            if len(steps) < len(reports):
                steps.append(self._take_report(reports[len(steps)]))
        return steps

    def pass_time(self, now: Micros) -> None:
        """Expire and promote what is due by now, and open gates whose time has come; of each so many."""
        if self._waiting.has_future:
            self._expire(now)
            self._promote(now)
        self._waiting.lines.pass_time(now)

    def take_returned(self, returned: Sequence[tuple[int, int]]) -> None:
        """Take back the permits of attempts that were reported earlier and have returned since."""
        for seq, fence in returned:
            self._permits.release(seq, fence)

    def _take_report(self, report: Report) -> Transition | None:
        job, fence = report.job, report.fence
        if report.has_returned:
            self._permits.release(job.seq, fence)  # of stale reports, too: it is that attempt's own
        if is_current(job, fence):
            step = self._moves.step(job, report.event)
            if job.gates:
                self._permits.settle(report, step)
            if step.after in TERMINAL:
                self._moves.settle_dependents(job, step.at)
            return step
        return repeated(job) if is_repeated(job, fence) else None

    def _expire(self, now: Micros) -> None:
        expiring = self._waiting.expiring
        for _ in range(STEP_LIMIT):
            head = expiring.peek()
            if head is None or head[0] > now:
                return
            self._moves.move(head[2], Expired(now))

    def _promote(self, now: Micros) -> None:
        delayed = self._waiting.delayed
        for _ in range(STEP_LIMIT):
            head = delayed.peek()
            if head is None or head[0] > now:
                return
            self._moves.move(head[2], Promoted(now))

    def claim(
        self, request: ClaimRequest, paused: Collection[str], now: Micros, boottime: Micros
    ) -> list[Job]:
        """Take the first claimable jobs for a worker whose lease holds."""
        lease = self._leases.get(request.worker)
        if lease is None or not lease.holds_at(boottime):
            return []
        waiting = self._waiting
        if request.shares is not None or waiting.lines.has_ready:
            claimed = Picking(waiting, self._permits, self._moves, request, now=now).pick(paused)
        else:
            claimed = self._take(request, paused, now)
        claim(claimed, request.worker, now)
        lease.held.update([(job.seq, job) for job in claimed])
        if waiting.has_tenants:
            waiting.shares.claimed(claimed)
        assert len(claimed) <= max(request.limit, 0)
        return claimed

    def _take(self, request: ClaimRequest, paused: Collection[str], now: Micros) -> list[Job]:
        """Take the first of those that have no gates, by the strategy's order alone."""
        waiting, hold = self._waiting, request.hold
        claimed: list[Job] = []
        held_back: list[Job] = []
        left_out = False
        free = dict(request.lanes)
        while (room := request.limit - len(claimed)) > 0:
            taken = waiting.take(request, paused, free, room)
            if not taken:
                break
            for job in taken:
                if job.id in hold:
                    held_back.append(job)
                elif job.expires_at is None or self._has_started_in_time(job, now):
                    claimed.append(job)
                    continue
                free[job.spec.lane] += 1
                left_out = True
        for job in held_back:
            waiting.push_ready(job)
        if left_out:
            # What came for those may go before what another lane had given by then.
            claimed.sort(key=lambda job: (job.sort_key, job.seq))
        return claimed

    def _has_started_in_time(self, job: Job, now: Micros) -> bool:
        """Stop watching the expiry of a job that is being claimed; False if it came, and ended the job."""
        if job.started_at is None and is_expired(job, now):
            self._waiting.push_ready(job)
            self._moves.move(job, Expired(now))
            return False
        if job.started_at is None:
            self._waiting.forget_expiry(job)
        return True
