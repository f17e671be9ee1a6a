"""What people and programs ask of schedules: drawn by chance, carried out within the processes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random

from tests.simulation.loops import pass_time
from tests.simulation.process import Process
from tests.simulation.schedule_witness import ScheduleWitness
from tests.simulation.tally import Met
from tests.simulation.timetables import Asked, Timetables

from betimes.core.durations import from_us
from betimes.core.job import Job, JobStatus
from betimes.errors import (
    DuplicateJob,
    IllegalTransition,
    SchedulerClosed,
    StoreUnavailable,
    UnknownJob,
    UnknownSchedule,
)

TRIES = 20


class TimetableClients:
    """Draws and carries out operations on schedules."""

    def __init__(self, rng: Random, timetables: Timetables, witness: ScheduleWitness) -> None:
        self._rng = rng
        self._timetables = timetables
        self._witness = witness

    def begin(self, process: Process) -> None:
        """Have a process that has started add all schedules, as each start of a program does."""
        if self._timetables.asked:
            process.spawn(self._guarded(process, self._add_all), "add all")

    def operate(self, process: Process) -> None:
        """Begin one operation, drawn by chance."""
        kinds: list[tuple[int, Callable[[Process], Awaitable[None]]]] = [
            (15, self._add_one),
            (15, self._change),
            (20, self._pause),
            (5, self._remove),
            (25, self._run_now),
            (10, self._look),
            (10, self._cancel),
            (8, self._retry),
        ]
        operation = self._rng.choices([kind for _, kind in kinds], [weight for weight, _ in kinds])[0]
        process.spawn(self._guarded(process, operation), operation.__name__.strip("_"))

    async def _guarded(self, process: Process, operation: Callable[[Process], Awaitable[None]]) -> None:
        """An operation may fail because something is out of reach, or gone, or stops; nothing else."""
        try:
            await operation(process)
        except (StoreUnavailable, SchedulerClosed, UnknownSchedule, UnknownJob):
            return

    async def _until_done(self, call: Callable[[], Awaitable[object]]) -> None:
        for _ in range(TRIES):
            try:
                await call()
            except StoreUnavailable:
                await pass_time(self._rng.uniform(0.0, 0.5))
            else:
                return

    # --- adding and changing

    async def _add_all(self, process: Process) -> None:
        for asked in list(self._timetables.asked.values()):
            await self._add(process, asked)

    async def _add_one(self, process: Process) -> None:
        if self._timetables.asked:
            await self._add(process, self._rng.choice(list(self._timetables.asked.values())))

    async def _add(self, process: Process, asked: Asked) -> None:
        plan = asked.plan
        task = process.tasks[plan.task].using(
            priority=plan.priority, timeout=plan.timeout_s, retry=plan.retry
        )
        course = self._witness.courses.get(asked.id)
        before = None if course is None else (course.terms, course.since)
        await self._until_done(
            lambda: process.scheduler.add_schedule(
                asked.id, task.bind(plan.name), asked.trigger, **asked.options
            )
        )
        after = self._witness.courses.get(asked.id)
        if after is not None and (after.terms, after.since) == before:
            self._witness.model.tally[Met.ADDED_AGAIN] += 1

    async def _change(self, process: Process) -> None:
        if self._timetables.asked:
            await self._add(process, self._timetables.changed(self._rng.choice(list(self._timetables.asked))))

    def _any(self) -> str | None:
        courses = self._witness.courses
        return self._rng.choice(list(courses)) if courses else None

    async def _pause(self, process: Process) -> None:
        """Pause one for a while, and resume it."""
        schedule_id = self._any()
        if schedule_id is not None:
            await process.scheduler.pause_schedule(schedule_id)
            await pass_time(self._rng.uniform(0.5, 8.0))
            await self._until_done(lambda: process.scheduler.resume_schedule(schedule_id))

    async def _remove(self, process: Process) -> None:
        if (schedule_id := self._any()) is not None:
            await process.scheduler.remove_schedule(schedule_id)

    async def _run_now(self, process: Process) -> None:
        if (schedule_id := self._any()) is not None:
            await process.scheduler.trigger_now(schedule_id)

    # --- its jobs

    def _jobs(self, *, ended: bool) -> list[Job]:
        model = self._witness.model
        seqs = list(self._witness.fires.keys)[-12:]
        records = [model.peek(seq) for seq in seqs if model.lives[seq].status.is_terminal is ended]
        return [record for record in records if record is not None]

    async def _cancel(self, process: Process) -> None:
        """Cancel one of the newest runs, and give it up, at times."""
        jobs = self._jobs(ended=False)
        if jobs:
            job = self._rng.choice(jobs)
            await process.scheduler.cancel(job.id, abandon=self._rng.random() < 0.2)

    async def _retry(self, process: Process) -> None:
        """Take one of the newest runs back, on an operator's word."""
        jobs = [job for job in self._jobs(ended=True) if job.status is not JobStatus.COMPLETED]
        if jobs:
            try:
                await process.scheduler.retry(self._rng.choice(jobs).id)
            except (IllegalTransition, DuplicateJob):
                return  # somebody was faster

    async def _look(self, process: Process) -> None:
        """Look at this and that: it must not fail."""
        scheduler, schedule_id = process.scheduler, self._any()
        await scheduler.schedules()
        if schedule_id is not None:
            await scheduler.schedule_history(schedule_id, limit=5)
            now = from_us(self._witness.model.now())
            await scheduler.explain_schedule(schedule_id, now - timedelta(seconds=self._rng.uniform(-9, 9)))
