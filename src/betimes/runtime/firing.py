"""Firing: turns the instants of schedules into jobs when they come.

A chore of the worker, so it never runs beside a claim. Each tick asks for the earliest next fire; if that
has come, a bounded number of schedules is planned and settled in one turn of the store, and the next tick
follows at once. Every worker fires; who is first moves the schedule on, and the others find it moved.

A timer waits on the monotonic clock, and schedules follow the wall clock. So a tick comes at least every
`LOOK_EVERY_S` (unless the clock itself tells when it is set), and compares both: a jump of the wall clock
forward, or a sleep of the machine, makes what passed missed, which each schedule's policy deals with. A
jump back makes schedules wait, except that what fired ahead of the present clock must not stall what comes
now (`Timetable.re_aim`).
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from betimes.core.durations import from_us
from betimes.core.firing import LATE_US, Plan
from betimes.core.job import FireKey, Micros
from betimes.core.schedule import Advance, Fire, Fired, FireOutcome, ScheduleRecord
from betimes.core.wording import span
from betimes.core.worker_state import Phase
from betimes.errors import BetimesError, StoreUnavailable
from betimes.ports import ScheduleFilter, Store
from betimes.runtime.definitions import TriggerElsewhere
from betimes.runtime.giving_way import let_others_run
from betimes.runtime.journal import Journal
from betimes.runtime.timetable import NewRun, Timetable
from betimes.runtime.worker import Worker

_log = logging.getLogger("betimes")

AT_ONCE = 500
"""The most schedules that one tick fires; then others have their turn."""

LOOK_EVERY_S = 10.0
"""The longest wait between two looks at the wall clock."""

ROOM_EVERY_S = 5.0
"""How often fires are tried while the store's disk is full."""

OnJump: TypeAlias = Callable[[Callable[[], None]], Callable[[], None] | None]
"""`Clock.on_jump`."""


