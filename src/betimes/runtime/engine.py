"""The engine of one scheduler: its store, its worker while it runs, and its journal, wired together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from threading import get_ident

from betimes.core.job import Job
from betimes.core.task import Registry
from betimes.core.worker_state import WorkerState
from betimes.errors import ConfigurationError, SchedulerClosed
from betimes.ports import CancelAnswer, Cancellation, Executor, Hint, Store, WorkerInfo
from betimes.runtime.attempt import Attempt
from betimes.runtime.context import current_attempt
from betimes.runtime.declarations import Declarations
from betimes.runtime.endings import Ending
from betimes.runtime.firing import LOOK_EVERY_S, Firing, OnJump
from betimes.runtime.giving_way import let_others_run
from betimes.runtime.journal import Journal
from betimes.runtime.lease import Lease, told
from betimes.runtime.lookout import LOOK_FOR_ENDS_EVERY_S, Lookout, wait_for
from betimes.runtime.observing import Observing
from betimes.runtime.settings import Settings
from betimes.runtime.shutdown import Shutdown
from betimes.runtime.timetable import NewRun, NewSchedule, Timetable
from betimes.runtime.watches import Watches
from betimes.runtime.worker import Worker

_log = logging.getLogger("betimes")


class Engine(Observing):
    """Opens a store, and lets a worker run on it or only looks and submits.

    Args:
        store: where the jobs are.
        strategy: the stored name of the strategy; None: whichever the store was made with, to look only.
        tasks: the registry; it may grow.
        settings: the numbers.
        describe: makes the description of a worker under a fresh id.
        new_executors: makes the executors of one run, by lane.
        new_run: makes the job of one fire of a schedule.
        on_jump: has somebody told when the wall clock is set, if the clock can tell.
        rng: for jitter.

    Attributes:
        yields_after: a submit loop that never has to wait lets the others run after so many submits.
        looks_every_s: how often whoever waits for a job's end looks whether another process has brought it.
    """

    yields_after = 64
    looks_every_s = LOOK_FOR_ENDS_EVERY_S

    def __init__(
        self,
        store: Store,
        tasks: Registry,
        settings: Settings,
        *,
        strategy: str | None,
        new_id: Callable[[], str],
        describe: Callable[[], WorkerInfo],
        new_executors: Callable[[], Mapping[str, Executor]],
        new_run: NewRun,
        on_jump: OnJump,
        rng: Random,
    ) -> None:
        super().__init__()
        self.store = store
        self.journal = Journal()
        self.declarations = Declarations(store, tasks)
        self.timetable = Timetable(store, self.journal, new_run, self.declarations)
        self.journal.on_recorded = self._note_change
        self.worker: Worker | None = None
        self._tasks = tasks
        self._settings = settings
        self._strategy = strategy
        self._new_id = new_id
        self._describe = describe
        self._new_executors = new_executors
        self._new_run = new_run
        self._on_jump = on_jump
        self._rng = rng
        self._firing: Firing | None = None
        self.submits = 0
        self._changed = asyncio.Event()
        self._lookout = Lookout(store, self.journal, self._runs_here, every_s=self.looks_every_s)
        self._last: tuple[asyncio.AbstractEventLoop, Worker] | None = None
        self._shutdown: Shutdown | None = None
        self._opened, self._closed = asyncio.Event(), asyncio.Event()
        self._watches = Watches(self.journal)

    # --- life

    async def open(self, *, is_running: bool) -> None:
        """Open the store, and start a worker if it is to run."""
        if self.loop is not None:
            self.check_here()
            raise ConfigurationError(
                "this scheduler is open already: use the one that runs, or make a second Scheduler for the "
                "store"
            )
        self._begin()
        self._opened, self._closed = asyncio.Event(), asyncio.Event()
        self._changed = asyncio.Event()
        self._lookout = Lookout(self.store, self.journal, self._runs_here, every_s=self.looks_every_s)
        self._unsubscribe: Callable[[], None] = _nothing
        try:
            await self.store.open(strategy=self._strategy)
            self.journal.listeners.open()
            self.journal.endings.open()
            self._unsubscribe = self.store.subscribe(self._hear)
            self.declarations.begin(most_here=self._settings.concurrency if is_running else None)
            await self.declarations.declare()
            if is_running:
                await self._start_worker(asyncio.get_running_loop())
            self.is_closing = False
        except BaseException:
            await self._let_go()
            raise
        finally:
            self.is_opening = False
            self._opened.set()

    async def rekey(self, assign: Callable[[Job], None]) -> int:
        """Order all jobs of a store that is not open by this engine's strategy."""
        if self.loop is not None:
            raise ConfigurationError("the scheduler is open: stop it before its jobs are ordered anew")
        assert self._strategy is not None, "whoever looks only has no order to give"
        self._begin()
        self._opened = asyncio.Event()
        try:
            await self.store.open(strategy=None)
            await self.declarations.declare()
            return await self.store.rekey(strategy=self._strategy, assign=assign)
        finally:
            try:
                await self.store.close()
            finally:
                self._end()
                self.is_opening = False
                self._opened.set()

    async def _start_worker(self, loop: asyncio.AbstractEventLoop) -> None:
        executors = self._new_executors()
        # Code that was left running is this process's still: its slots stay taken, its jobs wait for it.
        before = self._last[1] if self._last is not None and self._last[0] is loop else None
        info = replace(self._describe(), lanes=tuple(sorted(executors)), tasks=told(self._tasks))
        worker = Worker(
            self.store,
            self._tasks,
            executors,
            self._settings,
            lease=Lease(self.store, info, self._new_id),
            journal=self.journal,
            rng=self._rng,
            state=self._new_state(executors) if before is None else before.state,
        )
        self.timetable.begin()
        await self.timetable.keep_declared()
        firing = Firing(
            self.store,
            self.timetable,
            self.journal,
            worker,
            new_run=self._new_run,
            on_jump=self._on_jump,
            look_s=min(self._settings.poll_s, LOOK_EVERY_S),
        )
        # Whatever may fail comes before the worker's start: one that nobody holds would run on for ever.
        await firing.re_aim()
        await worker.start()
        firing.begin()
        self._firing, self.worker = firing, worker
        self._last = (loop, worker)
        if before is not None:
            before.heir = worker
        self._watches.begin(self.store, worker, loop, self._settings)

    def _new_state(self, executors: Mapping[str, Executor]) -> WorkerState[Attempt]:
        most = self._settings.concurrency
        slots = {lane: min(executor.slots, most) for lane, executor in executors.items()}
        return WorkerState(concurrency=most, slots=slots)

    async def close(self, *, cancel_running: bool = False, timeout_s: float | None = None) -> None:
        """Stop the worker, deliver the events, and close the store; nothing of it is left on the loop."""
        if self.is_opening:
            await self._opened.wait()
        if self.loop is None:
            return
        self.check_here()
        if self.is_closing:
            # Somebody else is at it: make it as quick as this call asks for, and come back when it is done.
            if self._shutdown is not None:
                await self._shutdown.settle(cancel_running=cancel_running, timeout_s=timeout_s)
            await self._closed.wait()
            return
        self.is_closing = True
        self._changed.set()
        try:
            if self.worker is not None:
                self._shutdown = Shutdown(
                    self.worker, self.store, self.journal, grace_s=self._settings.grace_s
                )
                await self._shutdown.run(cancel_running=cancel_running, timeout_s=timeout_s)
        finally:
            await self._let_go()

    async def _let_go(self) -> None:
        """Give up all that `open` took; the rest also if a part of it fails."""
        self._shutdown = None
        self._unsubscribe()
        try:
            if self._firing is not None:
                self._firing.end()
            await self._watches.end()
            await self._lookout.close()
            await self.journal.listeners.close(self._settings.grace_s)
        finally:
            try:
                await self.store.close()
            finally:
                self.worker = None
                self._firing = None
                self._end()
                self._closed.set()

    def _hear(self, hint: Hint) -> None:
        firing = self._firing
        if hint is Hint.ENDED:
            self._changed.set()
            self._lookout.hint()
        elif hint is Hint.FIRE:
            if firing is not None:
                firing.hurry()
        elif hint is Hint.WORK and firing is not None and firing.is_ticking:
            pass  # the worker looks at what there is to claim right after the tick, in the same turn
        elif self.worker is not None and not (self.worker.is_awake and hint is Hint.WORK):
            self.worker.hear(hint)

    def _note_change(self) -> None:
        self._changed.set()

    # --- jobs

    async def submit(self, jobs: Sequence[Job]) -> list[Job]:
        """Keep new jobs, all or none, as durably as the store can."""
        if self.is_closing or self.thread != get_ident():
            self.check_open()
        if self.declarations.are_due:
            await self.declarations.declare()
        kept, changes = await self.store.submit(jobs)
        self.journal.changes(changes)
        self.submits += len(jobs)
        if self.submits >= self.yields_after:
            await self.let_others_run()
        return kept

    async def let_others_run(self) -> None:
        """Give the loop one turn, so that a submit loop that never waits does not starve the workers."""
        self.submits = 0
        await let_others_run()

    async def cancel(self, job: Job, *, reason: str, abandon: bool) -> CancelAnswer:
        """Cancel a job, and tell its code if it runs here."""
        cancellation: Cancellation = await self.store.cancel(job, reason=reason, abandon=abandon)
        self.journal.changes(cancellation.changes)
        worker, found = self.worker, cancellation.job
        if worker is not None and found is not None:
            # By its fence: what was claimed since, after an operator took the job back, is not meant.
            if cancellation.answer is CancelAnswer.REQUESTED:
                worker.tell(job.seq, found.fence)
            elif abandon and cancellation.answer is CancelAnswer.CANCELLED:
                attempt = worker.state.in_flight.get(job.seq)
                if attempt is None:
                    worker.tell(job.seq, found.fence)  # it may just be coming in, and must not start
                elif attempt.fence < found.fence:
                    worker.give_up(attempt)
        return cancellation.answer

    async def retry(self, job: Job, *, by: str) -> None:
        """Take a finished job back, on an operator's word."""
        self.check_open()
        self.journal.changes(await self.store.retry(job, by=by))

    async def wait(self, job: Job) -> Ending:
        """Wait for a job's end, whichever process brings it."""
        if self.loop is None:
            raise SchedulerClosed(
                "the scheduler is not open, so the job's end cannot be waited for; start it first"
            )
        self.check_here()
        attempt = current_attempt.get(None)
        if attempt is None or self._watches.pool is None:
            return await self._lookout.wait(job)
        with self._watches.pool.waiting(attempt, job):
            return await self._lookout.wait(job)

    def _runs_here(self, job: Job) -> bool:
        attempt = None if self.worker is None else self.worker.state.in_flight.get(job.seq)
        return attempt is not None and not attempt.is_recorded

    async def drain(self) -> None:
        """Wait until nothing is ready, running, delayed or blocked."""
        while True:
            self.check_open()
            self._changed.clear()
            if not await self._has_work():
                return
            await wait_for(self._changed, self._settings.poll_s)
            while self.worker is not None and self.worker.state.has_held and not self.is_closing:
                # While a job runs here there is no need to count: its end, once recorded, is told.
                self._changed.clear()
                await wait_for(self._changed, self._settings.poll_s)

    async def _has_work(self) -> bool:
        """Say whether any job is live, or about to be made by a schedule that is due."""
        if any(any(of_queue.values()) for of_queue in (await self.store.counts()).values()):
            return True
        return self._firing is not None and await self._firing.has_due()

    def registered(self, asked: NewSchedule | None) -> None:
        """Hear that a task was registered, and of the schedule it asks for: kept before anything is fired."""
        self.declarations.are_due = True
        if asked is not None:
            self.timetable.declare(asked)
        loop = self.loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._look_at_tasks)  # it may be registered in any thread

    def _look_at_tasks(self) -> None:
        if self.worker is not None and self._firing is not None:
            self.worker.chores.hurry(self.worker.upkeep.unpark)
            self._firing.hurry()


def _nothing() -> None:
    """Undo nothing."""
