"""Planted bugs: what may start when, and what first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from msgspec import structs
from tests.simulation.bugs import bug, change_exchange, change_submit, change_terms

from betimes.core import dependencies
from betimes.core.events import DeadlinePassed, DependencyFailed, Errored, Event, Released
from betimes.core.job import Job, Micros, Need, Terms
from betimes.ports import (
    ClaimRequest,
    Report,
)
from betimes.stores.memory import MemoryStore, moves, submits
from betimes.stores.memory.moves import Moves

# --- order and time


@bug("belongs to delayed|its time comes in", "memory", "sqlite")
def delay_is_ignored(patch: pytest.MonkeyPatch) -> None:
    """A new job is READY, whatever its earliest start."""

    def change(job: Job) -> None:
        job.run_at = job.submitted_at

    change_submit(patch, change)


@bug("its time comes in|before its time", "memory", "sqlite")
def back_off_is_ignored(patch: pytest.MonkeyPatch) -> None:
    """What failed runs again at once."""

    def hurried(reports: Sequence[Report]) -> list[Report]:
        return [Report(report.job, report.fence, _hurried(report.event)) for report in reports]

    change_exchange(patch, reports=hurried)


def _hurried(event: Event) -> Event:
    if isinstance(event, Errored | DeadlinePassed) and event.retry_in_us:
        return structs.replace(event, retry_in_us=0)
    return event


@bug("was passed over|out of order", "memory", "sqlite")
def order_is_first_come_first_served(patch: pytest.MonkeyPatch) -> None:
    """The strategy's key is lost."""

    def change(job: Job) -> None:
        job.sort_key = 0

    change_submit(patch, change)


@bug(r"were claimed.* asked for", "memory", "sqlite")
def claim_takes_one_too_many(patch: pytest.MonkeyPatch) -> None:
    """A claim takes more than it asked for."""

    def one_more(claim: ClaimRequest) -> ClaimRequest:
        lanes = {lane: free + 1 for lane, free in claim.lanes.items()}
        return replace(claim, limit=claim.limit + 1, lanes=lanes)

    change_exchange(patch, claim=one_more)


@bug("its queue is paused")
def paused_queue_is_claimed_from(patch: pytest.MonkeyPatch) -> None:
    """A pause is acknowledged, and nothing more."""

    async def pause_queue(self: MemoryStore, name: str) -> None:
        return None

    patch.setattr(MemoryStore, "pause_queue", pause_queue)


# --- dependencies and versions


@bug("belongs to blocked|still waits for|waits for", "memory", "sqlite")
def one_dependency_is_enough(patch: pytest.MonkeyPatch) -> None:
    """A dependent is released by the first of its dependencies."""
    change_terms(patch, lambda terms: replace(terms, depends_on=terms.depends_on[:1]))


@bug("was released, and still waits|waits for|stays blocked|belongs to", "memory", "sqlite")
def failure_counts_as_completion(patch: pytest.MonkeyPatch) -> None:
    """A dependent runs whatever became of its dependency."""

    def change(terms: Terms) -> Terms:
        return replace(terms, depends_on=tuple((what, Need.ENDED) for what, _ in terms.depends_on))

    change_terms(patch, change)


@bug("was released, and still waits|stays blocked")
def dependents_are_released_twice(patch: pytest.MonkeyPatch) -> None:
    """Each dependency that ends is counted off twice."""
    settle = dependencies.settle

    def count_twice(waiting: Job, need: Need, ended: Job, at: Micros) -> Released | DependencyFailed | None:
        return settle(waiting, need, ended, at) or settle(waiting, need, ended, at)

    patch.setattr(moves, "settle", count_twice)


@bug("belongs to|stays blocked")
def dependency_that_has_ended_is_waited_for(patch: pytest.MonkeyPatch) -> None:
    """A submit looks whether a dependency exists, and not whether it has ended meanwhile."""
    patch.setattr(submits, "is_met", lambda need, status: None)


@bug("belongs to blocked|another version runs")
def replacement_runs_beside_the_old_version(patch: pytest.MonkeyPatch) -> None:
    """The newest version does not wait for the code of the one before."""
    take_over = submits.Submission._take_over

    def forget(self: submits.Submission, job: Job, moves: Moves) -> list[tuple[Job, Need]]:
        take_over(self, job, moves)
        return []

    patch.setattr(submits.Submission, "_take_over", forget)
