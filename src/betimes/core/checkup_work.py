"""What a checkup says of the work in a store: workers, queues, what cannot be run, schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from betimes.core.facts import Facts, QueueFacts, Work
from betimes.core.finding import Finding, FindingCode, Severity
from betimes.core.job import Micros
from betimes.core.limits import named
from betimes.core.situation import WorkerSeen
from betimes.core.wording import START_A_WORKER, listed, moment, span

LATE_US = 60_000_000
VERY_LATE_US = 3_600_000_000
"""How long a job that is due, or an instant of a schedule, may wait before that is a warning, or an error."""


def workers(facts: Facts) -> Iterator[Finding]:
    """Say who runs the jobs, and name those who do no longer."""
    work = facts.work
    if work is None:
        return
    alive = work.alive
    if alive:
        texts = [f"{_shown(each)} with {work.held.get(each.id, 0)} job(s)" for each in alive]
        text = f"{len(alive)} worker(s) run: {listed(texts)}."
        yield Finding(code=FindingCode.WORKERS, severity=Severity.OK, text=text)
    elif _has_work(work):
        text = "No worker runs, and there are jobs or schedules."
        yield Finding(code=FindingCode.WORKERS, severity=Severity.ERROR, text=text, remedy=START_A_WORKER)
    else:
        text = "No worker runs, and there is nothing to do."
        yield Finding(code=FindingCode.WORKERS, severity=Severity.NOTE, text=text)
    for worker in work.workers:
        if worker not in alive:
            yield _dead(worker, work.held.get(worker.id, 0))
        elif worker.is_silent and worker.id != work.here:
            yield _silent(worker, work.held.get(worker.id, 0))


def _has_work(work: Work) -> bool:
    has_jobs = any(each.ready or each.delayed or each.blocked or each.running for each in work.queues)
    return has_jobs or any(each.next_fire_at is not None and not each.paused for each in work.schedules)


def _shown(worker: WorkerSeen) -> str:
    where = f" ({worker.host}, pid {worker.pid})" if worker.pid else ""
    return f"{worker.id}{where}"


def _dead(worker: WorkerSeen, held: int) -> Finding:
    how = "its process has ended" if worker.is_gone else "its lease is over"
    return Finding(
        code=FindingCode.DEAD_WORKER,
        severity=Severity.WARNING if held else Severity.NOTE,
        text=f"Worker {_shown(worker)} is gone: {how}; it holds {held} job(s).",
        remedy="A worker that knows their tasks takes them back by itself, within two seconds; if none does, "
        "start one. See in its log why that process ended.",
        about=worker.id,
    )


def _silent(worker: WorkerSeen, held: int) -> Finding:
    return Finding(
        code=FindingCode.DEAD_WORKER,
        severity=Severity.WARNING,
        text=f"Worker {_shown(worker)} is silent, with {held} job(s); its lease is over in "
        f"{span(worker.left_us or 0)}.",
        remedy="Its process may be stopped (SIGSTOP, a debugger), its loop blocked, or its machine asleep or "
        "out of memory; its jobs go to others when the lease is over.",
        about=worker.id,
    )


def queues(facts: Facts) -> Iterator[Finding]:
    """Say of each queue how it goes, if it does not."""
    work = facts.work
    if work is None:
        return
    for queue in work.queues:
        if queue.pause is not None:
            yield _paused(queue, facts.now)
            continue
        waits = queue.ready + queue.delayed + queue.blocked
        if waits and work.alive and not work.serving(queue.name):
            yield Finding(
                code=FindingCode.QUEUE_NOT_SERVED,
                severity=Severity.ERROR if queue.ready else Severity.WARNING,
                text=f"No worker serves queue {queue.name!r}, in which {waits} job(s) wait.",
                remedy=f"Start a Scheduler(queues=[…]) that names {queue.name!r}.",
                about=queue.name,
            )
        if queue.oldest_at is not None:
            yield _age(queue, queue.oldest_at, facts.now)


def _paused(queue: QueueFacts, now: Micros) -> Finding:
    pause = queue.pause
    assert pause is not None
    since = "" if pause.at is None else f" since {moment(pause.at, now)}"
    by = "" if pause.by is None else f", by {pause.by}"
    waits = queue.ready + queue.delayed + queue.blocked
    return Finding(
        code=FindingCode.QUEUE_PAUSED,
        severity=Severity.NOTE,
        text=f"Queue {queue.name!r} is paused{since}{by}; {waits} job(s) wait in it.",
        remedy=f"await scheduler.resume_queue({queue.name!r})",
        about=queue.name,
    )


def _age(queue: QueueFacts, oldest_at: Micros, now: Micros) -> Finding:
    age = max(now - oldest_at, 0)
    text = f"Queue {queue.name!r}: {queue.ready} job(s) ready, the oldest for {span(age)}."
    if age < LATE_US:
        return Finding(
            code=FindingCode.QUEUE_LATE, severity=Severity.OK, text=text, remedy="", about=queue.name
        )
    return Finding(
        code=FindingCode.QUEUE_LATE,
        severity=Severity.WARNING if age < VERY_LATE_US else Severity.ERROR,
        text=text,
        remedy=f"scheduler.explain_queue({queue.name!r}) says what it waits for.",
        about=queue.name,
    )


def not_runnable(facts: Facts) -> Iterator[Finding]:
    """Name what no worker can run: parked jobs, and schedules of tasks that nobody knows."""
    work = facts.work
    if work is None:
        return
    for name, count in sorted(work.parked.items()):
        kind, _, what = name.partition(":")
        if kind == "task":
            yield _task_unknown(what, f"{count} job(s) wait")
        else:
            yield Finding(
                code=FindingCode.PUT_ASIDE,
                severity=Severity.WARNING,
                text=f"{count} job(s) are put aside under {name!r}: no worker so far could run them.",
                remedy="Start a worker that has an executor for them.",
                about=what or name,
            )
    unknown: dict[str, list[str]] = {}
    for schedule in work.schedules:
        known = work.knowing(schedule.task)
        if work.alive and known == [] and f"task:{schedule.task}" not in work.parked:
            unknown.setdefault(schedule.task, []).append(schedule.id)
    for task, schedules in sorted(unknown.items()):
        yield _task_unknown(task, f"schedule(s) {listed(schedules)} would run it")


def _task_unknown(task: str, who: str) -> Finding:
    return Finding(
        code=FindingCode.TASK_UNKNOWN,
        severity=Severity.WARNING,
        text=f"No worker knows task {task!r}; {who}.",
        remedy="Start a worker that registers a task of this name (it may have been renamed: then give the "
        "new one the old name=), or cancel what waits.",
        about=task,
    )


def poison_pills(facts: Facts) -> Iterator[Finding]:
    """Name jobs that killed their workers."""
    work = facts.work
    if work is None:
        return
    of_task: dict[str, list[str]] = {}
    for each in work.poisoned:
        of_task.setdefault(each.task, []).append(f"{each.job_id} ({moment(each.at, facts.now)})")
    for task, jobs in sorted(of_task.items()):
        yield Finding(
            code=FindingCode.POISON_PILL,
            severity=Severity.WARNING,
            text=f"Jobs of task {task!r} ended FAILED because workers died while they held them: "
            f"{listed(jobs)}.",
            remedy="See the workers' logs and the kernel's (out of memory?); give the task "
            "executor='process', so that only the job dies, then scheduler.retry() them.",
            about=task,
        )


def circuits(facts: Facts) -> Iterator[Finding]:
    """Name the circuits that are open."""
    for view in () if facts.work is None else facts.work.open_circuits:
        _, name, _ = named(view.key)
        yield Finding(
            code=FindingCode.CIRCUIT_OPEN,
            severity=Severity.WARNING,
            text=f"The circuit of task {name!r} is open; {view.waiting} job(s) wait there.",
            remedy="It closes by itself once a probe succeeds: see why its attempts fail. "
            f"close_circuit({name!r}) closes it at once.",
            about=name,
        )


def schedules(facts: Facts) -> Iterator[Finding]:
    """Name the schedules that do not fire though they should."""
    work = facts.work
    if work is None or not work.schedules:
        return
    count = len(work.schedules)
    yield Finding(code=FindingCode.SCHEDULES, severity=Severity.OK, text=f"There are {count} schedule(s).")
    for each in work.schedules:
        if each.error is not None:
            yield Finding(
                code=FindingCode.SCHEDULE_BROKEN,
                severity=Severity.ERROR,
                text=f"Schedule {each.id!r} is broken: {each.error.rstrip('.')}.",
                remedy="Mend its trigger and add it again, or resume_schedule() once it works.",
                about=each.id,
            )
        elif not each.paused and each.next_fire_at is not None and each.next_fire_at < facts.now - LATE_US:
            yield Finding(
                code=FindingCode.SCHEDULE_LATE,
                severity=Severity.ERROR,
                text=f"Schedule {each.id!r} was to fire at {moment(each.next_fire_at, facts.now)}, and "
                "nobody has fired it.",
                remedy=f"scheduler.explain_schedule({each.id!r}) says why; only a worker fires schedules.",
                about=each.id,
            )
    paused = [each.id for each in work.schedules if each.paused and each.error is None]
    if paused:
        yield Finding(
            code=FindingCode.SCHEDULE_PAUSED,
            severity=Severity.NOTE,
            text=f"Paused schedule(s): {listed(paused)}.",
            remedy="resume_schedule() lets one go on.",
        )


WORK_CHECKS: tuple[Callable[[Facts], Iterable[Finding]], ...] = (
    workers,
    queues,
    not_runnable,
    poison_pills,
    circuits,
    schedules,
)
