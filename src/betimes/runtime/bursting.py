"""When a worker has nothing left to do: what a run that ends by itself waits for."""

from __future__ import annotations

from betimes.ports import Store
from betimes.runtime.firing import Firing
from betimes.runtime.metrics import Counters
from betimes.runtime.worker import Worker


async def until_idle(
    worker: Worker, firing: Firing, store: Store, counters: Counters, *, soon_s: float
) -> None:
    """Return when nothing runs here, nothing can start here, and nothing is due within `soon_s`.

    What waits for something else does not count: jobs of a paused queue, of a task unknown here, behind a
    limit that others hold, or blocked by a job that is due later. Fires of schedules count once they are due.

    Returns early when the worker has ended.
    """
    worker.chores.hurry(worker.upkeep.rescue)  # the last such run may have died, and its jobs are part of it
    worker.awaken()

    def is_idle() -> bool:
        # While a turn is about to come or under way, or the last one has failed, nothing is known.
        if worker.is_awake or counters.turn_began is not None or not worker.is_settled:
            return False
        next_at = worker._next_at  # noqa: SLF001 - the same package
        return next_at is None or next_at > store.now() + soon_s * 1_000_000

    while not worker.is_over:
        worker.progress.clear()
        if is_idle() and not await firing.has_due() and is_idle():
            return
        await worker.progress.wait()
