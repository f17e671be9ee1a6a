"""The contract of every store.

A store keeps jobs and moves them; it decides nothing: what an event does to a job is `lifecycle.decide`,
called under the store's own guard. Every method is atomic, and either done whole or not at all. Methods
take and return batches where batches can occur, because the number of commits is what durable stores cost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from betimes.ports.within import SubmitsWithin

if TYPE_CHECKING:
    from betimes.core.job import Job, JobEvent, JobStatus, Micros
    from betimes.core.limits import GateTerms, GateView
    from betimes.core.log import LogLine, LogPage
    from betimes.core.queue_view import Pause, QueueView
    from betimes.core.schedule import Advance, Fire, Fired, ScheduleRecord
    from betimes.core.vitals import Vitals
    from betimes.ports.values import (
        Beat,
        Cancellation,
        ClaimRequest,
        Exchange,
        Hint,
        JobFilter,
        Report,
        ScheduleFilter,
        WorkerInfo,
    )


class Store(SubmitsWithin, ABC):
    """Keeps jobs, schedules, workers and queue states, for any number of workers.

    Obligations beside those of each method (the numbers are those of the promises in the docs):

    - *Time* is the store's own (`now`), never a caller's. Nothing is claimable before its `run_at` (P14).
    - *Order* among what is claimable is `(sort_key, seq)`; a claim never takes more than it asked for (P20).
    - *Guard*: an event about an attempt counts only under the job's fence (P7); fences only grow (P6).
    - *Dependencies*: when a job ends, in the same step each job that waits for it is released or cancelled,
      recursively (P15). *Versions*: at most one version of an id can start.
    - *Gates* (`core.limits`): no job is claimed unless all its gates let it pass; its permits are held until
      its code has returned or its worker's lease is over, whichever way either comes about.
    - *Tenants* (`core.shares`): a job that has one, and no sort key yet, gets it when it first becomes READY
      (where many write at once: at the next claim).
    - *Answers* come in the order in which the steps were made, so that a job's submit is heard of before its
      claim, and listeners hear of everything in order.
    - A `Job` given as a reference means that version (`seq`), and a store answers with its present state;
      the object handed out may be a copy or the store's own record: callers only read it.
    - A method that raises `StoreUnavailable` may or may not have been carried out if the failure came after
      it was sent; `submit` may be repeated with the same jobs, `exchange` with the same reports.
    """

    is_durable: bool
    """Whether jobs outlive the process."""

    @abstractmethod
    async def open(self, *, strategy: str | None) -> None:
        """Make the store ready, creating what an empty one needs.

        Args:
            strategy: the strategy's stored name; an empty store remembers it. None: whichever it was made
                with, to `rekey` it.

        Raises:
            ConfigurationError: the store was made with another strategy, or cannot be used (the text says
            why). SchemaMismatch: it was made by another version; nothing was changed. StoreUnavailable: it
            cannot be reached now.
        """

    async def look(self) -> None:
        """Make the store ready to be looked at only: nothing is created, carried over or written.

        Raises:
            As `open`; also StoreUnavailable where there is none yet.
        """
        await self.open(strategy=None)

    @abstractmethod
    async def vitals(self, *, full: bool = False) -> Vitals:
        """Return what can be said of the store itself, open or not; what is wrong is said, not raised.

        Args:
            full: check all that is stored for damage, too, which may take minutes.
        """

    @abstractmethod
    async def close(self) -> None:
        """Release all that `open` took; closing twice is fine. What was acknowledged stays."""

    @abstractmethod
    def now(self) -> Micros:
        """Return the store's time."""

    @abstractmethod
    def subscribe(self, hear: Callable[[Hint], None]) -> Callable[[], None]:
        """Have `hear` called on the loop that opened the store, after a change; return how to stop it."""

    # jobs

    @abstractmethod
    async def submit(self, jobs: Sequence[Job]) -> tuple[list[Job], Sequence[JobEvent]]:
        """Keep new jobs, all or none; returns when they are as durable as the store can make them.

        Each gets its `seq` in the order given, and its status from `lifecycle.place`. Its `terms` are met:
        a known key answers with the first job (also a finished one); a repeated submission (same generated
        id, or same id and token) answers with the job it made; a replaced version is cancelled or
        superseded, and the new one waits for it while it runs; a job whose dependency has already failed is
        CANCELLED at once.

        Returns:
            By position the job kept (the one given, or the one found), and every transition made, submits
            included (`before` is None).

        Raises:
            DuplicateJob: a live job has the id (or two of the batch share it), without `replace`.
            UnknownJob: a dependency is not there.
            ConfigurationError: the terms of one of its gates were never declared.
            DependencyCycle: jobs of the batch wait for each other, by their ids, in a circle.
            ConfigurationError: a key stands for another task or other arguments.
            StoreUnavailable: not now.
        """

    @abstractmethod
    async def get(self, job: Job) -> Job | None:
        """Return this version's present state; None if it has been pruned."""

    @abstractmethod
    async def ended(self, jobs: Sequence[Job]) -> list[tuple[Job, Job | None]]:
        """Of these versions, return those that have ended, each with its state (None: it has been pruned).

        For whoever waits for jobs that other processes run: one look for many.
        """

    @abstractmethod
    async def find(self, job_id: str) -> Job | None:
        """Return the newest version of an id; None if there is none."""

    @abstractmethod
    async def ids(self, prefix: str, *, limit: int = 10) -> list[str]:
        """Return ids that begin so, in their order, each once; at most `limit`."""

    @abstractmethod
    async def jobs(self, which: JobFilter) -> list[Job]:
        """List jobs, newest first."""

    @abstractmethod
    async def counts(self) -> dict[str, dict[JobStatus, int]]:
        """Count the live jobs of each queue by status; queues without live jobs may be missing."""

    @abstractmethod
    async def ahead(self, job: Job, *, most: int = 1000) -> int:
        """Count the claimable jobs of the same queue and lane that go before this one, up to `most`.

        Of lines that wait at a gate, none counts but those ahead of it in its own line.
        """

    @abstractmethod
    async def cancel(self, job: Job, *, reason: str, abandon: bool = False) -> Cancellation:
        """End a job that has not started, and what depends on it; ask a running one to stop.

        With `abandon` a running one ends CANCELLED at once, and whatever its code still reports is refused.
        """

    @abstractmethod
    async def retry(self, job: Job, *, by: str) -> Sequence[JobEvent]:
        """Take a finished job back to READY, on an operator's word.

        Raises:
            UnknownJob: it has been pruned.
            IllegalTransition: it is not finished.
            DuplicateJob: another version of its id is live.
        """

    @abstractmethod
    async def prune(self, *, keep_us: int, limit: int = 1000) -> int:
        """Forget jobs that ended longer ago than their own `keep_s`, or else `keep_us`; at most `limit`.

        A key goes with its job, or when `key_until` is over. Returns how many jobs went.
        """

    @abstractmethod
    async def prunable(self, *, keep_us: int) -> int:
        """Return how many jobs `prune` would forget now, called until there are no more."""

    @abstractmethod
    async def pruned(self) -> int:
        """Return how many jobs have been pruned so far: submitted = live + finished + pruned."""

    @abstractmethod
    def heap_entries(self) -> tuple[int, int]:
        """Return how many entries its in-memory heaps hold, and how many live; (0, 0) without heaps."""

    # work

    @abstractmethod
    async def register(self, worker: WorkerInfo) -> None:
        """Begin a worker's lease."""

    @abstractmethod
    async def retire(self, worker: str) -> Sequence[JobEvent]:
        """End a worker's lease: what it still holds is given back at once. Twice is fine."""

    @abstractmethod
    async def beat(self, worker: str, held: Mapping[int, int], running: Mapping[int, int]) -> Beat:
        """Renew a worker's lease and compare what it holds (`seq` → fence) with the store's rows.

        Never to be called while an `exchange` of the same worker that claims is on its way.

        Args:
            worker: the id it registered under.
            held: the attempts whose outcome is not known yet.
            running: those whose outcome is recorded, or not wanted, while their code still runs: they keep
                their permits. Permits of any other attempt of this worker are given back.
        """

    def lease_left_us(self, worker: str) -> int | None:
        """Return for how long a worker's lease surely holds; None: others cannot take its jobs."""

    @abstractmethod
    async def exchange(
        self, reports: Sequence[Report], claim: ClaimRequest | None, returned: Sequence[tuple[int, int]] = ()
    ) -> Exchange:
        """Take reports of ended attempts, promote and expire what is due, then claim, in one atomic turn.

        A report gives back its attempt's permits if its code has returned (`Report.has_returned`), also a
        stale one, for they are held under its own fence; and its tokens if it counts and the attempt never
        began (`Report.has_begun`). `returned` names attempts (`seq`, fence) that were reported earlier and
        whose code has returned since. Nothing is given back twice.

        Steps of promotion and expiry are bounded; what is left comes with the next turn (`next_at` says so).
        Nothing is claimed for a worker whose lease is over, from a paused queue, or in a lane not asked for.
        """

    @abstractmethod
    async def rescue(self, tasks: Collection[str]) -> Sequence[JobEvent]:
        """Take back what workers hold whose lease is over: jobs of these tasks only, a bounded number.

        All their permits are free at once, also those of tasks that are not known here.
        One compare-and-set per job (fence, expired lease): never a finished or re-claimed job.
        """

    @abstractmethod
    async def unpark(self, name: str) -> Sequence[JobEvent]:
        """Make READY jobs parked under this name claimable; a bounded number."""

    @abstractmethod
    async def parked(self) -> dict[str, int]:
        """Count READY jobs by the name they are parked under."""

    @abstractmethod
    async def workers(self) -> list[tuple[WorkerInfo, Micros]]:
        """List the registered workers, each with how long its lease holds; 0: it is over."""

    @abstractmethod
    async def make_known(self, worker: str, tasks: tuple[str, ...] | None) -> None:
        """Remember which tasks a registered worker knows, for those who ask why a job waits."""

    # queues

    @abstractmethod
    async def pause_queue(self, name: str, *, by: str | None = None) -> None:
        """Let nothing of this queue be claimed until `resume_queue`; the first pause is the one kept."""

    @abstractmethod
    async def resume_queue(self, name: str) -> None:
        """Undo `pause_queue`."""

    @abstractmethod
    async def paused_queues(self) -> dict[str, Pause]:
        """Return the paused queues, by name."""

    @abstractmethod
    async def queue(self, name: str) -> QueueView:
        """Show what stands first in a queue, and what is kept back; empty for one without jobs."""

    @abstractmethod
    async def oldest_due(self) -> dict[str, Micros]:
        """Return since when the oldest claimable job has been due, by queue; a bounded look.

        It reads the first job of each lane in the order of claims and the oldest submitted ones, so that it
        may miss an older one behind thousands; DELAYED jobs whose time has come count.
        """

    # gates

    @abstractmethod
    async def declare_gates(self, terms: Sequence[GateTerms]) -> None:
        """Keep the rules that the code declares, before jobs under them are submitted.

        Gates that exist go by them at once, unless `change_gates` has given them others.
        """

    @abstractmethod
    async def change_gates(self, rule: str, terms: GateTerms | None) -> GateTerms | None:
        """Have all gates of a rule (`GateTerms.rule`) go by other rules, until this is called with None.

        Returns:
            The rules by which they go now; None, and no change: nothing was ever declared under this name.
        """

    @abstractmethod
    async def trip(self, key: str, *, is_open: bool) -> None:
        """Open the circuit of a breaker from now on, or close it; nothing if it was never declared.

        A job of it that began after the trip and succeeds closes it, too.
        """

    @abstractmethod
    async def gates(self, keys: Sequence[str], *, most: int = 100) -> list[GateView]:
        """Show these gates as they stand, with the first holders and waiters; `most` of each."""

    @abstractmethod
    async def gates_under(self, rule: str | None, *, limit: int = 1000) -> list[GateView]:
        """Show the gates of a rule (None: of all) that are in use, by key, without holders and waiters.

        A rule that was declared and of which no gate is in use shows as one at rest, without a value.
        """

    # the jobs' logs

    @abstractmethod
    async def write_log(self, pages: Sequence[LogPage]) -> None:
        """Add lines to jobs' logs, each page only if its fence is the job's; the newest lines stay."""

    @abstractmethod
    async def log(self, job: Job, *, after: int = 0, limit: int = 1000) -> list[LogLine]:
        """Return the lines of a version's log behind the one of this number, in order, at most `limit`."""

    # the order

    @abstractmethod
    async def rekey(self, *, strategy: str, assign: Callable[[Job], None]) -> int:
        """Order all live jobs by another strategy, in one atomic step, and remember it.

        Args:
            strategy: its stored name.
            assign: writes `sort_key` and `tenant` into a job's record; those with a tenant are tagged anew,
                in the order of submission.

        Returns:
            How many jobs were ordered anew.

        Raises:
            ConfigurationError: a worker is registered whose lease holds; nothing has changed.
        """

    # schedules

    @abstractmethod
    async def save_schedule(
        self, record: ScheduleRecord, *, expected_version: int | None, fires: Sequence[Fire] = ()
    ) -> bool:
        """Insert (None) or replace (the version seen) a schedule; False, and no change, if another stands.

        A new one keeps the version that it comes with, a replaced one gets the next. In the same step,
        remember `fires`: instants that passed without a step, as while it was paused.
        """

    @abstractmethod
    async def remove_schedule(self, schedule_id: str) -> bool:
        """Remove a schedule and its fires; its jobs stay. False if there is none."""

    @abstractmethod
    async def schedule(self, schedule_id: str) -> ScheduleRecord | None:
        """Return a schedule; None if there is none."""

    @abstractmethod
    async def schedules(self, which: ScheduleFilter) -> list[ScheduleRecord]:
        """List schedules: by id, or, of those due by an instant, the earliest first (then by id)."""

    @abstractmethod
    async def next_fire(self) -> Micros | None:
        """Return the earliest `next_fire_at` of a schedule that is not paused; None: there is none."""

    @abstractmethod
    async def fire(self, advances: Sequence[Advance]) -> tuple[list[Fired | None], Sequence[JobEvent]]:
        """Carry out steps of schedules, each of which counts only if its schedule stands as it was seen.

        For each that does (`Advance.stands`), in one atomic turn: which of its jobs are live is looked up,
        and which of its instants were decided before; `overlapping.settle` decides; what it cancels is
        cancelled, its jobs are kept, each waiting for those it names, every instant is remembered as unique
        for (schedule, instant), and the schedule moves on. The end of a job that a schedule waits
        for moves the schedule in the very step in which it is recorded (`schedule.followed`).

        Returns:
            By position what each came to; None, and no change, where another was first. And every transition
            made.
        """

    @abstractmethod
    async def fires(self, schedule_id: str, *, before: Micros | None = None, limit: int = 100) -> list[Fire]:
        """List what became of a schedule's instants (up to `before`, that one not included), newest first.

        What is older than finished jobs are kept may have been forgotten.
        """
