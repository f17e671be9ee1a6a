"""Moves the model of each version as the store says, and objects where a step must not be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import StrEnum

from tests.simulation.evidence import Evidence
from tests.simulation.leases import Leases
from tests.simulation.lives import Life, Lives, final_of
from tests.simulation.tally import Met, Tally

from betimes.core.dependencies import is_met
from betimes.core.job import Job, JobEvent, JobStatus, Micros, Need

BLOCKED, DELAYED, READY, RUNNING = JobStatus.BLOCKED, JobStatus.DELAYED, JobStatus.READY, JobStatus.RUNNING
CANCELLED = JobStatus.CANCELLED

Told = tuple[int, JobStatus | None, JobStatus]
"""A version, the status it left, and the one it entered."""


class Cause(StrEnum):
    """Which call brought a step about."""

    SUBMIT = "submit"
    CANCEL = "cancel"
    ABANDON = "abandon"
    RETRY = "retry"
    RETIRE = "retire"
    BEAT = "beat"
    REPORT = "report"
    TIME = "time"
    RESCUE = "rescue"
    UNPARK = "unpark"
    FIRE = "fire"


ENDS_AN_ATTEMPT = {Cause.REPORT, Cause.BEAT, Cause.RETIRE, Cause.RESCUE, Cause.ABANDON}


class Reckoning:
    """The model, and the rules of single steps.

    Attributes:
        lives, leases, evidence, tally: the model, the jobs' own evidence, and what was met.
        tokens: of the named submits that were taken.
        made: the transitions that were made, each with how often.
        attempts: how many attempts a task's jobs have, where it is not one.
        has_tenants: whether jobs get their place in the order only when they are ready.
        on_gone: called with each job that waited and has ended without having been claimed.
        fail: called with each rule that was broken.
        peek: looks up a version's present record.
    """

    def __init__(
        self,
        evidence: Evidence,
        tally: Tally,
        *,
        now: Callable[[], Micros],
        fail: Callable[[str], None],
        peek: Callable[[int], Job | None],
    ) -> None:
        self.lives = Lives()
        self.made: Counter[Told] = Counter()
        self.tokens: set[str | None] = set()
        self.attempts: dict[str, int] = {}
        self.has_tenants = False
        self.on_gone: Callable[[Life], None] = lambda _life: None
        self.leases = Leases()
        self.evidence = evidence
        self.tally = tally
        self.now = now
        self.fail = fail
        self.peek = peek
        # The latest that the clock has ever shown.
        self._latest = 0

    def clock_is_set(self) -> None:
        """The clock is about to be set."""
        self._latest = max(self._latest, self.now())

    def change(self, event: JobEvent, cause: Cause, holder: str | None = None) -> None:
        """Follow a transition that the store announced."""
        if event.seq not in self.lives:
            self.fail(f"{event} speaks of a version nobody submitted")
            return
        life = self.lives[event.seq]
        self._latest = max(self._latest, self.now())
        self.made[event.seq, event.before, event.after] += 1
        if event.before is None:
            self._arrive(life, event)
            return
        if event.before is not life.status:
            self.fail(f"{event} was announced by {cause}, but {life} stood there")
        if event.before is event.after:  # superseded while it runs, or unparked
            life.parked = None
            return
        if event.before is RUNNING and holder is not None and life.worker != holder:
            self.fail(f"{cause} of {holder} moved {life}, which {life.worker} held")
        if (
            life.status is BLOCKED
            and event.after is CANCELLED
            and (event.error or "").startswith("dependency")
        ):
            self._check_cascade(life)
        self.enter(life, event.after, cause)

    def _arrive(self, life: Life, event: JobEvent) -> None:
        place = BLOCKED if life.unmet else DELAYED if life.earliest > self.now() else READY
        # What was to start at once when it was sent may do so, though the clock was set back since.
        was_due = place is DELAYED and event.after is READY and life.earliest <= self._latest
        if life.is_announced or not (event.after is place or was_due):
            self.fail(f"{life} was announced as new, and as {event.after.value}; it belongs to {place.value}")
        life.is_announced = True
        life.status = event.after
        self._note_time(life)

    def _note_time(self, life: Life) -> None:
        """What has become READY in its time stays so, though the clock may be set back.

        By whose clock, does not matter: the end that has released it may have been noted before that.
        """
        if life.status is READY and life.earliest <= self._latest:
            life.earliest = 0
        if life.status is READY and self.has_tenants:
            self._note_place(life)

    def _note_place(self, life: Life) -> None:
        """Where a job stands under fair share, is known when it is ready first, and stays so."""
        record = self.peek(life.seq)
        if record is None:
            return
        if life.is_placed and record.sort_key != life.sort_key:
            self.fail(f"{life} had its place at {life.sort_key}, and has it at {record.sort_key}")
        life.sort_key, life.is_placed = record.sort_key, True

    def enter(self, life: Life, after: JobStatus, cause: Cause) -> None:
        """Move a version on."""
        before = life.status
        if before.is_terminal:
            self._check_reopening(life, after, cause)
        elif before is RUNNING:
            self._check_end_of_attempt(life, after, cause)
        else:
            self._check_waiting(life, after)
        if after is RUNNING:
            self.fail(f"{life} was announced as running, but not claimed")
        if before is READY and after.is_terminal:
            self.on_gone(life)
        life.status = after
        life.worker = None
        life.parked = None
        self._note_time(life)
        record = self.peek(life.seq)
        if record is not None and before is RUNNING and cause in {Cause.RESCUE, Cause.ABANDON}:
            self._check_fence(life, record)
        if after.is_terminal:
            self._end(life, record)

    def _check_fence(self, life: Life, record: Job) -> None:
        """A rescue and an abandonment shut out whoever held the job."""
        if record.fence <= life.fence:
            self.fail(
                f"the fence of {life} went from {life.fence} to {record.fence}: its holder is not shut out"
            )
        life.fence = record.fence

    def _check_reopening(self, life: Life, after: JobStatus, cause: Cause) -> None:
        if cause is not Cause.RETRY or after is not READY:
            self.fail(f"{life} was over, and {cause} made it {after.value}")
        life.reopen(self.now())

    def _check_end_of_attempt(self, life: Life, after: JobStatus, cause: Cause) -> None:
        if cause not in ENDS_AN_ATTEMPT:
            self.fail(f"{cause} ended the attempt of {life}")
        if life.is_cancel_asked and after is not CANCELLED:
            self.fail(f"the cancel of {life} was promised, and it became {after.value}")
        if life.is_superseded and not after.is_terminal:
            self.fail(f"{life} was superseded, and became {after.value}: it would run again")
        has_begun = (life.seq, life.fence) in self.evidence.executions
        if life.spec.at_most_once and has_begun and not after.is_terminal:
            self.fail(f"{life} may start once, has started, and {cause} made it {after.value}")

    def _check_waiting(self, life: Life, after: JobStatus) -> None:
        if life.status is BLOCKED and not after.is_terminal and life.unmet:
            self.fail(f"{life} was released, and still waits for {sorted(life.unmet)}")
        if life.status is DELAYED and after is READY and life.earliest > self.now():
            self.fail(f"{life} was promoted {life.earliest - self.now()} µs before its time")

    def _check_cascade(self, life: Life) -> None:
        if not life.is_lost:
            self.fail(f"{life} was cancelled for a dependency, and none has failed")
        waiting = self.lives.waiting_for(life.seq)
        self.tally[Met.CASCADED] += any(other.unmet[life.seq] is Need.COMPLETED for other in waiting)

    def _end(self, life: Life, record: Job | None) -> None:
        if record is not None:
            life.final = final_of(record)
        life.finals.append(life.status)
        life.ended_at = self.now()
        life.is_cancel_asked = life.is_superseded = False
        for other in self.lives.waiting_for(life.seq):
            need = other.unmet[life.seq]
            if is_met(need, life.status):
                del other.unmet[life.seq]
                self.tally[Met.RELEASED] += not other.unmet and not other.is_lost
                self.tally[Met.RUN_ON_FAILURE] += (
                    life.status is not JobStatus.COMPLETED and other.id != life.id
                )
            else:
                other.is_lost = True

    def check_settled(self) -> None:
        """Check that nobody stays BLOCKED whose needs are met or lost: it moves in that very step."""
        for life in self.lives:
            if life.status is BLOCKED and (life.is_lost or not life.unmet):
                self.fail(f"{life} stays blocked, with {sorted(life.unmet)} unmet")

    def running(self, worker: str) -> list[Life]:
        """Return what a worker holds."""
        return [life for life in self.lives if life.worker == worker]
