"""Sees every call on schedules that the shared store carries out, and holds it to the promises."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.simulation.courses import Course, aim_of
from tests.simulation.fires import Fires
from tests.simulation.lives import Life
from tests.simulation.reckoning import Cause, Reckoning
from tests.simulation.timekeeping import Timekeeping

from betimes.core.firing import LATE_US
from betimes.core.job import Micros
from betimes.core.schedule import Advance, Fire, Fired, FireOutcome, Overlap, ScheduleRecord


class ScheduleWitness:
    """Keeps the model of the schedules.

    Attributes:
        timekeeping, fires: what is known of schedules, and of the jobs they made.
    """

    def __init__(self, model: Reckoning) -> None:
        self.model = model
        self.timekeeping = Timekeeping(model)
        self.fires = Fires(model, self.timekeeping)

    @property
    def courses(self) -> dict[str, Course]:
        """The schedules that there are."""
        return self.timekeeping.courses

    def fired(
        self,
        advances: Sequence[Advance],
        befores: dict[str, ScheduleRecord | None],
        fired: Sequence[Fired | None],
        follow: Callable[[Cause], None],
        planned_at: Micros,
    ) -> None:
        """Steps of schedules were carried out; `follow` goes through the changes of their jobs."""
        to_give_way: dict[str, list[Life]] = {}
        for advance, out in zip(advances, fired, strict=True):
            schedule_id = advance.record.id
            course = self.courses.get(schedule_id)
            if out is not None and out.jobs and course and course.terms.overlap is Overlap.REPLACE:
                to_give_way[schedule_id] = course.live(self.model.lives)
            self.fires.step(advance, befores.get(schedule_id), out, planned_at)
            if out is not None:
                befores[schedule_id] = None  # what it was seen to be, it is no longer
        follow(Cause.FIRE)
        self.fires.check_replaced(to_give_way)

    def removed(self, before: ScheduleRecord, history: Sequence[Fire]) -> None:
        """A schedule was removed: this is the last look at what became of its instants."""
        course = self.courses.pop(before.id)
        aim = aim_of(before)
        self.timekeeping.check_decided(course, self.model.now() if aim is None else aim - 1)
        told = {fire.at: fire for fire in history if fire.outcome is not FireOutcome.BY_HAND}
        if told != course.told:
            differing = [at for at in told.keys() | course.told.keys() if told.get(at) != course.told.get(at)]
            at = min(differing)
            self.model.fail(
                f"{course} remembers {told.get(at)}, and this became of it: {course.told.get(at)}"
            )

    def retried(self, seq: int) -> None:
        """An operator took a job back: if a schedule made it, it may be in the way again."""
        key = self.fires.keys.get(seq)
        if key is not None and key.schedule in self.courses:
            self.courses[key.schedule].live_jobs.add(seq)

    # --- looking at everything

    def look(self, records: Sequence[ScheduleRecord]) -> None:
        """Compare all that the store holds of schedules with the model."""
        if {record.id for record in records} != set(self.courses):
            self.model.fail(f"there are {[record.id for record in records]}, and were {list(self.courses)}")
            return
        for record in records:
            complaint = self._stuck(self.courses[record.id], record)
            if complaint is not None:
                self.model.fail(f"{record} {complaint}")

    def _stuck(self, course: Course, record: ScheduleRecord) -> str | None:
        """Say why a schedule will never fire again; None: it will, or its time is over."""
        live = {life.seq for life in course.live(self.model.lives)}
        if record.held_at is not None:
            return None if live else "waits for the end of a run, and none is live"
        if record.next_fire_at is not None:
            return None
        if not course.has_grid:
            is_waiting = record.awaits in live
            return None if is_waiting or course.terms.ends_at is not None else "waits for no run's end"
        following = course.grid.next(max(course.since, record.last_fire_at or 0))
        while following in course.decided:  # before the clock was set back
            following = course.grid.next(following)
        return None if following is None else f"has no next fire, and {following} is to come"

    def complaints(self, records: Sequence[ScheduleRecord]) -> dict[tuple[object, ...], str]:
        """Say what is due and does not fire; in the calm it must, soon."""
        now, standing = self.model.now(), dict[tuple[object, ...], str]()
        for record in records:
            aim = record.next_fire_at
            if record.paused:
                continue
            if aim is not None and aim <= now:
                standing[record.id, aim] = f"{record} is due, and nobody fires it"
            if record.last_fire_at is not None and record.last_fire_at > now + LATE_US:
                standing[record.id, "ahead"] = f"{record} fired ahead of the clock, and stands still"
        return standing
