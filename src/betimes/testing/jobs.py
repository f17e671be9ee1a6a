"""`Jobs`: a program's own scheduler under test, in memory and on virtual time; the fixture `jobs` is one."""

from __future__ import annotations

import asyncio
import threading
from asyncio import _get_running_loop
from collections.abc import Coroutine
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, cast

from betimes.blocking_scheduler import BlockingJob
from betimes.core.durations import Duration, duration_us, from_us, instant_us
from betimes.core.job import Job, JobStatus, Micros
from betimes.core.wording import shown, span
from betimes.errors import ConfigurationError
from betimes.handles import JobHandle
from betimes.ports import JobFilter
from betimes.runtime.endings import Ending
from betimes.scheduler import Scheduler
from betimes.tasks import Submitter
from betimes.testing.clock import DEFAULT_START, VirtualClock
from betimes.testing.here import run_here
from betimes.testing.loop import VirtualLoop
from betimes.testing.recording import FAILED_ENDS, RecordingStore
from betimes.testing.stand_in import parts_for_test, stand_in
from betimes.testing.submissions import SHOWN, Submissions

P = ParamSpec("P")
R = TypeVar("R")

DRAIN_LIMIT = "365d"
_STOP_LIMIT = "1h"
_CLEAN_UP_LIMIT_S = 60.0
_WAITING = (JobStatus.RUNNING, JobStatus.READY, JobStatus.DELAYED, JobStatus.BLOCKED)

ASYNC_TEST = (
    "an event loop is running here, that of an async test perhaps, and virtual time needs its own: make the "
    "test a plain 'def', and run coroutines with jobs.run(…)"
)
HOW_TO_NAME_IT = """\
the fixture 'jobs' does not know your scheduler. Say so in conftest.py:

    @pytest.fixture
    def betimes_scheduler():
        from myapp import scheduler
        return scheduler

or in the test, before anything else: jobs.use(scheduler)"""


