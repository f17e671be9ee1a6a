"""Between the stores' jobs and events and the model's rows and words."""

from __future__ import annotations

from tests.model.reference import Row

from betimes.core.events import DeadlinePassed, Errored, Event, GivenBack, Snoozed, Succeeded, Withdrawn
from betimes.core.job import Job
from betimes.testing.store_contract.stage import BOOM


def event_of(kind: str, at: int, delay: int | None) -> Event:
    """The event that a worker reports."""
    events: dict[str, Event] = {
        "completed": Succeeded(at, b"1"),
        "failed": Errored(at, BOOM, delay),
        "timed_out": DeadlinePassed(at, BOOM, delay),
        "snoozed": Snoozed(at, delay or 0),
        "given_back": GivenBack(at),
        "parked": GivenBack(at, parked="p"),
        "withdrawn": Withdrawn(at, "enough"),
    }
    return events[kind]


def new_row(job: Job, seq: int) -> Row:
    """The model's row of a new job."""
    spec = job.spec
    return Row(
        seq=seq,
        id=job.id,
        task=spec.task,
        queue=spec.queue,
        lane=spec.lane,
        sort_key=job.sort_key,
        run_at=job.submitted_at + (job.run_at - job.submitted_at),
        expires_at=job.expires_at,
        at_most_once=spec.at_most_once,
    )


def seen(job: Job) -> tuple[object, ...]:
    """What is compared of a stored job."""
    numbers = (job.fence, job.attempt, job.crashes, job.finished_at, job.worker, job.parked)
    return job.status.value, *numbers, job.cancel_requested, job.superseded, job.run_at


def expected_of(row: Row) -> tuple[object, ...]:
    """The same of the model's row."""
    numbers = (row.fence, row.attempt, row.crashes, row.finished_at, row.worker, row.parked)
    return row.status, *numbers, row.is_cancelled, row.is_superseded, row.run_at
