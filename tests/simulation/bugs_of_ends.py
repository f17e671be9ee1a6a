"""Planted bugs: what was promised of a job's end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.simulation.bugs import RUNNING, bug, change_exchange

from betimes.core import lifecycle
from betimes.core.events import Snoozed, Succeeded
from betimes.core.job import Job, JobStatus
from betimes.core.transition import Transition
from betimes.ports import (
    Cancellation,
    Report,
)
from betimes.stores.memory import MemoryStore


@bug("the cancel of .* was promised")
def cancel_is_forgotten_at_the_finish(patch: pytest.MonkeyPatch) -> None:
    """A job that returns after its cancel was promised is COMPLETED all the same."""

    def succeeded(job: Job, event: Succeeded) -> Transition:
        return Transition(RUNNING, JobStatus.COMPLETED, event.at, result=event.result)

    patch.setitem(lifecycle._DECIDE, Succeeded, succeeded)


@bug("was answered|was over")
def finished_job_is_cancelled(patch: pytest.MonkeyPatch) -> None:
    """A cancel that comes too late overwrites the end."""
    cancel = MemoryStore.cancel

    async def overwrite(self: MemoryStore, job: Job, *, reason: str, abandon: bool = False) -> Cancellation:
        answer = await cancel(self, job, reason=reason, abandon=abandon)
        if job.status is JobStatus.COMPLETED:
            job.status, job.result = JobStatus.CANCELLED, None
        return answer

    patch.setattr(MemoryStore, "cancel", overwrite)


@bug("is its attempt", "memory", "sqlite")
def snooze_uses_an_attempt(patch: pytest.MonkeyPatch) -> None:
    """To ask to run again later costs an attempt."""
    decide = lifecycle._snoozed

    def snoozed(job: Job, event: Snoozed) -> Transition:
        step = decide(job, event)
        step.uses_attempt = True
        return step

    patch.setitem(lifecycle._DECIDE, Snoozed, snoozed)


@bug("was recorded with result", "memory", "sqlite")
def results_are_mixed_up(patch: pytest.MonkeyPatch) -> None:
    """Two outcomes that are sent together change places."""

    def mixed(reports: Sequence[Report]) -> list[Report]:
        good = [report for report in reports if isinstance(report.event, Succeeded)]
        other = dict(zip(map(id, good), (report.event for report in good[::-1]), strict=True))
        return [Report(report.job, report.fence, other.get(id(report), report.event)) for report in reports]

    change_exchange(patch, reports=mixed)
