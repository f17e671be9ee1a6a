"""Which of its gates keeps a job from starting, in words: limits, rates, circuit breakers."""

from __future__ import annotations

from betimes.core.claiming import is_due
from betimes.core.job import Job, JobStatus
from betimes.core.limits import GateKind, GateView, named
from betimes.core.reason import Reason, ReasonCode
from betimes.core.situation import Situation
from betimes.core.wording import listed, moment, span


def limit_reached(job: Job, s: Situation) -> Reason | None:
    """As many jobs of one of its limits run as may."""
    view = _closed(job, s, GateKind.LIMIT)
    if view is None:
        return None
    most = view.terms.max_running
    holders = listed([f"{job_id} (worker {worker})" for job_id, _, worker in view.holders], most=10)
    held = f", and {view.held} do" if view.held else ""
    if holders:
        held += f": {holders}"
    _, name, _ = named(view.key)
    return Reason(
        code=ReasonCode.LIMIT_REACHED,
        text=f"Limit {_shown(view)} lets {most} run at once{held}. {_place(job, view)}",
        change="It starts when one of them has returned and no job that waits there goes before it; "
        f"set_limit({name!r}, …) changes the limit.",
    )


def no_token(job: Job, s: Situation) -> Reason | None:
    """One of its rates has no token left."""
    view = _closed(job, s, GateKind.RATE)
    if view is None:
        return None
    terms, opens_at = view.terms, view.gate.opens_at(s.now)
    assert opens_at is not None, "a rate opens by the passing of time"
    ahead = _ahead(job, view)
    expected = None if ahead is None else opens_at + ahead * terms.every_us
    _, name, _ = named(view.key)
    return Reason(
        code=ReasonCode.NO_TOKEN,
        text=f"Rate {_shown(view)} gives one token every {span(terms.every_us)}; the next comes at "
        f"{moment(opens_at, s.now)}. {_place(job, view)}",
        change=f"It starts with {'that token' if ahead == 0 else 'the token after theirs'}; "
        f"set_rate({name!r}, …) changes the rate.",
        expected_at_us=expected,
    )


def circuit_open(job: Job, s: Situation) -> Reason | None:
    """The circuit breaker of its task has opened."""
    view = _closed(job, s, GateKind.BREAKER)
    if view is None:
        return None
    opens_at = view.gate.opens_at(s.now)
    assert opens_at is not None, "a breaker lets a probe through after a time"
    _, name, _ = named(view.key)
    return Reason(
        code=ReasonCode.CIRCUIT_OPEN,
        text=f"The circuit of task {name!r} is open, since its attempts have failed or somebody has opened "
        f"it; the next probe may go at {moment(opens_at, s.now)}. {_place(job, view)}",
        change=f"It starts once a probe has succeeded, or as one; close_circuit({name!r}) closes it at once.",
        expected_at_us=opens_at if _ahead(job, view) == 0 else None,
    )


def _closed(job: Job, s: Situation, kind: GateKind) -> GateView | None:
    """Return the first of its gates of a kind that is closed, for a job that would be ready otherwise."""
    is_due_now = job.status is JobStatus.READY or is_due(job, s.now)
    if job.status is JobStatus.BLOCKED or not is_due_now:
        return None
    closed = (view for view in s.gates if view.terms.kind is kind and not view.gate.is_open(s.now))
    return next(closed, None)


def _shown(view: GateView) -> str:
    _, name, value = named(view.key)
    return repr(name) if value is None else f"{name!r} ({view.terms.by}={value})"


def _ahead(job: Job, view: GateView) -> int | None:
    """Return how many wait at the gate before the job; None: it is not among the first."""
    numbers = [seq for _, seq in view.waiters]
    return numbers.index(job.seq) if job.seq in numbers else None


def _place(job: Job, view: GateView) -> str:
    ahead = _ahead(job, view)
    if ahead is None:
        return "1 job waits there." if view.waiting == 1 else f"{view.waiting} jobs wait there."
    if ahead == 0:
        return "It is the next."
    return f"{ahead} of those that wait there {'goes' if ahead == 1 else 'go'} before it."
