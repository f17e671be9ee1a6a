"""What must hold of each change of a schedule that is not a fire: adding, changing, pausing, re-aiming.

A compare-and-set is sent in the very instant in which the process has read the clock. So what it must say
can be reckoned to the microsecond.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.simulation.courses import Course, aim_of
from tests.simulation.reckoning import Reckoning
from tests.simulation.tally import Met

from betimes.core.firing import LATE_US
from betimes.core.job import Micros
from betimes.core.schedule import Fire, FireOutcome, ScheduleRecord
from betimes.core.schedule_terms import ScheduleTerms


class Timekeeping:
    """Follows what is saved.

    Attributes:
        courses: the schedules that there are, by id.
    """

    def __init__(self, model: Reckoning) -> None:
        self.model = model
        self.courses: dict[str, Course] = {}

    def refused(self, before: ScheduleRecord | None, expected: int | None) -> None:
        """A compare-and-set did not count."""
        if (None if before is None else before.version) == expected:
            self.model.fail(f"version {expected} stood, and the change of {before} was refused")
        self.model.tally[Met.CHANGE_FORESTALLED] += 1

    def saved(
        self,
        before: ScheduleRecord | None,
        after: ScheduleRecord,
        fires: Sequence[Fire],
        sent_at: Micros,
    ) -> None:
        """A compare-and-set counted."""
        if before is None:
            self._added(after, sent_at)
            return
        course = self.courses[after.id]
        if after.version != before.version + 1:
            self.model.fail(f"{course} went from version {before.version} to {after.version}")
        if after.error is not None:
            self.model.fail(f"{course} was paused by the scheduler itself: {after.error}")
        what_before = (before.definition, before.spec, before.payload)
        if what_before != (after.definition, after.spec, after.payload):
            self._changed(course, before, after, sent_at)
        elif before.paused and not after.paused:
            self._resumed(course, before, after, fires, sent_at)
        elif after.paused and not before.paused:
            self._expect(course, after, aim_of(before), "was paused")
        else:
            self._re_aimed(course, before, after, sent_at)

    def _expect(self, course: Course, after: ScheduleRecord, aim: Micros | None, what: str) -> None:
        if aim_of(after) != aim:
            self.model.fail(f"{course} {what}, and aims at {aim_of(after)}; it must at {aim}")

    def _added(self, after: ScheduleRecord, sent_at: Micros) -> None:
        since = _since(after, sent_at)
        course = self.courses[after.id] = Course.of(after, since)
        starts_at = course.terms.starts_at
        if course.anchor != (sent_at if starts_at is None else starts_at):
            self.model.fail(f"the grid of {course} begins at {course.anchor}, and it was added at {sent_at}")
        course.earliest = course.grid.next(since)
        self._expect(course, after, course.earliest, "was added")

    def _changed(
        self, course: Course, before: ScheduleRecord, after: ScheduleRecord, sent_at: Micros
    ) -> None:
        self.model.tally[Met.SCHEDULE_CHANGED] += 1
        old, new = course.terms, ScheduleTerms.from_text(after.definition)
        if old.created_at > sent_at + LATE_US:
            self._begun_anew(course, after, sent_at)
            return
        if new.anchor != course.anchor:
            self.model.fail(f"the grid of {course} was moved from {course.anchor} to {new.anchor}")
        is_same_grid = (old.trigger, old.starts_at, old.ends_at) == (new.trigger, new.starts_at, new.ends_at)
        if is_same_grid:
            course.change(new, course.since)
            self._expect(course, after, aim_of(before), "was changed, but not its grid")
            return
        pending = aim_of(before)
        since = sent_at if pending is None or pending > sent_at else pending - 1
        if before.last_fire_at is not None and before.last_fire_at <= sent_at:
            since = max(since, before.last_fire_at)
        elif before.last_fire_at is not None:
            course.turns += (
                1  # it fired ahead, and the clock was set back since: it goes on from now, as re-aimed
            )
        self.check_decided(course, since)
        course.change(new, since)
        if before.awaits is not None:
            self._expect(course, after, None, "was changed while it waits for a run's end")
            return
        course.earliest = course.grid.next(since)
        self._expect(course, after, course.earliest, "was changed")

    def _begun_anew(self, course: Course, after: ScheduleRecord, sent_at: Micros) -> None:
        """A schedule was added by a clock that has been set back since: its whole grid lay ahead."""
        self.model.tally[Met.BEGUN_ANEW] += 1
        anew = Course.of(after, _since(after, sent_at))
        course.anchor = anew.anchor
        course.change(anew.terms, anew.since)
        course.turns += 1
        course.earliest = course.grid.next(course.since)
        self._expect(course, after, course.earliest, "was begun anew")

    def _resumed(
        self,
        course: Course,
        before: ScheduleRecord,
        after: ScheduleRecord,
        fires: Sequence[Fire],
        sent_at: Micros,
    ) -> None:
        aim = aim_of(before)
        is_over = before.next_fire_at is None and not before.is_due_after_an_end
        passed = aim is not None and aim <= sent_at and before.next_fire_at is not None
        if course.has_grid and (passed or is_over):
            aim = course.grid.next(sent_at)
        for fire in fires:
            self.model.tally[Met.PASSED_WHILE_PAUSED] += 1
            if fire.outcome is not FireOutcome.PAUSED:
                self.model.fail(f"{course} was resumed, and {fire} passed meanwhile")
            self.note(course, fire)
        self._expect(course, after, aim, "was resumed")

    def _re_aimed(
        self, course: Course, before: ScheduleRecord, after: ScheduleRecord, sent_at: Micros
    ) -> None:
        if before.last_fire_at is None or before.last_fire_at <= sent_at + LATE_US:
            self.model.fail(f"{course} was moved from {before} to {after}, and nobody had asked for it")
        self.model.tally[Met.RE_AIMED] += 1
        course.turns += 1
        waits = before.held_at is None and before.awaits is not None
        aim = aim_of(before)
        if aim is None or aim > sent_at:
            course.earliest = aim = None if waits else course.grid.next(sent_at)
        self._expect(course, after, aim, "was re-aimed")

    def note(self, course: Course, fire: Fire) -> None:
        """Follow what became of instants."""
        for complaint in course.note(fire):
            self.model.fail(complaint)

    def check_decided(self, course: Course, until: Micros) -> None:
        """See that no instant up to this one was forgotten."""
        if course.has_grid and (forgotten := course.undecided(until)):
            self.model.fail(f"instants of {course} were neither fired nor skipped: {forgotten[:5]}")


def _since(added: ScheduleRecord, at: Micros) -> Micros:
    """Return from when on the instants of a new schedule count; its start may be one of them."""
    starts_at = ScheduleTerms.from_text(added.definition).starts_at
    return at if starts_at is None or starts_at < at else starts_at - 1
