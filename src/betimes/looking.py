"""The looking face of a scheduler: jobs found, listed, explained, cancelled; queues, logs, metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from betimes.core.job import CancelReason, Job, JobStatus
from betimes.errors import SchedulerClosed, UnknownJob
from betimes.handles import JobHandle, JobInfo
from betimes.ports import CancelAnswer, Store
from betimes.runtime.endings import Ending
from betimes.runtime.engine import Engine
from betimes.runtime.listeners import Listener
from betimes.runtime.metrics import Metrics
from betimes.tasks import check_name
from betimes.wiring import check_limit, check_page, make_filter

if TYPE_CHECKING:
    from betimes.core.explain import Explanation
    from betimes.core.finding import Checkup
    from betimes.core.log import LogLine
    from betimes.core.queue_reason import QueueExplanation
    from betimes.scheduler import Scheduler


class Looking:
    """Answers what users and handles ask of jobs."""

    _engine: Engine
    _store: Store

    def _opened_store(self) -> Store:
        if self._engine.loop is None:
            raise SchedulerClosed(
                "the scheduler is not open, so its jobs cannot be looked at: enter 'async with scheduler:' "
                "or 'async with scheduler.client():'"
            )
        self._engine.check_here()
        return self._store

    async def _find(self, job_id: str) -> Job | None:
        return await self._opened_store().find(check_name(job_id, "job_id"))

    async def _found(self, job_id: str) -> Job:
        job = await self._find(job_id)
        if job is None:
            raise UnknownJob(f"there is no job {job_id!r}: it never was, or has been pruned", job_id=job_id)
        return job

    async def job(self, job_id: str) -> JobHandle[Any]:
        """Return a handle of the newest version of an id.

        Raises:
            UnknownJob: there is none.
            SchedulerClosed: the scheduler is not open.
        """
        return JobHandle(cast("Scheduler", self), await self._found(job_id))

    async def job_ids(self, prefix: str, *, limit: int = 10) -> list[str]:
        """Return ids that begin so, in their order; for whoever was given the beginning of one.

        Args:
            prefix: how they begin.
            limit: the most to return, 1 to 1,000.

        Raises:
            ConfigurationError: an argument is wrong.
        """
        check_limit(limit)
        return await self._opened_store().ids(check_name(prefix, "prefix"), limit=limit)

    async def jobs(
        self,
        *,
        status: JobStatus | str | None = None,
        task: str | None = None,
        queue: str | None = None,
        tag: str | None = None,
        limit: int = 100,
        before: int | None = None,
    ) -> list[JobInfo]:
        """List jobs, newest first.

        Args:
            status: only jobs that stand here; None: any.
            task: only jobs of this task; None: any.
            queue: only jobs of this queue; None: any.
            tag: only jobs that carry it; None: any.
            limit: the most to return, 1 to 1,000.
            before: only versions smaller than this: the `version` of the last one of the page before.

        Raises:
            ConfigurationError: an argument is wrong.
        """
        which = make_filter(status=status, task=task, queue=queue, tag=tag, limit=limit, before=before)
        return [JobInfo.of(job) for job in await self._opened_store().jobs(which)]

    async def cancel(self, job_id: str, abandon: bool = False) -> CancelAnswer:
        """Cancel the newest version of an id, and answer what happened (`UNKNOWN` where there is none)."""
        job = await self._find(job_id)
        return CancelAnswer.UNKNOWN if job is None else await self._cancel(job, abandon=abandon)

    async def retry(self, job_id: str, *, by: str = "an operator") -> JobHandle[Any]:
        """Take a finished job back to READY, with a fresh budget of attempts.

        Args:
            job_id: the newest version of this id.
            by: who asks; kept with the job's attempts.

        Raises:
            UnknownJob: there is none.
            IllegalTransition: it is not finished.
        """
        job = await self._found(job_id)
        await self._engine.retry(job, by=check_name(by, "by"))
        return JobHandle(cast("Scheduler", self), job)

    async def explain(self, job_id: str) -> Explanation:
        """Say why the newest version of an id has not started, or how it ended.

        Raises:
            UnknownJob: there is none.
        """
        return await self._explain(await self._found(job_id))

    async def log(self, job_id: str, *, after: int = 0, limit: int = 1000) -> list[LogLine]:
        """Return the log of the newest version of an id, oldest line first; as `JobHandle.log`.

        Raises:
            UnknownJob: there is none.
            ConfigurationError: an argument is wrong.
        """
        return await self._log(await self._found(job_id), after=after, limit=limit)

    async def explain_queue(self, name: str) -> QueueExplanation:
        """Say how a queue stands, who serves it, and why its jobs wait."""
        self._opened_store()
        return await self._engine.explain_queue(check_name(name, "name"))

    async def doctor(self, *, full: bool = False) -> Checkup:
        """Check up the store, its workers and its work: findings, each with a remedy; nothing is changed.

        It may be asked whether the scheduler is open or not. A store that is not open is opened for looking;
        one that cannot be opened is a finding, not an error.

        Args:
            full: check the whole file for damage, too, which takes long where it is large.
        """
        return await self._engine.doctor(full=full)

    async def pause_queue(self, name: str, *, by: str | None = None) -> None:
        """Let nothing of a queue start until `resume_queue`; kept by the store, for all its workers.

        Args:
            name: the queue; one that is paused already stays as it is.
            by: who asks, and perhaps why, in your own words; None: nobody says. `explain()` shows it.
        """
        who = None if by is None else check_name(by, "by")
        await self._opened_store().pause_queue(check_name(name, "name"), by=who)

    async def resume_queue(self, name: str) -> None:
        """Undo `pause_queue`."""
        await self._opened_store().resume_queue(check_name(name, "name"))

    def listen(self, fn: Listener) -> Listener:
        """Have `fn(event)` called on every transition this process makes; also as a decorator.

        Plain functions are called in a thread of their own, coroutine functions on the loop; in order, from a
        buffer of 100,000 events (the oldest are dropped and counted when it is full). What `fn` raises is
        logged, and harms nothing. `stop()` delivers the rest, for at most `grace`.
        """
        self._engine.journal.listeners.add(fn)
        return fn

    async def metrics(self) -> Metrics:
        """Take a snapshot of the depths, counters and durations."""
        return await self._engine.metrics()

    # --- what handles ask

    async def _get(self, job: Job) -> Job | None:
        return await self._opened_store().get(job)

    async def _wait(self, job: Job) -> Ending:
        return await self._engine.wait(job)

    async def _cancel(self, job: Job, *, abandon: bool) -> CancelAnswer:
        self._opened_store()
        return await self._engine.cancel(job, reason=CancelReason.REQUESTED, abandon=abandon)

    async def _explain(self, job: Job) -> Explanation:
        self._opened_store()
        return await self._engine.explain(job)

    def _progress(self, job: Job) -> tuple[float, float | None] | None:
        return self._engine.progress(job)

    async def _log(self, job: Job, *, after: int, limit: int) -> list[LogLine]:
        check_page(after, limit)
        return await self._opened_store().log(job, after=after, limit=limit)
