"""The scheduler for code without an event loop: the same calls without `await`, over the thread bridge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from betimes.core.job import JobStatus
from betimes.handles import JobHandle, JobInfo
from betimes.limit_info import LimitInfo
from betimes.ports import CancelAnswer
from betimes.runtime.listeners import Listener
from betimes.runtime.metrics import Metrics
from betimes.schedule_info import FireInfo, ScheduleInfo
from betimes.tasks import BoundJob, Duration

if TYPE_CHECKING:
    from datetime import datetime

    from betimes.core.explain import Explanation
    from betimes.core.finding import Checkup
    from betimes.core.log import LogLine
    from betimes.core.queue_reason import QueueExplanation
    from betimes.core.schedule_reason import NextFire, ScheduleExplanation
    from betimes.core.triggers import Trigger
    from betimes.scheduler import Scheduler

R = TypeVar("R")


class BlockingJob(Generic[R]):
    """A job handle whose calls block the calling thread instead of being awaited."""

    __slots__ = ("_scheduler", "handle")

    def __init__(self, scheduler: Scheduler, handle: JobHandle[R]) -> None:
        self._scheduler = scheduler
        self.handle = handle

    @property
    def id(self) -> str:
        """The job's id."""
        return self.handle.id

    def __repr__(self) -> str:
        return f"<BlockingJob {self.id}>"

    def status(self) -> JobStatus:
        """As `JobHandle.status`."""
        return self._scheduler._call(self.handle.status())  # noqa: SLF001

    def info(self) -> JobInfo:
        """As `JobHandle.info`."""
        return self._scheduler._call(self.handle.info())  # noqa: SLF001

    def wait(self, timeout: Duration | None = None) -> JobStatus:
        """As `JobHandle.wait`."""
        return self._scheduler._call(self.handle.wait(timeout))  # noqa: SLF001

    def result(self, timeout: Duration | None = None) -> R:
        """As `JobHandle.result`."""
        return self._scheduler._call(self.handle.result(timeout))  # noqa: SLF001

    def cancel(self, abandon: bool = False) -> CancelAnswer:
        """As `JobHandle.cancel`."""
        return self._scheduler._call(self.handle.cancel(abandon))  # noqa: SLF001

    def explain(self) -> Explanation:
        """As `JobHandle.explain`."""
        return self._scheduler._call(self.handle.explain())  # noqa: SLF001

    def log(self, *, after: int = 0, limit: int = 1000) -> list[LogLine]:
        """As `JobHandle.log`."""
        return self._scheduler._call(self.handle.log(after=after, limit=limit))  # noqa: SLF001

    def progress(self) -> tuple[float, float | None] | None:
        """As `JobHandle.progress`."""
        return self._scheduler._call(self.handle.progress())  # noqa: SLF001


