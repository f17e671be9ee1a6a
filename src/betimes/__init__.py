"""Betimes: work done later, again, in order of importance, in parallel, durably."""

from typing import TYPE_CHECKING, Any

from betimes.core.command import CommandResult
from betimes.core.job import CancelReason, JobEvent, JobStatus
from betimes.core.limits import GateKind
from betimes.core.log import LogLine
from betimes.core.priority import Priority
from betimes.core.queue import DueTask, TaskQueue, Wait
from betimes.core.recycle import Recycle
from betimes.core.restraints import CircuitBreaker, Limit, Rate, RetryBudget
from betimes.core.retry import RetryPolicy
from betimes.core.schedule import FireOutcome, Missed, Overlap
from betimes.core.strategy import (
    AgingPriorityStrategy,
    EarliestDueStrategy,
    FairShareStrategy,
    PriorityStrategy,
    SchedulingStrategy,
)
from betimes.core.triggers import Trigger
from betimes.errors import (
    BetimesError,
    Cancel,
    CommandFailed,
    ConfigurationError,
    DependencyCycle,
    DuplicateJob,
    IllegalTransition,
    InvalidTrigger,
    JobCancelled,
    JobError,
    JobFailed,
    JobTimedOut,
    LeaseLost,
    NonRetryableError,
    PayloadError,
    ProcessDied,
    SchedulerClosed,
    SchemaMismatch,
    Snooze,
    StoreUnavailable,
    UnknownJob,
    UnknownSchedule,
    UnknownTask,
)
from betimes.handles import AttemptInfo, JobHandle, JobInfo
from betimes.limit_info import LimitHolder, LimitInfo
from betimes.ports import CancelAnswer
from betimes.runtime.context import Context, current_job
from betimes.runtime.metrics import Metrics
from betimes.schedule_info import FireInfo, ScheduleInfo
from betimes.scheduler import Scheduler
from betimes.tasks import BoundJob, Task
from betimes.threads import CancelToken, ThreadScheduler

if TYPE_CHECKING:
    from betimes.core.explain import Explanation
    from betimes.core.reason import Reason, ReasonCode
    from betimes.core.schedule_reason import (
        NextFire,
        ScheduleExplanation,
        ScheduleReason,
        ScheduleReasonCode,
    )
    from betimes.core.triggers import at, calendar, cron, every

__all__ = [
    "AgingPriorityStrategy",
    "AttemptInfo",
    "BetimesError",
    "BoundJob",
    "Cancel",
    "CancelAnswer",
    "CancelReason",
    "CancelToken",
    "CircuitBreaker",
    "CommandFailed",
    "CommandResult",
    "ConfigurationError",
    "Context",
    "DependencyCycle",
    "DueTask",
    "DuplicateJob",
    "EarliestDueStrategy",
    "Explanation",
    "FairShareStrategy",
    "FireInfo",
    "FireOutcome",
    "GateKind",
    "IllegalTransition",
    "InvalidTrigger",
    "JobCancelled",
    "JobError",
    "JobEvent",
    "JobFailed",
    "JobHandle",
    "JobInfo",
    "JobStatus",
    "JobTimedOut",
    "LeaseLost",
    "Limit",
    "LimitHolder",
    "LimitInfo",
    "LogLine",
    "Metrics",
    "Missed",
    "NextFire",
    "NonRetryableError",
    "Overlap",
    "PayloadError",
    "Priority",
    "PriorityStrategy",
    "ProcessDied",
    "Rate",
    "Reason",
    "ReasonCode",
    "Recycle",
    "RetryBudget",
    "RetryPolicy",
    "ScheduleExplanation",
    "ScheduleInfo",
    "ScheduleReason",
    "ScheduleReasonCode",
    "Scheduler",
    "SchedulerClosed",
    "SchedulingStrategy",
    "SchemaMismatch",
    "Snooze",
    "StoreUnavailable",
    "Task",
    "TaskQueue",
    "ThreadScheduler",
    "Trigger",
    "UnknownJob",
    "UnknownSchedule",
    "UnknownTask",
    "Wait",
    "at",
    "calendar",
    "cron",
    "current_job",
    "every",
]

_ON_FIRST_USE = {
    "Explanation": "betimes.core.explain",
    "Reason": "betimes.core.reason",
    "ReasonCode": "betimes.core.reason",
    "NextFire": "betimes.core.schedule_reason",
    "ScheduleExplanation": "betimes.core.schedule_reason",
    "ScheduleReason": "betimes.core.schedule_reason",
    "ScheduleReasonCode": "betimes.core.schedule_reason",
    "at": "betimes.core.triggers",
    "calendar": "betimes.core.triggers",
    "cron": "betimes.core.triggers",
    "every": "betimes.core.triggers",
}
"""Names that many programs do not use, and whose import takes a third of all: where they are."""


def __getattr__(name: str) -> Any:
    """Import a name of `_ON_FIRST_USE`."""
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - only here

    return getattr(import_module(_ON_FIRST_USE[name]), name)
