"""The submitting face of a scheduler: one job, many, a graph, from threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future
from itertools import islice
from threading import get_ident
from typing import TYPE_CHECKING, Any, TypeVar, cast

from betimes.blocking import call_from_thread, call_without_loop
from betimes.core.job import Job, JobSpec
from betimes.core.wording import shown
from betimes.errors import ConfigurationError, SchedulerClosed
from betimes.handles import JobHandle
from betimes.runtime.engine import Engine
from betimes.submission import JobMaker, order_graph
from betimes.tasks import BoundJob, SubmitOptions
from betimes.uncommitted import UncommittedHandle

if TYPE_CHECKING:
    from betimes.blocking_scheduler import BlockingJob
    from betimes.scheduler import Scheduler

R = TypeVar("R")

MOST_AT_ONCE = 100_000
"""The most jobs that one `submit_many` takes."""


class Submitting:
    """Makes jobs of bound calls, and has the engine keep them."""

    def __init__(
        self,
        engine: Engine,
        maker: JobMaker,
        *,
        run_here: Callable[[Coroutine[Any, Any, Any]], Any] | None = None,
    ) -> None:
        self._engine = engine
        self._maker = maker
        self._run_here = run_here
        self._scheduler = cast("Scheduler", self)

    def _handle(self, job: Job) -> JobHandle[Any]:
        return JobHandle(self._scheduler, job)

    async def _submit(self, spec: JobSpec, options: SubmitOptions | None, payload: bytes) -> JobHandle[Any]:
        if options is not None and options.conn is not None:
            self._engine.check_open_anywhere()
            made = self._maker.make(spec, payload, options)
            return (await self._submit_within(options.conn, [made]))[0]
        # What `Engine.submit` does, less a coroutine for each job: this is the hottest call there is.
        engine = self._engine
        if engine.is_closing or engine.thread != get_ident():
            engine.check_open()
        if engine.declarations.are_due:
            await engine.declarations.declare()
        kept, changes = await engine.store.submit((self._maker.make(spec, payload, options),))
        engine.journal.changes(changes)
        engine.submits += 1
        if engine.submits >= engine.yields_after:
            await engine.let_others_run()
        return JobHandle(self._scheduler, kept[0])

    async def _submit_within(self, conn: object, jobs: Sequence[Job]) -> list[JobHandle[Any]]:
        """Submit in the caller's own transaction, in their thread and on their loop.

        Nothing here belongs to the scheduler's loop. Rules that the store may not know yet travel with the
        jobs: declared on that loop, they would wait for the lock that the caller's transaction holds.
        """
        engine = self._engine
        terms = engine.declarations.rules_of(jobs)
        joined = await engine.store.submit_within(conn, jobs, terms=terms)
        return [UncommittedHandle(self._scheduler, job, joined.is_over) for job in joined.jobs]

    async def _keep(self, conn: object, jobs: Sequence[Job]) -> list[JobHandle[Any]]:
        if not jobs:
            return []
        if conn is not None:
            return await self._submit_within(conn, jobs)
        return [self._handle(job) for job in await self._engine.submit(jobs)]

    def _check_open(self, calls: Iterable[object]) -> object:
        """Return the connection in whose transaction the calls are to be submitted; None: in none.

        Raises:
            ConfigurationError: not all of them name the same.
            Others as `Engine.check_open`.
        """
        conns = {id(conn): conn for conn in map(_conn_of, calls)}
        if len(conns) > 1:
            raise ConfigurationError(
                "what is submitted together goes into one transaction: give all of the calls the same conn=, "
                "or none of them any"
            )
        conn = next(iter(conns.values()), None)
        if conn is None:
            self._engine.check_here()
        return conn

    def _job_of(self, bound: BoundJob[Any], after: Iterable[Job] = ()) -> Job:
        if not isinstance(bound, BoundJob):
            hint = "; write task.bind(…), not task.submit(…)" if hasattr(bound, "__await__") else ""
            if isinstance(bound, Coroutine):
                bound.close()  # it will never be awaited, and Python would say so a second time
            raise ConfigurationError(
                f"a bound call is made with task.bind(…), and this is {bound!r:.100}{hint}"
            )
        if bound.scheduler is not self:
            raise ConfigurationError(f"{bound.task.name} is a task of another scheduler: submit it there")
        return self._maker.make(bound.spec, bound.payload, bound.options, after=after)

    async def submit_many(self, bound: Iterable[BoundJob[R]]) -> list[JobHandle[R]]:
        """Submit many jobs in one atomic write: all or none, at most 100,000.

        Args:
            bound: made with `task.bind(…)` or `task.using(…).bind(…)`.

        Raises:
            ConfigurationError: too many, something that is not a bound call, or calls with different `conn`.
            Others as `Task.submit`; nothing was written.
        """
        self._engine.check_open_anywhere()
        calls = list(islice(bound, MOST_AT_ONCE + 1))
        jobs = [self._job_of(each) for each in calls]
        conn = self._check_open(calls)
        if len(jobs) > MOST_AT_ONCE:
            raise ConfigurationError(f"too many jobs at once: submit at most {MOST_AT_ONCE:,} in one call")
        return await self._keep(conn, jobs)

    async def submit_graph(
        self, graph: Mapping[str, BoundJob[Any] | tuple[BoundJob[Any], Iterable[str]]]
    ) -> dict[str, JobHandle[Any]]:
        """Submit jobs that depend on each other by name, in any order, in one atomic write.

        Args:
            graph: name → a bound call, or a bound call with the names it depends on.

        Raises:
            DependencyCycle: they wait for each other in a circle, which is named.
            UnknownJob: a name is not in the graph.
            Others as `submit_many`.

        Example:
            handles = await scheduler.submit_graph({
                "report": (report.bind(), ["left", "right"]),
                "left": load.bind("left"),
                "right": load.bind("right"),
            })
        """
        self._engine.check_open_anywhere()
        if not isinstance(graph, Mapping):
            raise ConfigurationError(f"submit_graph() takes a dict from names to calls, not {shown(graph)}")
        full = {name: _call_and_names(name, each) for name, each in graph.items()}
        conn = self._check_open(bound for bound, _ in full.values())
        order = order_graph(full)
        jobs: dict[str, Job] = {}
        for name in order:
            bound, names = full[name]
            jobs[name] = self._job_of(bound, after=[jobs[other] for other in names])
        kept = await self._keep(conn, list(jobs.values()))
        handles = dict(zip(order, kept, strict=True))
        return {name: handles[name] for name in full}

    def submit_threadsafe(self, bound: BoundJob[R]) -> Future[JobHandle[R]]:
        """Submit one job from any thread; the future's result is the handle.

        Raises:
            SchedulerClosed: the scheduler is not open (also through the future, if it stops meanwhile).
            ConfigurationError: not a bound call of this scheduler, or one with `conn`, whose transaction is
            not the loop's.
        """
        loop = self._engine.loop
        if loop is None:
            self._engine.check_open()
        self._job_of(bound)
        if _conn_of(bound) is not None:
            raise ConfigurationError(
                "submit_threadsafe() submits on the scheduler's event loop, and the transaction of a conn "
                "belongs to its own thread: use submit_blocking() there"
            )
        submitting = self._submit_bound(bound)
        if self._run_here is not None:
            return _done(self._run_here, submitting)
        try:
            return asyncio.run_coroutine_threadsafe(submitting, cast("asyncio.AbstractEventLoop", loop))
        except RuntimeError:
            submitting.close()
            raise SchedulerClosed("the scheduler's event loop has ended: start the scheduler again") from None

    async def _submit_bound(self, bound: BoundJob[R]) -> JobHandle[R]:
        return (await self.submit_many([bound]))[0]

    def _submit_blocking(self, bound: BoundJob[R]) -> BlockingJob[R]:
        from betimes.blocking_scheduler import BlockingJob  # noqa: PLC0415 - it knows this class

        return BlockingJob(self._scheduler, self._call_submit(self._submit_bound(bound), [bound]))

    def _call_submit(self, submitting: Coroutine[Any, Any, R], calls: Iterable[object]) -> R:
        """Run a submit of these calls for code without a loop: here if it is within a transaction."""
        if any(_conn_of(call) is not None for call in calls):
            return call_without_loop(submitting)
        return self._call(submitting)

    def _call(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine on the loop of the open scheduler, from another thread, and wait for it."""
        loop = self._engine.loop
        if loop is None:
            coroutine.close()
            self._engine.check_open()
        if self._run_here is not None:
            return cast("R", self._run_here(coroutine))
        return call_from_thread(cast("asyncio.AbstractEventLoop", loop), self._engine.thread, coroutine)


def _done(run: Callable[[Coroutine[Any, Any, R]], R], coroutine: Coroutine[Any, Any, R]) -> Future[R]:
    """Return a future that has the coroutine's outcome already."""
    future: Future[R] = Future()
    try:
        future.set_result(run(coroutine))
    except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to whoever asks the future
        future.set_exception(error)
    return future


def _conn_of(call: object) -> object:
    """Return the connection in whose transaction a call is to be submitted; None: in none."""
    return call.options.conn if isinstance(call, BoundJob) and call.options is not None else None


def _call_and_names(name: object, given: Any) -> tuple[BoundJob[Any], tuple[str, ...]]:
    """Return one entry of a graph as the bound call and the names it depends on."""
    match given:
        case BoundJob():
            return given, ()
        case (bound, str(other)):
            return bound, (other,)
        case (bound, Iterable() as names):
            return bound, tuple(names)
    raise ConfigurationError(
        f"{name!r} in the graph is {shown(given)}; it is task.bind(…), or (task.bind(…), [names to wait for])"
    )
