"""Handles of jobs whose transaction is the caller's, and may not be over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from betimes.core.job import Job
from betimes.errors import UnknownJob
from betimes.handles import JobHandle
from betimes.ports import CancelAnswer
from betimes.runtime.endings import Ending
from betimes.runtime.lookout import wait_for

if TYPE_CHECKING:
    from betimes.core.explain import Explanation
    from betimes.core.log import LogLine
    from betimes.scheduler import Scheduler

R = TypeVar("R")

LOOK_EVERY_S = 0.05
"""How often whoever waits for such a job's end looks whether it has been committed."""


class UncommittedHandle(JobHandle[R]):
    """A handle of a job that exists once, and if, the transaction it was submitted in commits.

    From the first look that finds the job on, it is a handle like any other. Before, the job's number proves
    nothing, since after a rollback another job may get it; so the id and the instant of the submit are
    compared. Until the job is found, `status`, `info`, `explain` and `log` raise `UnknownJob`, `cancel`
    answers `UNKNOWN`, and `result` and `wait` go on until the transaction is over.
    """

    __slots__ = ("_is_over",)

    def __init__(self, scheduler: Scheduler, job: Job, is_over: Callable[[], bool]) -> None:
        super().__init__(scheduler, job)
        # None, once the job has been found: then nothing is kept of the connection.
        self._is_over: Callable[[], bool] | None = is_over

    def _is_of(self, scheduler: Scheduler) -> bool:
        # Whoever depends on the job looks it up by its id, which cannot be another's.
        return self._is_over is None and super()._is_of(scheduler)

    async def _is_there(self) -> bool:
        """Say whether the job's transaction has committed."""
        if self._is_over is None:
            return True
        job = self._job
        found = await self._scheduler._get(job)  # noqa: SLF001
        if found is None or (found.id, found.submitted_at) != (job.id, job.submitted_at):
            return False
        self._is_over = None
        return True

    async def _found(self) -> Job:
        await self._check_there()
        return await super()._found()

    async def _check_there(self) -> None:
        if not await self._is_there():
            raise UnknownJob(
                f"there is no job {self.id}: the transaction that it was submitted in is not committed, or "
                "was rolled back, or the job has been pruned since",
                job_id=self.id,
            )

    async def _end(self) -> Ending:
        while (is_over := self._is_over) is not None and not await self._is_there():
            if is_over():
                await self._check_there()  # it may have committed since it was looked for
            else:
                await wait_for(asyncio.Event(), LOOK_EVERY_S)
        return await super()._end()

    async def cancel(self, abandon: bool = False) -> CancelAnswer:
        """As `JobHandle.cancel`; what is not committed is `UNKNOWN`: roll the transaction back instead."""
        if not await self._is_there():
            return CancelAnswer.UNKNOWN
        return await super().cancel(abandon)

    async def explain(self) -> Explanation:
        """As `JobHandle.explain`."""
        await self._check_there()
        return await super().explain()

    async def log(self, *, after: int = 0, limit: int = 1000) -> list[LogLine]:
        """As `JobHandle.log`."""
        await self._check_there()
        return await super().log(after=after, limit=limit)

    async def progress(self) -> tuple[float, float | None] | None:
        """As `JobHandle.progress`."""
        return await super().progress() if await self._is_there() else None
