"""The contracts between what decides and what acts: `Clock`, `Executor`, `Store`. Obligations, no code."""

from betimes.ports.clock import Clock
from betimes.ports.executor import Executor, Run
from betimes.ports.store import Store
from betimes.ports.values import (
    Beat,
    CancelAnswer,
    Cancellation,
    ClaimRequest,
    Exchange,
    Hint,
    JobFilter,
    Report,
    ScheduleFilter,
    WorkerInfo,
)
from betimes.ports.within import Joined

__all__ = [
    "Beat",
    "CancelAnswer",
    "Cancellation",
    "ClaimRequest",
    "Clock",
    "Exchange",
    "Executor",
    "Hint",
    "JobFilter",
    "Joined",
    "Report",
    "Run",
    "ScheduleFilter",
    "Store",
    "WorkerInfo",
]
