"""A call that runs in another process of this machine, and its answer, as they cross the pipe: plain values.

Nothing of it is ever stored, and nothing is unpickled: a function goes by its name, arguments and results
go as the JSON that stores keep, and errors as text with the names of their classes.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from betimes.core.job import ErrorInfo, Micros


class Call(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """What a child process needs to run one attempt.

    Attributes:
        module, qualname: where the function is found; a script's module is `__main__`.
        payload: the arguments as JSON.
        job_id, task, attempt, fence: what the code sees of itself (`Context`).
        scheduled_for: the instant of the fire that made the job, if one did.
        deadline: when its timeout is over, if it has one.
    """

    module: str
    qualname: str
    payload: bytes
    job_id: str
    task: str
    attempt: int
    fence: int
    scheduled_for: Micros | None = None
    deadline: Micros | None = None


class Returned(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The code returned; `result` is its value as JSON."""

    result: bytes


class Threw(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The code raised, or its value cannot be stored.

    Attributes:
        error: the error as text.
        classes: the names (`module.qualname`) of its class and of those it is derived from, so that the
            retry policy can be asked about an error that is not here.
    """

    error: ErrorInfo
    classes: tuple[str, ...] = ()


class WantsSnooze(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The code raised `Snooze`."""

    delay_us: int


class WantsCancel(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The code raised `Cancel`."""

    reason: str


class Died(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The process died under the code; it could not answer itself.

    Attributes:
        how: in words: the signal or the exit code, and what it may mean.
    """

    how: str


Answer: TypeAlias = Returned | Threw | WantsSnooze | WantsCancel | Died
