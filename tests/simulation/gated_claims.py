"""What must hold of each claim where jobs have gates, tenants or shares: who goes first, and who is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.simulation.lives import Life
from tests.simulation.tally import Met

from betimes.core.job import Job, JobStatus
from betimes.ports import ClaimRequest

if TYPE_CHECKING:
    from tests.simulation.witness import Witness


class Picks:
    """Follows the picks of one claim, job by job.

    Args:
        witness: what is known.
        request: what was asked for.
        waiting: the READY jobs that it could mean, in order.
    """

    def __init__(self, witness: Witness, request: ClaimRequest, waiting: list[Life]) -> None:
        self._witness = witness
        self._model = witness.model
        self._gates = witness.gates
        self._request = request
        self._waiting = waiting
        self._room = dict(request.lanes)

    def follow(self, claimed: Sequence[Job]) -> None:
        """Follow all of them, and object to any that came before its turn."""
        for job in claimed:
            life = self._model.lives[job.seq]
            if self._request.shares is None:
                self._check_turn(life)
            if self._witness.tenants is not None:
                self._witness.tenants.start(life, self._witness.all_waiting(), self._may_go)
            self._gates.claimed(life, job.fence, self._request.worker)
            self._room[life.spec.lane] = self._room.get(life.spec.lane, 0) - 1
            life.status = JobStatus.RUNNING
            self._waiting = [other for other in self._waiting if other is not life]
        self._check_lanes()
        if len(claimed) < self._request.limit:
            self._check_left()
            lanes = self._room
            self._gates.heeded(life for life in self._waiting if lanes.get(life.spec.lane, 0) > 0)
        if self._request.shares is not None:
            self._check_queues(claimed)

    def _may_go(self, life: Life) -> bool:
        return (
            life in self._waiting
            and self._room.get(life.spec.lane, 0) > 0
            and self._gates.must_pass(life.gates)
        )

    def _check_turn(self, life: Life) -> None:
        """Nobody that could go is before it; a gate that lets it pass would have let others pass, too."""
        for other in self._waiting:
            if other.rank >= life.rank:
                return
            if self._room.get(other.spec.lane, 0) > 0 and self._gates.must_pass(other.gates, life.gates):
                self._model.fail(f"{other} of {other.rank} was passed over for {life} of {life.rank}")
                return

    def _check_lanes(self) -> None:
        for lane, left in self._room.items():
            if left < 0:
                free = self._request.lanes.get(lane, 0)
                self._model.fail(f"{free - left} were claimed in lane {lane}, and {free} asked for")

    def _check_left(self) -> None:
        for life in self._waiting:
            if self._may_go(life):
                self._model.fail(f"{life} was left, and there was room: {self._room}, gates {life.gates}")
                return

    def _check_queues(self, claimed: Sequence[Job]) -> None:
        """Within a queue the order holds; among those that had work all the while, the shares."""
        assert self._request.shares is not None
        assert self._witness.queues is not None
        lanes = Counter(job.spec.lane for job in claimed)
        last: dict[str, tuple[int, int]] = {}
        for job in claimed:
            queue = job.spec.queue
            last[queue] = max(last.get(queue, (-(1 << 63), 0)), self._model.lives[job.seq].rank)
        busy = set()
        for life in self._waiting:
            if not self._gates.must_pass(life.gates):
                continue
            lane, queue = life.spec.lane, life.spec.queue
            has_room = self._room.get(lane, 0) > 0
            if has_room and queue in last and life.rank < last[queue]:
                self._model.fail(f"{life} was passed over in queue {queue}")
            # A lane that all picks went to had room until the last of them.
            if has_room or lanes[lane] == len(claimed) > 0:
                busy.add(queue)
        starts = Counter(job.spec.queue for job in claimed)
        self._witness.queues.start(self._request.shares, busy, starts)


def check_gated(witness: Witness, request: ClaimRequest, claimed: Sequence[Job], waiting: list[Life]) -> None:
    """Follow the claims of one turn.

    Args:
        witness: what is known; the claimed still stand as READY.
        request, claimed: what was asked for, and what was taken.
        waiting: what could be taken, gates and lanes aside, in order.
    """
    closed = [life for life in waiting if life.gates and not witness.gates.must_pass(life.gates)]
    witness.model.tally[Met.WAITED_AT_A_GATE] += bool(closed and claimed)
    Picks(witness, request, waiting).follow(claimed)
