"""Moving jobs in memory: each transition takes the job out of one place and puts it into the next."""

from __future__ import annotations

from collections.abc import Sequence

from betimes.core.dependencies import settle
from betimes.core.events import Event, Succeeded
from betimes.core.job import Job, JobEvent, JobStatus, Micros, Need
from betimes.core.lifecycle import decide
from betimes.core.transition import Transition, complete, enter, event_of
from betimes.ports import Report
from betimes.stores.memory.gates import Gates
from betimes.stores.memory.history import History
from betimes.stores.memory.leases import Leases
from betimes.stores.memory.permits import Permits
from betimes.stores.memory.schedules import Schedules
from betimes.stores.memory.waiting import Waiting

RUNNING = JobStatus.RUNNING


class Moves:
    """Carries transitions out, with all that follows: places, leases, dependents, history, events.

    Attributes:
        last_seq: the newest version's number.
        dependents: `seq` of a live job → the BLOCKED jobs that wait for it, each with what it needs.
        work_appeared: whether something became claimable, or due at a new instant, since last asked.
        something_ended: whether a job ended since last asked.
    """

    def __init__(
        self,
        waiting: Waiting,
        leases: Leases,
        history: History,
        schedules: Schedules,
        *,
        gates: Gates,
        permits: Permits,
    ) -> None:
        """Move jobs between these places, through these gates."""
        self._gates = gates
        self._permits = permits
        self._waiting = waiting
        self._leases = leases
        self._history = history
        self._schedules = schedules
        self._changes: list[JobEvent] = []
        self.last_seq = 0
        self.dependents: dict[int, list[tuple[Job, Need]]] = {}
        self.work_appeared = False
        self.something_ended = False

    def take_changes(self) -> list[JobEvent]:
        """Return the transitions made since last asked, in order."""
        changes = self._changes
        self._changes = []
        return changes

    def arrive(self, job: Job, status: JobStatus, now: Micros) -> None:
        """Put a new job where it waits."""
        job.status = status
        self._waiting.add(job)
        self._waiting.watch_expiry(job)
        self.work_appeared = True
        self._changes.append(JobEvent(job, None, status, at_us=now))

    def arrive_plainly(self, jobs: Sequence[Job]) -> bool:
        """Put new jobs where they wait, if they are to run now, on no terms, under ids made here.

        For the path of every job, with the calls it would make written out; False, and nothing done, if there
        is more to it. What is submitted to run at once is due by the clock it was stamped with.
        """
        newest = self._history.newest
        has_gates = has_tenants = False
        for job in jobs:
            if (
                job.terms is not None
                or job.expires_at is not None
                or job.run_at > job.submitted_at
                or job.seq
                or job.id in newest
            ):
                return False
            if job.gates:
                self._gates.check(job)
                has_gates = True
            if job.tenant is not None:
                has_tenants = True
        if has_tenants:
            self._waiting.tag(jobs)
        ready = self._waiting.ready
        seq = self.last_seq
        for job in jobs:
            job.seq = seq = seq + 1
            newest[job.id] = job
            heap = None if has_gates else ready.get((job.spec.queue, job.spec.lane))
            if heap is None:
                self._waiting.push_ready(job)
            else:
                heap.push(job.sort_key, seq, job)
        self.last_seq = seq
        self.work_appeared = True
        return True

    def complete_plainly(self, reports: Sequence[Report], steps: list[Transition | None]) -> None:
        """Carry out the successes that come next among the reports, and add their steps.

        For the path of every job: `step` and `settle_dependents`, with the calls they would make written out.
        """
        remember, dependents = self._history.finished.append, self.dependents
        scheduled = self._schedules.live
        held: dict[int, Job] = {}
        worker: str | None = None
        for index in range(len(steps), len(reports)):
            report = reports[index]
            job, event = report.job, report.event
            if (
                type(event) is not Succeeded
                or job.fence != report.fence
                or job.status is not RUNNING
                or job.cancel_requested
            ):
                return
            if job.worker != worker:
                worker = job.worker
                held = self._leases.held_by(worker)
            held.pop(job.seq, None)
            steps.append(complete(job, event.at, event.result))
            remember(job)
            if job.gates:
                self._permits.succeeded(report)
            self.something_ended = True
            if dependents or scheduled:
                self.settle_dependents(job, event.at)

    def move(self, job: Job, event: Event) -> Transition:
        """Decide and carry out one event, and all that follows; the changes are kept for `take_changes`.

        Raises:
            IllegalTransition: nothing has changed.
        """
        step = self.step(job, event)
        self._changes.append(event_of(job, step))
        if step.after.is_terminal:
            self.settle_dependents(job, step.at)
        return step

    def step(self, job: Job, event: Event) -> Transition:
        """Carry out one event on this job alone; the caller settles the dependents of a job that ended."""
        step = decide(job, event)
        before, after = step.before, step.after
        if before is RUNNING:
            if after is not RUNNING:
                self._leases.release(job)
        elif before.is_terminal:
            self._history.reopen(job)
        else:
            self._waiting.remove(job)
        enter(job, step)
        if after.is_terminal:
            self._end(job)
        elif after is not RUNNING:
            self._waiting.add(job)
            self.work_appeared = True
        return step

    def _end(self, job: Job) -> None:
        if job.expires_at is not None and job.started_at is None:
            self._waiting.forget_expiry(job)
        self._history.add_finished(job)
        self.something_ended = True

    def settle_dependents(self, ended: Job, at: Micros) -> None:
        """Release or cancel what waited for a job that has ended, and so on down; without recursion.

        A schedule may have waited for it, too.
        """
        queue = [ended]
        scheduled = self._schedules.live
        for job in queue:
            if job.seq in scheduled:
                self._schedules.ended(job)
            for child, need in self.dependents.pop(job.seq, ()):
                if child.status is not JobStatus.BLOCKED:
                    continue
                event = settle(child, need, job, at)
                if event is None:
                    continue
                step = self.step(child, event)
                self._changes.append(JobEvent(child, step.before, step.after, at_us=at, error=step.reason))
                if step.after.is_terminal:
                    queue.append(child)
