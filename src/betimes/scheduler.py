"""`Scheduler`: what users hold. It registers tasks, wires the engine together, and passes calls on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Never, Self

from betimes.assembly import Parts, assemble
from betimes.blocking import LoopThread
from betimes.clock import SystemClock, new_rng
from betimes.commanding import Commanding
from betimes.core.durations import duration_s
from betimes.core.options import reject_unknown
from betimes.core.recycle import Recycle
from betimes.core.strategy import SchedulingStrategy
from betimes.errors import ConfigurationError
from betimes.looking import Looking
from betimes.ports import Clock, Executor, Store
from betimes.restraining import Restraining
from betimes.runtime.context import current_attempt
from betimes.runtime.engine import Engine
from betimes.scheduling import Scheduling
from betimes.signals import run_until_signal
from betimes.submission import JobMaker
from betimes.submitting import Submitting
from betimes.tasks import Duration
from betimes.wiring import (
    check_parts,
    check_recycle,
    check_strategy,
    make_settings,
    make_store,
)

if TYPE_CHECKING:
    from betimes.blocking_scheduler import BlockingScheduler

_OPTIONS = (
    "store",
    "strategy",
    "concurrency",
    "threads",
    "processes",
    "recycle",
    "queues",
    "lease",
    "grace",
    "keep",
    "history",
    "poll",
    "watchdog",
    "clock",
    "rng",
    "executors",
)


class Scheduler(Commanding, Submitting, Scheduling, Restraining, Looking):
    """Schedules work in this process, and with a durable store beyond it.

    Constructing opens nothing. `async with scheduler:` opens the store and runs jobs; `async with
    scheduler.client():` only submits and looks.

    Args:
        store: `"memory:"`, a file such as `"jobs.db"` or `"sqlite:///jobs.db"`, or a `Store`.
        strategy: orders what is ready; a store remembers it and refuses another.
        concurrency: the most attempts in flight in this process.
        threads: the most of them in threads; as many as `concurrency` unless given.
        processes: the most of them in processes of their own; as many as there are cores unless given.
        recycle: when a process is replaced by a fresh one; after a thousand jobs, if they took more than a
            minute, unless given.
        queues: the names of the queues served here; a dict: each with its share of dispatches, such as
            `{"default": 9, "low": 1}`; None: all, by the strategy's order alone.
        lease: how long a silent worker keeps its jobs.
        grace: how long code that was told to stop, and listeners, are waited for at the end.
        keep: how long finished jobs stay (also for each task).
        history: how many finished jobs the memory store remembers at most.
        poll: how long a worker sleeps at most before it looks for work nobody told it of
            (a second; in memory half a minute).
        watchdog: how long the event loop may be blocked before the code that blocks it is named in the log,
            with its stack; None: never.
        clock: where time comes from.
        rng: for jitter and ids.
        executors: other executors for their lanes, for tests.
        unknown: anything else is refused.

    Raises:
        ConfigurationError: an option is wrong; the text names it.
        TypeError: an option is unknown; the text names the nearest.

    Example:
        scheduler = Scheduler("jobs.db")

        @scheduler.task(retry=5, timeout="30s")
        async def fetch(url: str) -> int: ...

        async with scheduler:
            job = await fetch.submit("https://example.org")
            print(await job.result(timeout=5))
    """

    def __init__(
        self,
        store: str | Path | Store = "memory:",
        *,
        strategy: SchedulingStrategy | None = None,
        concurrency: int = 10,
        threads: int | None = None,
        processes: int | None = None,
        recycle: Recycle | None = None,
        queues: Iterable[str] | Mapping[str, int] | None = None,
        lease: Duration = "30s",
        grace: Duration = "5s",
        keep: Duration = "7d",
        history: int = 10_000,
        poll: Duration | None = None,
        watchdog: Duration | None = "1s",
        clock: Clock | None = None,
        rng: Random | None = None,
        executors: Sequence[Executor] = (),
        **unknown: Never,
    ) -> None:
        reject_unknown(unknown, _OPTIONS, where="Scheduler()")
        check_parts(clock=clock, rng=rng, executors=executors)
        clock = clock or SystemClock()
        made = make_store(store, clock=clock, history=history)
        settings = make_settings(
            concurrency=concurrency,
            threads=threads,
            processes=processes,
            queues=queues,
            lease=lease,
            grace=grace,
            keep=keep,
            poll=poll,
            watchdog=watchdog,
            is_durable=made.is_durable,
        )
        Commanding.__init__(self)
        parts = Parts(
            store=made,
            clock=clock,
            rng=rng or new_rng(),
            strategy=check_strategy(strategy),
            settings=settings,
            threads=threads,
            processes=processes,
            recycle=check_recycle(recycle),
            executors=tuple(executors),
        )
        self._take_up(parts, *assemble(parts, self._definitions))

    def _take_up(self, parts: Parts, engine: Engine, maker: JobMaker) -> None:
        self._parts = parts
        self._store = parts.store
        self._registered = engine.registered
        Submitting.__init__(self, engine, maker, run_here=parts.run_here)

    def __repr__(self) -> str:
        state = "open" if self._engine.is_open else "not open"
        return f"<Scheduler {type(self._store).__name__} {state}, {len(self._definitions)} tasks>"

    # --- life

    async def start(self) -> None:
        """Open the store and run jobs here; `async with scheduler:` does it for you.

        Raises:
            ConfigurationError: it is open already, or the store cannot be used.
            SchemaMismatch, StoreUnavailable: as the store says.
        """
        await self._engine.open(is_running=True)

    async def stop(self, cancel_running: bool = False, timeout: Duration | None = None) -> None:  # noqa: ASYNC109
        """Stop: refuse submits, claim nothing more, let running attempts finish, give back the rest.

        Stopping twice is fine, and starting again is allowed.

        Args:
            cancel_running: tell running jobs to stop; they end CANCELLED.
            timeout: how long running attempts may take; then they are given back to the store, which runs
                them again, and their code is told to stop. None: as long as they take.

        Raises:
            ConfigurationError: called by a job, which it would wait for.
        """
        if self._is_in_a_job():
            raise ConfigurationError(
                "a job cannot await stop(): it would wait for itself; have the program stop"
            )
        timeout_s = None if timeout is None else duration_s(timeout, name="timeout", allow_zero=True)
        await self._engine.close(cancel_running=cancel_running, timeout_s=timeout_s)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Self]:
        """Open the store without running anything: to submit and to look."""
        await self._engine.open(is_running=False)
        try:
            yield self
        finally:
            await self._engine.close()

    def run(self, *, drain: Duration = "25s") -> None:
        """Run jobs until SIGINT or SIGTERM, then let running ones finish; for scripts, blocking.

        Args:
            drain: how long they may take; then they are given back. A second signal ends the process at once,
                and its jobs are taken back by the next worker: within two seconds on this machine, elsewhere
                when their lease is over.
        """
        run_until_signal(self, duration_s(drain, name="drain", allow_zero=True))

    @contextmanager
    def blocking(self, *, client: bool = False) -> Iterator[BlockingScheduler]:
        """Run jobs on a loop in a thread of its own, for code without one: the calls without `await`.

        Args:
            client: run nothing, as `client()`: only submit and look.
        """
        from betimes.blocking_scheduler import BlockingScheduler  # noqa: PLC0415 - it knows this class

        with LoopThread() as loop_thread:
            loop_thread.call(self._engine.open(is_running=not client))
            try:
                yield BlockingScheduler(self)
            finally:
                loop_thread.call(self.stop())

    async def rekey(self) -> int:
        """Order all jobs of the store by this scheduler's strategy, which the store then remembers.

        A store that was made with another strategy refuses to open; this is how it is converted. The
        scheduler must not be open, and no worker may run on the store, in whichever process.

        Returns:
            How many live jobs were ordered anew.

        Raises:
            ConfigurationError: the scheduler is open, or a worker runs; nothing has changed.
        """
        return await self._engine.rekey(self._maker.order)

    async def drain(self, timeout: Duration | None = None) -> None:  # noqa: ASYNC109
        """Return when nothing is ready, running, delayed or blocked.

        Raises:
            TimeoutError: something still was when the time was over.
            SchedulerClosed: the scheduler is not open, or was stopped first.
            ConfigurationError: called by a job, which it would wait for.
        """
        if self._is_in_a_job():
            raise ConfigurationError(
                "a job cannot await drain(): it would wait for itself; wait for other jobs"
            )
        if timeout is None:
            await self._engine.drain()
            return
        seconds = duration_s(timeout, name="timeout", allow_zero=True)
        try:
            async with asyncio.timeout(seconds):
                await self._engine.drain()
        except TimeoutError:
            raise TimeoutError(f"jobs were still waiting or running after {seconds:g} s") from None

    def _is_in_a_job(self) -> bool:
        """Whether this is called by the code of a job that runs here (one of another scheduler may wait)."""
        attempt, worker = current_attempt.get(None), self._engine.worker
        if attempt is None or worker is None or attempt.has_returned:
            return False
        return worker.state.in_flight.get(attempt.seq) is attempt
