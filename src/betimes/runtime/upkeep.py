"""What a worker owes beside its jobs: its own lease, jobs of others that died, jobs that were parked."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from betimes.runtime.attempt import Attempt

if TYPE_CHECKING:
    from betimes.core.task import Registry
    from betimes.ports import Executor, Store
    from betimes.runtime.journal import Journal
    from betimes.runtime.lease import Lease
    from betimes.runtime.worker import Worker

_log = logging.getLogger("betimes")


class Upkeep:
    """The worker's chores. They run within the worker's own loop, so never beside a claim."""

    def __init__(
        self,
        worker: Worker,
        store: Store,
        lease: Lease,
        journal: Journal,
        *,
        tasks: Registry,
        executors: Mapping[str, Executor],
    ) -> None:
        """Do them for this worker."""
        self._worker = worker
        self._store = store
        self._lease = lease
        self._journal = journal
        self._tasks = tasks
        self._executors = executors

    async def beat(self) -> None:
        """Renew the lease, and compare what is held here with what the store thinks is."""
        worker = self._worker
        held = worker.state.held()
        fences = {seq: attempt.fence for seq, attempt in held.items()} | worker.refused()
        beat = await self._lease.beat(fences)
        self._journal.changes(beat.changes)
        if not beat.is_alive:
            await self._lose_all(held)
            return
        for seq in beat.lost:
            if seq in held:
                self._lose(held[seq])
        for seq in beat.cancels:
            attempt = held.get(seq)
            if attempt is not None and not attempt.is_told:
                worker.stop_code(attempt)

    async def _lose_all(self, held: Mapping[int, Attempt]) -> None:
        _log.error(
            "the lease of worker %s was over: its %d jobs are told to stop, for others may have them now",
            self._lease.worker_id,
            len(held),
        )
        for attempt in held.values():
            self._lose(attempt)
        await self._lease.begin_again()

    def _lose(self, attempt: Attempt) -> None:
        _log.warning("lost the lease of job %s (%s)", attempt.job.id, attempt.task.name)
        self._journal.counters.lost_leases += 1
        self._worker.give_up(attempt)

    async def rescue(self) -> None:
        """Take back what workers hold whose lease is over."""
        changes = await self._lease.rescue(self._tasks)
        self._journal.counters.rescued += len(changes)
        self._journal.changes(changes)

    async def unpark(self) -> None:
        """Let go of parked jobs whose task or lane has appeared here since."""
        for name in await self._store.parked():
            kind, _, what = name.partition(":")
            if (kind == "task" and what in self._tasks) or (kind == "lane" and what in self._executors):
                self._journal.changes(await self._store.unpark(name))
