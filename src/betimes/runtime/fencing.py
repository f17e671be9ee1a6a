"""The fence: a worker that cannot prolong its lease lets go of its jobs before others can have them.

Whether the network is cut, or the server is gone for everybody, cannot be told from here. So once so little
is left of the lease as it was last *confirmed* (its commit was heard of, and it counts from before that was
asked for), the worker claims nothing and starts nothing, and tells all code to stop: tasks are cancelled,
threads told, processes and commands killed after their grace. The jobs are reported as given back as soon as
the store answers again, which counts only if nobody has taken them meanwhile. What had ended before is
reported as it is.

It goes by timers on the loop, for the worker itself may be waiting for an answer that never comes. A process
that was stopped, or a machine that was asleep, finds its lease over when it wakes up, and the store may well
answer: then there is first the time for one more beat.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from betimes.ports import Store
    from betimes.runtime.metrics import Counters
    from betimes.runtime.worker import Worker

_log = logging.getLogger("betimes")

LEAST_MARGIN, MOST_MARGIN = 1 / 6, 1 / 3
"""The parts of a lease that are kept for stopping code: more with a longer grace."""
AFTER_GRACE_S = 1.0
WHY = "the lease could not be prolonged in time"


def margin_of(lease_s: float, grace_s: float) -> float:
    """Return how long before its lease ends a worker lets go, so that its processes are dead by then."""
    return min(lease_s * MOST_MARGIN, max(lease_s * LEAST_MARGIN, grace_s + AFTER_GRACE_S))


class Fence:
    """Watches over the lease of one worker.

    Args:
        worker: whose jobs are let go of.
        store: says how much of the lease is left.
        counters: count what was lost.
    """

    def __init__(self, worker: Worker, store: Store, counters: Counters) -> None:
        self._worker = worker
        self._store = store
        self._counters = counters
        settings = worker.settings
        self._margin_s = margin_of(settings.lease_us / 1_000_000, settings.grace_s)
        self._timer: asyncio.TimerHandle | None = None

    @property
    def holds(self) -> bool:
        """Whether jobs may be claimed, started and run: enough is left of the lease."""
        left_us = self._store.lease_left_us(self._worker.id)
        return left_us is None or left_us / 1_000_000 > self._margin_s

    def lets_start(self) -> bool:
        """Say whether what was just claimed may start; if the answer came too late, a beat gives it back."""
        if self.holds:
            return True
        self._worker.chores.hurry(self._worker.upkeep.beat)
        self._worker.awaken()
        return False

    def begin(self) -> None:
        """Watch from now on."""
        if self._store.lease_left_us(self._worker.id) is not None:
            self._look(asyncio.get_running_loop().time())

    def end(self) -> None:
        """Watch no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self, due: float, *, is_last_chance: bool = False) -> None:
        """Come back when the lease may be short, or let go if it is."""
        loop = asyncio.get_running_loop()
        left_s = (self._store.lease_left_us(self._worker.id) or 0) / 1_000_000 - self._margin_s
        was_asleep = loop.time() - due > self._margin_s / 2
        if left_s <= 0 and was_asleep and not is_last_chance:
            self._worker.chores.hurry(self._worker.upkeep.beat)
            self._worker.awaken()
            self._come_back(self._margin_s, is_last_chance=True)
            return
        if left_s <= 0:
            self._let_go()
        self._come_back(left_s if left_s > 0 else self._margin_s / 2)

    def _come_back(self, pause_s: float, *, is_last_chance: bool = False) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + pause_s
        self._timer = loop.call_at(due, lambda: self._look(due, is_last_chance=is_last_chance))

    def _let_go(self) -> None:
        worker = self._worker
        attempts = [each for each in worker.state.held().values() if not each.is_reported]
        if not attempts:
            return
        _log.error(
            "worker %s could not prolong its lease, and others may soon have its jobs: it claims nothing, "
            "and the code of its %d jobs is told to stop",
            worker.id,
            len(attempts),
        )
        self._counters.lost_leases += len(attempts)
        worker.give_back(attempts, why=WHY)
