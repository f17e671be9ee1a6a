"""The schedules of a store, as users change them: each change is one compare-and-set on what was seen."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from msgspec.structs import replace

from betimes.core.durations import from_us
from betimes.core.firing import LATE_US
from betimes.core.job import FireKey, Job, JobSpec, Micros
from betimes.core.schedule import Advance, Fire, FireOutcome, Overlap, ScheduleRecord
from betimes.core.schedule_terms import OWN_KIND, ScheduleTerms
from betimes.core.triggers import Trigger
from betimes.errors import BetimesError, ConfigurationError, StoreUnavailable, UnknownSchedule
from betimes.ports import Store
from betimes.runtime.declarations import Declarations
from betimes.runtime.definitions import Definitions
from betimes.runtime.journal import Journal

_log = logging.getLogger("betimes")

TRIES = 50
"""How often a change is tried again that somebody else's change has forestalled."""

LOOKED_THROUGH = 1000
"""In how many of its newest fires the live jobs of a schedule are looked for, where it has not noted them."""

NewRun: TypeAlias = Callable[[ScheduleRecord, ScheduleTerms, FireKey], Job]
"""Makes the job of one fire of a schedule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchedule:
    """A schedule as it was asked for.

    Attributes:
        id: the user's name for it.
        spec, payload: the jobs it makes.
        trigger: as it was given, not anchored.
        terms: its policies; where its grid begins is filled in when it is kept.
        on_conflict: `update`, `keep` or `error`: what if there is a schedule of this id.
    """

    id: str
    spec: JobSpec
    payload: bytes
    trigger: Trigger
    terms: ScheduleTerms
    on_conflict: str = "update"


class Timetable:
    """Adds, changes, pauses and removes schedules.

    Attributes:
        definitions: what their definitions mean.
    """

    def __init__(self, store: Store, journal: Journal, new_run: NewRun, declarations: Declarations) -> None:
        """Keep the schedules of this store."""
        self._declarations = declarations
        self._store = store
        self._journal = journal
        self._new_run = new_run
        self.definitions = Definitions()
        self._declared: dict[str, NewSchedule] = {}
        self._to_keep: dict[str, NewSchedule] = {}

    def declare(self, asked: NewSchedule) -> None:
        """Have a schedule kept that a task asks for by its decorator, before anything is fired."""
        self._declared[asked.id] = self._to_keep[asked.id] = asked

    def declared(self) -> list[NewSchedule]:
        """Return the schedules that tasks ask for."""
        return list(self._declared.values())

    def begin(self) -> None:
        """Have all that tasks ask for kept (again): the store may be another one, or changed."""
        self._to_keep = dict(self._declared)

    async def keep_declared(self) -> None:
        """Keep what was declared since last asked, the rules that its jobs will need first.

        Raises:
            StoreUnavailable: not now; it is kept the next time.
            Others as `add`: this one is not asked for again.
        """
        if self._declarations.are_due:
            await self._declarations.declare()
        while self._to_keep:
            schedule_id, asked = next(iter(self._to_keep.items()))
            try:
                await self.add(asked)
            except StoreUnavailable:
                raise
            except BaseException:
                self._to_keep.pop(schedule_id, None)
                raise
            self._to_keep.pop(schedule_id, None)

    async def get(self, schedule_id: str) -> ScheduleRecord:
        """Return a schedule.

        Raises:
            UnknownSchedule: there is none.
        """
        record = await self._store.schedule(schedule_id)
        if record is None:
            raise UnknownSchedule(
                f"there is no schedule {schedule_id!r}: schedules() lists them", schedule_id=schedule_id
            )
        return record

    async def add(self, asked: NewSchedule) -> ScheduleRecord:
        """Keep a schedule; the same again changes nothing, and a changed one goes on along its grid.

        Raises:
            ConfigurationError: there is one of this id, and `on_conflict` is `error`.
            TriggerFailed: its trigger raised, or does not advance.
        """
        for _ in range(TRIES):
            standing = await self._store.schedule(asked.id)
            if standing is None:
                record = self._new(asked)
            elif asked.on_conflict == "error":
                raise ConfigurationError(
                    f"there is a schedule {asked.id!r} already: choose another id, or pass "
                    "on_conflict='update' or 'keep'"
                )
            elif asked.on_conflict == "keep":
                self._note_kept(asked, standing)
                return standing
            else:
                record = await self._with_live_jobs(asked, standing, self._changed(asked, standing))
            self._note_own(asked, standing)
            if standing is not None and record is standing:
                return standing
            expected = None if standing is None else standing.version
            if await self._store.save_schedule(record, expected_version=expected):
                return record if expected is None else replace(record, version=expected + 1)
        raise _restless(asked.id)

    def _note_own(self, asked: NewSchedule, standing: ScheduleRecord | None) -> None:
        """Remember a trigger of a user's own class, unless another kind of trigger is kept."""
        if asked.terms.trigger.get("kind") == OWN_KIND:
            self.definitions.own[asked.id] = asked.trigger
        elif standing is not None:
            self.definitions.own.pop(asked.id, None)

    def _note_kept(self, asked: NewSchedule, standing: ScheduleRecord) -> None:
        """Remember the trigger of a schedule that stays as it is, if it is the one that was passed again."""
        old = self.terms_or_none(standing)
        if old is not None and old.is_own and old.trigger == asked.terms.trigger:
            self.definitions.own[asked.id] = asked.trigger

    def _new(self, asked: NewSchedule) -> ScheduleRecord:
        now = self._store.now()
        starts_at = asked.terms.starts_at
        terms = replace(asked.terms, anchor=now if starts_at is None else starts_at, created_at=now)
        # A schedule that starts now or later has its start among its instants, if its trigger has.
        after = now if starts_at is None or starts_at < now else starts_at - 1
        record = self._record(asked, terms)
        record = replace(record, version=now, next_fire_at=self._next(asked, terms, after))
        if record.next_fire_at is None:
            _log.warning("schedule %s has no instant ahead: it will not fire", asked.id)
        return record

    def _record(self, asked: NewSchedule, terms: ScheduleTerms) -> ScheduleRecord:
        return ScheduleRecord(
            id=asked.id,
            spec=asked.spec,
            payload=asked.payload,
            definition=terms.to_text(),
            delay_us=asked.trigger.delay_after_finish_us,
            ends_at=terms.ends_at,
        )

    def _next(self, asked: NewSchedule, terms: ScheduleTerms, after: Micros) -> Micros | None:
        return self.definitions.grid(terms, asked.trigger.anchored(terms.anchor)).next(after)

    def _changed(self, asked: NewSchedule, standing: ScheduleRecord) -> ScheduleRecord:
        """Return the schedule as it is to be; the one that stands if nothing differs."""
        old = self.terms_or_none(standing)
        if old is None or old.created_at > self._store.now() + LATE_US:
            # It cannot be read any more, or was added by a clock that has been set back since, so that its
            # grid lies ahead: begin anew, but fire no instant twice.
            return replace(
                self._new(asked),
                paused=standing.paused and standing.error is None,
                last_fire_at=standing.last_fire_at,
                fired=standing.fired,
                skipped=standing.skipped,
                jobs=standing.jobs,
            )
        same_jobs = (asked.spec, asked.payload) == (standing.spec, standing.payload)
        if same_jobs and asked.terms.asks_the_same_as(old) and standing.error is None:
            return standing
        starts_at = asked.terms.starts_at
        moves = starts_at is not None and starts_at != old.starts_at
        terms = replace(
            asked.terms,
            anchor=starts_at if moves and starts_at is not None else old.anchor,
            created_at=old.created_at,
        )
        record = replace(
            standing,
            spec=asked.spec,
            payload=asked.payload,
            definition=terms.to_text(),
            delay_us=asked.trigger.delay_after_finish_us,
            ends_at=terms.ends_at,
            error=None,
            paused=standing.paused and standing.error is None,
        )
        same_grid = (terms.trigger, terms.starts_at, terms.ends_at) == (
            old.trigger,
            old.starts_at,
            old.ends_at,
        )
        if same_grid and standing.error is None:
            # What was held back is decided anew: the policies may be others now.
            return (
                record
                if record.held_at is None
                else replace(record, next_fire_at=record.held_at, held_at=None)
            )
        return self._regridded(asked, terms, record)

    async def _with_live_jobs(
        self, asked: NewSchedule, standing: ScheduleRecord, changed: ScheduleRecord
    ) -> ScheduleRecord:
        """Have a schedule whose runs may overlap no longer know those that are live: it noted none so far."""
        old = self.terms_or_none(standing)
        if old is None or old.overlap is not Overlap.ALLOW or asked.terms.overlap is Overlap.ALLOW:
            return changed
        seqs = set(standing.jobs)
        for fire in await self._store.fires(standing.id, limit=LOOKED_THROUGH):
            if fire.job_id is not None and not fire.outcome.is_skip:
                job = await self._store.find(fire.job_id)
                if job is not None and not job.status.is_terminal:
                    seqs.add(job.seq)
        return replace(changed, jobs=tuple(sorted(seqs)))

    def _regridded(self, asked: NewSchedule, terms: ScheduleTerms, record: ScheduleRecord) -> ScheduleRecord:
        """Return a schedule with the next fire of its new grid; what was due and not fired is due still."""
        now = self._store.now()
        if record.awaits is not None and record.delay_us is not None:
            return record
        pending = record.next_fire_at if record.held_at is None else record.held_at
        after = now if pending is None or pending > now else pending - 1
        if record.last_fire_at is not None and record.last_fire_at <= now:
            after = max(after, record.last_fire_at)
        following = self._next(asked, terms, after)
        return replace(record, next_fire_at=following, held_at=None, awaits=None)

    @staticmethod
    def terms_or_none(record: ScheduleRecord) -> ScheduleTerms | None:
        """Return a schedule's terms; None: they cannot be read here."""
        try:
            return ScheduleTerms.from_text(record.definition)
        except BetimesError:
            return None

    async def pause(self, schedule_id: str) -> ScheduleRecord:
        """Have a schedule fire nothing until it is resumed."""
        for _ in range(TRIES):
            standing = await self.get(schedule_id)
            if standing.paused:
                return standing
            if await self._store.save_schedule(
                replace(standing, paused=True), expected_version=standing.version
            ):
                return await self.get(schedule_id)
        raise _restless(schedule_id)

    async def resume(self, schedule_id: str) -> ScheduleRecord:
        """Have a schedule fire again, from now on; what passed meanwhile is recorded as skipped.

        Raises:
            BetimesError: what it was paused for by the scheduler is still so.
        """
        for _ in range(TRIES):
            standing = await self.get(schedule_id)
            if not standing.paused:
                return standing
            record, fires = self._resumed(standing)
            if await self._store.save_schedule(record, expected_version=standing.version, fires=fires):
                self._journal.counters.skipped_fires += sum(fire.count for fire in fires)
                return await self.get(schedule_id)
        raise _restless(schedule_id)

    def _resumed(self, standing: ScheduleRecord) -> tuple[ScheduleRecord, tuple[Fire, ...]]:
        record = replace(standing, paused=False, error=None)
        now = self._store.now()
        _, grid = self.definitions.read(standing)
        first = standing.next_fire_at
        if standing.delay_us is not None or (first is None and standing.is_due_after_an_end):
            return record, ()
        if first is None or first > now:
            return replace(record, next_fire_at=grid.next(now)) if first is None else record, ()
        window = grid.window(first, now, keep=1)
        skip = Fire(
            at=window.newest[-1],
            first_at=first,
            count=window.earlier + 1,
            is_exact=window.is_exact,
            outcome=FireOutcome.PAUSED,
            decided_at=now,
        )
        return (
            replace(
                record,
                next_fire_at=window.following,
                last_fire_at=skip.at,
                skipped=record.skipped + skip.count,
            ),
            (skip,),
        )

    async def remove(self, schedule_id: str) -> None:
        """Remove a schedule; its jobs stay."""
        if not await self._store.remove_schedule(schedule_id):
            await self.get(schedule_id)
        self.definitions.own.pop(schedule_id, None)

    async def run_now(self, schedule_id: str) -> Job:
        """Make a job of a schedule now, beside its grid."""
        if self._declarations.are_due:
            await self._declarations.declare()
        for _ in range(TRIES):
            standing = await self.get(schedule_id)
            terms = ScheduleTerms.from_text(standing.definition)
            job = self._new_run(standing, terms, FireKey(standing.id, self._store.now(), by_hand=True))
            advance = Advance(
                record=standing,
                overlap=terms.overlap,
                missed=terms.missed,
                due=(job,),
                next_fire_at=standing.next_fire_at,
                by_hand=True,
            )
            (fired,), changes = await self._store.fire([advance])
            if fired is not None:
                self._journal.changes(changes)
                return fired.jobs[0]
        raise _restless(schedule_id)

    async def re_aim(self, record: ScheduleRecord) -> None:
        """Have a schedule that fired ahead of the clock, which was set back since, go on from now.

        What it has fired already is stepped over when it comes again; what is due stays due.
        """
        now = self._store.now()
        if record.last_fire_at is None or record.last_fire_at <= now + LATE_US:
            return  # since it was looked up, the clock was set forward again
        _, grid = self.definitions.read(record)
        # One that was over by the other clock may have instants ahead again.
        next_at, held_at = (
            at if at is not None and at <= now else grid.next(now)
            for at in (record.next_fire_at, record.held_at)
        )
        re_aimed = replace(
            record,
            next_fire_at=None if record.is_due_after_an_end else next_at,
            held_at=None if record.held_at is None else held_at,
            last_fire_at=now,
        )
        if await self._store.save_schedule(re_aimed, expected_version=record.version):
            _log.warning(
                "schedule %s had fired for %s, and the clock was set back: it goes on from now",
                record.id,
                from_us(record.last_fire_at).isoformat(),
            )

    async def break_off(self, record: ScheduleRecord, error: BetimesError) -> None:
        """Pause a schedule that cannot go on, and say why; the others are not affected."""
        paused = replace(record, paused=True, error=str(error))
        if await self._store.save_schedule(paused, expected_version=record.version):
            _log.error("schedule %s is paused: %s", record.id, error)


def _restless(schedule_id: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"schedule {schedule_id!r} was changed by others each of {TRIES} times it was tried: try again"
    )
