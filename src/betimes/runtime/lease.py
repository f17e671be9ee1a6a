"""The worker's lease: its name in the store, its heartbeats, and the rescue of others whose lease is over."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from betimes.core.job import JobEvent
from betimes.core.task import Registry
from betimes.ports import Beat, Store, WorkerInfo

BEATS_PER_LEASE = 3
TASKS_TOLD = 500
"""A worker with more tasks does not say which it knows: its row would grow too large."""
RESCUE_EVERY_S = 1.0
"""So that the jobs of a process that died on this machine start elsewhere within two seconds."""


def told(tasks: Registry) -> tuple[str, ...] | None:
    """Return the names of tasks that a worker says it knows; None: they are too many."""
    return tuple(sorted(tasks)) if len(tasks) <= TASKS_TOLD else None


class Lease:
    """One worker's lease. A worker that lost its lease begins again under a fresh id."""

    def __init__(self, store: Store, info: WorkerInfo, new_id: Callable[[], str]) -> None:
        """Keep the lease of this worker in this store."""
        self._store = store
        self._info = info
        self._new_id = new_id

    @property
    def worker_id(self) -> str:
        """The id under which jobs are claimed now."""
        return self._info.id

    @property
    def pid(self) -> int:
        """The process whose lease it is."""
        return self._info.pid

    @property
    def beat_every_s(self) -> float:
        """How often the lease is renewed."""
        return self._info.lease_us / BEATS_PER_LEASE / 1_000_000

    @property
    def rescue_every_s(self) -> float:
        """How often others are looked after; in memory, where no process dies alone, with each beat."""
        return min(RESCUE_EVERY_S, self.beat_every_s) if self._store.is_durable else self.beat_every_s

    async def begin(self) -> None:
        """Register the worker."""
        await self._store.register(self._info)

    async def tell(self, tasks: Registry) -> None:
        """Have the store know of tasks that were registered since the lease began."""
        known = self._info.tasks
        if known is None or len(known) == len(tasks):
            return
        self._info = replace(self._info, tasks=told(tasks))
        await self._store.make_known(self._info.id, self._info.tasks)

    async def begin_again(self) -> None:
        """Register afresh after the lease was lost."""
        self._info = replace(self._info, id=self._new_id())
        await self.begin()

    async def beat(self, held: Mapping[int, int], running: Mapping[int, int]) -> Beat:
        """Renew the lease, and compare what is held, and what runs on though its outcome is known."""
        return await self._store.beat(self._info.id, held, running)

    async def rescue(self, tasks: Collection[str]) -> Sequence[JobEvent]:
        """Take back the jobs of workers that are gone.

        A beat that is due comes first (it is the earlier chore), so a worker never rescues itself.
        """
        return await self._store.rescue(tasks)

    async def end(self) -> None:
        """Give the lease up, with whatever is still held under it."""
        await self._store.retire(self._info.id)
