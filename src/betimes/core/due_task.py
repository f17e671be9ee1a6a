"""What `TaskQueue` takes in and hands out: the record of a version, its states, the wait for the next one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite
from typing import TypeAlias

from betimes.errors import ConfigurationError

ReadyOrder: TypeAlias = Callable[[float, int], int]
"""Maps (run_at, priority) to a sort key: smaller first, ties by version. Called once, at `schedule`."""


class TaskState(StrEnum):
    """Where a task stands; the last three are final for its version."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class DueTask:
    """A task that was due and is now RUNNING: call `fn`, then give this to `TaskQueue.finish`.

    To be read, not written: it is the queue's own record of the version. One is made for every task, so it is
    a mutable slots class, and a second object for handing it out would cost as much as the heap does.

    Attributes:
        task_id: the id under which it was scheduled.
        version: what `schedule` returned for it.
        fn: the function to call.
        run_at: when it was due, in seconds on the queue's clock.
        priority: as scheduled.
        cancel_requested: whether `cancel` was called for its id while it was running.
    """

    __slots__ = ("cancel_requested", "fn", "priority", "run_at", "task_id", "version")

    def __init__(
        self, task_id: Hashable, version: int, fn: Callable[..., object], run_at: float, priority: int
    ) -> None:
        self.task_id = task_id
        self.version = version
        self.fn = fn
        self.run_at = run_at
        self.priority = priority
        self.cancel_requested = False

    def __repr__(self) -> str:
        return f"<DueTask {self.task_id!r} version {self.version}, run_at {self.run_at!r}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Something is pending, but nothing can be handed out now.

    Attributes:
        seconds: after how long the clock alone makes a task due; more than 0. `math.inf` when only `finish`
            can, because all that is pending waits for a running version of its id.
    """

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnd:
    """How a version ended, all that is kept of it: its function is no longer held."""

    state: TaskState
    error: BaseException | None = None


def check_task(run_at: object, priority: object, fn: object) -> None:
    """Refuse what cannot be scheduled.

    Raises:
        ConfigurationError: it names the argument and what it has to be.
    """
    if not _is_instant(run_at):
        raise ConfigurationError(f"run_at must be a finite number on the queue's clock, not {run_at!r}.")
    if not is_int(priority):
        raise ConfigurationError(f"priority must be an int, not {priority!r}.")
    require_callable("fn", fn)


def require_callable(name: str, value: object) -> None:
    """Refuse an argument that cannot be called; `name` is how the error calls it."""
    if not callable(value):
        raise ConfigurationError(f"{name} must be callable, not {value!r}.")


def is_int(value: object) -> bool:
    """Whether the value is an int, and not a bool that got there by mistake."""
    return isinstance(value, int) and not isinstance(value, bool)


def _is_instant(value: object) -> bool:
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    except OverflowError:  # An int beyond every float.
        return False
