"""Waiting for the ends of jobs, wherever they come: recorded here, or seen in the store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextvars import Context as Variables

from betimes.core.job import Job, JobStatus
from betimes.errors import StoreUnavailable
from betimes.ports import Store
from betimes.runtime.endings import Ending
from betimes.runtime.journal import Journal

_log = logging.getLogger("betimes")

LOOK_FOR_ENDS_EVERY_S = 0.5
LOOK_AFTER_S = 0.01
FEW_WAITING = 100
"""Whoever waits for jobs of other processes looks so often, and soon after a hint if they are few."""

_PRUNED = Ending(status=JobStatus.CANCELLED, reason="pruned")


class Lookout:
    """Tells those who wait for a job's end of it, while the engine is open.

    Args:
        store: where the jobs are.
        journal: tells of the ends that are recorded here.
        runs_here: whether a job's end will be recorded here, so that there is no need to look for it.
        every_s: how often it is looked, without a hint.
    """

    def __init__(
        self, store: Store, journal: Journal, runs_here: Callable[[Job], bool], *, every_s: float
    ) -> None:
        self._store = store
        self._endings = journal.endings
        self._counters = journal.counters
        self._runs_here = runs_here
        self._every_s = every_s
        self._look_now = asyncio.Event()
        self._looker: asyncio.Task[None] | None = None

    async def wait(self, job: Job) -> Ending:
        """Wait for a job's end.

        The waiter is entered before the store is asked, so that no end falls between the two.

        Raises:
            SchedulerClosed: the scheduler is stopped first.
        """
        with self._endings.waiter(job) as end:
            found = await self._store.get(job)
            if found is None:
                return _PRUNED
            if found.status.is_terminal:
                return Ending.of(found)
            # One whom a stop has been told of meanwhile looks no more, whoever has started it again since.
            if self._looker is None and not end.done():
                loop = asyncio.get_running_loop()
                self._looker = loop.create_task(self._look(), context=Variables(), name="betimes-looker")
            return await end

    def hint(self) -> None:
        """Hear that something has ended."""
        self._look_now.set()

    async def close(self) -> None:
        """Let those who wait know that nothing more will end here, and end the looking."""
        self._endings.close()
        if self._looker is not None:
            self._looker.cancel()
            await asyncio.wait([self._looker])
            self._looker = None

    async def _look(self) -> None:
        """Look now and then whether jobs that somebody waits for have ended elsewhere."""
        while len(self._endings):
            jobs = [job for job in self._endings.jobs() if not self._runs_here(job)]
            self._look_now.clear()
            try:
                for job, found in await self._store.ended(jobs) if jobs else ():
                    self._endings.settle(job.seq, Ending.of(found) if found else _PRUNED)
            except StoreUnavailable as error:
                self._counters.store_errors += 1
                _log.warning("whether jobs have ended could not be looked up; it is tried again: %s", error)
            hinted = self._look_now if len(jobs) <= FEW_WAITING else asyncio.Event()
            await wait_for(hinted, self._every_s)
            await wait_for(asyncio.Event(), LOOK_AFTER_S)
        self._looker = None


async def wait_for(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event at most so long; it is set afterwards."""
    timer = asyncio.get_running_loop().call_later(seconds, event.set)
    try:
        await event.wait()
    finally:
        timer.cancel()