class BlockingScheduler:
    """What `with scheduler.blocking() as s:` gives: an open scheduler, for any thread but its loop's own."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def _job(self, handle: JobHandle[R]) -> BlockingJob[R]:
        return BlockingJob(self._scheduler, handle)

    def submit(self, bound: BoundJob[R]) -> BlockingJob[R]:
        """Submit one bound call, as `task.submit_blocking` does with the arguments."""
        return self._scheduler._submit_blocking(bound)  # noqa: SLF001

    def submit_many(self, bound: Iterable[BoundJob[R]]) -> list[BlockingJob[R]]:
        """As `Scheduler.submit_many`."""
        calls = list(bound)
        handles = self._scheduler._call_submit(self._scheduler.submit_many(calls), calls)  # noqa: SLF001
        return [self._job(each) for each in handles]

    def submit_graph(
        self, graph: Mapping[str, BoundJob[Any] | tuple[BoundJob[Any], Iterable[str]]]
    ) -> dict[str, BlockingJob[Any]]:
        """As `Scheduler.submit_graph`."""
        calls = [each[0] if isinstance(each, tuple) else each for each in graph.values()]
        handles = self._scheduler._call_submit(self._scheduler.submit_graph(graph), calls)  # noqa: SLF001
        return {name: self._job(handle) for name, handle in handles.items()}

    def job(self, job_id: str) -> BlockingJob[Any]:
        """As `Scheduler.job`."""
        return self._job(self._scheduler._call(self._scheduler.job(job_id)))  # noqa: SLF001

    def job_ids(self, prefix: str, *, limit: int = 10) -> list[str]:
        """As `Scheduler.job_ids`."""
        return self._scheduler._call(self._scheduler.job_ids(prefix, limit=limit))  # noqa: SLF001

    def jobs(self, **which: Any) -> list[JobInfo]:
        """As `Scheduler.jobs`."""
        return self._scheduler._call(self._scheduler.jobs(**which))  # noqa: SLF001

    def cancel(self, job_id: str, abandon: bool = False) -> CancelAnswer:
        """As `Scheduler.cancel`."""
        return self._scheduler._call(self._scheduler.cancel(job_id, abandon))  # noqa: SLF001

    def retry(self, job_id: str, *, by: str = "an operator") -> BlockingJob[Any]:
        """As `Scheduler.retry`."""
        return self._job(self._scheduler._call(self._scheduler.retry(job_id, by=by)))  # noqa: SLF001

    def explain(self, job_id: str) -> Explanation:
        """As `Scheduler.explain`."""
        return self._scheduler._call(self._scheduler.explain(job_id))  # noqa: SLF001

    def log(self, job_id: str, *, after: int = 0, limit: int = 1000) -> list[LogLine]:
        """As `Scheduler.log`."""
        return self._scheduler._call(self._scheduler.log(job_id, after=after, limit=limit))  # noqa: SLF001

    def drain(self, timeout: Duration | None = None) -> None:
        """As `Scheduler.drain`."""
        self._scheduler._call(self._scheduler.drain(timeout))  # noqa: SLF001

    def explain_queue(self, name: str) -> QueueExplanation:
        """As `Scheduler.explain_queue`."""
        return self._scheduler._call(self._scheduler.explain_queue(name))  # noqa: SLF001

    def doctor(self, *, full: bool = False) -> Checkup:
        """As `Scheduler.doctor`."""
        return self._scheduler._call(self._scheduler.doctor(full=full))  # noqa: SLF001

    def pause_queue(self, name: str, *, by: str | None = None) -> None:
        """As `Scheduler.pause_queue`."""
        self._scheduler._call(self._scheduler.pause_queue(name, by=by))  # noqa: SLF001

    def resume_queue(self, name: str) -> None:
        """As `Scheduler.resume_queue`."""
        self._scheduler._call(self._scheduler.resume_queue(name))  # noqa: SLF001

    def limits(self, name: str | None = None) -> list[LimitInfo]:
        """As `Scheduler.limits`."""
        return self._scheduler._call(self._scheduler.limits(name))  # noqa: SLF001

    def limit(self, name: str, value: str | None = None, *, kind: str = "limit") -> LimitInfo:
        """As `Scheduler.limit`."""
        return self._scheduler._call(self._scheduler.limit(name, value, kind=kind))  # noqa: SLF001

    def set_limit(self, name: str, max_running: int | None) -> None:
        """As `Scheduler.set_limit`."""
        self._scheduler._call(self._scheduler.set_limit(name, max_running))  # noqa: SLF001

    def set_rate(self, name: str, rate: str | None, burst: int = 1) -> None:
        """As `Scheduler.set_rate`."""
        self._scheduler._call(self._scheduler.set_rate(name, rate, burst))  # noqa: SLF001

    def open_circuit(self, task: str) -> None:
        """As `Scheduler.open_circuit`."""
        self._scheduler._call(self._scheduler.open_circuit(task))  # noqa: SLF001

    def close_circuit(self, task: str) -> None:
        """As `Scheduler.close_circuit`."""
        self._scheduler._call(self._scheduler.close_circuit(task))  # noqa: SLF001

    def add_schedule(
        self, schedule_id: str, bound: BoundJob[Any], trigger: Trigger, **options: Any
    ) -> ScheduleInfo:
        """As `Scheduler.add_schedule`."""
        scheduler = self._scheduler
        return scheduler._call(scheduler.add_schedule(schedule_id, bound, trigger, **options))  # noqa: SLF001

    def schedule(self, schedule_id: str) -> ScheduleInfo:
        """As `Scheduler.schedule`."""
        return self._scheduler._call(self._scheduler.schedule(schedule_id))  # noqa: SLF001

    def next_fires(self, schedule_id: str, *, limit: int = 10) -> list[NextFire]:
        """As `Scheduler.next_fires`."""
        return self._scheduler._call(self._scheduler.next_fires(schedule_id, limit=limit))  # noqa: SLF001

    def schedules(self, **which: Any) -> list[ScheduleInfo]:
        """As `Scheduler.schedules`."""
        return self._scheduler._call(self._scheduler.schedules(**which))  # noqa: SLF001

    def pause_schedule(self, schedule_id: str) -> ScheduleInfo:
        """As `Scheduler.pause_schedule`."""
        return self._scheduler._call(self._scheduler.pause_schedule(schedule_id))  # noqa: SLF001

    def resume_schedule(self, schedule_id: str) -> ScheduleInfo:
        """As `Scheduler.resume_schedule`."""
        return self._scheduler._call(self._scheduler.resume_schedule(schedule_id))  # noqa: SLF001

    def remove_schedule(self, schedule_id: str) -> None:
        """As `Scheduler.remove_schedule`."""
        self._scheduler._call(self._scheduler.remove_schedule(schedule_id))  # noqa: SLF001

    def trigger_now(self, schedule_id: str) -> BlockingJob[Any]:
        """As `Scheduler.trigger_now`."""
        return self._job(self._scheduler._call(self._scheduler.trigger_now(schedule_id)))  # noqa: SLF001

    def schedule_history(self, schedule_id: str, **which: Any) -> list[FireInfo]:
        """As `Scheduler.schedule_history`."""
        return self._scheduler._call(self._scheduler.schedule_history(schedule_id, **which))  # noqa: SLF001

    def explain_schedule(self, schedule_id: str, at: datetime | None = None) -> ScheduleExplanation:
        """As `Scheduler.explain_schedule`."""
        return self._scheduler._call(self._scheduler.explain_schedule(schedule_id, at))  # noqa: SLF001

    def listen(self, fn: Listener) -> Listener:
        """As `Scheduler.listen`."""
        return self._scheduler.listen(fn)

    def metrics(self) -> Metrics:
        """As `Scheduler.metrics`."""
        return self._scheduler._call(self._scheduler.metrics())  # noqa: SLF001

    def stop(self, cancel_running: bool = False, timeout: Duration | None = None) -> None:
        """As `Scheduler.stop`."""
        self._scheduler._call(self._scheduler.stop(cancel_running, timeout))  # noqa: SLF001
