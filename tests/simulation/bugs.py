"""Bugs on purpose: each is a small change to the real code, of a kind that schedulers really have had.

A simulation that does not find them proves nothing. Each entry names what the run must object to. Where it
can, a bug sits at the store's door, so that it is the same bug on every store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from tests.simulation.settings import StoreKind

from betimes.core.job import Job, JobEvent, JobStatus, Terms
from betimes.ports import (
    ClaimRequest,
    Exchange,
    Report,
    Store,
)
from betimes.stores.memory import MemoryStore
from betimes.stores.sqlite import SqliteStore

RUNNING = JobStatus.RUNNING
STORES: tuple[type[Store], ...] = (MemoryStore, SqliteStore)

Plant = Callable[[pytest.MonkeyPatch], None]
Submitted = tuple[list[Job], Sequence[JobEvent]]
Returned = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Bug:
    """One planted bug.

    Attributes:
        plant: puts it into the code.
        expected: what the run must say, as a regular expression.
        stores: on which it is to be found.
    """

    plant: Plant
    expected: str
    stores: tuple[StoreKind, ...]


BUGS: dict[str, Bug] = {}


def bug(expected: str, *stores: StoreKind) -> Callable[[Plant], None]:
    """Enter a bug under its function's name; in memory, unless other stores are named."""

    def enter(plant: Plant) -> None:
        BUGS[plant.__name__] = Bug(plant, expected, stores or ("memory",))

    return enter


def change_exchange(
    patch: pytest.MonkeyPatch,
    *,
    reports: Callable[[Sequence[Report]], Sequence[Report]] = lambda reports: reports,
    claim: Callable[[ClaimRequest], ClaimRequest] = lambda claim: claim,
) -> None:
    """Change what is sent in a worker's turn, behind the witness's back."""

    def plant(store: type[Store]) -> None:
        original = store.exchange

        async def exchange(
            self: Store, given: Sequence[Report], asked: ClaimRequest | None, returned: Returned = ()
        ) -> Exchange:
            return await original(self, reports(given), None if asked is None else claim(asked), returned)

        patch.setattr(store, "exchange", exchange)

    for store in STORES:
        plant(store)


def change_submit(patch: pytest.MonkeyPatch, change: Callable[[Job], None]) -> None:
    """Change each job that is submitted, behind the witness's back."""

    def plant(store: type[Store]) -> None:
        original = store.submit

        async def submit(self: Store, jobs: Sequence[Job]) -> Submitted:
            for job in jobs:
                change(job)
            return await original(self, jobs)

        patch.setattr(store, "submit", submit)

    for store in STORES:
        plant(store)


def change_terms(patch: pytest.MonkeyPatch, change: Callable[[Terms], Terms]) -> None:
    def change_job(job: Job) -> None:
        if job.terms is not None:
            job.terms = change(job.terms)

    change_submit(patch, change_job)
