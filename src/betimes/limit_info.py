"""What users are shown of a limit, a rate or a circuit breaker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from betimes.core.durations import from_us
from betimes.core.job import Micros
from betimes.core.limits import GateKind, GateView, named


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitHolder:
    """A job that holds one of a limit's places.

    Attributes:
        job_id: the job.
        version: which version of that id.
        worker: the worker that runs it.
    """

    job_id: str
    version: int
    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitInfo:
    """A limit, a rate or a circuit breaker at one instant. Instants are aware, in UTC.

    Attributes:
        kind: `limit`, `rate` or `breaker`.
        name: its name; a rate without one and a breaker have their task's.
        value: the argument's value that it is for; None: it is not by an argument, or is the rule itself.
        by: the name of that argument.
        max_running: of a limit, how many may run at once; None for the others.
        every_s: seconds from one token of a rate to the next, or from one probe of a breaker to the next.
        burst: of a rate, how many tokens gather at most.
        held: of a limit, how many places are taken.
        is_open: whether a job may pass now.
        opens_at: when one may, if the passing of time alone brings it; None: it does not.
        is_tripped: whether it is a breaker whose circuit is open.
        is_changed: whether it was changed at run time, and is not what the code says.
        holders: who holds its places, the first hundred.
        waiting: how many jobs wait here that are otherwise ready, counted up to 1,000.
        waiters: the ids of the first hundred of them, in their order.
    """

    kind: GateKind
    name: str
    value: str | None
    by: str | None
    max_running: int | None
    every_s: float
    burst: int
    held: int
    is_open: bool
    opens_at: datetime | None
    is_tripped: bool
    is_changed: bool
    holders: tuple[LimitHolder, ...]
    waiting: int
    waiters: tuple[str, ...]

    @classmethod
    def of(cls, view: GateView, now: Micros) -> LimitInfo:
        """Read it off what a store shows."""
        gate, terms = view.gate, view.terms
        kind, name, value = named(view.key)
        opens_at = gate.opens_at(now)
        return cls(
            kind=kind,
            name=name,
            value=value,
            by=terms.by,
            max_running=terms.max_running if kind is GateKind.LIMIT else None,
            every_s=terms.every_us / 1_000_000,
            burst=terms.burst,
            held=view.held,
            is_open=gate.is_open(now),
            opens_at=None if opens_at is None else from_us(opens_at),
            is_tripped=gate.is_tripped,
            is_changed=view.is_changed,
            holders=tuple(
                LimitHolder(job_id=job_id, version=seq, worker=worker) for job_id, seq, worker in view.holders
            ),
            waiting=view.waiting,
            waiters=tuple(job_id for job_id, _ in view.waiters),
        )
