"""Gathers, through the contract of the stores, what `core.explain` reads; decides nothing."""

from __future__ import annotations

from collections.abc import Sequence

from betimes.clock import is_gone
from betimes.core.explain import Explanation, explain
from betimes.core.job import Job, JobStatus, Micros
from betimes.core.situation import Here, Occupant, OtherJob, Situation, WorkerSeen
from betimes.core.task import Registry
from betimes.core.worker_state import Phase
from betimes.errors import UnknownJob
from betimes.ports import JobFilter, Store
from betimes.runtime.pool_watch import PoolWatch
from betimes.runtime.settings import Settings
from betimes.runtime.worker import Worker

READY, DELAYED = JobStatus.READY, JobStatus.DELAYED

MOST_AHEAD = 1000
MOST_RUNNING = 1000
"""How many jobs are counted, and looked through for older versions."""

TRIES = 3
"""How often the look is repeated if the job moved meanwhile."""


async def explain_job(
    store: Store, job: Job, tasks: Registry, here: Here | None, *, held: Sequence[Job] = ()
) -> Explanation:
    """Explain one version of a job.

    Args:
        store: an open store.
        job: which version.
        tasks: the tasks known here.
        here: the worker of this process; None: it runs no jobs.
        held: the jobs whose earlier code still runs here.

    Raises:
        UnknownJob: it has been pruned.
    """
    tries = TRIES
    while True:
        found = await _get(store, job)
        situation = await gather(store, found, tasks, here, held=held)
        after = await _get(store, job)
        tries -= 1
        if tries == 0 or (after.status, after.fence) == (found.status, found.fence):
            return explain(found, situation)


async def _get(store: Store, job: Job) -> Job:
    found = await store.get(job)
    if found is None:
        raise UnknownJob(f"job {job.id} has been pruned", job_id=job.id)
    return found


async def gather(
    store: Store, job: Job, tasks: Registry, here: Here | None, *, held: Sequence[Job] = ()
) -> Situation:
    """Look at all that bears on a job as it stands.

    Args:
        store: an open store.
        job: its present state.
        tasks: the tasks known here.
        here: the worker of this process; None: it runs no jobs.
        held: the jobs whose earlier code still runs here: a claim passes over them.
    """
    is_blocked = job.status is JobStatus.BLOCKED
    before = await _running_before(store, job) if is_blocked else []
    return Situation(
        now=store.now(),
        here=here,
        workers=await workers_seen(store),
        paused=await store.paused_queues(),
        dependencies=await _dependencies(store, job, before),
        older=tuple(_other(running) for running in before if running.id == job.id),
        gates=tuple(await store.gates(job.gates)) if job.gates else (),
        ahead=await _ahead(store, job, held) if job.status in (READY, DELAYED) else 0,
        most_ahead=MOST_AHEAD,
        deadline=_deadline(job, tasks),
    )


async def workers_seen(store: Store) -> tuple[WorkerSeen, ...]:
    """Describe the registered workers."""
    return tuple(
        WorkerSeen(
            id=info.id,
            queues=info.queues,
            lease_us=info.lease_us,
            is_alive=left_us > 0,
            left_us=left_us,
            is_gone=is_gone(info),
            tasks=info.tasks,
            lanes=info.lanes,
            concurrency=info.concurrency,
            host=info.host,
            pid=info.pid,
        )
        for info, left_us in await store.workers()
    )


async def _ahead(store: Store, job: Job, held: Sequence[Job]) -> int:
    ahead = await store.ahead(job, most=MOST_AHEAD)
    passed_over: dict[int, Job] = {}
    for other in held:
        for found in (await store.get(other), await store.find(other.id)):
            if found is not None and found.status is READY and found.parked is None:
                passed_over[found.seq] = found
    return ahead - sum(_goes_before(found, job) for found in passed_over.values())


def _goes_before(other: Job, job: Job) -> bool:
    rank, other_rank = (job.sort_key, job.seq), (other.sort_key, other.seq)
    return other_rank < rank and _place(other) == _place(job)


def _place(job: Job) -> tuple[str, str]:
    return job.spec.queue, job.spec.lane


async def _running_before(store: Store, job: Job) -> list[Job]:
    """Return the running versions that were submitted before the job, its own older ones among them."""
    which = JobFilter(status=JobStatus.RUNNING, before=job.seq, limit=MOST_RUNNING)
    return await store.jobs(which)


async def _dependencies(store: Store, job: Job, running_before: list[Job]) -> tuple[OtherJob, ...]:
    if job.status is not JobStatus.BLOCKED:
        return ()
    found: list[OtherJob] = []
    for name in dict.fromkeys(job.depends_on):
        other = await store.find(name)
        if other is not None and other.seq > job.seq:
            # The id has a newer version by now; what the job waits for is the one before it.
            other = next((running for running in running_before if running.id == name), other)
        found.append(OtherJob(job_id=name, status=None) if other is None else _other(other))
    return tuple(found)


def _other(job: Job) -> OtherJob:
    return OtherJob(job_id=job.id, status=job.status, started_at=job.started_at, worker=job.worker)


def _deadline(job: Job, tasks: Registry) -> Micros | None:
    task = tasks.get(job.spec.task)
    if job.status is not JobStatus.RUNNING or task is None or job.started_at is None:
        return None
    timeout_s = task.timeout_of(job.spec)
    return None if timeout_s is None else job.started_at + round(timeout_s * 1_000_000)


def look_here(worker: Worker, settings: Settings, tasks: Registry, *, pool: PoolWatch) -> Here:
    """Describe the worker of this process."""
    state = worker.state
    in_flight = state.in_flight.values()
    _, free = state.room()
    return Here(
        worker=worker.id,
        queues=settings.queues,
        tasks=frozenset(tasks),
        slots={
            lane: left + sum(attempt.lane == lane for attempt in in_flight) for lane, left in free.items()
        },
        concurrency=settings.concurrency,
        occupants=tuple(
            Occupant(
                seq=attempt.seq,
                job_id=attempt.job.id,
                task=attempt.task.name,
                lane=attempt.lane,
                attempt=attempt.number,
                since=attempt.claimed_at,
                is_stuck=attempt.seq in state.zombies,
                is_waiting=pool.is_waiting(attempt),
                progress=attempt.progress,
            )
            for attempt in in_flight
        ),
        starved=pool.found.starved,
        is_stopping=state.phase is not Phase.RUNNING,
    )
