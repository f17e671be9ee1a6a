"""From claimed jobs to attempts: what is not to be started here goes back at once."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from betimes.core.events import GivenBack, Withdrawn
from betimes.core.job import UNREADABLE, Job
from betimes.core.task import Registry
from betimes.core.worker_state import Phase
from betimes.ports import Executor
from betimes.runtime.attempt import Attempt

if TYPE_CHECKING:
    from betimes.runtime.worker import Worker


_log = logging.getLogger("betimes")


class Intake:
    """Makes attempts of what one worker has claimed.

    Attributes:
        told_early: `seq` → fence of claims on their way whose cancel was heard of before they arrived.
    """

    def __init__(self, worker: Worker, tasks: Registry, executors: Mapping[str, Executor]) -> None:
        """Make attempts for this worker, of these tasks and lanes."""
        self._worker = worker
        self._tasks = tasks
        self._executors = executors
        self.told_early: dict[int, int] = {}

    def attempts_of(self, claimed: Iterable[Job], now: float) -> list[Attempt]:
        """Make an attempt of each job that is to be started; the others are on their way back."""
        attempts = [attempt for job in claimed if (attempt := self._attempt(job, now)) is not None]
        self.told_early.clear()
        return attempts

    def _attempt(self, job: Job, now: float) -> Attempt | None:
        worker = self._worker
        task = self._tasks.get(job.spec.task)
        if job.error is not None and job.error.type == UNREADABLE:
            _log.error("job %s is put aside: of its row in the store, %s", job.id, job.error.message)
            worker.refuse(job, GivenBack(self._now(), f"row:{job.error.message}"))
        elif task is None:
            worker.refuse(job, GivenBack(self._now(), f"task:{job.spec.task}"))
        elif task.spec.lane not in self._executors:
            worker.refuse(job, GivenBack(self._now(), f"lane:{task.spec.lane}"))
        elif worker.state.phase is not Phase.RUNNING:
            worker.refuse(job, GivenBack(self._now()))
        elif job.cancel_requested or job.fence <= self.told_early.get(job.seq, 0):
            worker.refuse(job, Withdrawn(self._now()))
        elif job.seq in worker.state.in_flight:
            # Others abandoned the attempt that runs here, and took the job back: its code must return first.
            worker.give_up(worker.state.in_flight[job.seq])
            worker.refuse(job, GivenBack(self._now()))
        else:
            return Attempt(job, task, now, worker.book)
        return None

    def _now(self) -> int:
        return self._worker.store_now()
