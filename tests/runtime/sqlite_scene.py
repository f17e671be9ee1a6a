"""What the tests of the SQLite store's own matters share: an open store, plain jobs, a look into the file."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from betimes.core.events import Succeeded
from betimes.core.job import Job, JobSpec, Terms
from betimes.ports import ClaimRequest, Report, WorkerInfo
from betimes.stores.sqlite import SqliteStore
from betimes.testing import VirtualClock

SPEC = JobSpec(task="work")
CLOCK = VirtualClock()
LANES = {"loop": 1000}


def job(job_id: str, *, spec: JobSpec = SPEC, payload: bytes = b"{}", terms: Terms | None = None) -> Job:
    """A job that is due at once."""
    return Job(job_id, spec, payload, submitted_at=CLOCK.now(), run_at=CLOCK.now(), terms=terms)


def named(job_id: str) -> Job:
    """A job whose id the caller has chosen."""
    return job(job_id, terms=Terms(named=True))


@asynccontextmanager
async def opened(path: Path, *, strategy: str = "priority", **settings: Any) -> AsyncIterator[SqliteStore]:
    """A store on this file, with its writer and reader in their threads unless told otherwise."""
    store = SqliteStore(path, clock=CLOCK, **{"max_stall_us": 0, **settings})
    await store.open(strategy=strategy)
    try:
        yield store
    finally:
        await store.close()


async def finish_all(store: SqliteStore, worker: str = "w", *, at_once: int = 100) -> int:
    """Claim and complete whatever can be claimed; return how many jobs that were."""
    await store.register(WorkerInfo(id=worker, lease_us=30_000_000))
    request = ClaimRequest(worker=worker, limit=at_once, lanes=LANES)
    done = 0
    turn = await store.exchange([], request)
    while turn.claimed:
        reports = [Report(each, each.fence, Succeeded(CLOCK.now(), b"null")) for each in turn.claimed]
        turn = await store.exchange(reports, request)
        done += len(reports)
    return done


def look(path: Path, query: str, *values: object) -> list[tuple[Any, ...]]:
    """Ask the file itself, past the store."""
    with closing(sqlite3.connect(path)) as sql:
        return sql.execute(query, values).fetchall()
