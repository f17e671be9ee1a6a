"""Betimes: work done later, again, in order of importance, in parallel, durably.

Each name is imported when it is first used: a program pays for what it uses, and the command line's `--help`
for nothing.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from betimes.core.command import CommandResult
    from betimes.core.explain import Explanation
    from betimes.core.finding import Checkup, Finding, FindingCode, Severity
    from betimes.core.job import CancelReason, JobEvent, JobStatus
    from betimes.core.limits import GateKind
    from betimes.core.log import LogLine
    from betimes.core.priority import Priority
    from betimes.core.queue import DueTask, TaskQueue, Wait
    from betimes.core.queue_reason import QueueExplanation, QueueReason, QueueReasonCode, ServingWorker
    from betimes.core.reason import Reason, ReasonCode
    from betimes.core.recycle import Recycle
    from betimes.core.restraints import CircuitBreaker, Limit, Rate, RetryBudget
    from betimes.core.retry import RetryPolicy
    from betimes.core.schedule import FireOutcome, Missed, Overlap
    from betimes.core.schedule_reason import NextFire, ScheduleExplanation, ScheduleReason, ScheduleReasonCode
    from betimes.core.strategy import (
        AgingPriorityStrategy,
        EarliestDueStrategy,
        FairShareStrategy,
        PriorityStrategy,
        SchedulingStrategy,
    )
    from betimes.core.triggers import Trigger, at, calendar, cron, every
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

__all__ = [
    "AgingPriorityStrategy",
    "AttemptInfo",
    "BetimesError",
    "BoundJob",
    "Cancel",
    "CancelAnswer",
    "CancelReason",
    "CancelToken",
    "Checkup",
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
    "Finding",
    "FindingCode",
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
    "QueueExplanation",
    "QueueReason",
    "QueueReasonCode",
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
    "ServingWorker",
    "Severity",
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

_WHERE = {
    "AgingPriorityStrategy": "betimes.core.strategy",
    "AttemptInfo": "betimes.handles",
    "BetimesError": "betimes.errors",
    "BoundJob": "betimes.tasks",
    "Cancel": "betimes.errors",
    "CancelAnswer": "betimes.ports",
    "CancelReason": "betimes.core.job",
    "CancelToken": "betimes.threads",
    "Checkup": "betimes.core.finding",
    "CircuitBreaker": "betimes.core.restraints",
    "CommandFailed": "betimes.errors",
    "CommandResult": "betimes.core.command",
    "ConfigurationError": "betimes.errors",
    "Context": "betimes.runtime.context",
    "DependencyCycle": "betimes.errors",
    "DueTask": "betimes.core.queue",
    "DuplicateJob": "betimes.errors",
    "EarliestDueStrategy": "betimes.core.strategy",
    "Explanation": "betimes.core.explain",
    "FairShareStrategy": "betimes.core.strategy",
    "Finding": "betimes.core.finding",
    "FindingCode": "betimes.core.finding",
    "FireInfo": "betimes.schedule_info",
    "FireOutcome": "betimes.core.schedule",
    "GateKind": "betimes.core.limits",
    "IllegalTransition": "betimes.errors",
    "InvalidTrigger": "betimes.errors",
    "JobCancelled": "betimes.errors",
    "JobError": "betimes.errors",
    "JobEvent": "betimes.core.job",
    "JobFailed": "betimes.errors",
    "JobHandle": "betimes.handles",
    "JobInfo": "betimes.handles",
    "JobStatus": "betimes.core.job",
    "JobTimedOut": "betimes.errors",
    "LeaseLost": "betimes.errors",
    "Limit": "betimes.core.restraints",
    "LimitHolder": "betimes.limit_info",
    "LimitInfo": "betimes.limit_info",
    "LogLine": "betimes.core.log",
    "Metrics": "betimes.runtime.metrics",
    "Missed": "betimes.core.schedule",
    "NextFire": "betimes.core.schedule_reason",
    "NonRetryableError": "betimes.errors",
    "Overlap": "betimes.core.schedule",
    "PayloadError": "betimes.errors",
    "Priority": "betimes.core.priority",
    "PriorityStrategy": "betimes.core.strategy",
    "ProcessDied": "betimes.errors",
    "QueueExplanation": "betimes.core.queue_reason",
    "QueueReason": "betimes.core.queue_reason",
    "QueueReasonCode": "betimes.core.queue_reason",
    "Rate": "betimes.core.restraints",
    "Reason": "betimes.core.reason",
    "ReasonCode": "betimes.core.reason",
    "Recycle": "betimes.core.recycle",
    "RetryBudget": "betimes.core.restraints",
    "RetryPolicy": "betimes.core.retry",
    "ScheduleExplanation": "betimes.core.schedule_reason",
    "ScheduleInfo": "betimes.schedule_info",
    "ScheduleReason": "betimes.core.schedule_reason",
    "ScheduleReasonCode": "betimes.core.schedule_reason",
    "Scheduler": "betimes.scheduler",
    "SchedulerClosed": "betimes.errors",
    "SchedulingStrategy": "betimes.core.strategy",
    "SchemaMismatch": "betimes.errors",
    "ServingWorker": "betimes.core.queue_reason",
    "Severity": "betimes.core.finding",
    "Snooze": "betimes.errors",
    "StoreUnavailable": "betimes.errors",
    "Task": "betimes.tasks",
    "TaskQueue": "betimes.core.queue",
    "ThreadScheduler": "betimes.threads",
    "Trigger": "betimes.core.triggers",
    "UnknownJob": "betimes.errors",
    "UnknownSchedule": "betimes.errors",
    "UnknownTask": "betimes.errors",
    "Wait": "betimes.core.queue",
    "at": "betimes.core.triggers",
    "calendar": "betimes.core.triggers",
    "cron": "betimes.core.triggers",
    "current_job": "betimes.runtime.context",
    "every": "betimes.core.triggers",
}
"""Where each name is."""


def __getattr__(name: str) -> Any:
    """Import a public name, on first use."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - only here

    value = globals()[name] = getattr(import_module(_WHERE[name]), name)
    return value


def __dir__() -> list[str]:
    """Name what is public, used or not."""
    return sorted({*globals(), *__all__})
