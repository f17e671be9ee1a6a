"""`RelationalStore`: the contract, as far as it is the same on every SQL database.

The store decides nothing and moves rows only: what becomes of a job is decided by `lifecycle`, on the
record rebuilt from its row, inside the transaction that writes it back. Each database says how operations
get a transaction (`_call`), and how looks get a snapshot (`_read`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from betimes.core.job import Job, JobEvent, JobStatus, Micros
from betimes.core.limits import GateTerms, GateView
from betimes.core.log import LogLine, LogPage
from betimes.core.queue_view import Pause, QueueView
from betimes.core.schedule import Advance, Fire, Fired, ScheduleRecord
from betimes.ports import (
    Beat,
    Cancellation,
    ClaimRequest,
    Exchange,
    Hint,
    JobFilter,
    Report,
    ScheduleFilter,
    Store,
    WorkerInfo,
)
from betimes.stores.relational import control, firing, leases, logs, rekeying, rules
from betimes.stores.relational.arrivals import is_plain
from betimes.stores.relational.exchange import exchange
from betimes.stores.relational.looks import Look
from betimes.stores.relational.operation import Operation
from betimes.stores.relational.submission import Submission
from betimes.stores.relational.turn import Turn
from betimes.stores.relational.upkeep import Renewals

T = TypeVar("T")


class RelationalStore(Store):
    """All methods of the contract that are the same on every SQL database.

    Attributes:
        is_gone: tells whether a worker's process has ended, so that its jobs need not wait for its lease.
    """

    is_durable = True

    def __init__(self, *, is_gone: Callable[[WorkerInfo], bool]) -> None:
        """Remember how to tell that a worker's process is gone."""
        self._is_gone = is_gone
        self._subscribers: list[Callable[[Hint], None]] = []

    def subscribe(self, hear: Callable[[Hint], None]) -> Callable[[], None]:
        """Have `hear` called on the event loop after commits, this process's and others'."""
        self._subscribers.append(hear)

        def stop() -> None:
            if hear in self._subscribers:
                self._subscribers.remove(hear)

        return stop

    def _tell(self, hints: Collection[Hint]) -> None:
        for hint in Hint:
            if hint in hints:
                for hear in tuple(self._subscribers):
                    hear(hint)

    # what each database brings

    @abstractmethod
    async def _call(self, operation: Operation) -> Any:
        """Carry an operation out in a transaction; return its answer, or raise its error."""

    @abstractmethod
    async def _read(self, look: Callable[[Look], T]) -> T:
        """Return what a look sees, on a snapshot that includes all that was acknowledged before."""

    @property
    @abstractmethod
    def _renewals(self) -> Renewals:
        """The leases that this process prolongs."""

    @abstractmethod
    def _lease_time(self) -> tuple[Micros, str]:
        """Return the time by which leases go, and the name of the boot that it counts from."""

    async def _write(
        self,
        run: Callable[[Turn], T],
        *,
        finish: Callable[[T], T] | None = None,
        is_guarded: bool = False,
        is_growth: bool = False,
        waits: bool = False,
    ) -> T:
        operation = Operation(run, is_guarded=is_guarded, is_growth=is_growth, waits=waits)
        if finish is not None:
            operation.finish = finish
        answer: T = await self._call(operation)
        return answer

    # jobs

    async def submit(self, jobs: Sequence[Job]) -> tuple[list[Job], Sequence[JobEvent]]:
        """Keep new jobs, all or none; returns when they are committed."""
        is_quick = all(map(is_plain, jobs))
        kept: tuple[list[Job], Sequence[JobEvent]] = await self._call(
            Operation(
                lambda turn: _submit(turn, jobs),
                finish=lambda kept: kept.acknowledge(),
                is_guarded=True,
                is_growth=True,
                waits=not is_quick,
                plain=jobs if is_quick else None,
            )
        )
        return kept

    async def get(self, job: Job) -> Job | None:
        """Return this version's present state; None if it has been pruned."""
        return await self._read(lambda look: look.version(job.seq))

    async def ended(self, jobs: Sequence[Job]) -> list[tuple[Job, Job | None]]:
        """Of these versions, return those that have ended, each with its state."""
        found = await self._read(lambda look: look.ended([job.seq for job in jobs]))
        return [(job, found[job.seq]) for job in jobs if job.seq in found]

    async def find(self, job_id: str) -> Job | None:
        """Return the newest version of an id; None if there is none."""
        return await self._read(lambda look: look.newest(job_id))

    async def ids(self, prefix: str, *, limit: int = 10) -> list[str]:
        """Return ids that begin so."""
        return await self._read(lambda look: look.ids(prefix, limit))

    async def jobs(self, which: JobFilter) -> list[Job]:
        """List jobs, newest first."""
        return await self._read(lambda look: look.jobs(which))

    async def counts(self) -> dict[str, dict[JobStatus, int]]:
        """Count the live jobs of each queue by status."""
        return await self._read(lambda look: look.counts())

    async def ahead(self, job: Job, *, most: int = 1000) -> int:
        """Count the claimable jobs of the same queue and lane that go before this one."""
        now = self.now()
        return await self._read(lambda look: look.gates(now).ahead(job, most))

    async def cancel(self, job: Job, *, reason: str, abandon: bool = False) -> Cancellation:
        """End a job that has not started; ask a running one to stop, or abandon it."""
        return await self._write(
            lambda turn: control.cancel(turn, job.seq, reason=reason, abandon=abandon), waits=True
        )

    async def retry(self, job: Job, *, by: str) -> Sequence[JobEvent]:
        """Take a finished job back to READY."""
        return await self._write(
            lambda turn: control.retry(turn, job.id, job.seq, by=by), is_guarded=True, waits=True
        )

    async def prune(self, *, keep_us: int, limit: int = 1000) -> int:
        """Forget what is not to be kept any longer, at most `limit` jobs."""
        pruned = await self._write(lambda turn: control.prune(turn, keep_us=keep_us, limit=limit))
        # There may be many more fires than jobs, since most may have been skipped: a bounded number a turn.
        while (
            await self._write(lambda turn: control.forget_fires(turn, keep_us=keep_us, limit=limit)) >= limit
        ):
            pass
        return pruned

    async def prunable(self, *, keep_us: int) -> int:
        """Count what is not to be kept any longer."""
        now = self.now()
        return await self._read(lambda look: look.prunable(now, keep_us))

    async def pruned(self) -> int:
        """Return how many jobs have been forgotten so far."""
        return await self._read(lambda look: look.pruned())

    def heap_entries(self) -> tuple[int, int]:
        """Return nothing: the order is an index of the database."""
        return 0, 0

    # work

    async def register(self, worker: WorkerInfo) -> None:
        """Begin a worker's lease; from then on the writer's timer prolongs it."""
        renewals = self._renewals
        since = renewals.now()
        await self._write(
            lambda turn: leases.register(turn, worker),
            finish=lambda _: renewals.begin(worker.id, worker.lease_us, since=since),
        )

    async def retire(self, worker: str) -> Sequence[JobEvent]:
        """End a worker's lease and give back what it holds."""
        renewals = self._renewals

        def finish(changes: Sequence[JobEvent]) -> Sequence[JobEvent]:
            renewals.end(worker)
            return changes

        return await self._write(lambda turn: leases.retire(turn, worker), finish=finish)

    async def beat(self, worker: str, held: Mapping[int, int], running: Mapping[int, int]) -> Beat:
        """Renew a lease and compare what its worker thinks it holds."""
        renewals = self._renewals
        since = renewals.now()

        def finish(beat: Beat) -> Beat:
            if beat.is_alive:
                renewals.beaten(worker, since=since)
            else:
                renewals.end(worker)
            return beat

        return await self._write(lambda turn: leases.beat(turn, worker, held, running), finish=finish)

    async def exchange(
        self, reports: Sequence[Report], claim: ClaimRequest | None, returned: Sequence[tuple[int, int]] = ()
    ) -> Exchange:
        """Take reports, promote and expire what is due, and claim."""
        return await self._write(lambda turn: exchange(turn, reports, claim, returned))

    async def rescue(self, tasks: Collection[str]) -> Sequence[JobEvent]:
        """Take back the jobs of workers whose lease is over, or whose process is gone."""
        return await self._write(lambda turn: leases.rescue(turn, tasks, self._is_gone))

    async def unpark(self, name: str) -> Sequence[JobEvent]:
        """Make parked jobs claimable."""
        return await self._write(lambda turn: control.unpark(turn, name))

    async def parked(self) -> dict[str, int]:
        """Count the parked jobs by name."""
        return await self._read(lambda look: look.parked())

    async def workers(self) -> list[tuple[WorkerInfo, Micros]]:
        """List the workers, each with how long its lease holds."""
        boottime, boot_id = self._lease_time()
        return await self._read(lambda look: look.workers(boottime, boot_id))

    async def make_known(self, worker: str, tasks: tuple[str, ...] | None) -> None:
        """Remember which tasks a registered worker knows."""
        await self._write(lambda turn: leases.make_known(turn, worker, tasks))

    # queues

    async def pause_queue(self, name: str, *, by: str | None = None) -> None:
        """Let nothing of this queue be claimed."""
        await self._write(lambda turn: control.pause_queue(turn, name, by))

    async def resume_queue(self, name: str) -> None:
        """Undo `pause_queue`."""
        await self._write(lambda turn: control.resume_queue(turn, name))

    async def paused_queues(self) -> dict[str, Pause]:
        """Return the paused queues, by name."""
        return await self._read(lambda look: look.paused_queues())

    async def queue(self, name: str) -> QueueView:
        """Show what stands first in a queue, and what is kept back."""
        now = self.now()
        return await self._read(lambda look: look.queue(name, now))

    async def oldest_due(self) -> dict[str, Micros]:
        """Return since when the oldest claimable job has been due, by queue."""
        now = self.now()
        return await self._read(lambda look: look.oldest_due(now))

    # gates

    async def declare_gates(self, terms: Sequence[GateTerms]) -> None:
        """Keep the rules that the code declares; nothing is written if they are known."""
        known = await self._read(lambda look: look.gates(0).declared())
        new = [each for each in terms if known.get(each.rule) != each]
        if new:
            await self._write(lambda turn: rules.declare(turn, new), waits=True)

    async def change_gates(self, rule: str, terms: GateTerms | None) -> GateTerms | None:
        """Have all gates of a rule go by other terms, until this is called with None."""
        return await self._write(lambda turn: rules.change(turn, rule, terms))

    async def trip(self, key: str, *, is_open: bool) -> None:
        """Open the circuit of a breaker, or close it."""
        await self._write(lambda turn: rules.trip(turn, key, is_open=is_open))

    async def gates(self, keys: Sequence[str], *, most: int = 100) -> list[GateView]:
        """Show these gates, with the first holders and waiters."""
        now = self.now()
        return await self._read(lambda look: look.gates(now).gates(keys, most))

    async def gates_under(self, rule: str | None, *, limit: int = 1000) -> list[GateView]:
        """Show the gates of a rule that are in use."""
        now = self.now()
        return await self._read(lambda look: look.gates(now).gates_under(rule, limit))

    # the jobs' logs

    async def write_log(self, pages: Sequence[LogPage]) -> None:
        """Add lines to jobs' logs, each page only if its fence is the job's."""
        await self._write(lambda turn: logs.write(turn, pages), is_growth=True)

    async def log(self, job: Job, *, after: int = 0, limit: int = 1000) -> list[LogLine]:
        """Return lines of a version's log, in order."""
        return await self._read(lambda look: look.log(job.seq, after, limit))

    # the order

    async def rekey(self, *, strategy: str, assign: Callable[[Job], None]) -> int:
        """Order all live jobs by another strategy, in one transaction."""
        return await self._write(
            lambda turn: rekeying.rekey(turn, strategy, assign, self._is_gone),
            is_guarded=True,
            is_growth=True,
        )

    # schedules

    async def save_schedule(
        self, record: ScheduleRecord, *, expected_version: int | None, fires: Sequence[Fire] = ()
    ) -> bool:
        """Insert or replace a schedule by compare-and-set."""
        return await self._write(
            lambda turn: firing.save(turn, record, expected_version, fires),
            is_growth=expected_version is None,
        )

    async def remove_schedule(self, schedule_id: str) -> bool:
        """Remove a schedule and its fires."""
        return await self._write(lambda turn: firing.remove(turn, schedule_id))

    async def schedule(self, schedule_id: str) -> ScheduleRecord | None:
        """Return a schedule; None if there is none."""
        return await self._read(lambda look: look.schedule(schedule_id))

    async def schedules(self, which: ScheduleFilter) -> list[ScheduleRecord]:
        """List schedules, or the due ones."""
        return await self._read(lambda look: look.schedules(which))

    async def next_fire(self) -> Micros | None:
        """Return the earliest next fire of a schedule that is not paused."""
        return await self._read(lambda look: look.next_fire())

    async def fire(self, advances: Sequence[Advance]) -> tuple[list[Fired | None], Sequence[JobEvent]]:
        """Carry out steps of schedules, all in one transaction."""
        fired: tuple[list[Fired | None], Sequence[JobEvent]] = await self._call(
            Operation(
                lambda turn: _fire(turn, advances),
                finish=lambda steps: steps.acknowledge(),
                is_guarded=True,
                is_growth=True,
                waits=True,
            )
        )
        return fired

    async def fires(self, schedule_id: str, *, before: Micros | None = None, limit: int = 100) -> list[Fire]:
        """List what became of a schedule's instants, newest first."""
        return await self._read(lambda look: look.fires(schedule_id, before, limit))


def _submit(turn: Turn, jobs: Sequence[Job]) -> Submission:
    submission = Submission(turn, jobs)
    submission.run()
    return submission


def _fire(turn: Turn, advances: Sequence[Advance]) -> firing.Firing:
    steps = firing.Firing(turn, advances)
    steps.run()
    return steps
