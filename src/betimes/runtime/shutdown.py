"""The end of a worker, in order: claim nothing more, let run, give back, wait for code, let go."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from betimes.core.job import CancelReason
from betimes.errors import StoreUnavailable
from betimes.ports import Store
from betimes.runtime.journal import Journal
from betimes.runtime.worker import Worker

_log = logging.getLogger("betimes")

STORE_PATIENCE_S, LAST_PATIENCE_S = 3.0, 0.5
"""How long each last call of the store may take: usually, and once the limit is over."""

RESERVE_S = 2.0
"""What is kept of the grace for these, when the store does not even take what is given back."""


class Shutdown:
    """Stops one worker so that nothing is lost.

    Args:
        worker: what to stop.
        store: its store.
        journal: what is told of the cancels.
        grace_s: how long code that was told to stop, or whose outcome is recorded, is waited for.
    """

    def __init__(self, worker: Worker, store: Store, journal: Journal, *, grace_s: float) -> None:
        self._worker = worker
        self._store = store
        self._journal = journal
        self._grace_s = grace_s
        self._ends_at: float | None = None

    async def run(self, *, cancel_running: bool, timeout_s: float | None) -> None:
        """Do all of it; once. The arguments are those of `settle`.

        When it is cancelled it gives back what runs, and ends without waiting for code.
        """
        worker = self._worker
        worker.drain()
        try:
            await self.settle(cancel_running=cancel_running, timeout_s=timeout_s)
            await self._until(lambda: not worker.state.in_flight, self._grace_left_s())
        except asyncio.CancelledError:
            worker.give_back()
            raise
        finally:
            for attempt in worker.left_running():
                _log.warning(
                    "the code of job %s (%s, lane %s) did not stop; it is left running",
                    attempt.job.id,
                    attempt.task.name,
                    attempt.lane,
                )
            await worker.finish(STORE_PATIENCE_S if self._ends_at is None else LAST_PATIENCE_S)

    async def settle(self, *, cancel_running: bool, timeout_s: float | None) -> None:
        """Have every outcome recorded; a second time, while the first is under way, it can only be sooner.

        Args:
            cancel_running: tell running jobs to stop; they end CANCELLED.
            timeout_s: how long running attempts may take; then they are given back to the store, and their
                code is told to stop. None: as long as they take, or, once cancelled, the grace.
        """
        worker = self._worker
        if cancel_running:
            await self._cancel_all()
            timeout_s = self._grace_s if timeout_s is None else timeout_s
        if not await self._until(lambda: worker.is_settled, timeout_s):
            worker.give_back()
            self._ends_at = asyncio.get_running_loop().time() + self._grace_s
            reserve_s = min(RESERVE_S, self._grace_s / 2)
            await self._until(lambda: worker.is_settled, self._grace_left_s() - reserve_s)

    def _grace_left_s(self) -> float:
        """Say how long code may still be waited for: after the limit, one grace is for all that comes."""
        if self._ends_at is None:
            return self._grace_s
        return max(0.0, self._ends_at - asyncio.get_running_loop().time())

    async def _cancel_all(self) -> None:
        for attempt in list(self._worker.state.held().values()):
            try:
                cancellation = await self._store.cancel(attempt.job, reason=CancelReason.STOPPED)
            except StoreUnavailable as error:
                # Code that is told to stop now would fail its job for good; so it is given back instead.
                _log.warning(
                    "the cancel of job %s could not be saved; unless it ends in time, it is given back: %s",
                    attempt.job.id,
                    error,
                )
                continue
            self._journal.changes(cancellation.changes)
            if not attempt.is_reported:
                self._worker.stop_code(attempt)

    async def _until(self, holds: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait until something holds that the worker's progress brings; False if the time is over first."""
        worker = self._worker
        try:
            async with asyncio.timeout(timeout_s):
                while not holds() and not worker.is_over:
                    worker.progress.clear()
                    await worker.progress.wait()
        except TimeoutError:
            pass
        return holds()
