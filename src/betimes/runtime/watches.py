"""What looks after a running worker from beside: waits in vain within the pool, and a blocked loop."""

from __future__ import annotations

import asyncio

from betimes.ports import Store
from betimes.runtime.journal import Journal
from betimes.runtime.pool_watch import PoolWatch
from betimes.runtime.settings import Settings
from betimes.runtime.watchdog import Watchdog, can_watch
from betimes.runtime.worker import Worker


class Watches:
    """The two of them, while a worker runs.

    Attributes:
        pool: who waits for whom; None while no worker runs.
        watchdog: who looks after the loop; None where nobody needs to.
    """

    def __init__(self, journal: Journal) -> None:
        """Count in this journal."""
        self._journal = journal
        self.pool: PoolWatch | None = None
        self.watchdog: Watchdog | None = None

    def begin(
        self, store: Store, worker: Worker, loop: asyncio.AbstractEventLoop, settings: Settings
    ) -> None:
        """Watch this worker."""
        self.pool = PoolWatch(store, worker, settings.queues)
        if settings.stall_s is not None and can_watch(loop):
            self.watchdog = Watchdog(settings.stall_s, worker.state.in_flight, self._journal.counters)
            self._journal.on_claimed = self.watchdog.wake

    async def end(self) -> None:
        """Watch no more."""
        watchdog, self.watchdog, self._journal.on_claimed = self.watchdog, None, None
        pool, self.pool = self.pool, None
        if watchdog is not None:
            watchdog.close()
        if pool is not None:
            await pool.close()
