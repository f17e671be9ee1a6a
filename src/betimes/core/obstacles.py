"""What keeps a waiting job from starting: each rule of the claim, asked of one job and answered in words."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from betimes.core.claiming import has_room, is_due, is_expired, is_served
from betimes.core.gate_obstacles import circuit_open, limit_reached, no_token
from betimes.core.job import Job, JobStatus, Micros
from betimes.core.pool import SLOTS_REMEDY
from betimes.core.queue_view import Pause
from betimes.core.reason import Reason, ReasonCode
from betimes.core.situation import Here, Occupant, OtherJob, Situation
from betimes.core.wording import START_A_WORKER, listed, moment, span


def expired(job: Job, s: Situation) -> Reason | None:
    """It should have started by now."""
    if job.expires_at is None or not is_expired(job, s.now):
        return None
    return Reason(
        code=ReasonCode.EXPIRED,
        text=f"It has expired: it was to start by {moment(job.expires_at, s.now)}, and did not.",
        change="It ends CANCELLED at a worker's next turn; submit it again, with a longer expires=.",
    )


def older_version_running(job: Job, s: Situation) -> Reason | None:
    """An older version of its id still runs."""
    if job.status is not JobStatus.BLOCKED or not s.older:
        return None
    older = listed([_shown(other, s.now) for other in s.older])
    return Reason(
        code=ReasonCode.OLDER_VERSION_RUNNING,
        text=f"It replaces an older version of its id, which still runs: {older}.",
        change="It starts when that version's code has returned; cancel it through its own handle.",
    )


def waiting_for_jobs(job: Job, s: Situation) -> Reason | None:
    """Jobs that it depends on have not ended."""
    if job.status is not JobStatus.BLOCKED:
        return None
    open_ones = [_shown(other, s.now) for other in s.dependencies if not _has_ended(other)]
    if not open_ones and s.older:
        return None
    # A dependency may have ended between two looks: then the release is on its way.
    which = listed(open_ones, most=10) or "all of them have just ended"
    return Reason(
        code=ReasonCode.WAITING_FOR_JOBS,
        text=f"Of the {len(s.dependencies)} jobs it depends on, {len(open_ones)} have not ended: {which}.",
        change="It is released when all have completed (their own explain() says what they wait for); one "
        "that ends otherwise cancels it, or counts as ended with on_dependency_failure='run'.",
    )


def _has_ended(other: OtherJob) -> bool:
    return other.status is None or other.status.is_terminal


def _shown(other: OtherJob, now: Micros) -> str:
    status = "pruned" if other.status is None else other.status.name
    if other.status is JobStatus.RUNNING and other.started_at is not None:
        status = f"{status} for {span(now - other.started_at)} on worker {other.worker}"
    return f"{other.job_id} ({status})"


def not_due(job: Job, s: Situation) -> Reason | None:
    """Its earliest start is ahead: as submitted, or after an attempt that failed or snoozed."""
    if job.status is JobStatus.READY or is_due(job, s.now):
        return None
    when = moment(job.run_at, s.now)
    last = job.attempts[-1] if job.attempts else None
    if last is None:
        code, text = ReasonCode.NOT_DUE, f"It is not due before {when}."
    elif last.outcome == "snoozed":
        code, text = ReasonCode.SNOOZED, f"Attempt {last.attempt} asked to run again later; it is due {when}."
    else:
        what = "timed out" if last.outcome == JobStatus.TIMED_OUT else "failed"
        why = f" with {str(last.error).splitlines()[0]:.200}" if last.error else ""
        code = ReasonCode.BACKING_OFF
        text = f"Attempt {last.attempt} {what}{why}; the next one is due {when}."
    return Reason(
        code=code,
        text=text,
        change="It becomes ready by itself then; to start it sooner, cancel it and submit it again.",
        expected_at_us=job.run_at,
    )


def parked(job: Job, s: Situation) -> Reason | None:
    """A worker that could not run it has put it aside."""
    if job.parked is None:
        return None
    kind, _, what = job.parked.partition(":")
    put_aside = "A worker claimed it and had none, so it is put aside"
    if kind == "task":
        return _back_soon(_task_unknown(what, put_aside), () if s.here is None else s.here.tasks, what)
    if kind == "lane":
        return _back_soon(_lane_not_served(what, put_aside), () if s.here is None else s.here.slots, what)
    if kind == "row":
        return Reason(
            code=ReasonCode.PARKED,
            text=f"Its row in the store is damaged, so it is put aside: {what}.",
            change="It is not run as it is: repair the row, or cancel the job and submit it again.",
        )
    return Reason(
        code=ReasonCode.PARKED,
        text=f"It is put aside under {job.parked!r}.",
        change=f"It can be claimed again when whoever put it aside takes {job.parked!r} back.",
    )


def _back_soon(reason: Reason, known: Collection[str], what: str) -> Reason:
    """Where this process has what was missing, only its next look is missing."""
    if what not in known:
        return reason
    return replace(
        reason, change="The worker of this process has it, and takes the job back at its next look."
    )


def not_runnable(job: Job, s: Situation) -> Reason | None:
    """None of the workers that serve its queue knows its task and has an executor for it."""
    here, spec = s.here, job.spec
    able = [
        (worker.knows_task(spec.task), worker.has_lane(spec.lane))
        for worker in s.serving_elsewhere(spec.queue)
    ]
    if here is not None and serves(here, spec.queue):
        able.append((spec.task in here.tasks, spec.lane in here.slots))
    if job.parked or not able or (True, True) in able:
        return None
    who = "None of the workers that serve its queue has"
    why = "The only worker that serves its queue has none" if len(able) == 1 else f"{who} one"
    if not any(knows for knows, _ in able):
        return _task_unknown(spec.task, why)
    if not any(has_lane for _, has_lane in able):
        return _lane_not_served(spec.lane, why)
    return _task_unknown(spec.task, f"{who} both it and an executor for lane {spec.lane!r}")


def _task_unknown(task: str, why: str) -> Reason:
    return Reason(
        code=ReasonCode.TASK_UNKNOWN,
        text=f"It needs a worker with a task named {task!r}. {why}.",
        change="Start a worker that registers a task of this name; it takes the job by itself.",
    )


def _lane_not_served(lane: str, why: str) -> Reason:
    return Reason(
        code=ReasonCode.LANE_NOT_SERVED,
        text=f"It needs a worker with an executor for lane {lane!r}. {why}.",
        change="Start a worker that has one; it takes the job by itself.",
    )


def queue_paused(job: Job, s: Situation) -> Reason | None:
    """Its queue is paused."""
    queue = job.spec.queue
    if queue not in s.paused:
        return None
    return Reason(
        code=ReasonCode.QUEUE_PAUSED,
        text=f"Queue {queue!r} is paused{paused_how(s.paused[queue], s.now)}.",
        change=f"await scheduler.resume_queue({queue!r})",
    )


def paused_how(pause: Pause, now: Micros) -> str:
    """Say since when a queue is paused, and by whom, as far as that is known."""
    since = "" if pause.at is None else f" since {moment(pause.at, now)}"
    return since if pause.by is None else f"{since}, by {pause.by}"


def serves(here: Here, queue: str) -> bool:
    """Say whether the worker of this process claims jobs of a queue."""
    return is_served(queue, here.queues) and not here.is_stopping


def nobody_serves(job: Job, s: Situation) -> Reason | None:
    """No worker alive serves its queue."""
    queue, here = job.spec.queue, s.here
    if (here is not None and serves(here, queue)) or s.serving_elsewhere(queue):
        return None
    if here is None and not s.alive:
        return Reason(
            code=ReasonCode.NO_WORKER,
            text="No worker runs: this scheduler is open as a client, and nobody else runs the store's jobs.",
            change=START_A_WORKER,
        )
    if here is not None and is_served(queue, here.queues):
        return Reason(
            code=ReasonCode.WORKER_STOPPING,
            text="The worker of this process is stopping, and no other one serves the queue.",
            change="Start a scheduler again, here or in another process.",
        )
    served = listed(sorted(_served(s)), most=20) or "none"
    return Reason(
        code=ReasonCode.QUEUE_NOT_SERVED,
        text=f"No worker serves queue {queue!r}; served are: {served}.",
        change=f"Start a Scheduler(queues=[…]) that names {queue!r}, or submit to a queue that is served.",
    )


def _served(s: Situation) -> set[str]:
    served = [worker.queues for worker in s.alive]
    if s.here is not None and not s.here.is_stopping:
        served.append(s.here.queues)
    return {repr(name) for queues in served for name in queues or ()}


def code_still_running(job: Job, s: Situation) -> Reason | None:
    """Code of an earlier attempt of the job has not returned here, and no other worker can run it."""
    here, spec = s.here, job.spec
    if here is None or not serves(here, spec.queue):
        return None
    others = s.serving_elsewhere(spec.queue)
    if any(worker.knows_task(spec.task) and worker.has_lane(spec.lane) for worker in others):
        return None
    earlier = here.stuck_code_of(job.id)
    if earlier is None:
        return None
    whose = "" if earlier.seq == job.seq else " of an older version"
    return Reason(
        code=ReasonCode.CODE_STILL_RUNNING,
        text=f"The code of attempt {earlier.attempt}{whose} still runs here (lane {earlier.lane!r}"
        f"{_for(earlier, s)}), though its outcome is recorded; the next attempt waits for its return.",
        change="It starts when that code returns. A thread's function should look at ctx.cancelled, a loop "
        "job should let CancelledError pass; what never returns ends with its process only.",
    )


def slots_deadlocked(job: Job, s: Situation) -> Reason | None:
    """The slots it needs are held by attempts that wait for it."""
    here = s.here
    if here is None or job.seq not in here.starved:
        return None
    holders = listed([occupant.job_id for occupant in here.occupants if occupant.is_waiting])
    return Reason(
        code=ReasonCode.SLOTS_DEADLOCKED,
        text=f"The slots it needs are held by jobs that wait for it or its like: {holders}.",
        change=f"Cancel one of them. {SLOTS_REMEDY}",
    )


def no_free_slot(job: Job, s: Situation) -> Reason | None:
    """All slots that it could have here are taken."""
    here, lane = s.here, job.spec.lane
    if (
        here is None
        or not serves(here, job.spec.queue)
        or lane not in here.slots
        or has_room(lane, here.free)
    ):
        return None
    taken, most, which = list(here.occupants), here.concurrency, "slot"
    if len(here.in_lane(lane)) >= here.slots[lane]:
        taken, most, which = here.in_lane(lane), here.slots[lane], f"slot of lane {lane!r}"
    stuck = [f"{one.job_id} ({one.task}{_for(one, s)})" for one in taken if one.is_stuck]
    stuck_text = f"; stuck, though their outcome is recorded: {listed(stuck)}" if stuck else ""
    others = " Another worker serves its queue too." if s.serving_elsewhere(job.spec.queue) else ""
    return Reason(
        code=ReasonCode.NO_FREE_SLOT,
        text=f"No {which} is free here: {len(taken)} of {most} attempts are in flight{stuck_text}.{others}",
        change="It starts when one of them has ended; concurrency= and threads= set how many there may be.",
    )


def _for(occupant: Occupant, s: Situation) -> str:
    return "" if occupant.since is None else f", for {span(s.now - occupant.since)}"


def behind_others(job: Job, s: Situation) -> Reason | None:
    """More jobs go before it than can start at the next turn."""
    here, spec = s.here, job.spec
    free = here.free.get(spec.lane, 0) if here is not None and serves(here, spec.queue) else 0
    if s.ahead <= 0 or s.ahead < free:
        return None
    number = f"At least {s.ahead}" if s.ahead >= s.most_ahead else f"{s.ahead}"
    go = "job goes" if s.ahead == 1 else "jobs go"
    return Reason(
        code=ReasonCode.BEHIND_OTHERS,
        text=f"{number} {go} before it in queue {spec.queue!r}, lane {spec.lane!r}.",
        change="It starts after them; a higher priority= or more workers would bring it forward.",
    )


def will_expire(job: Job, s: Situation) -> Reason | None:
    """It must have started by an instant ahead."""
    if job.expires_at is None or job.started_at is not None or is_expired(job, s.now):
        return None
    before = ", which is before it is due" if job.expires_at <= job.run_at else ""
    return Reason(
        code=ReasonCode.WILL_EXPIRE,
        text=f"If it has not started by {moment(job.expires_at, s.now)}{before}, it ends CANCELLED.",
        change="expires= sets how long it may wait.",
        expected_at_us=job.expires_at,
    )


Finder = Callable[[Job, Situation], Reason | None]

OBSTACLES: tuple[Finder, ...] = (
    older_version_running,
    waiting_for_jobs,
    not_due,
    parked,
    queue_paused,
    nobody_serves,
    not_runnable,
    limit_reached,
    no_token,
    circuit_open,
    code_still_running,
)
"""What keeps a job from being claimed, whatever is free."""

QUEUEING: tuple[Finder, ...] = (slots_deadlocked, no_free_slot, behind_others)
"""What a job waits for that nothing else keeps back."""