class Firing:
    """Fires the schedules of a store while a worker runs on it.

    Attributes:
        is_ticking: whether a tick is under way, which looks at what comes next by itself at its end.
    """

    def __init__(
        self,
        store: Store,
        timetable: Timetable,
        journal: Journal,
        worker: Worker,
        *,
        new_run: NewRun,
        on_jump: OnJump,
        look_s: float,
    ) -> None:
        """Fire within this worker's turns."""
        self._store = store
        self._timetable = timetable
        self._journal = journal
        self._worker = worker
        self._new_run = new_run
        self._look_s = look_s
        self._on_jump = on_jump
        self._deafen: Callable[[], None] | None = None
        self.is_ticking = False
        self._is_heard = False
        self._has_room = True
        self._loop = asyncio.get_running_loop()
        self._ahead_us = self._wall_ahead()
        # Schedules that are due, and whose trigger only another process knows.
        self._elsewhere: set[str] = set()

    def begin(self) -> None:
        """Tick from now on; `re_aim` comes before, for what happened while nobody looked at the clock."""
        self._deafen = self._on_jump(self.hurry)
        every_s = self._look_s if self._deafen is None else math.inf
        self._worker.chores.add(every_s, self.tick, now=self._loop.time(), rests=False)
        self.hurry()

    def end(self) -> None:
        """Hear no more of the clock."""
        if self._deafen is not None:
            self._deafen()
            self._deafen = None

    def hurry(self) -> None:
        """Have the next tick come at once; one that is under way looks again by itself if need be."""
        if self.is_ticking:
            self._is_heard = True
            return
        self._worker.chores.hurry(self.tick)
        self._worker.awaken()

    async def tick(self) -> None:
        """Fire what is due, a bounded number, and set the time of the next tick."""
        if self._worker.state.phase is not Phase.RUNNING:
            return
        self.is_ticking = True
        try:
            await self._keep_declared()
            await self._look_at_the_clock()
            due = await self._due(self._store.now())
            if due:
                await self._fire(due)
            # What is heard from here on may be newer than what the store answers.
            self._is_heard = False
            next_at = await self._next_at()
        except BaseException as error:
            if isinstance(error, StoreUnavailable) and error.why == "full":
                self._wait_for_room(error)
                return
            self._worker.chores.hurry(self.tick)
            raise
        finally:
            self.is_ticking = False
        self._has_room = True
        if self._is_heard:
            self.hurry()
        if next_at is not None:
            in_s = max(0.0, (next_at - self._store.now()) / 1_000_000)
            self._worker.chores.hasten(self.tick, self._loop.time() + in_s)
            if not in_s:
                # More is due than one tick may fire: what has been made starts meanwhile.
                await let_others_run()

    def _wait_for_room(self, error: StoreUnavailable) -> None:
        """Try again in a while, when the disk has no room for new jobs: those that are there go on meanwhile.

        Whoever has room again finds the instants missed, which each schedule's policy deals with.
        """
        if self._has_room:
            self._has_room = False
            _log.error("schedules wait until their jobs can be kept: %s", error)
        self._worker.chores.hasten(self.tick, self._loop.time() + ROOM_EVERY_S)

    async def _keep_declared(self) -> None:
        while True:
            try:
                await self._timetable.keep_declared()
            except StoreUnavailable:
                raise
            except BetimesError as error:  # it is not asked for again; the others are
                _log.error("a schedule that a task asks for cannot be kept: %s", error)
            else:
                return

    async def has_due(self) -> bool:
        """Say whether something is due that this worker can fire."""
        next_at = await self._next_at()
        return next_at is not None and next_at <= self._store.now()

    # --- what is due

    async def _next_at(self) -> Micros | None:
        """Return the next instant at which there is something to fire here; None: there is none."""
        if not self._elsewhere:
            return await self._store.next_fire()
        which = ScheduleFilter(due_by=_FOREVER, limit=len(self._elsewhere) + 1)
        for record in await self._store.schedules(which):
            if record.id not in self._elsewhere:
                return record.next_fire_at
        return None

    async def _due(self, now: Micros) -> list[Advance]:
        """Plan the next steps of the schedules that are due, the earliest first."""
        next_at = await self._store.next_fire()
        self._elsewhere.clear()
        advances: list[Advance] = []
        after: ScheduleRecord | None = None
        while next_at is not None and next_at <= now and len(advances) < AT_ONCE:
            which = ScheduleFilter(due_by=now, after=after, limit=AT_ONCE - len(advances))
            page = await self._store.schedules(which)
            for record in page:
                advance = await self._plan(record, now)
                if advance is not None:
                    advances.append(advance)
            if len(page) < which.limit:
                break
            after = page[-1]
        return advances

    async def _plan(self, record: ScheduleRecord, now: Micros) -> Advance | None:
        if record.error is not None:  # it is not paused, so this is what the store says of its row
            await self._timetable.break_off(record, BetimesError(record.error))
            return None
        try:
            terms, grid = self._timetable.definitions.read(record)
            return Plan(
                terms=terms,
                grid=grid,
                now=now,
                new_job=lambda at: self._new_run(record, terms, FireKey(record.id, at)),
            ).advance(record)
        except TriggerElsewhere:
            self._elsewhere.add(record.id)
        except BetimesError as error:
            await self._timetable.break_off(record, error)
        return None

    # --- firing

    async def _fire(self, due: Sequence[Advance]) -> None:
        fired, changes = await self._store.fire(due)
        self._journal.changes(changes)
        for each in fired:
            if each is not None:
                self._tell(each)

    def _tell(self, fired: Fired) -> None:
        counters = self._journal.counters
        for fire in fired.fires:
            if fire.outcome is FireOutcome.FIRED:
                counters.fires += 1
                continue
            counters.skipped_fires += fire.count
            if fire.outcome is FireOutcome.OVERLAP:
                _log.info("schedule %s: skipped: job %s has not ended", fired.record.id, fire.job_id)
            else:
                _log.warning("schedule %s: %s", fired.record.id, missed_words(fire))

    # --- clocks

    def _wall_ahead(self) -> Micros:
        """Return how far the wall clock is ahead of the loop's monotonic one."""
        return self._store.now() - round(self._loop.time() * 1_000_000)

    async def _look_at_the_clock(self) -> None:
        """Notice that the wall clock was set, or that the machine slept."""
        ahead_us = self._wall_ahead()
        moved = ahead_us - self._ahead_us
        if moved >= LATE_US:
            _log.warning("the wall clock went forward by %s: set, or the machine slept", span(moved))
        elif moved <= -LATE_US:
            _log.warning("the wall clock was set back by %s", span(-moved))
            await self.re_aim()
        # Only now: what the store could not be told of is noticed again at the next look.
        self._ahead_us = ahead_us

    async def re_aim(self) -> None:
        """Have the schedules go on from now that have fired ahead of the clock as it is now."""
        after: ScheduleRecord | None = None
        while True:
            which = ScheduleFilter(fired_after=self._store.now() + LATE_US, after=after)
            page = await self._store.schedules(which)
            for record in page:
                try:
                    await self._timetable.re_aim(record)
                except StoreUnavailable:
                    raise
                except TriggerElsewhere:
                    continue
                except BetimesError as error:
                    await self._timetable.break_off(record, error)
            if len(page) < which.limit:
                return
            after = page[-1]


def missed_words(fire: Fire) -> str:
    """Say in words what became of instants that were missed."""
    count = f"{fire.count}" if fire.is_exact else f"at least {fire.count}"
    instants = "1 instant was" if fire.count == 1 else f"{count} instants were"
    when = from_us(fire.at).isoformat()
    if fire.first_at != fire.at:
        when = f"{from_us(fire.first_at).isoformat()} to {when}"
    ends = {
        FireOutcome.MERGED: "one run stands for them" + (f": job {fire.job_id}" if fire.job_id else ""),
        FireOutcome.MISSED: "missed='skip': they are not made up for",
        FireOutcome.CATCH_UP: "older than the newest that max_catchup makes up for",
    }
    return f"{instants} missed ({when}); {ends.get(fire.outcome, fire.outcome.value)}"


_FOREVER = 1 << 62
