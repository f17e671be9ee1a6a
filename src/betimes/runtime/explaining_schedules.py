"""Gathers, through the contract of the stores, what `core.explain_schedule` reads; decides nothing."""

from __future__ import annotations

from betimes.core.explain_schedule import ScheduleSituation, explain_schedule
from betimes.core.job import JobStatus, Micros
from betimes.core.schedule import Fire, FireOutcome, ScheduleRecord
from betimes.core.schedule_reason import ScheduleExplanation
from betimes.core.task import Registry
from betimes.errors import BetimesError
from betimes.ports import Store
from betimes.runtime.definitions import Definitions, TriggerElsewhere
from betimes.runtime.explaining import workers_seen

PAGE = 500
PAGES = 40
"""How far back an instant is looked for among the fires."""

NEWEST = 20
"""How many of the newest fires are looked through for jobs that have not ended."""


async def explain(
    store: Store,
    definitions: Definitions,
    record: ScheduleRecord,
    at: Micros | None,
    *,
    tasks: Registry,
    is_working: bool,
) -> ScheduleExplanation:
    """Explain a schedule, or one instant of it.

    Args:
        store: an open store.
        definitions: what definitions mean here.
        record: the schedule.
        at: the instant; None: now.
        tasks: the tasks known here.
        is_working: whether a worker runs here.
    """
    terms, grid, unreadable, is_elsewhere = None, None, "", False
    try:
        terms, grid = definitions.read(record)
    except BetimesError as error:
        unreadable, is_elsewhere = str(error), isinstance(error, TriggerElsewhere)
    newest = await store.fires(record.id, limit=NEWEST)
    fires = [] if at is None else await _around(store, record.id, at)
    alive = [worker for worker in await workers_seen(store) if worker.is_working]
    is_worked = is_working or bool(alive)
    situation = ScheduleSituation(
        now=store.now(),
        record=record,
        terms=terms,
        grid=grid,
        unreadable=unreadable,
        is_elsewhere=is_elsewhere,
        fires=fires,
        live=await _live(store, newest),
        statuses=await _statuses(store, fires),
        is_worked=is_worked,
        is_task_known=(is_working and record.spec.task in tasks)
        or any(worker.knows_task(record.spec.task) for worker in alive),
    )
    return explain_schedule(situation, at)


async def _statuses(store: Store, fires: list[Fire]) -> dict[str, JobStatus]:
    jobs = [await store.find(job_id) for job_id in {fire.job_id for fire in fires} if job_id is not None]
    return {job.id: job.status for job in jobs if job is not None}


async def _live(store: Store, fires: list[Fire]) -> list[str]:
    live = []
    for fire in fires:
        if fire.outcome in (FireOutcome.FIRED, FireOutcome.BY_HAND) and fire.job_id is not None:
            job = await store.find(fire.job_id)
            if job is not None and not job.status.is_terminal:
                live.append(job.id)
    return live


async def _around(store: Store, schedule_id: str, at: Micros) -> list[Fire]:
    """Return the fires that may speak of an instant: the one at it, or the runs of instants around it."""
    exact = [fire for fire in await store.fires(schedule_id, before=at + 1, limit=PAGE) if fire.at == at]
    if exact:
        return sorted(exact, key=lambda fire: fire.outcome is FireOutcome.BY_HAND)
    before: Micros | None = None
    for _ in range(PAGES):
        page = await store.fires(schedule_id, before=before, limit=PAGE)
        covering = [fire for fire in page if fire.first_at <= at <= fire.at]
        if covering or len(page) < PAGE or page[-1].at < at:
            return covering
        before = page[-1].at
    return []