class Jobs(Submissions):
    """Puts a scheduler into memory and onto virtual time, runs its jobs when told to, and puts it back.

    While the `with` block runs, the scheduler has an empty memory store, a virtual clock, a seeded `rng`, and
    no threads: plain functions run inline, their arguments and results after the same way through JSON. Its
    tasks, its schedules and its listeners are its own. It is open, and its jobs run, on an event loop that
    turns only within the calls below. When one returns, all has happened that can happen at that instant: a
    job that was submitted, and waits for nothing, has ended. Until the next call time stands still.

    Tests with pytest get one from the fixture `jobs`. It is for plain functions, not for `async def` tests.

    Args:
        scheduler: the one to test; it must not be open. None: `use` will say.
        start: what the wall clock shows first; an aware datetime.
        seed: for jitter and ids.

    Attributes:
        clock: the virtual clock; `jobs.clock.jump("-1h")` sets the wall clock as an operator would.

    Raises:
        ConfigurationError: `start` is naive, or the scheduler is open.

    Example:
        >>> scheduler = Scheduler("jobs.db")
        >>> @scheduler.task
        ... def remind(user: str) -> str:
        ...     return f"reminded {user}"
        >>> with Jobs(scheduler) as jobs:
        ...     job = jobs.submit(remind.using(delay="1h"), "ada")
        ...     jobs.advance("2h")
        ...     print(job.result())
        reminded ada
    """

    def __init__(
        self, scheduler: Scheduler | None = None, *, start: datetime = DEFAULT_START, seed: int = 0
    ) -> None:
        self.clock = VirtualClock(start)
        self._seed = seed
        self._asked = scheduler
        self._began_at = self.clock.boottime()
        self._store = RecordingStore(clock=self.clock)
        self._thread = threading.get_ident()
        self._runner: asyncio.Runner | None = None
        self._loop: VirtualLoop | None = None
        self._ends = ExitStack()
        self._raised: set[int] = set()

    def __enter__(self) -> Self:
        self._thread = threading.get_ident()
        if self._asked is not None:
            self.use(self._asked)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.close()

    def use(self, scheduler: Scheduler) -> None:
        """Test this scheduler; for tests that do not leave that to the fixture `betimes_scheduler`.

        Raises:
            ConfigurationError: it is no scheduler, it is open, or another one is being tested already.
        """
        if scheduler is self._scheduler:
            return
        if self._scheduler is not None:
            raise ConfigurationError("jobs tests another scheduler already: a test has one")
        if not isinstance(scheduler, Scheduler):
            raise ConfigurationError(f"jobs tests a Scheduler, not {shown(scheduler)}")
        if _get_running_loop() is not None:
            raise ConfigurationError(ASYNC_TEST)
        self._runner = asyncio.Runner(loop_factory=lambda: VirtualLoop(clock=self.clock))
        self._loop = cast("VirtualLoop", self._runner.get_loop())
        parts = parts_for_test(scheduler, self._store, self.clock, seed=self._seed)
        with ExitStack() as ends:
            # In the opposite order at the end: stop, put back, close the loop.
            ends.callback(self._close_loop, self._loop)
            ends.enter_context(stand_in(scheduler, replace(parts, run_here=self._run_here)))
            ends.callback(self._stop_at_the_end, scheduler)
            self._run_here(scheduler.start())
            self._scheduler = scheduler
            self._ends = ends.pop_all()

    # --- time

    @property
    def now(self) -> datetime:
        """The virtual wall clock; aware, UTC."""
        return from_us(self.clock.now())

    def advance(self, duration: Duration) -> None:
        """Let time pass: every timer, retry and schedule on the way happens, each at its own instant.

        What is due exactly at the end has happened, too.

        Args:
            duration: seconds, a `timedelta`, or text such as `"1h30m"`.

        Raises:
            ConfigurationError: it is no duration, or negative: the clock goes back with `clock.jump`.
        """
        self._advance_by(duration_us(duration, name="duration", allow_zero=True))

    def advance_to(self, instant: datetime) -> None:
        """Let time pass until the wall clock shows an instant, as `advance` does.

        Args:
            instant: aware, and not past.

        Raises:
            ConfigurationError: it is naive, or past.
        """
        ahead = instant_us(instant, name="instant") - self.clock.now()
        if ahead < 0:
            raise ConfigurationError(
                f"{instant} is past: it is {self.now}. Set the clock back with jobs.clock.jump(…)"
            )
        self._advance_by(ahead)

    def _advance_by(self, us: Micros) -> None:
        self._known()
        loop = self._own_loop()
        if threading.get_ident() != self._thread or loop.is_running() or _get_running_loop() is not None:
            raise ConfigurationError(
                "time is let pass by a test that is a plain 'def', and from outside of what it runs: a "
                "coroutine waits with asyncio.sleep(…)"
            )
        self._run_until(self.clock.boottime() + us)

    # --- running

    def run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine of the program on the virtual loop, and return its result.

        Time passes as far as it waits; jobs run meanwhile. A program that opens the scheduler itself needs it
        stopped first, by `stop`.

        Args:
            coroutine: called already: `jobs.run(signup("ada"))`.

        Raises:
            LoopStuck: it cannot go on, or has waited for 400 virtual days; the text lists what waits.
            Whatever it raises itself.
        """
        if not isinstance(coroutine, Coroutine):
            raise ConfigurationError(
                f"run() takes a coroutine, not {shown(coroutine)}: call the function, jobs.run(main())"
            )
        try:
            self._known()
        except ConfigurationError:
            coroutine.close()  # it will never be awaited, and Python would say so a second time
            raise
        return self._run_here(coroutine)

    def submit(self, task: Submitter[P, R], /, *args: P.args, **kwargs: P.kwargs) -> BlockingJob[R]:
        """Submit a job, and return its handle, whose calls need no `await`.

        Args:
            task: a task, with options or without: `jobs.submit(send.using(delay="1h"), "ada")`.
            args: the task's arguments.
            kwargs: the task's arguments.

        Raises:
            Those of `Task.submit`.
        """
        scheduler = self._known()
        if not isinstance(task, Submitter):
            raise ConfigurationError(f"submit() takes a task, then its arguments, not {shown(task)}")
        if task._scheduler is not scheduler:  # noqa: SLF001 - it belongs to the scheduler
            raise ConfigurationError(f"{task!r} belongs to another scheduler than the one under test")
        return task.submit_blocking(*args, **kwargs)

    def drain(self, timeout: Duration | None = None, *, raise_failures: bool = False) -> None:
        """Let time pass until nothing is ready, running, delayed or blocked, retries and all.

        A job that fails does not fail the test: look at what it should have done, or at its handle's
        `result()`; or have failures raised here. Schedules fire on the way, and do not hold it up.

        Args:
            timeout: how much virtual time that may take; 365 days unless given.
            raise_failures: raise the first failure among the jobs that have ended FAILED or TIMED_OUT since
                the test began or this last raised; notes name the others.

        Raises:
            TimeoutError: something was still not done; the text lists it.
            JobFailed, JobTimedOut: as asked, with the job's own traceback as a note.
        """
        scheduler = self._known()
        limit = DRAIN_LIMIT if timeout is None else timeout
        try:
            self._run_here(scheduler.drain(limit))
        except TimeoutError:
            raise TimeoutError(self._left(duration_us(limit, name="timeout", allow_zero=True))) from None
        if raise_failures:
            self._raise_failures(scheduler)

    def start(self) -> None:
        """Open the scheduler again after `stop`."""
        self._run_here(self._known().start())

    def stop(self, cancel_running: bool = False, timeout: Duration | None = None) -> None:
        """Stop the scheduler, as at the end of a program; what it holds is there at the next `start`.

        Time can pass meanwhile, as while a program is down; a program that opens the scheduler itself can do
        so with `run`.

        Args:
            cancel_running: as for `Scheduler.stop`.
            timeout: as for `Scheduler.stop`.
        """
        self._run_here(self._known().stop(cancel_running, timeout))

    # --- how

    def failures(self) -> str:
        """Describe the attempts that failed, for a test's report; empty: none did."""
        return "\n".join(map(str, self._store.failed))

    def _known(self) -> Scheduler:
        if self._scheduler is None:
            raise ConfigurationError(HOW_TO_NAME_IT)
        return self._scheduler

    def _own_loop(self) -> VirtualLoop:
        assert self._loop is not None
        return self._loop

    def _run_here(self, coroutine: Coroutine[Any, Any, R]) -> R:
        return run_here(self._own_loop(), self._thread, coroutine, self._run)

    def _run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        assert self._runner is not None
        result = self._runner.run(coroutine, context=copy_context())
        self._run_until(self.clock.boottime())
        return result

    def _run_until(self, boottime: Micros) -> None:
        self._own_loop().run_until((boottime - self._began_at) / 1_000_000)

    def _stop_at_the_end(self, scheduler: Scheduler) -> None:
        if scheduler._engine.loop is self._loop:  # noqa: SLF001 - whatever the test has done with it
            self._run_here(scheduler.stop(cancel_running=True, timeout=_STOP_LIMIT))

    def _close_loop(self, loop: VirtualLoop) -> None:
        assert self._runner is not None
        loop.limit_s = _CLEAN_UP_LIMIT_S
        self._runner.close()

    def _left(self, limit: Micros) -> str:
        jobs = self._run_here(self._waiting())
        lines = [f"  {job.status.name} {job.spec.task}, job {job.id}" for job in jobs[:SHOWN]]
        if len(jobs) > SHOWN:
            lines.append(f"  and {len(jobs) - SHOWN} more")
        return "\n".join([f"after {span(limit)} of virtual time these are not done:", *lines])

    async def _waiting(self) -> list[Job]:
        return [job for status in _WAITING for job in await self._store.jobs(JobFilter(status=status))]

    def _raise_failures(self, scheduler: Scheduler) -> None:
        jobs = {each.job.seq: each.job for each in self._store.failed if each.job.status in FAILED_ENDS}
        failed = {seq: job for seq, job in jobs.items() if seq not in self._raised}
        self._raised.update(failed)
        if not failed:
            return
        first, *others = failed.values()
        error = JobHandle[Any](scheduler, first)._error_of(Ending.of(first))  # noqa: SLF001 - its own words
        if first.error is not None and first.error.traceback:
            error.add_note(first.error.traceback)
        for job in others[:SHOWN]:
            error.add_note(f"and {job.spec.task}, job {job.id}: {job.error or job.reason}")
        if len(others) > SHOWN:
            error.add_note(f"and {len(others) - SHOWN} more")
        raise error
