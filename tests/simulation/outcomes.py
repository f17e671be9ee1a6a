"""What must hold of each report of an attempt: whether it counts, and what it may do."""

from __future__ import annotations

from collections.abc import Callable

from tests.simulation.budgets import Budgets
from tests.simulation.evidence import DIED, RETURNED, Execution
from tests.simulation.gatekeeping import Gatekeeping
from tests.simulation.lives import Life
from tests.simulation.plans import End
from tests.simulation.reckoning import Cause, Reckoning
from tests.simulation.tally import Met

from betimes.core.events import DeadlinePassed, Errored, GivenBack, Snoozed, Succeeded, Withdrawn
from betimes.core.job import JobStatus, Micros
from betimes.core.transition import Transition
from betimes.ports import Report

DELAYED, READY, RUNNING = JobStatus.DELAYED, JobStatus.READY, JobStatus.RUNNING
COMPLETED, CANCELLED = JobStatus.COMPLETED, JobStatus.CANCELLED

PLANNED_ERRORS = {"ValueError", "NonRetryableError", "CancelledError", "ConnectionError", "ProcessDied"}


class Outcomes:
    """Follows reports.

    Attributes:
        timed_out: when a timeout was recorded, by version and fence.
        rescued: when a job was taken from whoever held it under a fence.
        started_at, sessions: when each claim was made, and in which session of which process.
        budgets: what is known of retry budgets, if there are any.
    """

    def __init__(
        self,
        model: Reckoning,
        gates: Gatekeeping,
        *,
        boottime: Callable[[], Micros],
        elapsed_s: Callable[[], float],
    ) -> None:
        self.model = model
        self.gates = gates
        self.elapsed_s = elapsed_s
        self.started_at: dict[tuple[int, int], float] = {}
        self.sessions: dict[tuple[int, int], str] = {}
        self.budgets: Budgets | None = None
        self.boottime = boottime
        self.timed_out: dict[tuple[int, int], Micros] = {}
        self.rescued: dict[tuple[int, int], Micros] = {}

    def reported(self, report: Report, step: Transition | None, sent_at: int) -> None:
        """Follow one report, and what the store answered."""
        model, event = self.model, report.event
        self.gates.reported(report)
        life = model.lives[report.job.seq]
        is_current = life.status is RUNNING and life.fence == report.fence
        is_repeated = life.status is not RUNNING and life.fence == report.fence
        if (step is not None) != (is_current or is_repeated):
            verb = "refused" if step is None else "taken"
            model.fail(
                f"a {type(event).__name__} under fence {report.fence} was {verb}; {life} has {life.fence}"
            )
        if step is None:
            model.tally[Met.STALE_FINISH_REFUSED] += isinstance(event, Succeeded)
            was_rescued_at = self.rescued.get((report.job.seq, report.fence), -1)
            model.tally[Met.RESCUE_WON] += was_rescued_at >= sent_at
        elif is_current:
            self._ended(life, report, step)
        elif step.after is not life.status:
            model.fail(f"a report sent again was answered {step.after.value}, but {life} stands")
        else:
            model.tally[Met.REPORT_REPEATED] += 1
            model.made[life.seq, RUNNING, step.after] += 1  # so its worker tells its listeners

    def _ended(self, life: Life, report: Report, step: Transition) -> None:
        model, event, after = self.model, report.event, step.after
        execution = model.evidence.executions.get((life.seq, life.fence))
        worker = life.worker or ""
        if isinstance(event, Errored):
            self._check_error(life, event, execution)
        model.tally[Met.FINISH_WON] += not model.leases.holds(worker, self.boottime())
        model.tally[Met.CANCEL_SWALLOWED] += after is CANCELLED and isinstance(event, Succeeded)
        if after is COMPLETED:
            self._check_completion(life, execution, step.result)
        if after is CANCELLED and not _is_early(event) and execution is not None and execution.is_running:
            model.fail(f"{life} ended CANCELLED while {execution} still ran")
        self.gates.settled(life, report, step)
        if isinstance(event, DeadlinePassed):
            self._check_deadline(life, execution)
            self.timed_out[life.seq, life.fence] = model.now()
        if self.budgets is not None and isinstance(event, Errored | DeadlinePassed):
            self.budgets.ended(
                life.spec.task,
                self.sessions.get((life.seq, life.fence), ""),
                event.at,
                is_retried=event.retry_in_us is not None,
                is_denied="retry budget" in (event.reason or ""),
            )
        model.made[life.seq, RUNNING, after] += 1
        self._check_withdrawal(life, event, execution)
        model.enter(life, after, Cause.REPORT)
        if after in {READY, DELAYED}:
            self._go_on(life, event)

    def _check_withdrawal(self, life: Life, event: object, execution: Execution | None) -> None:
        """Nobody's attempt is cancelled unless somebody, or its own code, has asked for it."""
        asked_itself = execution is not None and execution.how == End.CANCEL
        is_error = isinstance(event, Errored) and _kind(event) == "CancelledError"
        is_planned = execution is not None and execution.how == End.CANCELLED_ERROR
        is_withdrawn = isinstance(event, Withdrawn) or (is_error and not is_planned)
        if is_withdrawn and not (life.is_cancel_asked or asked_itself):
            self.model.fail(f"{life} was withdrawn, and nobody had asked for it: {execution}")

    def _check_deadline(self, life: Life, execution: Execution | None) -> None:
        """A timeout counts from the claim; in a child process, where others may be first, from the start."""
        begun = self.started_at.get((life.seq, life.fence))
        if life.spec.lane == "process":
            begun = None if execution is None else execution.begun_at
        timeout_s = life.spec.timeout_s or 0.0
        if begun is None or self.elapsed_s() < begun + timeout_s - 1e-6:
            self.model.fail(f"{life} timed out, and has begun at {begun}; its timeout is {timeout_s:.2f} s")

    def _check_error(self, life: Life, event: Errored, execution: Execution | None) -> None:
        is_of_child = _kind(event) == "ProcessDied"
        if is_of_child and (execution is None or execution.how != DIED):
            self.model.fail(f"{life} was charged for a child that died under another: {execution}")
        # What would have the job run again is an error where it may start only once.
        is_last = life.spec.at_most_once and _kind(event) in {"SchedulerClosed", "Snooze"}
        if _kind(event) not in PLANNED_ERRORS and not is_last:
            self.model.fail(f"the code of {life} broke: {event.error} {event.error.traceback}")

    def _go_on(self, life: Life, event: object) -> None:
        tally = self.model.tally
        if isinstance(event, Errored | DeadlinePassed):
            life.used += 1
            life.earliest = event.at + event.retry_in_us if event.retry_in_us else 0
            tally[Met.RETRIED] += 1
            if event.retry_in_us is None or life.used >= life.max_attempts:
                self.model.fail(f"{life} has used {life.used} attempts of {life.max_attempts}, and goes on")
        elif isinstance(event, Snoozed):
            life.earliest = event.at + event.delay_us
            tally[Met.SNOOZED] += 1
        elif isinstance(event, GivenBack):
            life.parked = event.parked
            tally[Met.PARKED] += event.parked is not None
            tally[Met.GIVEN_BACK] += event.parked is None

    def _check_completion(self, life: Life, execution: Execution | None, result: bytes | None) -> None:
        if execution is None or execution.how != RETURNED:
            self.model.fail(f"{life} was recorded COMPLETED, and nothing has completed it: {execution}")
        elif result != str(execution.number).encode():
            self.model.fail(f"{life} was recorded with result {result!r}, and {execution} completed it")


def _kind(event: Errored) -> str:
    return event.error.type.rpartition(".")[2]


def _is_end_of_worker(event: object) -> bool:
    """Say whether a stopping worker has ended an attempt that it cannot give back, as it may start once."""
    return isinstance(event, Errored) and _kind(event) == "SchedulerClosed"


def _is_early(event: object) -> bool:
    """Say whether an outcome is recorded although the code may still run."""
    return isinstance(event, DeadlinePassed | GivenBack) or _is_end_of_worker(event)
