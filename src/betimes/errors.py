"""Every error that Betimes raises on purpose: one root, and each leaf says what to do about it.

Catch `BetimesError` to catch them all. Each error carries what it speaks of as attributes, so that code
need not read its text.
"""

from __future__ import annotations

from collections.abc import Sequence


class BetimesError(Exception):
    """The root of all errors of this library."""


class ConfigurationError(BetimesError, ValueError):
    """A setting, option or registration is wrong; the text names it and what is allowed."""


class SchedulerClosed(BetimesError, RuntimeError):
    """The scheduler is not open, or is closing: it takes no new work. Start it (again) first."""


class UnknownTask(BetimesError, LookupError):
    """No task of this name is registered here; import the module that registers it.

    Attributes:
        task: the name that was asked for.
    """

    def __init__(self, message: str, *, task: str = "") -> None:
        super().__init__(message)
        self.task = task


class UnknownJob(BetimesError, LookupError):
    """No job has this id: it never existed, or it has been pruned.

    Attributes:
        job_id: the id that was asked for.
    """

    def __init__(self, message: str, *, job_id: str = "") -> None:
        super().__init__(message)
        self.job_id = job_id


class UnknownSchedule(BetimesError, LookupError):
    """No schedule has this id.

    Attributes:
        schedule_id: the id that was asked for.
    """

    def __init__(self, message: str, *, schedule_id: str = "") -> None:
        super().__init__(message)
        self.schedule_id = schedule_id


class DuplicateJob(BetimesError):
    """A live job has this id already: wait for it, choose another id, or pass `replace=True`.

    Attributes:
        job_id: the id that is taken.
    """

    def __init__(self, message: str, *, job_id: str = "") -> None:
        super().__init__(message)
        self.job_id = job_id


class PayloadError(BetimesError, TypeError):
    """An argument or a result cannot be stored; the text names the value by its path and says why.

    Attributes:
        path: where the offending value stands, such as `args[0]['when']`.
    """

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class DependencyCycle(BetimesError, ValueError):
    """Jobs of one graph wait for each other in a circle; break it at one of the named edges.

    Attributes:
        cycle: the names along the circle; the first stands again at the end.
    """

    def __init__(self, message: str, *, cycle: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.cycle = tuple(cycle)


class InvalidTrigger(BetimesError, ValueError):
    """A trigger's text or argument is wrong.

    Attributes:
        field: which part is wrong, such as `minute`.
        text: the offending text.
        allowed: what may stand there.
    """

    def __init__(self, message: str, *, field: str = "", text: str = "", allowed: str = "") -> None:
        super().__init__(message)
        self.field = field
        self.text = text
        self.allowed = allowed


class JobError(BetimesError):
    """A job ended otherwise than by completing; its leaves say how.

    Attributes:
        job_id: the job.
    """

    def __init__(self, message: str, *, job_id: str = "") -> None:
        super().__init__(message)
        self.job_id = job_id


class JobFailed(JobError):
    """The job's last attempt failed; `str()` has the original error's type and message.

    Attributes:
        job_id: the job.
        error_type: the original exception's qualified type name.
        error_message: the original exception's message.
        traceback: the original traceback's text; empty where there was none.
    """

    def __init__(
        self,
        message: str,
        *,
        job_id: str = "",
        error_type: str = "",
        error_message: str = "",
        traceback: str = "",
    ) -> None:
        super().__init__(message, job_id=job_id)
        self.error_type = error_type
        self.error_message = error_message
        self.traceback = traceback


class JobTimedOut(JobError):
    """The job's last attempt passed its timeout."""


class JobCancelled(JobError):
    """The job was cancelled; `reason` says why (cancelled, replaced, expired, dependency, …).

    Attributes:
        job_id: the job.
        reason: one word of `CancelReason`, or the text given by the job itself.
    """

    def __init__(self, message: str, *, job_id: str = "", reason: str = "") -> None:
        super().__init__(message, job_id=job_id)
        self.reason = reason


class ProcessDied(BetimesError):
    """The process that ran a job's code died under it: killed, crashed, or ended by the code itself.

    Attributes:
        exit_code: its exit code; minus the signal's number if a signal killed it; None: not known.
    """

    def __init__(self, message: str, *, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class CommandFailed(BetimesError):
    """An external command ended with a code that is no success, or could not be started at all.

    Attributes:
        exit_code: its exit code; minus the signal's number if a signal killed it; None: it was not started,
            or its end is not known.
        stdout, stderr: what it wrote; the end of it, if there was too much.
        may_retry: whether the retry policy is asked; if not, the job ends FAILED at once.
    """

    def __init__(
        self,
        message: str,
        *,
        exit_code: int | None = None,
        stdout: str = "",
        stderr: str = "",
        may_retry: bool = True,
    ) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.stdout = stdout
        self.stderr = stderr
        self.may_retry = may_retry


class LeaseLost(BetimesError):
    """This worker's lease is over: another worker may hold its jobs; whatever it ran must stop."""


class StoreUnavailable(BetimesError, ConnectionError):
    """The store cannot be reached, is locked, full or read-only; nothing was written; it may be retried.

    Attributes:
        why: what stands against it, in one word: `full` (no room for new jobs; what runs is still recorded),
            `locked`, `read_only`, `replaced` (the file is no longer the one that was opened), `disk` (it
            reports errors), or nothing where the store does not tell.
    """

    def __init__(self, message: str, *, why: str = "") -> None:
        super().__init__(message)
        self.why = why


class SchemaMismatch(BetimesError):
    """The store was made by another version or holds other data; nothing was read or changed.

    Attributes:
        found: the version that stands in the store (None: not a Betimes store).
        expected: the version that this code reads and writes.
    """

    def __init__(self, message: str, *, found: int | None = None, expected: int | None = None) -> None:
        super().__init__(message)
        self.found = found
        self.expected = expected


class IllegalTransition(BetimesError):
    """An event does not apply to a job in this state; nothing was changed.

    Attributes:
        status: the job's status.
        event: the event that was refused.
    """

    def __init__(self, message: str, *, status: str = "", event: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.event = event


class NonRetryableError(BetimesError):
    """Raise it inside a job (or subclass it): the job ends FAILED at once, whatever its retry policy says."""


class Snooze(BetimesError):
    """Raise it inside a job: the job runs again later, and no attempt is used.

    A job with `delivery="at_most_once"` cannot: it fails.

    Args:
        delay: seconds, a `timedelta`, or text such as `"5m"`.
    """

    def __init__(self, delay: object) -> None:
        super().__init__(f"snooze for {delay}")
        self.delay = delay


class Cancel(BetimesError):
    """Raise it inside a job: the job ends CANCELLED with this reason.

    Args:
        reason: why, in words; kept with the job.
    """

    def __init__(self, reason: str = "cancelled by the job") -> None:
        super().__init__(reason)
        self.reason = reason
