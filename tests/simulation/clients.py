"""What people and programs ask of the schedulers: drawn by chance, carried out within the processes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from tests.simulation.evidence import RETURNED
from tests.simulation.loops import pass_time
from tests.simulation.plans import QUEUES, Plan, Planner, Task
from tests.simulation.process import Process
from tests.simulation.reckoning import Reckoning
from tests.simulation.tally import Met

from betimes.core.job import Job, JobStatus
from betimes.errors import (
    BetimesError,
    ConfigurationError,
    DependencyCycle,
    DuplicateJob,
    IllegalTransition,
    JobCancelled,
    JobFailed,
    JobTimedOut,
    SchedulerClosed,
    StoreUnavailable,
    UnknownJob,
)
from betimes.handles import JobHandle

TRIES = 30


@dataclass(slots=True)
class Waiter:
    """Somebody who waits for a job's end."""

    process: Process
    seq: int


class Clients:
    """Draws and carries out operations.

    Attributes:
        known: the jobs that clients know of: whatever a submit has answered with.
        waiters: who waits for what at present.
    """

    def __init__(self, rng: Random, planner: Planner, model: Reckoning) -> None:
        self._rng = rng
        self._planner = planner
        self._model = model
        self.known: list[Job] = []
        self.waiters: list[Waiter] = []

    def operate(self, process: Process) -> None:
        """Begin one operation, drawn by chance."""
        kinds: list[tuple[int, Callable[[Process], Awaitable[None]]]] = [
            (40, self._submit_one),
            (10, self._submit_batch),
            (15, self._cancel),
            (5, self._retry),
            (6, self._pause_queue),
            (6, self._look),
            (3, self._misuse_key),
            (6, self._start_over),
        ]
        operation = self._rng.choices([kind for _, kind in kinds], [weight for weight, _ in kinds])[0]
        process.spawn(self._guarded(process, operation), operation.__name__.strip("_"))

    async def _guarded(self, process: Process, operation: Callable[[Process], Awaitable[None]]) -> None:
        """An operation may fail because the store is out of reach or the scheduler stops; nothing else."""
        try:
            await operation(process)
        except (StoreUnavailable, SchedulerClosed):
            return

    # --- submitting

    def _make(
        self, process: Process, plan: Plan, after: Sequence[Job] = (), *, is_free: bool = False
    ) -> Job | None:
        task = process.tasks.get(plan.task)
        if task is None:
            return None
        options: dict[str, Any] = {
            "priority": plan.priority,
            "queue": plan.queue,
            "depends_on": [] if is_free else self._dependencies(process),
            "on_dependency_failure": self._rng.choice(("cancel", "run")),
            "job_id": plan.job_id,
            "replace": plan.replace,
            "key": plan.key,
        }
        if plan.delay_s:
            options["delay"] = plan.delay_s
        if plan.timeout_s is not None:
            options["timeout"] = plan.timeout_s
        if plan.retry is not None:
            options["retry"] = plan.retry
        if plan.expires_s is not None:
            options["expires"] = plan.expires_s
        job: Job = process.scheduler._job_of(task.using(**options).bind(*plan.arguments), after)
        return job

    def _dependencies(self, process: Process) -> list[Any]:
        if not self.known or self._rng.random() < 0.5:
            return []
        recent = self.known[-8:]
        chosen = self._rng.sample(recent, min(len(recent), self._rng.randint(1, 3)))
        return [job.id if self._rng.random() < 0.2 else JobHandle(process.scheduler, job) for job in chosen]

    async def _submit_one(self, process: Process) -> None:
        job = self._make(process, self._planner.draw())
        if job is not None:
            await self._submit(process, [job])

    async def _submit_batch(self, process: Process) -> None:
        """Several at once, each of which may wait for those before it."""
        jobs: list[Job] = []
        for _ in range(self._rng.randint(2, 5)):
            after = self._rng.sample(jobs, self._rng.randint(0, min(2, len(jobs))))
            job = self._make(process, self._planner.draw(), after)
            if job is not None:
                jobs.append(job)
        if jobs:
            await self._submit(process, jobs)

    def flood(self, process: Process, task: Task | None = None) -> None:
        """Have many jobs submitted at once, for one group."""
        process.spawn(self._guarded(process, partial(self._flood, task)), "flood")

    async def _flood(self, task: Task | None, process: Process) -> None:
        jobs = [self._make(process, plan, is_free=True) for plan in self._planner.flood(task)]
        await self._submit(process, [job for job in jobs if job is not None])

    async def _submit(self, process: Process, jobs: list[Job]) -> None:
        """Submit, and again when nobody knows whether it was taken."""
        gives_up = self._rng.random() < 0.1
        for _ in range(1 if gives_up else TRIES):
            try:
                kept = await process.scheduler._engine.submit(jobs)
            except StoreUnavailable:
                await pass_time(self._rng.uniform(0.0, 1.0))
            except (DuplicateJob, UnknownJob, DependencyCycle) as refusal:
                self._check_refusal(jobs, refusal)
                return
            else:
                self.known += kept
                for job in kept:
                    if self._rng.random() < 0.4:
                        process.spawn(
                            self._guarded(process, partial(self._wait, job)), f"wait for #{job.seq}"
                        )
                return

    def _check_refusal(self, jobs: list[Job], refusal: BetimesError) -> None:
        """What was taken by a try whose reply was lost must be known again, not refused."""
        tokens = {job.terms.token for job in jobs if job.terms is not None}
        if tokens & self._model.tokens:
            self._model.fail(f"submitted again, what had been taken was refused: {refusal!r}")

    async def _misuse_key(self, process: Process) -> None:
        """Ask for something else under a key that is taken."""
        taken = [plan for plan in self._planner.plans.values() if plan.key is not None]
        known = {job.key for job in self.known}
        taken = [plan for plan in taken if plan.key in known]
        if not taken:
            return
        plan = self._rng.choice(taken)
        bound = process.tasks[Task.WALK].using(key=plan.key).bind("something else")
        try:
            await process.scheduler.submit_many([bound])
        except ConfigurationError:
            self._model.tally[Met.KEY_REFUSED] += 1
        else:
            self._model.fail(f"{plan.key} was taken again for other arguments")

    # --- waiting

    async def _wait(self, job: Job, process: Process) -> None:
        """Wait for the end, and compare it with what was recorded."""
        handle: JobHandle[int] = JobHandle(process.scheduler, job)
        waiter = Waiter(process, job.seq)
        self.waiters.append(waiter)
        try:
            status, value = await self._ending(handle)
        finally:
            self.waiters.remove(waiter)
        life = self._model.lives[job.seq]
        if status not in life.finals:
            self._model.fail(f"whoever waited for {life} was told {status.value}; it ended {life.finals}")
        results = [one.number for one in self._model.evidence.of(job.seq) if one.how == RETURNED]
        if status is JobStatus.COMPLETED and value not in results:
            self._model.fail(f"whoever waited for {life} was given {value}; it returned {results}")

    async def _ending(self, handle: JobHandle[int]) -> tuple[JobStatus, int | None]:
        while True:
            try:
                return JobStatus.COMPLETED, await handle.result()
            except JobFailed:
                return JobStatus.FAILED, None
            except JobTimedOut:
                return JobStatus.TIMED_OUT, None
            except JobCancelled:
                return JobStatus.CANCELLED, None
            except StoreUnavailable:
                await pass_time(self._rng.uniform(0.0, 0.5))

    # --- the rest

    def _any(self) -> Job | None:
        if not self.known:
            return None
        return self._rng.choice(self.known[-10:] if self._rng.random() < 0.7 else self.known)

    async def _cancel(self, process: Process) -> None:
        lives, executions = self._model.lives, self._model.evidence.executions
        claimed = [job for job in self.known if lives[job.seq].status is JobStatus.RUNNING]
        silent = [job for job in claimed if (job.seq, lives[job.seq].fence) not in executions]
        job = self._rng.choice(silent or claimed) if claimed and self._rng.random() < 0.6 else self._any()
        if job is None:
            return
        abandon = self._rng.random() < 0.25
        if self._rng.random() < 0.3:
            await process.scheduler.cancel(job.id, abandon=abandon)
        else:
            await JobHandle(process.scheduler, job).cancel(abandon=abandon)

    async def _retry(self, process: Process) -> None:
        """Take one back that has ended, on an operator's word."""
        ended = [job for job in self.known if self._model.lives[job.seq].status.is_terminal]
        if ended:
            job = self._rng.choice(ended)
            try:
                await process.scheduler.retry(job.id)
            except (IllegalTransition, DuplicateJob):
                return  # somebody was faster

    async def _start_over(self, process: Process) -> None:
        """Give up a running job, and have it run again at once, while its old code knows nothing of it."""
        running = [job for job in self.known if self._model.lives[job.seq].status is JobStatus.RUNNING]
        if running:
            job = self._rng.choice(running)
            await JobHandle(process.scheduler, job).cancel(abandon=True)
            try:
                await process.scheduler.retry(job.id)
            except (IllegalTransition, DuplicateJob):
                return

    async def drain(self, process: Process) -> None:
        """Wait until nothing is left to do; in the calm, where nothing new is asked for."""
        await process.scheduler.drain()
        left = [str(life) for life in self._model.lives if not life.status.is_terminal]
        if left:
            self._model.fail(f"{process.name} was told that all is done, and these live: {left}")

    async def _pause_queue(self, process: Process) -> None:
        name = self._rng.choice(QUEUES)
        await process.scheduler.pause_queue(name)
        await pass_time(self._rng.uniform(0.5, 3.0))
        for _ in range(TRIES):
            try:
                await process.scheduler.resume_queue(name)
            except StoreUnavailable:
                await pass_time(0.3)
            else:
                return

    async def _look(self, process: Process) -> None:
        """Look at this and that: it must not fail, and never be out of range."""
        job = self._any()
        if job is not None:
            handle: JobHandle[Any] = JobHandle(process.scheduler, job)
            info = await handle.info()
            await handle.explain()
            if info.version != job.seq:
                self._model.fail(f"asked for #{job.seq}, shown #{info.version}")
        try:
            metrics = await process.scheduler.metrics()
            await process.scheduler.jobs(limit=10)
        except BetimesError as error:
            if not isinstance(error, StoreUnavailable | SchedulerClosed):
                self._model.fail(f"a look has failed: {error!r}")
            return
        if metrics.in_flight > metrics.workers or metrics.peak_running > metrics.workers:
            self._model.fail(
                f"{metrics.in_flight} in flight, {metrics.peak_running} at most, of {metrics.workers}"
            )
