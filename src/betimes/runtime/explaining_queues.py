"""Gathers, through the contract of the stores, what `core.explain_queue` reads; decides nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from betimes.core.explain import explain
from betimes.core.explain_queue import QueueSituation, explain_queue
from betimes.core.job import Job, JobStatus
from betimes.core.queue_reason import QueueExplanation
from betimes.core.situation import Here
from betimes.core.task import Registry
from betimes.ports import JobFilter, Store
from betimes.runtime.explaining import MOST_RUNNING, gather, workers_seen

HOLDERS_SHOWN = 10


async def explain_one(
    store: Store, name: str, tasks: Registry, here: Here | None, *, held: Sequence[Job] = ()
) -> QueueExplanation:
    """Explain a queue.

    Args:
        store: an open store.
        name: the queue.
        tasks: the tasks known here.
        here: the worker of this process; None: it runs no jobs.
        held: the jobs whose earlier code still runs here.
    """
    view = await store.queue(name)
    paused = await store.paused_queues()
    heads = [explain(job, await gather(store, job, tasks, here, held=held)) for job in view.heads]
    situation = QueueSituation(
        now=store.now(),
        name=name,
        counts=(await store.counts()).get(name, {}),
        view=view,
        oldest_at=(await store.oldest_due()).get(name),
        pause=paused.get(name),
        here=here,
        workers=await workers_seen(store),
        held=await held_by_workers(store),
        gates=tuple(await store.gates(view.gates, most=HOLDERS_SHOWN)) if view.gates else (),
        heads=tuple(heads),
    )
    return explain_queue(situation)


async def held_by_workers(store: Store) -> Counter[str]:
    """Count the jobs that each worker runs, by its id; of a bounded number."""
    running = await store.jobs(JobFilter(status=JobStatus.RUNNING, limit=MOST_RUNNING))
    return Counter(job.worker for job in running if job.worker is not None)
