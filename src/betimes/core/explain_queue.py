"""Why has this queue not run? From the same values and predicates as the answers about its jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from betimes.core.claiming import is_served
from betimes.core.durations import from_us
from betimes.core.explain import Explanation
from betimes.core.job import JobStatus, Micros
from betimes.core.limits import GateKind, GateView, named
from betimes.core.obstacles import paused_how, serves
from betimes.core.queue_reason import QueueExplanation, QueueReason, QueueReasonCode, ServingWorker
from betimes.core.queue_view import Pause, QueueView
from betimes.core.reason import ReasonCode
from betimes.core.situation import Here, WorkerSeen
from betimes.core.wording import START_A_WORKER, listed, moment

STARTS = frozenset(
    {ReasonCode.NOTHING_IN_THE_WAY, ReasonCode.BEHIND_OTHERS, ReasonCode.RUNNING, ReasonCode.WILL_EXPIRE}
)
"""Where a head says no more than this, it starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSituation:
    """What is known around a queue at one instant.

    Attributes:
        now: the store's time.
        name: the queue.
        counts: its live jobs by status.
        view: what stands first in it, and what is kept back.
        oldest_at: since when its oldest claimable job has been due; None: there is none.
        pause: set: it is paused.
        here: the worker of this process; None: it runs no jobs.
        workers: all registered workers, this process's too.
        held: how many jobs each of them runs, by its id.
        gates: the gates at which its jobs wait, as they stand.
        heads: the explanations of the jobs that stand first.
    """

    now: Micros
    name: str
    counts: Mapping[JobStatus, int] = field(default_factory=dict)
    view: QueueView = field(default_factory=QueueView)
    oldest_at: Micros | None = None
    pause: Pause | None = None
    here: Here | None = None
    workers: tuple[WorkerSeen, ...] = ()
    held: Mapping[str, int] = field(default_factory=dict)
    gates: tuple[GateView, ...] = ()
    heads: tuple[Explanation, ...] = ()

    @property
    def alive(self) -> list[WorkerSeen]:
        """The workers that run, but for this process's own."""
        mine = None if self.here is None else self.here.worker
        return [worker for worker in self.workers if worker.is_working and worker.id != mine]

    def of(self, status: JobStatus) -> int:
        """Return how many jobs stand there."""
        return self.counts.get(status, 0)

    @property
    def is_served_here(self) -> bool:
        """Whether the worker of this process claims its jobs."""
        return self.here is not None and serves(self.here, self.name)

    @property
    def served_elsewhere(self) -> list[WorkerSeen]:
        """The workers elsewhere that serve it."""
        return [worker for worker in self.alive if is_served(self.name, worker.queues)]


def explain_queue(s: QueueSituation) -> QueueExplanation:
    """Say how the queue stands, and why its jobs wait."""
    reasons = [reason for find in FINDERS for reason in find(s)]
    return QueueExplanation(
        queue=s.name,
        ready=s.of(JobStatus.READY),
        delayed=s.of(JobStatus.DELAYED),
        blocked=s.of(JobStatus.BLOCKED),
        running=s.of(JobStatus.RUNNING),
        put_aside=sum(s.view.parked.values()),
        oldest_due_at=None if s.oldest_at is None else from_us(s.oldest_at),
        reasons=tuple(reasons),
        workers=tuple(_serving(s)),
        heads=s.heads,
    )


def _serving(s: QueueSituation) -> Iterator[ServingWorker]:
    here = s.here
    if here is not None and s.is_served_here:
        yield ServingWorker(
            id=here.worker,
            host="",
            pid=0,
            running=len(here.occupants),
            concurrency=here.concurrency,
            is_here=True,
        )
    for worker in s.served_elsewhere:
        yield ServingWorker(
            id=worker.id,
            host=worker.host,
            pid=worker.pid,
            running=s.held.get(worker.id, 0),
            concurrency=worker.concurrency,
            is_here=False,
        )


def paused(s: QueueSituation) -> Iterator[QueueReason]:
    """It is paused."""
    if s.pause is not None:
        yield QueueReason(
            code=QueueReasonCode.PAUSED,
            text=f"It is paused{paused_how(s.pause, s.now)}.",
            change=f"await scheduler.resume_queue({s.name!r})",
        )


def unserved(s: QueueSituation) -> Iterator[QueueReason]:
    """No worker serves it."""
    if s.is_served_here or s.served_elsewhere:
        return
    if s.here is None and not s.alive:
        yield QueueReason(
            code=QueueReasonCode.NO_WORKER,
            text="Nobody runs jobs of this store.",
            change=START_A_WORKER,
        )
    elif s.here is not None and is_served(s.name, s.here.queues):
        yield QueueReason(
            code=QueueReasonCode.WORKER_STOPPING,
            text="The worker of this process is stopping, and no other one serves it.",
            change="Start a scheduler again, here or in another process.",
        )
    else:
        yield QueueReason(
            code=QueueReasonCode.NOT_SERVED,
            text="Workers run, but none serves it.",
            change=f"Start a Scheduler(queues=[…]) that names {s.name!r}.",
        )


