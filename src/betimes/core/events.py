"""What can happen to a job: past participles, each with the instant it happened.

`lifecycle.LEGAL` says in which status each applies, and `lifecycle.decide` what it does there.

They are `msgspec.Struct`s, as one is made for each job, and sixteen frozen dataclasses take a tenth of the
time in which the library is imported.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from betimes.core.job import CancelReason, ErrorInfo, Micros


class Released(msgspec.Struct, frozen=True):
    """The last dependency is met."""

    at: Micros


class DependencyFailed(msgspec.Struct, frozen=True):
    """A dependency ended otherwise than by completing."""

    at: Micros
    dependency: str


class Promoted(msgspec.Struct, frozen=True):
    """`run_at` has come."""

    at: Micros


class Claimed(msgspec.Struct, frozen=True):
    """A worker took the job under its lease."""

    at: Micros
    worker: str


class Succeeded(msgspec.Struct):
    """The code returned; `result` is its value as JSON.

    Not frozen, because one is made for each job.
    """

    at: Micros
    result: bytes


class Errored(msgspec.Struct, frozen=True):
    """The code raised.

    Attributes:
        at, error: when, and what.
        retry_in_us: the back-off drawn for the next attempt; None: there is none.
        reason: why there is none, if the retry policy would have allowed one.
    """

    at: Micros
    error: ErrorInfo
    retry_in_us: int | None = None
    reason: str | None = None


class DeadlinePassed(msgspec.Struct, frozen=True):
    """The attempt's timeout is over, whatever its code goes on to do. The fields are those of `Errored`."""

    at: Micros
    error: ErrorInfo
    retry_in_us: int | None = None
    reason: str | None = None


class Snoozed(msgspec.Struct, frozen=True):
    """The code asked to run again later."""

    at: Micros
    delay_us: int


class Withdrawn(msgspec.Struct, frozen=True):
    """The attempt ended by cancellation: its code raised `Cancel`, or was told to stop and has returned."""

    at: Micros
    reason: str = CancelReason.REQUESTED


class GivenBack(msgspec.Struct, frozen=True):
    """A stopping worker returns the job. `parked` names why it is not to be claimed again at once, if so."""

    at: Micros
    parked: str | None = None


class WorkerLost(msgspec.Struct, frozen=True):
    """The lease of the worker that held the job is over.

    Attributes:
        at: when that was found.
        how: which worker it was, and what is known of its end.
    """

    at: Micros
    how: str | None = None


def lost_worker(at: Micros, *, worker: str, pid: int, host: str, is_gone: bool) -> WorkerLost:
    """Return the event for what a lost worker held, in words for logs and histories.

    Args:
        at: when that was found.
        worker: its id.
        pid: its process; 0: not known.
        host: where that runs, or ran.
        is_gone: its process has ended; else only its lease is over.
    """
    where = f" (pid {pid} on {host})" if pid else ""
    end = "its process is gone" if is_gone else "it did not prolong its lease in time"
    return WorkerLost(at, f"worker {worker}{where} was lost: {end}")


class CancelRequested(msgspec.Struct, frozen=True):
    """Somebody asked for the job's end. `abandon` ends a running one at once, its code notwithstanding."""

    at: Micros
    reason: str = CancelReason.REQUESTED
    abandon: bool = False


class Superseded(msgspec.Struct, frozen=True):
    """A newer version of the id was submitted."""

    at: Micros


class Expired(msgspec.Struct, frozen=True):
    """`expires_at` came before the first start."""

    at: Micros


class Unparked(msgspec.Struct, frozen=True):
    """What kept the job outside the claims' reach is gone."""

    at: Micros


class Retried(msgspec.Struct, frozen=True):
    """An operator takes a finished job back."""

    at: Micros
    by: str


Event: TypeAlias = (
    Released
    | DependencyFailed
    | Promoted
    | Claimed
    | Succeeded
    | Errored
    | DeadlinePassed
    | Snoozed
    | Withdrawn
    | GivenBack
    | WorkerLost
    | CancelRequested
    | Superseded
    | Expired
    | Unparked
    | Retried
)
