"""What a worker owes beside its jobs: its own lease, jobs of others that died, jobs that were parked."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from betimes.core.job import JobStatus
from betimes.runtime.attempt import Attempt
from betimes.runtime.fencing import Fence
from betimes.runtime.giving_way import let_others_run

if TYPE_CHECKING:
    from betimes.core.task import Registry
    from betimes.ports import Executor, Store
    from betimes.runtime.chores import Chores
    from betimes.runtime.journal import Journal
    from betimes.runtime.lease import Lease
    from betimes.runtime.worker import Worker

_log = logging.getLogger("betimes")

PRUNE_EVERY_S = 60.0
PRUNES_PER_KEEP = 10
"""How often a worker that rests wakes up to prune, in the shortest time that any job is kept."""
PRUNE_AT_ONCE = 1000


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
        self.fence = Fence(worker, store, journal.counters)
        self._beaten_at = self._rescues_from = 0.0
        self._errors_before = 0

    def begin(self, chores: Chores, now: float) -> None:
        """Have all of them done from now on, each at its own interval."""
        self._beaten_at = now
        self.fence.begin()
        chores.add(self._lease.beat_every_s, self.beat, now=now)
        chores.add(self._lease.rescue_every_s, self.rescue, now=now)
        chores.add(self._worker.settings.poll_s, self.unpark, now=now)
        chores.hurry(self.unpark)  # what waits for a task that has come with this worker need not wait longer
        chores.add(max(PRUNE_EVERY_S, self._worker.settings.poll_s), self.prune, now=now)
        chores.add(math.inf, self.prune_at_rest, now=now, rests=False)
        chores.hasten(self.prune_at_rest, now + self._prune_at_rest_every_s())

    async def beat(self) -> None:
        """Renew the lease, and compare what is held here with what the store thinks is."""
        worker = self._worker
        held = worker.state.held()
        fences = {seq: attempt.fence for seq, attempt in held.items()} | worker.outbox.refused()
        running = {seq: attempt.fence for seq, attempt in worker.state.zombies.items() if seq not in fences}
        beat = await self._lease.beat(fences, running)
        self._note_beat()
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
        if not held and not self._store.is_durable:
            # It rested, and others have tidied its lease away meanwhile: nothing is lost.
            await self._lease.begin_again()
            return
        _log.error(
            "the lease of worker %s was over: its %d jobs are told to stop, for others may have them now",
            self._lease.worker_id,
            len(held),
        )
        for attempt in held.values():
            self._lose(attempt)
        await self._lease.begin_again()

    def _lose(self, attempt: Attempt) -> None:
        _log.warning(
            "job %s (%s), attempt %d: worker %s (pid %d, this process) has lost its lease: its code is told "
            "to stop, and what it reports does not count",
            attempt.job.id,
            attempt.task.name,
            attempt.number,
            attempt.worker,
            self._lease.pid,
        )
        self._journal.counters.lost_leases += 1
        self._worker.give_up(attempt)

    def _note_beat(self) -> None:
        """Have no rescue follow at once on a time in which this worker itself could not beat.

        Others could not either, perhaps, and are about to.
        """
        now = asyncio.get_running_loop().time()
        every_s = self._lease.beat_every_s
        errors = self._journal.counters.store_errors
        if errors > self._errors_before and now - self._beaten_at > 2 * every_s:
            self._rescues_from = now + every_s
        self._beaten_at, self._errors_before = now, errors

    async def rescue(self) -> None:
        """Take back what workers hold whose lease is over."""
        if asyncio.get_running_loop().time() < self._rescues_from:
            return
        changes = await self._lease.rescue(self._tasks)
        # A store in memory has no workers but this process's; elsewhere others may come at any time.
        alone = not self._store.is_durable and len(await self._store.workers()) <= 1
        self._worker.chores.may_rest = alone
        for event in changes:
            if event.before is JobStatus.RUNNING:
                text = "job %s (%s), attempt %d: %s; it is %s"
                _log.warning(text, event.job_id, event.task, event.attempt, event.error, event.after.value)
        self._journal.counters.rescued += len(changes)
        self._journal.changes(changes)

    async def unpark(self) -> None:
        """Let go of parked jobs whose task or lane has appeared here since, and say which tasks have."""
        await self._lease.tell(self._tasks)
        for name in await self._store.parked():
            kind, _, what = name.partition(":")
            if (kind == "task" and what in self._tasks) or (kind == "lane" and what in self._executors):
                self._journal.changes(await self._store.unpark(name))

    async def prune(self) -> None:
        """Forget what is not to be kept any longer."""
        keep_us = self._worker.settings.keep_us
        while await self._store.prune(keep_us=keep_us, limit=PRUNE_AT_ONCE) == PRUNE_AT_ONCE:
            await let_others_run()

    async def prune_at_rest(self) -> None:
        """Prune, though nothing runs: what is kept for long may go a little later, and few wake-ups do."""
        await self.prune()
        due = asyncio.get_running_loop().time() + self._prune_at_rest_every_s()
        self._worker.chores.hasten(self.prune_at_rest, due)

    def _prune_at_rest_every_s(self) -> float:
        keeps = [task.spec.keep_s for task in self._tasks.values() if task.spec.keep_s is not None]
        shortest = min([*keeps, self._worker.settings.keep_us / 1_000_000])
        return max(PRUNE_EVERY_S, shortest / PRUNES_PER_KEEP)
