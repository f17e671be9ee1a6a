"""Sees every call that the shared store carries out, and holds it to the promises."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

from tests.simulation.arrivals import Arrivals
from tests.simulation.budgets import Budgets
from tests.simulation.claims import check_claim
from tests.simulation.evidence import Execution
from tests.simulation.fairness import Queues, Tenants
from tests.simulation.gatekeeping import Gatekeeping
from tests.simulation.lives import Life, final_of
from tests.simulation.outcomes import Outcomes
from tests.simulation.reckoning import Cause, Reckoning
from tests.simulation.restraints import Restraints
from tests.simulation.schedule_witness import ScheduleWitness
from tests.simulation.tally import Met
from tests.simulation.wire import Turn

from betimes.core.job import Job, JobEvent, JobStatus, Micros, Terms
from betimes.core.lifecycle import CRASH_BUDGET
from betimes.core.schedule import Advance, Fired, ScheduleRecord
from betimes.core.transition import violations
from betimes.ports import Beat, CancelAnswer, Cancellation, Exchange, WorkerInfo

BLOCKED, DELAYED, READY, RUNNING = JobStatus.BLOCKED, JobStatus.DELAYED, JobStatus.READY, JobStatus.RUNNING
COMPLETED, CANCELLED = JobStatus.COMPLETED, JobStatus.CANCELLED


class Witness:
    """Keeps the model, and checks each call against it.

    Attributes:
        model: what has been reckoned so far.
        paused: the paused queues.
        hosts: the process each worker is of.
        schedules: what is known of schedules.
        gates: what is known of limits, rates and circuits.
        tenants, queues: what is known of shares, where there are any.
        are_restrained: whether there is any of these.
    """

    def __init__(
        self,
        model: Reckoning,
        restraints: Restraints,
        *,
        boottime: Callable[[], Micros],
        elapsed_s: Callable[[], float],
    ) -> None:
        self.model = model
        self.boottime = boottime
        self.elapsed_s = elapsed_s
        self.schedules = ScheduleWitness(model)
        self.paused: set[str] = set()
        self.hosts: dict[str, str] = {}
        self.claims: dict[tuple[int, int], str] = {}
        self.gates = Gatekeeping(model)
        tally, fail = model.tally, model.fail
        self.are_restrained = bool(restraints.tasks)
        self.tenants = Tenants(restraints.weights, tally, fail) if restraints.weights else None
        self.queues = None if restraints.shares is None else Queues(restraints.shares, tally, fail)
        self.outcomes = Outcomes(model, self.gates, boottime=boottime, elapsed_s=elapsed_s)
        self.outcomes.budgets = Budgets(restraints.budgets, tally, fail) if restraints.budgets else None
        self.started_at = self.outcomes.started_at
        self._sessions: dict[str, int] = {}
        self.session_of: dict[str, str] = {}
        model.attempts = restraints.attempts
        model.has_tenants = self.tenants is not None
        model.on_gone = self._gone
        self._arrivals = Arrivals(model)
        self._lost_claims: set[tuple[int, int]] = set()
        model.evidence.on_begin = self.began
        model.evidence.on_end = self.ended

    # --- submitting

    def submitted(
        self,
        asked: Sequence[tuple[Job, Terms | None]],
        kept: Sequence[Job],
        changes: Iterable[JobEvent],
        sent_at: int,
    ) -> None:
        """A submit was taken."""
        self._arrivals.take(asked, kept, sent_at)
        self.schedules.fires.submitted(kept)
        self._see(changes, Cause.SUBMIT)

    # --- people's calls

    def cancelled(self, seq: int, answer: Cancellation, *, abandon: bool) -> None:
        """A cancel was carried out."""
        model = self.model
        life = model.lives.get(seq)
        if life is None:
            return
        status = life.status
        expected = CancelAnswer.FINISHED if status.is_terminal else CancelAnswer.CANCELLED
        if status is RUNNING and not abandon:
            expected = CancelAnswer.REQUESTED
        if answer.answer is not expected:
            model.fail(f"the cancel of {life} was answered {answer.answer.name}")
        if expected is CancelAnswer.REQUESTED:
            life.is_cancel_asked = True
            model.tally[Met.CANCELLED_BEFORE_CODE] += (seq, life.fence) not in model.evidence.executions
        elif expected is CancelAnswer.CANCELLED:
            if status is RUNNING:
                model.evidence.abandoned.add((seq, life.fence))
                model.tally[Met.ABANDONED] += 1
            else:
                model.tally[Met.CANCELLED_WAITING] += 1
        self._see(answer.changes, Cause.ABANDON if abandon else Cause.CANCEL)
        if expected is CancelAnswer.CANCELLED and life.status is not CANCELLED:
            model.fail(f"{life} was cancelled, and is {life.status.value}")

    def retried(self, seq: int, changes: Iterable[JobEvent]) -> None:
        """An operator took a job back."""
        self._see(changes, Cause.RETRY)
        self.schedules.retried(seq)
        if seq in self.model.lives and self.model.lives[seq].status is not READY:
            self.model.fail(f"{self.model.lives[seq]} was retried")
        self.model.tally[Met.RETRIED_BY_HAND] += 1

    def fired(
        self,
        advances: Sequence[Advance],
        befores: dict[str, ScheduleRecord | None],
        fired: Sequence[Fired | None],
        changes: Sequence[JobEvent],
        planned_at: Micros,
    ) -> None:
        """Steps of schedules were carried out."""
        self.schedules.fired(advances, befores, fired, partial(self._see, changes), planned_at)

    def unparked(self, changes: Iterable[JobEvent]) -> None:
        """Parked jobs were made claimable."""
        self._see(changes, Cause.UNPARK)

    # --- leases

    def entered(self, host: str) -> None:
        """A process opened the store."""
        self._sessions[host] = self._sessions.get(host, 0) + 1

    def registered(self, info: WorkerInfo, host: str) -> None:
        """A worker began its lease."""
        self.session_of[info.id] = f"{host}/{self._sessions.get(host, 0)}"
        if info.id in self.hosts and self.hosts[info.id] != host:
            self.model.fail(f"two workers are called {info.id}")
        lost = [
            lease for lease in self.model.leases if self.hosts[lease.info.id] == host and lease.is_rescued
        ]
        self.model.tally[Met.REGISTERED_AFRESH] += bool(lost)
        self.hosts[info.id] = host
        self.model.leases.begin(info, self.boottime())

    def retired(self, worker: str, changes: Iterable[JobEvent]) -> None:
        """A worker gave its lease up."""
        self._see(changes, Cause.RETIRE, holder=worker)
        self.model.leases.end(worker)
        self.gates.let_go(worker)
        if self.model.running(worker):
            self.model.fail(f"worker {worker} has retired, and still holds {self.model.running(worker)[0]}")

    def beaten(self, worker: str, held: Mapping[int, int], running: Mapping[int, int], beat: Beat) -> None:
        """A worker's heart has beaten."""
        model = self.model
        is_alive = model.leases.renew(worker, self.boottime())
        if beat.is_alive is not is_alive:
            model.fail(f"a beat of {worker} was answered alive={beat.is_alive}")
            return
        for event in beat.changes:
            life = model.lives[event.seq]
            if event.before is RUNNING:
                model.tally[Met.CLAIM_RECONCILED] += (life.seq, life.fence) in self._lost_claims
                self.gates.unclaimed(life)
        self._see(beat.changes, Cause.BEAT, holder=worker)
        if not is_alive:
            return
        self.gates.let_go(worker, {**running, **held})
        mine = {life.seq: life for life in model.running(worker)}
        if set(mine) - set(held) or any(held[seq] != life.fence for seq, life in mine.items()):
            model.fail(f"{worker} still holds what it does not know of: {sorted(set(mine) - set(held))}")
        if set(beat.lost) != set(held) - set(mine):
            model.fail(f"{worker} was told it lost {beat.lost}, and lost {sorted(set(held) - set(mine))}")
        if set(beat.cancels) != {seq for seq, life in mine.items() if life.is_cancel_asked}:
            model.fail(f"{worker} was told to cancel {beat.cancels}")

    def rescued(self, tasks: Collection[str], changes: Sequence[JobEvent]) -> None:
        """Jobs were taken back from lost workers."""
        model = self.model
        before = {lease.info.id for lease in model.leases if lease.is_dead}
        model.leases.bury(self.boottime())
        for dead in model.leases:
            if dead.is_dead and dead.info.id not in before:
                model.tally[Met.PERMIT_OF_THE_DEAD] += self.gates.let_go(dead.info.id) > 0
        for event in changes:
            if event.before is not RUNNING or event.seq not in model.lives:
                continue
            life = model.lives[event.seq]
            lease = model.leases.get(life.worker or "")
            if lease is None or not lease.is_dead or life.spec.task not in tasks:
                model.fail(f"{life} was rescued, though {life.worker}'s lease holds")
            self.outcomes.rescued[life.seq, life.fence] = model.now()
            self._lose(life, event.after)
        self._see(changes, Cause.RESCUE)

    def _lose(self, life: Life, after: JobStatus) -> None:
        tally = self.model.tally
        life.crashes += 1
        tally[Met.RESCUED] += 1
        if life.spec.at_most_once and not after.is_terminal:
            self.model.fail(f"{life} may start once, lost its worker, and became {after.value}")
        if life.crashes >= CRASH_BUDGET and not after.is_terminal:
            self.model.fail(f"{life} lost {life.crashes} workers, and became {after.value}")
        tally[Met.AT_MOST_ONCE_LOST] += life.spec.at_most_once and after is JobStatus.FAILED
        tally[Met.POISONED] += life.crashes >= CRASH_BUDGET and after is JobStatus.FAILED

    def reply_lost(self, turn: Turn, exchange: Exchange) -> None:
        """Nobody heard of these claims."""
        self._lost_claims |= {(job.seq, job.fence) for job in exchange.claimed}
        if self.queues is not None and turn.claim is not None and turn.claim.shares is not None:
            self.queues.lost(turn.claim.shares)

    # --- turns

    def exchanged(self, turn: Turn, exchange: Exchange) -> None:
        """A worker made its turn."""
        reports = turn.reports
        if len(exchange.steps) != len(reports):
            self.model.fail(f"{len(reports)} reports were answered with {len(exchange.steps)} steps")
        for report, step in zip(reports, exchange.steps, strict=False):
            self.outcomes.reported(report, step, turn.sent_at)
        self.gates.returned(turn.returned)
        for event in exchange.changes:
            life = self.model.lives[event.seq]
            if event.error == "expired" and event.after is CANCELLED:
                self.model.tally[Met.EXPIRED] += 1
                if life.is_claimed or life.expires_at is None or life.expires_at > self.model.now():
                    self.model.fail(f"{life} has expired, which it could not")
        self._see(exchange.changes, Cause.TIME)
        check_claim(self, turn.claim, exchange)

    def _see(self, changes: Iterable[JobEvent], cause: Cause, holder: str | None = None) -> None:
        for event in changes:
            self.model.change(event, cause, holder)
        self.model.check_settled()

    # --- code

    def began(self, execution: Execution) -> None:
        """A job's code begins: it must be of a claim, and a job that may start once has not started."""
        model = self.model
        worker = self.claims.get((execution.seq, execution.fence))
        if worker is None or self.hosts[worker] != execution.host.name:
            model.fail(f"{execution} is of no claim of its process")
            return
        self.schedules.fires.began(execution)
        if execution.gates:
            live = {(one.seq, one.fence) for one in model.evidence.running if self._is_live(one)}
            self.gates.began(execution, live)
        life = model.lives[execution.seq]
        if life.spec.at_most_once:
            starts = len(model.evidence.of(life.seq))
            if starts > 1 + life.rounds:
                model.fail(f"{execution} is start {starts} of a job that may start once")

    def _is_live(self, execution: Execution) -> bool:
        lease = self.model.leases.get(self.claims.get((execution.seq, execution.fence), ""))
        return lease is not None and not lease.is_dead

    def clock_is_set(self, seconds: float) -> None:
        """The clock is about to be set."""
        self.model.clock_is_set()
        self.gates.clock_is_set(seconds)
        if self.outcomes.budgets is not None:
            self.outcomes.budgets.clock_is_set(seconds, self.model.now())

    def all_waiting(self) -> list[Life]:
        """Return all jobs that are READY, in order."""
        ready = [life for life in self.model.lives if life.status is READY and life.parked is None]
        return sorted(ready, key=lambda life: life.rank)

    def _gone(self, life: Life) -> None:
        """A READY job has gone without having been claimed: it says nothing of its tenant's share."""
        if self.tenants is not None:
            self.tenants.gone(life, self.all_waiting())

    def ended(self, execution: Execution) -> None:
        """A job's code has ended."""
        at = self.outcomes.timed_out.get((execution.seq, execution.fence))
        if at is not None and self.model.now() > at + 100_000:
            is_thread = execution.lane == "thread"
            self.model.tally[Met.THREAD_PAST_TIMEOUT if is_thread else Met.TIMEOUT_SWALLOWED] += 1

    # --- looking at everything

    def look(self, jobs: Sequence[Job], counts: Mapping[str, Mapping[JobStatus, int]], pruned: int) -> None:
        """Compare all that the store holds with the model."""
        model = self.model
        counted: dict[tuple[str, JobStatus], int] = {}
        running: dict[str, int] = {}
        for job in jobs:
            self._look_at(job)
            if not job.status.is_terminal:
                where = (job.spec.queue, job.status)
                counted[where] = counted.get(where, 0) + 1
            if job.status is RUNNING:
                running[job.id] = running.get(job.id, 0) + 1
        if two := [job_id for job_id, number in running.items() if number > 1]:
            model.fail(f"two versions of {two} run")
        if len(jobs) + pruned != len(model.lives):
            model.fail(f"{len(model.lives)} were submitted, {len(jobs)} are there and {pruned} pruned")
        told = {(queue, status): n for queue, row in counts.items() for status, n in row.items() if n}
        if told != counted:
            model.fail(f"the store counts {told}, and holds {counted}")

    def _look_at(self, job: Job) -> None:
        model = self.model
        if broken := violations(job):
            model.fail(f"{job} breaks {broken}")
        life = model.lives[job.seq]
        if job.fire != self.schedules.fires.keys.get(job.seq):
            model.fail(f"{job} says that {job.fire} made it; {self.schedules.fires.keys.get(job.seq)} did")
        if job.status is not life.status:
            model.fail(f"{job} became so without a word; {life}")
        if job.fence < life.fence:
            model.fail(f"the fence of {job} went back from {life.fence}")
        life.fence = job.fence
        if life.final is not None and final_of(job) != life.final:
            model.fail(f"{job} was over, and has changed from {life.final} to {final_of(job)}")
