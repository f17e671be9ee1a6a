"""Betimes: work done later, again, in order of importance, in parallel, durably."""

from betimes.core.explain import Explanation
from betimes.core.job import CancelReason, JobEvent, JobStatus
from betimes.core.priority import Priority
from betimes.core.queue import DueTask, TaskQueue, Wait
from betimes.core.reason import Reason, ReasonCode
from betimes.core.retry import RetryPolicy
from betimes.core.strategy import (
    AgingPriorityStrategy,
    EarliestDueStrategy,
    PriorityStrategy,
    SchedulingStrategy,
)
from betimes.errors import (
    BetimesError,
    Cancel,
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
    SchedulerClosed,
    SchemaMismatch,
    Snooze,
    StoreUnavailable,
    UnknownJob,
    UnknownSchedule,
    UnknownTask,
)
from betimes.handles import AttemptInfo, JobHandle, JobInfo
from betimes.ports import CancelAnswer
from betimes.runtime.context import Context, current_job
from betimes.runtime.metrics import Metrics
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
    "ConfigurationError",
    "Context",
    "DependencyCycle",
    "DueTask",
    "DuplicateJob",
    "EarliestDueStrategy",
    "Explanation",
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
    "Metrics",
    "NonRetryableError",
    "PayloadError",
    "Priority",
    "PriorityStrategy",
    "Reason",
    "ReasonCode",
    "RetryPolicy",
    "Scheduler",
    "SchedulerClosed",
    "SchedulingStrategy",
    "SchemaMismatch",
    "Snooze",
    "StoreUnavailable",
    "Task",
    "TaskQueue",
    "ThreadScheduler",
    "UnknownJob",
    "UnknownSchedule",
    "UnknownTask",
    "Wait",
    "current_job",
]
