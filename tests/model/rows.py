"""Between the stores' jobs and events and the model's rows and words."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from tests.model.reference import Row

from betimes.core.events import DeadlinePassed, Errored, Event, GivenBack, Snoozed, Succeeded, Withdrawn
from betimes.core.job import Job, Need, Tenant
from betimes.core.shares import COST
from betimes.testing.store_contract.stage import BOOM

ENDS = ["completed", "failed", "timed_out", "snoozed", "given_back", "parked", "withdrawn"]
ENDED = {"completed", "failed", "timed_out", "cancelled"}


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What a submit is to ask for; a need names a job by its place, counted from the newest."""

    name: str | None
    replaces: bool
    key: str | None
    digest: bytes
    needs: list[tuple[int, Need, bool]]
    delay_s: int
    expires_s: int | None
    sort_key: int
    task: str
    queue: str
    lane: str
    at_most_once: bool
    gates: tuple[str, ...]
    tenant: str | None


LIMIT, BY, RATE, BREAKER = "limit:l", "limit:m", "rate:r", "breaker:b"
TENANTS = {"x": Tenant("x", COST), "y": Tenant("y", COST // 3)}
WAYS = [
    (),
    (),
    (LIMIT,),
    (f"{BY}\ta",),
    (LIMIT, f"{BY}\tb"),
    (RATE,),
    (LIMIT, RATE),
    (RATE, LIMIT),
    (BREAKER,),
    (BREAKER, LIMIT, RATE),
]


def wishes() -> st.SearchStrategy[Wish]:
    """Wishes that often get into each other's way."""
    need = st.tuples(st.integers(0, 4), st.sampled_from(Need), st.booleans())
    return st.builds(
        Wish,
        name=st.sampled_from(["a", None, "b", None, "a"]),
        replaces=st.sampled_from([True, True, False]),
        key=st.sampled_from([None, "k", None]),
        digest=st.sampled_from([b"1", b"1", b"2"]),
        needs=st.just([]) | st.lists(need, min_size=1, max_size=2),
        delay_s=st.sampled_from([0, 0, 0, 3]),
        expires_s=st.sampled_from([None, None, None, 2, 10]),
        sort_key=st.integers(-2, 2),
        task=st.sampled_from("tu"),
        queue=st.sampled_from("qr"),
        lane=st.sampled_from(["loop", "thread"]),
        at_most_once=st.booleans(),
        gates=st.sampled_from(WAYS),
        tenant=st.sampled_from([None, None, "x", "y"]),
    )


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


def new_row(job: Job, seq: int, sort_key: int) -> Row:
    """The model's row of a new job."""
    spec = job.spec
    return Row(
        seq=seq,
        id=job.id,
        task=spec.task,
        queue=spec.queue,
        lane=spec.lane,
        sort_key=sort_key,
        run_at=job.submitted_at + (job.run_at - job.submitted_at),
        expires_at=job.expires_at,
        at_most_once=spec.at_most_once,
        gates=job.gates,
        tenant=None if job.tenant is None else (job.tenant.name, job.tenant.cost),
    )


def seen(job: Job) -> tuple[object, ...]:
    """What is compared of a stored job."""
    numbers = (job.fence, job.attempt, job.crashes, job.finished_at, job.worker, job.parked)
    return job.status.value, *numbers, job.cancel_requested, job.superseded, job.run_at, job.sort_key


def expected_of(row: Row) -> tuple[object, ...]:
    """The same of the model's row."""
    numbers = (row.fence, row.attempt, row.crashes, row.finished_at, row.worker, row.parked)
    return row.status, *numbers, row.is_cancelled, row.is_superseded, row.run_at, row.sort_key
