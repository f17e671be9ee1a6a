"""Gathers what a checkup reads; decides nothing, and changes nothing."""

from __future__ import annotations

import os
import platform
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo, ZoneInfoNotFoundError

from betimes.core.checkup import checkup
from betimes.core.facts import Facts, Machine, Poisoned, Process, QueueFacts, ScheduleFacts, Work
from betimes.core.finding import Checkup
from betimes.core.job import JobStatus
from betimes.core.lifecycle import CRASH_BUDGET
from betimes.core.vitals import Trouble, Vitals
from betimes.errors import BetimesError, StoreUnavailable
from betimes.ports import JobFilter, ScheduleFilter, Store
from betimes.runtime.explaining import workers_seen
from betimes.runtime.explaining_queues import held_by_workers

FAILED_LOOKED_AT = 200
POISONED_SHOWN = 20
SCHEDULES_LOOKED_AT = 1000
"""How many of each are read at most."""

A_ZONE = "Europe/Berlin"
LOCAL_ZONE = Path("/etc/localtime")


async def examine(
    store: Store,
    *,
    strategy: str | None,
    here: str | None,
    process: Process | None,
    full: bool,
) -> Checkup:
    """Check a store up, open or not; what is wrong is found, not raised.

    Args:
        store: which; if it is not open (`process` is None), it is opened for looking, and closed again.
        strategy: the stored name of this scheduler's strategy; None: it has none in mind.
        here: the id of the worker of this process; None: it runs none.
        process: what the scheduler of this process has counted; None: it is not open.
        full: have the store check all that it keeps for damage.
    """
    vitals = await store.vitals(full=full)
    work = None
    if vitals.can_be_looked_at:
        try:
            work = await _look(store, here, is_open=process is not None)
        except BetimesError as error:
            vitals = _with_trouble(vitals, error)
    facts = Facts(
        now=store.now(), machine=machine(), vitals=vitals, strategy=strategy, work=work, process=process
    )
    return checkup(facts)


async def _look(store: Store, here: str | None, *, is_open: bool) -> Work:
    if is_open:
        return await gather(store, here)
    await store.look()
    try:
        return await gather(store, here)
    finally:
        await store.close()


def _with_trouble(vitals: Vitals, error: BetimesError) -> Vitals:
    passes = isinstance(error, StoreUnavailable) and error.why != "privilege"
    trouble = Trouble.UNAVAILABLE if passes else Trouble.REFUSED
    return replace(vitals, trouble=trouble, problem=str(error).rstrip("."))


async def gather(store: Store, here: str | None) -> Work:
    """Look at all that bears on whether the work in an open store goes on.

    Args:
        store: which.
        here: the id of the worker of this process; None: it runs none.
    """
    return Work(
        workers=await workers_seen(store),
        held=await held_by_workers(store),
        queues=await queue_facts(store),
        parked=await store.parked(),
        poisoned=await _poisoned(store),
        open_circuits=tuple(view for view in await store.gates_under(None) if view.gate.is_tripped),
        schedules=tuple(
            ScheduleFacts(
                id=record.id,
                task=record.spec.task,
                next_fire_at=record.next_fire_at,
                paused=record.paused,
                error=record.error,
            )
            for record in await store.schedules(ScheduleFilter(limit=SCHEDULES_LOOKED_AT))
        ),
        here=here,
    )


async def queue_facts(store: Store) -> tuple[QueueFacts, ...]:
    """Describe the queues that have live jobs or are paused, by name."""
    counts, paused, oldest = await store.counts(), await store.paused_queues(), await store.oldest_due()
    found = []
    for name in sorted({*counts, *paused}):
        row = counts.get(name, {})
        queue = QueueFacts(
            name=name,
            ready=row.get(JobStatus.READY, 0),
            delayed=row.get(JobStatus.DELAYED, 0),
            blocked=row.get(JobStatus.BLOCKED, 0),
            running=row.get(JobStatus.RUNNING, 0),
            oldest_at=oldest.get(name),
            pause=paused.get(name),
        )
        if any(row.values()) or queue.pause is not None:
            found.append(queue)
    return tuple(found)


async def _poisoned(store: Store) -> tuple[Poisoned, ...]:
    failed = await store.jobs(JobFilter(status=JobStatus.FAILED, limit=FAILED_LOOKED_AT))
    poisoned = [job for job in failed if job.crashes >= CRASH_BUDGET]
    return tuple(
        Poisoned(job_id=job.id, task=job.spec.task, at=job.finished_at or 0)
        for job in poisoned[:POISONED_SHOWN]
    )


def machine() -> Machine:
    """Describe the interpreter, and where it finds the data of time zones."""
    problem = ""
    try:
        ZoneInfo(A_ZONE)
    except (ZoneInfoNotFoundError, OSError, ValueError) as error:
        problem = f"{A_ZONE} cannot be read ({error})"
    return Machine(
        python=f"{platform.python_version()} ({platform.python_implementation()})",
        zone_data=_zone_data(),
        zone_problem=problem,
        local_zone=_local_zone(),
    )


def _zone_data() -> str:
    """Name the place where zones are looked for first and found, as `zoneinfo` does."""
    for folder in TZPATH:
        if (Path(folder) / A_ZONE).exists():
            return folder
    try:
        return f"the package tzdata {version('tzdata')}"
    except PackageNotFoundError:
        return ""


def _local_zone() -> str:
    """Return the system's own zone, as far as it is named."""
    named = os.environ.get("TZ", "")
    if named:
        return named
    try:
        _, is_found, name = str(LOCAL_ZONE.resolve(strict=True)).partition("/zoneinfo/")
    except OSError:
        return ""
    return name if is_found else ""
