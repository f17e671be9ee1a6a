"""What can happen to a job: past participles, each with the instant it happened.

`lifecycle.LEGAL` says in which status each applies, and `lifecycle.decide` what it does there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from betimes.core.job import CancelReason, ErrorInfo, Micros


@dataclass(frozen=True, slots=True)
class Released:
    """The last dependency is met."""

    at: Micros


@dataclass(frozen=True, slots=True)
class DependencyFailed:
    """A dependency ended otherwise than by completing."""

    at: Micros
    dependency: str


@dataclass(frozen=True, slots=True)
class Promoted:
    """`run_at` has come."""

    at: Micros


@dataclass(frozen=True, slots=True)
class Claimed:
    """A worker took the job under its lease."""

    at: Micros
    worker: str


@dataclass(slots=True)
class Succeeded:
    """The code returned; `result` is its value as JSON.

    Not frozen, because one is made for each job.
    """

    at: Micros
    result: bytes


@dataclass(frozen=True, slots=True)
class Errored:
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


@dataclass(frozen=True, slots=True)
class DeadlinePassed:
    """The attempt's timeout is over, whatever its code goes on to do. The fields are those of `Errored`."""

    at: Micros
    error: ErrorInfo
    retry_in_us: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Snoozed:
    """The code asked to run again later."""

    at: Micros
    delay_us: int


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The attempt ended by cancellation: its code raised `Cancel`, or was told to stop and has returned."""

    at: Micros
    reason: str = CancelReason.REQUESTED


@dataclass(frozen=True, slots=True)
class GivenBack:
    """A stopping worker returns the job. `parked` names why it is not to be claimed again at once, if so."""

    at: Micros
    parked: str | None = None


@dataclass(frozen=True, slots=True)
class WorkerLost:
    """The lease of the worker that held the job is over."""

    at: Micros


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """Somebody asked for the job's end. `abandon` ends a running one at once, its code notwithstanding."""

    at: Micros
    reason: str = CancelReason.REQUESTED
    abandon: bool = False


@dataclass(frozen=True, slots=True)
class Superseded:
    """A newer version of the id was submitted."""

    at: Micros


@dataclass(frozen=True, slots=True)
class Expired:
    """`expires_at` came before the first start."""

    at: Micros


@dataclass(frozen=True, slots=True)
class Unparked:
    """What kept the job outside the claims' reach is gone."""

    at: Micros


@dataclass(frozen=True, slots=True)
class Retried:
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
