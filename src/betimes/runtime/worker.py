"""The worker: takes jobs from the store, has them run, and records how they ended.

One task, the pump, owns everything here. Each of its turns is one call of the store: the outcomes that
gathered while the last call was on its way go out, and as many jobs come in as there are free slots. What
must hold:

1. *No lost wake-up.* Whoever changes something sets `_wake`; the pump clears it before it looks, and looks at
   everything, so whatever is set after the look starts another turn.
2. *A slot is one attempt's* from its claim until its outcome is recorded and its code has returned
   (`WorkerState`), so what is in flight never exceeds the concurrency.
3. *Unknown outcomes are reconciled.* After a call of the store that failed, the same reports are sent again,
   and a heartbeat compares what the store thinks is held here with what is; only then is anything claimed.
4. *A deadline is ours.* The timeout is recorded when it is over, whatever the code does; the next attempt of
   that job is not claimed here before the code has returned (`ClaimRequest.hold`).
5. *Each wake-up looks at the store*, also while all slots are taken: jobs become due and expire meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from contextvars import Context as Variables
from random import Random

from betimes.core.events import Event, Succeeded
from betimes.core.job import Job
from betimes.core.outcome import Outcome
from betimes.core.queue_shares import QueueShares
from betimes.core.task import Registry
from betimes.core.worker_state import Phase, WorkerState
from betimes.errors import StoreUnavailable
from betimes.ports import ClaimRequest, Exchange, Executor, Hint, Run, Store
from betimes.runtime.attempt import STOPPED, Attempt, Refusal
from betimes.runtime.chores import Chores
from betimes.runtime.deadlines import Deadlines
from betimes.runtime.giving_way import let_others_run
from betimes.runtime.guards import Guards
from betimes.runtime.intake import Intake
from betimes.runtime.journal import Journal
from betimes.runtime.lease import Lease
from betimes.runtime.logbook import LogBook
from betimes.runtime.outbox import Outbox, date
from betimes.runtime.pauses import Pauses
from betimes.runtime.settings import Settings
from betimes.runtime.upkeep import Upkeep

_log = logging.getLogger("betimes")


class Worker:
    """Runs jobs of one store in this process.

    Args:
        store: an open store.
        tasks: the tasks it knows; it may grow while the worker runs.
        executors: what runs them, by lane.
        settings: the numbers.
        lease: the worker's name and lease.
        journal: what is told of every transition.
        rng: for jitter.
        state: its slots; those of the worker before it in this process, if code was left running then.
    """

    def __init__(
        self,
        store: Store,
        tasks: Registry,
        executors: Mapping[str, Executor],
        settings: Settings,
        *,
        lease: Lease,
        journal: Journal,
        rng: Random,
        state: WorkerState[Attempt],
    ) -> None:
        self._store = store
        self._tasks = tasks
        self._executors = executors
        self.settings = settings
        self._lease = lease
        self._journal = journal
        self._rng = rng
        self.state = state
        self.heir: Worker | None = None
        self.chores = Chores()
        self.upkeep = Upkeep(self, store, lease, journal, tasks=tasks, executors=executors)
        self.outbox = Outbox()
        self.book = LogBook(store)
        self._guards = Guards(store, journal.counters, rng)
        self.intake = Intake(self, tasks, executors)
        self._wake = asyncio.Event()
        self.is_awake = False
        self.progress = asyncio.Event()
        self._is_claiming = False
        self._pauses = Pauses(rng)
        self._shares = None if settings.shares is None else QueueShares(settings.shares)
        self._next_at: int | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._run_time = journal.counters.run_time.record

    async def start(self) -> None:
        """Register, and begin to claim."""
        self._loop = loop = asyncio.get_running_loop()
        self._time = loop.time
        self._deadlines = Deadlines(loop, self._late)
        await self._lease.begin()
        for executor in self._executors.values():
            executor.open(self._ended, self._begun)
        self.book.open(loop, self.awaken)
        self.upkeep.begin(self.chores, loop.time())
        self.state.phase = Phase.RUNNING
        self.awaken()
        self._pump = loop.create_task(self._run(), context=Variables(), name="betimes-worker")
        self._pump.add_done_callback(self._pump_done, context=Variables())

    def drain(self) -> None:
        """Claim nothing more; what runs may end."""
        self.state.phase = Phase.DRAINING

    async def finish(self, patience_s: float) -> None:
        """End the pump and give up the lease, waiting so long for the store each time; after `drain`."""
        self.state.phase = Phase.STOPPED
        self.awaken()
        if (await asyncio.wait([self._pump], timeout=patience_s))[1]:
            self._pump.cancel()
            await asyncio.wait([self._pump])
        self.upkeep.fence.end()
        self._deadlines.close()
        self.book.close()
        if self._timer is not None:
            self._timer.cancel()
        await self._let_go(patience_s)
        for executor in self._executors.values():
            await executor.close()

    async def _let_go(self, patience_s: float) -> None:
        """Give up the lease, unless outcomes could not be saved: then it runs out, as after a crash."""
        try:
            async with asyncio.timeout(patience_s):
                if self.outbox.reports or self.book.has_lines:  # somebody has cancelled the pump
                    await self._exchange(claims=False)
                if self.outbox.reports:
                    raise StoreUnavailable("another transaction has locked what they are to be saved to")
                if not self.state.held():
                    await self._lease.end()
        except Exception as error:  # noqa: BLE001 - whatever a store raises: the end goes on
            why = str(error) or f"the store did not answer within {patience_s:g} s"
            _log.error("the worker's end could not be saved; its jobs wait for its lease to be over: %s", why)
        self.outbox.reports.clear()
        self.state.on_recorded(list(self.state.held().values()))

    def _pump_done(self, pump: asyncio.Task[None]) -> None:
        self._journal.counters.turn_began = None
        self.progress.set()
        if self.state.phase is not Phase.STOPPED:
            how = "was cancelled" if pump.cancelled() else f"failed: {pump.exception()!r}"
            _log.error(
                "the worker %s from outside; nothing more is run: stop the scheduler, and start it", how
            )

    @property
    def id(self) -> str:
        """The id under which it is registered now."""
        return self._lease.worker_id

    def store_now(self) -> int:
        """Return the store's time."""
        return self._store.now()

    @property
    def is_over(self) -> bool:
        """Whether the pump has ended, so that nothing more will be recorded."""
        return self._pump.done()

    def left_running(self) -> list[Attempt]:
        """Return the attempts whose code will run on, since it has not returned and cannot be killed."""
        left = (each for each in self.state.in_flight.values() if not each.has_returned)
        return [each for each in left if not self._executors[each.lane].leaves_nothing]

    @property
    def is_settled(self) -> bool:
        """Whether every outcome is recorded."""
        return not self._is_claiming and not self.outbox.reports and not self.state.held()

    # --- the pump

    async def _run(self) -> None:
        while self.state.phase is not Phase.STOPPED or self.outbox.reports:
            await self._wake.wait()
            self._wake.clear()
            self.is_awake = False
            if self.state.phase is not Phase.STOPPED and self._pauses.is_on(self._time()):
                continue
            if self._journal.counters.turn_began is None:
                self._journal.counters.turn_began = self._time()
            try:
                await self._turn()
            except Exception as error:  # noqa: BLE001 - whatever a store raises: the pump must outlive it
                self._recover_from(error)
            else:
                self._journal.counters.turn_began = None
                self._pauses.end()
                self._arm()
            self.progress.set()

    async def _turn(self) -> None:
        if self._pauses.failures or self.chores.next_due <= self._loop.time():
            await self._catch_up()
        exchange = await self._exchange(claims=True)
        self._next_at = exchange.next_at
        if exchange.claimed and self.upkeep.fence.lets_start():
            self._start_all(exchange.claimed)
        else:
            self.intake.told_early.clear()

    async def _exchange(self, *, claims: bool) -> Exchange:
        """Send the outcomes that have gathered; they count as sent only when the store has answered.

        What is claimed in the same step may use the slots that these outcomes free.
        """
        sent, returned = self.outbox.take()
        attempts = [report for report in sent if isinstance(report, Attempt)]
        self._is_claiming = claims
        try:
            if self.book.has_lines:  # all that these attempts wrote: they have been taken before
                await self.book.flush()
            if claims and self._guards.has_trips:
                await self._guards.tell()
            claim = self._claim_request(attempts) if claims else None
            date(sent, self._store.now())
            self._is_claiming = claim is not None
            exchange = await self._store.exchange(sent, claim, returned)
        except BaseException:
            self.outbox.put_back(sent, returned)
            self.intake.told_early.clear()  # what it may have claimed does not start: a beat gives it back
            raise
        finally:
            self._is_claiming = False
        taken, steps = self.outbox.settle(sent, exchange)
        if len(taken) < len(sent):
            attempts = [report for report in taken if isinstance(report, Attempt)]
        self.state.on_recorded(attempt for attempt in attempts if not attempt.is_recorded)
        self._journal.steps(taken, steps)
        if exchange.changes:
            self._journal.changes(exchange.changes)
        return exchange

    def _claim_request(self, ended: Iterable[Attempt]) -> ClaimRequest | None:
        free, lanes = self.state.room(ended)
        if free <= 0 or not self.upkeep.fence.holds:
            return None
        for lane, executor in self._executors.items():
            lanes[lane] += executor.ahead
        hold = [attempt.job.id for attempt in self.state.zombies.values()]  # for newer versions, too
        return ClaimRequest(self._lease.worker_id, free, lanes, self.settings.queues, hold, self._shares)

    async def _catch_up(self) -> None:
        """Do what must come before a claim: after a failure, first of all, reconcile."""
        if self.state.has_held:
            await let_others_run()  # what ends just now has ended before anything is due
        if self._pauses.failures or self.outbox.reports:
            await self._exchange(claims=False)
        if self._pauses.failures:
            self.chores.hurry(self.upkeep.beat)
        await self.chores.run_due(self._loop.time())

    def _recover_from(self, error: Exception) -> None:
        """Have the next try wait: longer each time, with jitter; a stopped worker tries no more."""
        self._journal.counters.store_errors += 1
        retry_at = self._pauses.begin(self._time(), error)
        if self.state.phase is Phase.STOPPED:
            _log.error("%d outcomes could not be saved: %s", len(self.outbox.reports), error)
            self.outbox.reports.clear()
            return
        self._loop.call_at(retry_at, self.awaken)

    def _arm(self) -> None:
        """Have the pump woken for the next due job or chore."""
        now = self._loop.time()
        when = self.chores.next_wake(is_idle=not self.state.has_held)
        if self._next_at is not None:
            when = min(when, now + (self._next_at - self._store.now()) / 1_000_000)
        if self._timer is not None:
            if now < self._timer.when() <= when and not self._timer.cancelled():
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(max(when, now), self.awaken)

    def awaken(self) -> None:
        """Have the pump look again: after whatever changes what there is to do."""
        if self.heir is not None:
            self.heir.awaken()
            return
        self.is_awake = True
        self._wake.set()

    def hear(self, hint: Hint) -> None:
        """Hear from the store that there may be something to do."""
        if hint is Hint.CANCEL:
            self.chores.hurry(self.upkeep.beat)
        self.awaken()

    # --- attempts

    def _start_all(self, claimed: list[Job]) -> None:
        if self._shares is not None:
            self._shares.dealt(job.spec.queue for job in claimed)
        self._journal.claimed(claimed)
        attempts = self.intake.attempts_of(claimed, self._loop.time())
        self._guards.started(attempts)
        self._journal.counters.attempts += len(attempts)
        self.state.on_claimed(attempts)
        executors = self._executors
        for attempt in attempts:
            executor = executors[attempt.lane]
            if attempt.timeout_s is not None and not executor.tells_begun:
                self._deadlines.add(attempt, attempt.timeout_s)
            executor.start(attempt)

    def _begun(self, run: Run) -> None:
        """Hear from an executor that an attempt's code begins: its timeout counts from now."""
        assert isinstance(run, Attempt)
        if run.timeout_s is not None and not (run.is_reported or run.deadline_number):
            self._deadlines.add(run, run.timeout_s)

    def refuse(self, job: Job, event: Event) -> None:
        """Send a claimed job back without having started it."""
        self.outbox.reports.append(Refusal(job, event))
        self.awaken()

    def _ended(self, run: Run, outcome: Outcome) -> None:
        """Hear from an executor that an attempt's code has returned."""
        assert isinstance(run, Attempt)
        if run.deadline_number:
            self._deadlines.discard(run)
        self._run_time((self._time() - run.started) * 1e6)
        if not run.is_recorded and not run.is_reported:
            run.has_returned = True
            # A success gets its instant when it is sent: one look at the clock for all that go together.
            run.is_reported = True
            run.event = outcome if type(outcome) is Succeeded else self._guards.event_of(run, outcome)
            self.outbox.reports.append(run)
            if not self.is_awake:
                self.awaken()
        else:
            # Look again in any case: if its report is on its way just now, its slot is free after that.
            self.state.on_returned(run)
            if run.job.gates:
                self.outbox.returned.append((run.seq, run.fence))
            self.awaken()
            self.progress.set()

    def _report(self, attempt: Attempt, event: Event) -> None:
        attempt.is_reported = True
        attempt.event = event
        self.outbox.reports.append(attempt)
        self.awaken()

    def _late(self, attempt: Attempt) -> None:
        """Record a timeout now, whatever the code goes on to do, and tell the code."""
        self.state.on_late(attempt)
        self._report(attempt, self._guards.late(attempt))
        self.stop_code(attempt)

    def stop_code(self, attempt: Attempt) -> None:
        """Tell an attempt's code to stop, by whatever means its lane has."""
        attempt.is_told = True
        if not attempt.has_returned:
            self._executors[attempt.lane].cancel(attempt)

    def tell(self, seq: int, fence: int) -> None:
        """Tell a job's code, up to this fence, of its cancel; a claim on its way will not start."""
        attempt = self.state.in_flight.get(seq)
        if attempt is None:
            if self._is_claiming:
                self.intake.told_early[seq] = fence
        elif attempt.fence <= fence and not attempt.is_told:
            # Once only: a second `CancelledError` would break into the clean-up after the first.
            self.stop_code(attempt)

    def give_up(self, attempt: Attempt) -> None:
        """Let go of an attempt whose job is no longer its own: nothing it reports counts."""
        if not attempt.is_recorded:
            self._deadlines.discard(attempt)
            self.outbox.drop(attempt)
            self.state.on_recorded([attempt])
            self.awaken()
            self.stop_code(attempt)

    def give_back(self, attempts: Iterable[Attempt] | None = None, *, why: str = STOPPED) -> None:
        """Return jobs (None: all) whose outcome is not known yet to the store, and tell the code to stop."""
        for attempt in self.state.held().values() if attempts is None else attempts:
            if not attempt.is_reported:
                self._deadlines.discard(attempt)
                self._report(attempt, attempt.given_back(self._store.now(), why))
                self.stop_code(attempt)
