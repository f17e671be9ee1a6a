"""What must have happened somewhere in a set of runs, for their silence to mean anything."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum


class Met(StrEnum):
    """A situation that the runs are made to bring about."""

    STALE_FINISH_REFUSED = "a finish under a stale fence was refused"
    RESCUE_WON = "a rescue came in between a finish and its arrival"
    FINISH_WON = "a finish arrived after the lease was over, and before any rescue"
    REPORT_REPEATED = "a report was sent again after its reply was lost, and known"
    CLAIM_RECONCILED = "a claim whose reply was lost was given back by a heartbeat"
    SUBMIT_REPEATED = "a submit was repeated after its reply was lost, and made nothing new"
    SUBMIT_REPEATED_LATE = "a submit was repeated after its job had ended"
    KEY_FOUND = "a key stood for an earlier job"
    KEY_REFUSED = "a key was refused for other arguments"
    TIMEOUT_SWALLOWED = "a timeout was recorded while the code went on"
    CANCEL_SWALLOWED = "a cancel was swallowed, and the job ended CANCELLED all the same"
    THREAD_PAST_TIMEOUT = "a thread went on after its timeout"
    CANCELLED_BEFORE_CODE = "a cancel came after the claim and before its code"
    CANCELLED_WAITING = "a job was cancelled before its claim"
    ABANDONED = "a running job was abandoned"
    REPLACED_RUNNING = "a replacement met a running version"
    REPLACED_WAITING = "a replacement met a version that waited"
    REGISTERED_AFRESH = "a worker lost its lease and registered afresh"
    RESCUED = "a job was rescued"
    POISONED = "a job that killed its workers ended as a poison pill"
    ENDED_DURING_SUBMIT = "a dependency ended while its dependent was being submitted"
    RELEASED = "a dependent was released"
    CASCADED = "a failure went down to a dependent's dependent"
    RUN_ON_FAILURE = "a dependent was released though its dependency had failed"
    RETRIED = "an attempt failed and was tried again"
    RETRIED_BY_HAND = "an operator took a finished job back"
    SNOOZED = "a job asked to run again later"
    EXPIRED = "a job expired"
    PAUSED_QUEUE = "a claim passed over a paused queue that had work"
    HELD_BACK = "a job was passed over because its earlier code still ran"
    GIVEN_BACK = "a stopping worker gave a running job back"
    AT_MOST_ONCE_LOST = "a job that may start once lost its worker"
    PARKED = "a job was parked by a worker that does not know its task"
    CHOSEN = "a claim had to choose among more jobs than it could take"
    HINT_LOST = "a hint was lost"
    CRASHED = "a process crashed"
    CRASHED_IN_CALL = "a process crashed while a call of its was on its way"
    PAUSED = "a process was paused for longer than its lease"


class Tally(Counter[Met]):
    """How often each was met."""

    @property
    def missing(self) -> list[str]:
        """What was never met."""
        return [met.value for met in Met if not self[met]]
