"""What must hold of each fire: whether it may be, of which instants, and what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.simulation.courses import Course, aim_of
from tests.simulation.evidence import Execution
from tests.simulation.lives import Life
from tests.simulation.reckoning import Reckoning
from tests.simulation.tally import Met
from tests.simulation.timekeeping import Timekeeping

from betimes.core.durations import from_us
from betimes.core.firing import LATE_US
from betimes.core.job import FireKey, Job, JobStatus, Micros, Need
from betimes.core.schedule import (
    Advance,
    Fire,
    Fired,
    FireOutcome,
    Missed,
    Overlap,
    ScheduleRecord,
)

OF_POLICY = {
    FireOutcome.MERGED: Missed.LATEST,
    FireOutcome.MISSED: Missed.SKIP,
    FireOutcome.CATCH_UP: Missed.ALL,
}
RUNS = (FireOutcome.FIRED, FireOutcome.BY_HAND)
RUN, SKIP, HELD, NOTHING = "run", "skipped", "held back", "nothing"


class Fires:
    """Follows fires, and the jobs they make.

    Attributes:
        keys: which fire made each job that a schedule has made.
    """

    def __init__(self, model: Reckoning, timekeeping: Timekeeping) -> None:
        self.model = model
        self.timekeeping = timekeeping
        self.keys: dict[int, FireKey] = {}

    def step(
        self, advance: Advance, before: ScheduleRecord | None, out: Fired | None, planned_at: Micros
    ) -> None:
        """Follow one step of a schedule, before its changes are followed.

        Args:
            advance: as it was sent.
            before: the schedule as it stood; None: there was none, or another step of the call moved it.
            out: what it came to.
            planned_at: what the clock showed when it was planned.
        """
        model, schedule_id = self.model, advance.record.id
        if (out is not None) != advance.stands(before):
            model.fail(f"a step of {schedule_id} was {'refused' if out is None else 'taken'}; {before} stood")
        if out is None or before is None:
            model.tally[Met.FIRE_FORESTALLED] += 1
            return
        course = self.timekeeping.courses[schedule_id]
        live = course.live(model.lives)
        self._check_kind(course, advance, live, out, planned_at)
        if not advance.by_hand:
            self._check_advance(course, before, out, planned_at)
        elif course.has_grid and aim_of(out.record) != aim_of(before):
            model.fail(f"a run by hand moved {course} from {aim_of(before)} to {aim_of(out.record)}")
        self._keep(course, advance, live, out)
        for fire in out.fires:
            if fire.outcome is not FireOutcome.BY_HAND:
                self.timekeeping.note(course, fire)
        if (out.record.fired, out.record.skipped) != (course.fired, course.skipped):
            model.fail(f"{out.record} counts otherwise than {course.fired} fired, {course.skipped} skipped")

    # --- what becomes of it

    def _check_kind(
        self, course: Course, advance: Advance, live: list[Life], out: Fired, planned_at: Micros
    ) -> None:
        """What becomes of the first instant due depends on what is live, and on nothing that anybody knew."""
        due = [_at(job) for job in advance.due if advance.by_hand or _at(job) not in course.told]
        self.model.tally[Met.STEPPED_OVER] += len(due) < len(advance.due)
        expected = self._expected(course, advance, live, due, planned_at)
        actual = NOTHING
        if any(fire.outcome in RUNS for fire in out.fires):
            actual = RUN
        elif any(fire.outcome is FireOutcome.OVERLAP for fire in out.fires):
            actual = SKIP
        elif out.record.held_at is not None:
            actual = HELD
        if actual != expected:
            self.model.fail(f"what was due of {course} was {actual}, not {expected}; these live: {live}")
        if actual == HELD:
            self.model.tally[Met.HELD_INSTANT] += 1
            course.held.add(due[0])
        runs = [fire.at for fire in out.fires if fire.outcome in RUNS]
        self.model.tally[Met.HELD_AND_RUN] += bool(course.held & set(runs))
        wanted = due if course.allows_overlap or not live else due[:1]
        if actual == RUN and runs != wanted:
            self.model.fail(f"{course} ran for {runs}, and {wanted} was due")
        for fire in out.fires:
            if fire.outcome is FireOutcome.OVERLAP and fire.job_id not in {life.id for life in live}:
                self.model.fail(f"{fire} of {course} names none of {live}")
            self._count(course, fire, is_beside=bool(live) and course.allows_overlap)

    def _expected(
        self, course: Course, advance: Advance, live: list[Life], due: list[Micros], planned_at: Micros
    ) -> str:
        terms = course.terms
        if not due:
            return NOTHING
        if not live or course.allows_overlap or advance.by_hand:
            return RUN
        started = [None if (job := self.model.peek(life.seq)) is None else job.started_at for life in live]
        newest = started[-1]
        is_late = planned_at - due[0] > LATE_US
        if terms.missed is Missed.ALL and (is_late or newest is None or newest > due[0]):
            return HELD
        if terms.overlap is Overlap.REPLACE:
            return RUN
        return RUN if terms.overlap is Overlap.QUEUE_ONE and None not in started else SKIP

    def _count(self, course: Course, fire: Fire, *, is_beside: bool) -> None:
        tally = self.model.tally
        met = {
            FireOutcome.FIRED: Met.FIRED,
            FireOutcome.OVERLAP: Met.OVERLAP_SKIPPED,
            FireOutcome.MERGED: Met.MERGED,
            FireOutcome.MISSED: Met.MISSED,
            FireOutcome.CATCH_UP: Met.TOO_OLD_TO_CATCH_UP,
        }.get(fire.outcome)
        if met is not None:
            tally[met] += 1
        tally[Met.ALLOWED_BESIDE] += is_beside and fire.outcome is FireOutcome.FIRED
        tally[Met.MOVED_BY_A_GAP] += fire.moved_from is not None
        if fire.outcome is FireOutcome.FIRED and fire.decided_at - fire.at > LATE_US:
            tally[Met.CAUGHT_UP] += course.terms.missed is Missed.ALL

    # --- its instants

    def _check_advance(self, course: Course, before: ScheduleRecord, out: Fired, planned_at: Micros) -> None:
        fail, after = self.model.fail, out.record
        first, aim = before.next_fire_at, aim_of(after)
        assert first is not None, "it stood"
        if before.paused:
            fail(f"{course} is paused, and was fired")
        is_held = after.held_at is not None
        if course.has_grid and aim is not None and (aim < first or (aim == first and not is_held)):
            fail(f"the next fire of {course} went from {first} to {aim}")
        for fire in out.fires:
            self._check_instant(course, fire, first, planned_at)
            if course.has_grid and aim is not None and fire.at >= aim:
                fail(f"{fire} of {course} comes again at {aim}")
        runs = [fire.at for fire in out.fires if fire.outcome is FireOutcome.FIRED]
        if runs and course.has_grid:
            self._check_missed(course, runs, planned_at)
        elif runs:
            self._check_delay(course, runs[0])
        if not course.has_grid and not is_held:
            in_the_way = [fire.job_id for fire in out.fires if fire.outcome is FireOutcome.OVERLAP]
            course.earliest = None if in_the_way or runs else aim
            for job_id in in_the_way:  # it is the end of that run which decides
                course.last_run = self.model.lives.versions(job_id or "")[-1].seq

    def _check_instant(self, course: Course, fire: Fire, first: Micros, planned_at: Micros) -> None:
        if fire.at > planned_at:
            self.model.fail(f"{fire} of {course} was decided {fire.at - planned_at} µs before its time")
        if fire.first_at < first:
            self.model.fail(f"{fire} of {course} lies before {first}, the next that was due")
        if OF_POLICY.get(fire.outcome, course.terms.missed) is not course.terms.missed:
            self.model.fail(f"{fire} of {course} is not as its policy {course.terms.missed} says")

    def _check_missed(self, course: Course, runs: list[Micros], planned_at: Micros) -> None:
        missed, most = course.terms.missed, course.terms.max_catchup
        if missed is Missed.SKIP and planned_at - runs[0] > LATE_US:
            self.model.fail(f"{course} ran for {runs[0]}, {planned_at - runs[0]} µs late")
        behind, following = 0, course.grid.next(runs[0])
        while following is not None and following <= planned_at and behind < most:
            behind += 1
            following = course.grid.next(following)
        if behind >= (most if missed is Missed.ALL else 1):
            self.model.fail(f"{course} ran for {runs[0]}, and so many later ones were due: {behind}")

    def _check_delay(self, course: Course, at: Micros) -> None:
        """A run with a fixed delay comes so long after the end of the one before, and not sooner."""
        delay_us = course.grid.trigger.delay_after_finish_us or 0
        last = None if course.last_run is None else self.model.peek(course.last_run)
        self.model.tally[Met.DELAYED_AFTER_END] += course.earliest is None
        if course.earliest is not None:
            if at != course.earliest:
                self.model.fail(f"{course} fired for {at}, and its next instant was {course.earliest}")
        elif last is not None and not self.model.lives[last.seq].rounds:
            if not last.status.is_terminal:
                self.model.fail(f"{course} fired for {at}, and {last} has not ended")
            elif last.finished_at is None or at < last.finished_at + delay_us:
                self.model.fail(f"{course} fired for {at}, not {delay_us} µs after {last.finished_at}")

    # --- its jobs

    def _keep(self, course: Course, advance: Advance, live: list[Life], out: Fired) -> None:
        """Enter the new jobs into the model, each with what it has to wait for."""
        runs = [fire for fire in out.fires if fire.outcome in RUNS]
        if [fire.job_id for fire in runs] != [job.id for job in out.jobs]:
            self.model.fail(f"{course} says that it made {runs}, and made {out.jobs}")
        waits_for = [] if course.allows_overlap else live
        if waits_for and out.jobs and course.terms.overlap is Overlap.REPLACE:
            waits_for = self._replace(live)
        tally = self.model.tally
        tally[Met.QUEUED_ONE] += bool(waits_for and out.jobs) and course.terms.overlap is Overlap.QUEUE_ONE
        tally[Met.BY_HAND_WHILE_RUNNING] += advance.by_hand and bool(live)
        for fire, job in zip(runs, out.jobs, strict=False):
            key = FireKey(course.id, fire.at, advance.by_hand)
            if job.fire != key:
                self.model.fail(f"{job} was made for {key}, and says {job.fire}")
            if not 0 <= job.run_at - fire.at <= course.terms.jitter_us:
                self.model.fail(f"{job}, made for {fire.at}, is to run at {job.run_at}")
            self._begin(course, job, key, waits_for)

    def _replace(self, live: list[Life]) -> list[Life]:
        running = [life for life in live if life.status is JobStatus.RUNNING]
        for life in running:
            life.is_cancel_asked = True
            self.model.tally[Met.REPLACED_BY_FIRE] += 1
        return running

    def _begin(self, course: Course, job: Job, key: FireKey, waits_for: Sequence[Life]) -> None:
        life = Life(
            seq=job.seq,
            id=job.id,
            spec=job.spec,
            sort_key=job.sort_key,
            expires_at=job.expires_at,
            status=JobStatus.BLOCKED,
            earliest=job.run_at,
        )
        life.unmet = {other.seq: Need.ENDED for other in waits_for}
        self.model.lives.add(life)
        self._note(course, job.seq, key)

    def _note(self, course: Course, seq: int, key: FireKey) -> None:
        self.keys[seq] = key
        course.live_jobs.add(seq)
        if key.by_hand:
            return
        if key.at in course.jobs:
            self.model.fail(f"{key} has become #{course.jobs[key.at]} before, and now #{seq}")
        course.jobs[key.at] = course.last_run = seq

    def submitted(self, jobs: Sequence[Job]) -> None:
        """Jobs were submitted: whoever made them of a fire, each is that instant's only one."""
        for job in jobs:
            if job.fire is not None and job.fire.schedule in self.timekeeping.courses:
                self._note(self.timekeeping.courses[job.fire.schedule], job.seq, job.fire)

    def check_replaced(self, advances: Mapping[str, list[Life]]) -> None:
        """See that what was to give way does: it has ended, or runs and was told to stop."""
        for schedule_id, lives in advances.items():
            for life in lives:
                if not (life.status.is_terminal or life.is_cancel_asked):
                    self.model.fail(f"{life} was to give way to the next run of {schedule_id}, and waits on")

    # --- code

    def began(self, execution: Execution) -> None:
        """A job's code begins: it is told its instant, and no other run of its schedule is under way."""
        key = self.keys.get(execution.seq)
        told = execution.scheduled_for
        if told != (None if key is None else from_us(key.at)):
            self.model.fail(f"{execution} of {key} was told that it is scheduled for {told}")
        course = None if key is None else self.timekeeping.courses.get(key.schedule)
        if course is None or course.allows_overlap or execution.seq not in course.live_jobs:
            return
        lives, executions = self.model.lives, self.model.evidence.executions
        for other in course.live(lives):
            beside = executions.get((other.seq, other.fence))
            if other.seq == execution.seq or beside is None or not beside.is_running:
                continue
            # What an operator has taken back runs when it was asked to, whatever else does.
            if other.status is JobStatus.RUNNING and not (other.rounds or lives[execution.seq].rounds):
                self.model.fail(f"{execution} began while {beside} ran: two runs of {course} at once")


def _at(job: Job) -> Micros:
    assert job.fire is not None
    return job.fire.at
