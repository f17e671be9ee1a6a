"""Exit codes: each kind of error has its own, so that a script can tell them apart."""

from __future__ import annotations

from enum import IntEnum

import click

from betimes.errors import (
    BetimesError,
    ConfigurationError,
    DependencyCycle,
    DuplicateJob,
    IllegalTransition,
    InvalidTrigger,
    PayloadError,
    SchedulerClosed,
    SchemaMismatch,
    StoreUnavailable,
    UnknownJob,
    UnknownSchedule,
    UnknownTask,
)


class Exit(IntEnum):
    """How a command ended."""

    DONE = 0
    """It did what was asked."""
    NO = 1
    """It did, and the answer is bad: the job failed, a check has found something."""
    USAGE = 2
    """The command line is wrong: an unknown option, a value that cannot be."""
    SETTINGS = 3
    """The application or a setting is wrong."""
    UNKNOWN = 4
    """There is no such job, schedule, queue or task."""
    UNAVAILABLE = 5
    """The store cannot be reached now; try again."""
    SCHEMA = 6
    """The store was made by another version of Betimes."""
    REFUSED = 7
    """What was asked cannot be done to this job or schedule as it stands."""
    UNFINISHED = 8
    """What was waited for has not come in time; it goes on."""
    INTERRUPTED = 130
    """Ctrl-C, or a second signal."""


_BY_ERROR: tuple[tuple[type[BetimesError], Exit], ...] = (
    (UnknownJob, Exit.UNKNOWN),
    (UnknownSchedule, Exit.UNKNOWN),
    (UnknownTask, Exit.UNKNOWN),
    (StoreUnavailable, Exit.UNAVAILABLE),
    (SchemaMismatch, Exit.SCHEMA),
    (IllegalTransition, Exit.REFUSED),
    (DuplicateJob, Exit.REFUSED),
    (SchedulerClosed, Exit.REFUSED),
    (PayloadError, Exit.USAGE),
    (InvalidTrigger, Exit.SETTINGS),
    (DependencyCycle, Exit.SETTINGS),
    (ConfigurationError, Exit.SETTINGS),
)


class Failure(click.ClickException):
    """One error as a command shows it: a line on stderr, and an exit code."""

    def __init__(self, message: str, exit_code: Exit) -> None:
        super().__init__(message)
        self.exit_code = int(exit_code)  # type: ignore[misc]  # click reads it here, too


def failure(error: BetimesError) -> Failure:
    """Return what a command shows of an error of ours."""
    if isinstance(error, StoreUnavailable) and error.why == "privilege":
        return Failure(str(error), Exit.SETTINGS)  # to try again does not help
    code = next((code for kind, code in _BY_ERROR if isinstance(error, kind)), Exit.NO)
    return Failure(str(error), code)
