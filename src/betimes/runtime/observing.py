"""What a scheduler says of itself, its jobs and its queues: explained, measured, checked up."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from betimes.core.job import Job, JobStatus
from betimes.core.limits import GateKind
from betimes.runtime.metrics import Metrics
from betimes.runtime.openness import Openness
from betimes.runtime.snapshot import snapshot

if TYPE_CHECKING:
    from betimes.core.explain import Explanation
    from betimes.core.facts import Process
    from betimes.core.finding import Checkup
    from betimes.core.queue_reason import QueueExplanation
    from betimes.core.situation import Here
    from betimes.core.task import Registry
    from betimes.core.worker_state import WorkerState
    from betimes.ports import Store
    from betimes.runtime.attempt import Attempt
    from betimes.runtime.journal import Journal
    from betimes.runtime.settings import Settings
    from betimes.runtime.watches import Watches
    from betimes.runtime.worker import Worker


class Observing(Openness):
    """The part of the engine that only looks.

    What most programs never ask is imported when it is first asked: all would pay for it.
    """

    store: Store
    journal: Journal
    worker: Worker | None
    _tasks: Registry
    _settings: Settings
    _strategy: str | None
    _watches: Watches
    _last: tuple[asyncio.AbstractEventLoop, Worker] | None

    @property
    def _state(self) -> WorkerState[Attempt] | None:
        """The slots of the worker that runs or ran last; None: none did."""
        return None if self._last is None else self._last[1].state

    def progress(self, job: Job) -> tuple[float, float | None] | None:
        """Return what the job's code, running here, said last of its progress."""
        attempt = self._state.in_flight.get(job.seq) if self._state else None
        return attempt.progress if attempt else None

    async def explain(self, job: Job) -> Explanation:
        """Say why a job has not started, what it is doing, or how it ended.

        Raises:
            UnknownJob: it has been pruned.
        """
        from betimes.runtime.explaining import explain_job  # noqa: PLC0415

        here = await self._here()
        return await explain_job(self.store, job, self._tasks, here, held=self._held())

    async def explain_queue(self, name: str) -> QueueExplanation:
        """Say how a queue stands, and why its jobs wait."""
        from betimes.runtime.explaining_queues import explain_one  # noqa: PLC0415

        return await explain_one(self.store, name, self._tasks, await self._here(), held=self._held())

    async def doctor(self, *, full: bool) -> Checkup:
        """Check up the store, and what works on it; a store that is not open is opened for looking."""
        from betimes.runtime.checking import examine  # noqa: PLC0415

        if self.loop is not None:
            self.check_here()
        worker = self.worker
        return await examine(
            self.store,
            strategy=self._strategy,
            here=None if worker is None else worker.id,
            process=None if self.loop is None else await self._process(),
            full=full,
        )

    async def _process(self) -> Process:
        from betimes.core.facts import Process  # noqa: PLC0415

        pool, counters = self._watches.pool, self.journal.counters
        if pool is not None:
            await pool.look()
        metrics = await self.metrics()
        return Process(
            stuck=tuple(attempt.id for attempt in self._held()),
            slots=self._settings.concurrency,
            deadlocked=metrics.deadlocked,
            stalled_s=metrics.store_stalled_s,
            store_errors=counters.store_errors,
            leases_lost=counters.lost_leases,
            loop_stalls=counters.loop_stalls,
            longest_stall_s=counters.longest_stall_s,
        )

    def _held(self) -> list[Job]:
        """Return the jobs whose outcome is recorded while their code still runs here."""
        return [attempt.job for attempt in self._state.zombies.values()] if self._state else []

    async def _here(self) -> Here | None:
        """Describe the worker of this process; None: it runs none."""
        from betimes.runtime.explaining import look_here  # noqa: PLC0415

        if self.worker is None or self._watches.pool is None:
            return None
        await self._watches.pool.look()
        return look_here(self.worker, self._settings, self._tasks, pool=self._watches.pool)

    async def metrics(self) -> Metrics:
        """Take a snapshot."""
        depths = dict.fromkeys(JobStatus, 0)
        oldest_due_s = 0.0
        if self.loop is not None:
            self.check_here()
            for of_queue in (await self.store.counts()).values():
                for status, number in of_queue.items():
                    depths[status] += number
            oldest_due_s = await self._oldest_due_s()
        return snapshot(
            depths,
            self.journal,
            self._settings,
            state=self._state,
            heap=self.store.heap_entries(),
            deadlocked=0 if self._watches.pool is None else len(self._watches.pool.found.held),
            circuits_open=await self._open_circuits(),
            oldest_due_s=oldest_due_s,
        )

    async def _oldest_due_s(self) -> float:
        """Return for how long the oldest claimable job of a queue that is not paused has been due."""
        oldest = await self.store.oldest_due()
        paused = await self.store.paused_queues() if oldest else {}
        now = self.store.now()
        ages = [now - at for name, at in oldest.items() if name not in paused]
        return max([0, *ages]) / 1_000_000

    async def _open_circuits(self) -> int:
        breakers = [
            terms.rule
            for task in list(self._tasks.values())
            for terms in task.gates
            if terms.kind is GateKind.BREAKER
        ]
        if self.loop is None or not breakers:
            return 0
        return sum(view.gate.is_tripped for view in await self.store.gates(breakers, most=0))