def full(s: QueueSituation) -> Iterator[QueueReason]:
    """All that serve it are full."""
    serving = list(_serving(s))
    if s.of(JobStatus.READY) and serving and all(each.running >= each.concurrency > 0 for each in serving):
        yield QueueReason(
            code=QueueReasonCode.WORKERS_FULL,
            text=f"All {len(serving)} worker(s) that serve it run as many attempts as they may.",
            change="Jobs start as others end; a larger concurrency=, or more workers, let more run.",
        )


_GATE_CODES = {
    GateKind.LIMIT: QueueReasonCode.LIMIT_REACHED,
    GateKind.RATE: QueueReasonCode.NO_TOKEN,
    GateKind.BREAKER: QueueReasonCode.CIRCUIT_OPEN,
}


def gated(s: QueueSituation) -> Iterator[QueueReason]:
    """Jobs wait at gates that are closed."""
    for view in s.gates:
        if view.gate.is_open(s.now):
            continue
        kind, name, value = named(view.key)
        which = repr(name) if value is None else f"{name!r} ({view.terms.by}={value})"
        waits = f"{view.waiting} job(s) wait there, of all queues."
        opens_at = view.gate.opens_at(s.now)
        if kind is GateKind.LIMIT:
            who = listed([f"{job_id} (worker {worker})" for job_id, _, worker in view.holders], most=10)
            held = f", held by {who}" if who else ""
            text = f"Limit {which} lets {view.terms.max_running} run at once{held}. {waits}"
            change = f"The next starts when one of them has returned; set_limit({name!r}, …) changes it."
        elif kind is GateKind.RATE:
            assert opens_at is not None, "a rate opens by the passing of time"
            text = f"Rate {which} has no token before {moment(opens_at, s.now)}. {waits}"
            change = f"The next starts then; set_rate({name!r}, …) changes the rate."
        else:
            assert opens_at is not None, "a breaker lets a probe through after a time"
            text = f"The circuit of task {which} is open; the next probe may go at "
            text += f"{moment(opens_at, s.now)}. {waits}"
            change = f"It closes once a probe has succeeded; close_circuit({name!r}) closes it at once."
        yield QueueReason(code=_GATE_CODES[kind], text=text, change=change, expected_at_us=opens_at)


def put_aside(s: QueueSituation) -> Iterator[QueueReason]:
    """Jobs that no worker so far could run."""
    for name, count in sorted(s.view.parked.items()):
        kind, _, what = name.partition(":")
        wanted = f"whoever put them aside under {name!r}"
        if kind == "task":
            wanted = f"a worker that knows task {what!r}"
        elif kind == "lane":
            wanted = f"a worker with an executor for lane {what!r}"
        yield QueueReason(
            code=QueueReasonCode.PUT_ASIDE,
            text=f"{count} job(s) are put aside: they wait for {wanted}.",
            change="Such a worker takes them by itself; start one.",
        )


def first(s: QueueSituation) -> Iterator[QueueReason]:
    """What stands first does not start, or all goes on."""
    is_kept = s.pause is not None or not (s.is_served_here or s.served_elsewhere)
    stuck = [head for head in s.heads if not head.codes <= STARTS]
    if stuck and not is_kept:
        names = listed([f"{head.job_id} ({head.reasons[0].code.value})" for head in stuck])
        yield QueueReason(
            code=QueueReasonCode.FIRST_HELD_UP,
            text=f"What stands first does not start: {names}.",
            change="See its own explanation below.",
        )
    going = [head.job_id for head in s.heads if head.codes <= STARTS]
    running = s.of(JobStatus.RUNNING)
    if running or (going and not is_kept):
        next_one = f"; next: {listed(going)}" if going and not is_kept else ""
        yield QueueReason(code=QueueReasonCode.WORKING, text=f"{running} job(s) run{next_one}.")


def later(s: QueueSituation) -> Iterator[QueueReason]:
    """What is due later, or waits for other jobs."""
    delayed, blocked = s.of(JobStatus.DELAYED), s.of(JobStatus.BLOCKED)
    next_at = s.view.next_due_at
    if delayed:
        when = "" if next_at is None else f", the next at {moment(next_at, s.now)}"
        yield QueueReason(
            code=QueueReasonCode.NOT_DUE,
            text=f"{delayed} job(s) are due later{when}.",
            change="They become ready by themselves.",
            expected_at_us=next_at,
        )
    if blocked:
        yield QueueReason(
            code=QueueReasonCode.BLOCKED,
            text=f"{blocked} job(s) wait for others to end.",
            change="Each one's own explain() says for which.",
        )
    if not any(s.counts.values()):
        yield QueueReason(
            code=QueueReasonCode.EMPTY,
            text="It has no live jobs.",
            change="Is it the queue that they are submitted to?",
        )


FINDERS: tuple[Callable[[QueueSituation], Iterator[QueueReason]], ...] = (
    paused,
    unserved,
    full,
    gated,
    put_aside,
    first,
    later,
)
