"""How an attempt's code ended, as a value: made where the code ran, in whatever thread, and read on the loop.

An exception is turned into text at once, and nothing of it is kept alive: a traceback holds every frame, and
every frame its locals.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import TypeAlias

from betimes.core.durations import duration_us
from betimes.core.events import Errored, Event, Snoozed, Succeeded, Withdrawn
from betimes.core.job import ErrorInfo, Micros
from betimes.core.retry import RetryPolicy
from betimes.errors import BetimesError, Cancel, NonRetryableError, PayloadError, Snooze

HOPELESS = (NonRetryableError, PayloadError)
"""Errors which say that the same call would fail again."""

MESSAGE_KEPT = 10_000
TRACEBACK_KEPT = 50_000
"""Characters kept of an error's message and traceback; of the latter, the end, where the error stands."""


@dataclass(frozen=True, slots=True)
class Raised:
    """The code raised.

    Attributes:
        error: what.
        may_retry: what the retry policy says of this error.
        is_hopeless: whether it says that the same call would fail again, so that it tells nothing of a
            dependency that may be down.
    """

    error: ErrorInfo
    may_retry: bool
    is_hopeless: bool = False


@dataclass(frozen=True, slots=True)
class AskedToSnooze:
    """The code raised `Snooze`."""

    delay_us: int


@dataclass(frozen=True, slots=True)
class AskedToCancel:
    """The code raised `Cancel`."""

    reason: str


Outcome: TypeAlias = Succeeded | Raised | AskedToSnooze | AskedToCancel
"""A return is the event itself, its instant 0 until it is reported: nothing else is made for each job."""


def error_info(error: BaseException) -> ErrorInfo:
    """Describe an exception as text."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return ErrorInfo(type=name, message=_message(error), traceback=_traceback(error))


def _message(shown: object) -> str:
    try:
        return _storable(str(shown))[:MESSAGE_KEPT]
    except BaseException as broken:  # noqa: BLE001 - whatever its own __str__ raises: a run must get its outcome
        return f"(its message cannot be shown: {type(broken).__name__})"


def _traceback(error: BaseException) -> str:
    try:
        return _storable("".join(traceback.format_exception(error)))[-TRACEBACK_KEPT:]
    except BaseException:  # noqa: BLE001 - the same of one that cannot be formatted
        return ""


def _storable(text: str) -> str:
    """Replace what UTF-8 cannot carry (lone surrogates)."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def outcome_of(error: BaseException, policy: RetryPolicy | None, attempt: int) -> Outcome:
    """Turn what an attempt raised into its outcome.

    A `CancelledError` is an error like others here: whether somebody had asked for it is for `lifecycle` to
    know (`cancel_requested`).
    """
    if isinstance(error, Snooze):
        try:
            return AskedToSnooze(duration_us(error.delay, name="Snooze", allow_zero=True))
        except BetimesError as wrong:
            return Raised(error_info(wrong), may_retry=False, is_hopeless=True)
    if isinstance(error, Cancel):
        return AskedToCancel(_message(error.reason))
    may_retry = policy is not None and policy.should_retry(error, attempt)
    return Raised(error_info(error), may_retry, isinstance(error, HOPELESS))


def event_of(outcome: Outcome, *, at: Micros, retry_in_us: int | None) -> Event:
    """Turn an outcome into the event to report; `retry_in_us` is the back-off drawn, where it may retry."""
    if type(outcome) is Succeeded:
        return Succeeded(at, outcome.result)
    if isinstance(outcome, Raised):
        return Errored(at, outcome.error, retry_in_us if outcome.may_retry else None)
    if isinstance(outcome, AskedToSnooze):
        return Snoozed(at, outcome.delay_us)
    assert isinstance(outcome, AskedToCancel)
    return Withdrawn(at, outcome.reason)
