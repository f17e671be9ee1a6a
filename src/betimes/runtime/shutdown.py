"""The end of a worker, in order: claim nothing more, let run, give back, wait for code, let go."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from betimes.core.job import CancelReason
from betimes.errors import StoreUnavailable
from betimes.ports import Store
from betimes.runtime.attempt import Attempt
from betimes.runtime.journal import Journal
from betimes.runtime.worker import Worker

_log = logging.getLogger("betimes")


async def shut_down(
    worker: Worker,
    store: Store,
    journal: Journal,
    *,
    cancel_running: bool,
    timeout_s: float | None,
    grace_s: float,
) -> None:
    """Stop a worker so that nothing is lost.

    Args:
        worker: what to stop.
        store: its store.
        journal: what is told of the cancels.
        cancel_running: tell running jobs to stop; they end CANCELLED.
        timeout_s: how long running attempts may take; then they are given back to the store, and their code
            is told to stop. None: as long as they take.
        grace_s: how long code whose outcome is recorded is waited for.
    """
    worker.drain()
    if cancel_running:
        await _cancel_all(worker, store, journal)
    if not await _until(lambda: worker.is_settled, worker, timeout_s):
        worker.give_back()
        await _until(lambda: worker.is_settled, worker, grace_s)
    await _until(lambda: not worker.state.in_flight, worker, grace_s)
    for attempt in worker.state.in_flight.values():
        _log.warning(
            "the code of job %s (%s, lane %s) did not stop; it is left running",
            attempt.job.id,
            attempt.task.name,
            attempt.lane,
        )
    await worker.finish()


async def _cancel_all(worker: Worker, store: Store, journal: Journal) -> None:
    for attempt in list(worker.state.held().values()):
        try:
            cancellation = await store.cancel(attempt.job, reason=CancelReason.STOPPED)
        except StoreUnavailable as error:
            _log.warning("the cancel of job %s could not be saved: %s", attempt.job.id, error)
        else:
            journal.changes(cancellation.changes)
        _stop(worker, attempt)


def _stop(worker: Worker, attempt: Attempt) -> None:
    if not attempt.is_reported:
        worker.stop_code(attempt)


async def _until(holds: Callable[[], bool], worker: Worker, timeout_s: float | None) -> bool:
    """Wait until something holds that the worker's progress brings; False if the time is over first."""
    try:
        async with asyncio.timeout(timeout_s):
            while not holds():
                worker.progress.clear()
                await worker.progress.wait()
    except TimeoutError:
        return holds()
    return True
