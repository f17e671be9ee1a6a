"""The scheduling face of a scheduler: schedules added, looked at, paused, removed, run now."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from betimes.core.durations import instant_us
from betimes.core.job import JobSpec
from betimes.core.schedule import ScheduleRecord
from betimes.core.task import TaskDefinition
from betimes.core.traits import Traits
from betimes.core.triggers import Trigger
from betimes.core.wording import shown
from betimes.errors import BetimesError, ConfigurationError
from betimes.handles import JobHandle
from betimes.ports import ScheduleFilter
from betimes.runtime.engine import Engine
from betimes.schedule_info import FireInfo, ScheduleInfo
from betimes.schedule_options import MissedPolicy, OnConflict, OverlapPolicy, ScheduleOptions, ask
from betimes.tasks import BoundJob, Duration, check_name
from betimes.wiring import check_limit

if TYPE_CHECKING:
    from betimes.core.schedule_reason import NextFire, ScheduleExplanation
    from betimes.scheduler import Scheduler


class Scheduling:
    """Has the engine's timetable keep what users ask for."""

    _engine: Engine
    _definitions: dict[str, TaskDefinition]

    async def add_schedule(
        self,
        schedule_id: str,
        bound: BoundJob[Any],
        trigger: Trigger,
        *,
        overlap: OverlapPolicy = "skip",
        missed: MissedPolicy = "latest",
        max_catchup: int | None = None,
        jitter: Duration | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
        on_conflict: OnConflict = "update",
    ) -> ScheduleInfo:
        """Keep a schedule: a job of the bound call at each instant of the trigger.

        The same definition again, as at every start of a program, changes nothing; a changed one takes the
        place of the old one, and goes on along its grid. The grid of `every(…)` begins at `start`, or else
        when the schedule is first added, and no restart shifts it.

        Args:
            schedule_id: its name.
            bound: made with `task.bind(…)`, or `task.using(…).bind(…)` with options that can hold for many
                jobs.
            trigger: made by `cron`, `every`, `calendar` or `at`, or a `Trigger` of your own.
            overlap: what if a run has not ended when the next is due: `"skip"` the next, `"queue_one"`,
                `"replace"` the one that runs, or `"allow"` both.
            missed: what of instants that passed while nothing could fire: one run for the `"latest"`,
                `"skip"`, or `"all"`, each with its own `scheduled_for`.
            max_catchup: how many of the newest missed instants `"all"` makes up for, 1 to 1,000 (100).
            jitter: each run starts up to so much later than its instant; the grid is not moved.
            start: no fire is earlier; aware.
            end: no fire is later; aware.
            on_conflict: what if there is a schedule of this name: `"update"` it, `"keep"` it as it is, or
                `"error"`.

        Raises:
            ConfigurationError: an argument is wrong, or there is such a schedule and `on_conflict="error"`.
            InvalidTrigger: the trigger raised, or what it answered was not later than what it was asked.
            SchedulerClosed: the scheduler is not open, or stopping.

        Example:
            await scheduler.add_schedule("digest-ada", digest.bind("ada"), cron("0 9 * * mon-fri"))
        """
        self._engine.check_open()
        if not isinstance(bound, BoundJob):
            raise ConfigurationError(
                f"a schedule runs a bound call, made with task.bind(…), and this is {shown(bound)}"
            )
        if bound.scheduler is not self:
            raise ConfigurationError(f"{bound.task.name} is a task of another scheduler: add it there")
        options = ScheduleOptions(
            overlap=overlap, missed=missed, max_catchup=max_catchup, jitter=jitter, start=start, end=end
        )
        asked = ask(
            schedule_id,
            bound.spec,
            bound.payload,
            trigger,
            options,
            submit_options=bound.options,
            on_conflict=on_conflict,
            gates=Traits(bound.task).gates(bound.payload),
        )
        record = await self._engine.timetable.add(asked)
        await self._let_others_run()
        return self._info(record)

    async def schedule(self, schedule_id: str) -> ScheduleInfo:
        """Return what is known of a schedule.

        Raises:
            UnknownSchedule: there is none.
        """
        return self._info(await self._schedule(schedule_id))

    async def schedules(self, *, limit: int = 100, after: str | None = None) -> list[ScheduleInfo]:
        """List schedules by id.

        Args:
            limit: the most to return, 1 to 1,000.
            after: only those whose id comes behind this one: the last of the page before.
        """
        self._engine.check_here()
        check_limit(limit)
        mark = None if after is None else _mark(check_name(after, "after"))
        records = await self._engine.store.schedules(ScheduleFilter(after=mark, limit=limit))
        return [self._info(record) for record in records]

    async def pause_schedule(self, schedule_id: str) -> ScheduleInfo:
        """Have a schedule fire nothing until it is resumed; kept by the store.

        Raises:
            UnknownSchedule: there is none.
        """
        self._engine.check_here()
        return self._info(await self._engine.timetable.pause(check_name(schedule_id, "schedule_id")))

    async def resume_schedule(self, schedule_id: str) -> ScheduleInfo:
        """Have a schedule fire again from now on; what passed meanwhile is recorded as skipped.

        Raises:
            UnknownSchedule: there is none.
            BetimesError: the scheduler had paused it, and what it was paused for is still so.
        """
        self._engine.check_here()
        return self._info(await self._engine.timetable.resume(check_name(schedule_id, "schedule_id")))

    async def remove_schedule(self, schedule_id: str) -> None:
        """Remove a schedule and its history; the jobs it made stay.

        A task's own schedule (`@scheduler.task(schedule=…)`) comes back at the program's next start.

        Raises:
            UnknownSchedule: there is none.
        """
        self._engine.check_here()
        await self._engine.timetable.remove(check_name(schedule_id, "schedule_id"))

    async def trigger_now(self, schedule_id: str) -> JobHandle[Any]:
        """Make a run of a schedule now, without moving its grid; also of a paused one.

        It keeps to `overlap`: unless runs may overlap, it waits for the one that runs (or replaces it).

        Raises:
            UnknownSchedule: there is none.
        """
        self._engine.check_open()
        job = await self._engine.timetable.run_now(check_name(schedule_id, "schedule_id"))
        await self._let_others_run()
        return JobHandle(cast("Scheduler", self), job)

    async def next_fires(self, schedule_id: str, *, limit: int = 10) -> list[NextFire]:
        """Return the next instants of a schedule; of a paused one, those it would have if it were resumed.

        A fixed delay (`after="finish"`) has one at most: the others depend on how long its runs take.

        Args:
            schedule_id: which.
            limit: the most to return, 1 to 1,000.

        Raises:
            UnknownSchedule: there is none.
            BetimesError: its definition cannot be read here.
        """
        from betimes.core.upcoming import next_fires  # noqa: PLC0415 - as `explain_schedule`

        check_limit(limit)
        record = await self._schedule(schedule_id)
        _, grid = self._engine.timetable.definitions.read(record)
        pending = record.next_fire_at
        after = self._engine.store.now() if pending is None or record.paused else pending - 1
        return next_fires(grid, after, limit if record.delay_us is None else 1)

    async def schedule_history(
        self, schedule_id: str, *, before: datetime | None = None, limit: int = 100
    ) -> list[FireInfo]:
        """List what became of a schedule's instants, newest first.

        Args:
            schedule_id: which.
            before: only instants before this one: the next page.
            limit: the most to return, 1 to 1,000.

        Raises:
            UnknownSchedule: there is none.
        """
        record = await self._schedule(schedule_id)
        before_us = None if before is None else instant_us(before, name="before")
        check_limit(limit)
        fires = await self._engine.store.fires(record.id, before=before_us, limit=limit)
        return [FireInfo.of(fire) for fire in fires]

    async def explain_schedule(self, schedule_id: str, at: datetime | None = None) -> ScheduleExplanation:
        """Say what a schedule waits for and when it fires next; with `at`, why it did or did not run then.

        Raises:
            UnknownSchedule: there is none.
        """
        # Imported when first asked: many programs never do, and all pay for what they import.
        from betimes.runtime.explaining_schedules import explain  # noqa: PLC0415

        at_us = None if at is None else instant_us(at, name="at")
        record = await self._schedule(schedule_id)
        engine = self._engine
        return await explain(
            engine.store,
            engine.timetable.definitions,
            record,
            at_us,
            tasks=self._definitions,
            is_working=engine.worker is not None,
        )

    async def _let_others_run(self) -> None:
        """Count a call among the submits: a loop of calls that need not wait must not starve the rest."""
        engine = self._engine
        engine.submits += 1
        if engine.submits >= engine.yields_after:
            await engine.let_others_run()

    async def _schedule(self, schedule_id: str) -> ScheduleRecord:
        self._engine.check_here()
        return await self._engine.timetable.get(check_name(schedule_id, "schedule_id"))

    def _info(self, record: ScheduleRecord) -> ScheduleInfo:
        timetable = self._engine.timetable
        try:
            terms, grid = timetable.definitions.read(record)
        except BetimesError as error:
            return ScheduleInfo.of(record, timetable.terms_or_none(record), None, str(error))
        return ScheduleInfo.of(record, terms, grid)


def _mark(schedule_id: str) -> ScheduleRecord:
    """Return a record that stands for an id in the order of the list."""
    return ScheduleRecord(id=schedule_id, spec=JobSpec(task=""))
