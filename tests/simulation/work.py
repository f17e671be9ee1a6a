"""The code of the simulated jobs. It follows its plan, and writes down what happens to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from tests.simulation.evidence import RETURNED, Evidence, Execution, Host
from tests.simulation.loops import pass_time
from tests.simulation.plans import GROUPED, Act, End, Plan, Task
from tests.simulation.restraints import Restraints
from tests.simulation.timetables import Timetables

from betimes import Scheduler
from betimes.core.outcome import Outcome
from betimes.errors import Cancel, NonRetryableError, Snooze
from betimes.ports import Executor, Run
from betimes.runtime.context import Context

SWALLOWED_S = 0.4
"""How much longer code goes on after each cancellation it swallows."""


class Worksite(Host, Protocol):
    """The process, as its jobs' code sees it."""

    evidence: Evidence
    plans: dict[str, Plan]
    timetables: Timetables
    restraints: Restraints
    in_thread: Call | None
    dependency: Dependency

    def die(self) -> bool:
        """Crash, if crashes are still to happen."""

    def is_calm(self) -> bool:
        """Whether faults are over."""


@dataclass(slots=True)
class Dependency:
    """What some tasks depend on.

    Attributes:
        is_down: whether they fail.
    """

    is_down: bool = False


class Bench:
    """Where the functions of child processes find the process that simulates theirs.

    Attributes:
        site: it; set for each call.
    """

    site: Worksite


@dataclass(slots=True)
class Call:
    """A plain function's call on its way from the function to the executor that gives it its duration."""

    execution: Execution
    act: Act


def render(plan: str, group: str, ctx: Context) -> int:
    """Work in a child process; so it is found under its own name."""
    del group
    return _crunch(Bench.site, plan, ctx)


def register(scheduler: Scheduler, site: Worksite, *, knows_rare: bool) -> dict[Task, Any]:
    """Register the tasks of one process; it may be of an older version that lacks one."""
    options = site.restraints.options

    async def walk(plan: str, ctx: Context) -> int:
        return await _walk(site, plan, ctx)

    def crunch(plan: str, ctx: Context) -> int:
        return _crunch(site, plan, ctx)

    tasks: dict[Task, Any] = {
        Task.WALK: scheduler.task(name=Task.WALK.value)(walk),
        Task.CRUNCH: scheduler.task(name=Task.CRUNCH.value)(crunch),
        Task.ONCE: scheduler.task(name=Task.ONCE.value, delivery="at_most_once")(walk),
        Task.TICK: scheduler.task(name=Task.TICK.value)(walk),
        Task.TOCK: scheduler.task(name=Task.TOCK.value)(crunch),
    }
    if knows_rare:
        tasks[Task.RARE] = scheduler.task(name=Task.RARE.value, **options.get(Task.RARE, {}))(walk)
    for task in options:
        if task in GROUPED:
            tasks[task] = _register_restrained(scheduler, site, task)
    for asked in site.timetables.declared:
        scheduler.task(
            name=asked.id,
            schedule=asked.trigger,
            **asked.options,
        )(_declared(site, asked.plan.name))
    return tasks


def _register_restrained(scheduler: Scheduler, site: Worksite, task: Task) -> Any:
    async def walk(plan: str, group: str, ctx: Context) -> int:
        del group
        return await _walk(site, plan, ctx)

    async def depend(plan: str, group: str, ctx: Context) -> int:
        del group
        return await _walk(site, plan, ctx, needs=site.dependency)

    def crunch(plan: str, group: str, ctx: Context) -> int:
        del group
        return _crunch(site, plan, ctx)

    options = site.restraints.options[task]
    if task is Task.RENDER:
        return scheduler.task(name=task.value, executor="process", **options)(render)
    if task is Task.POUR:
        return scheduler.task(name=task.value, **options)(crunch)
    return scheduler.task(name=task.value, **options)(depend if task is Task.FRAGILE else walk)


def _declared(site: Worksite, plan: str) -> Callable[[Context], Awaitable[int]]:
    """Return what runs as the schedule of a task itself asks."""

    async def tick(ctx: Context) -> int:
        return await _walk(site, plan, ctx)

    return tick


async def _walk(site: Worksite, name: str, context: Context, needs: Dependency | None = None) -> int:
    execution = site.evidence.begin(site, context)
    act = site.plans[name].act(execution.nth, execution.seq)
    how = "cancelled"
    try:
        await _take(act, site)
        if act.end is End.DIE and site.die():
            await asyncio.get_running_loop().create_future()
        how = act.end.value
        if needs is not None and needs.is_down:
            raise ConnectionError("it is down")
        _end(act)
        how = RETURNED
        return execution.number
    finally:
        site.evidence.end(execution, how)


async def _take(act: Act, site: Worksite) -> None:
    """Let the act's time pass; each cancellation it swallows makes it longer."""
    loop = asyncio.get_running_loop()
    until, left_to_swallow = loop.time() + act.seconds, act.swallows
    while (left := until - loop.time()) > 0:
        try:
            await pass_time(left)
        except asyncio.CancelledError:
            if site.is_dead or not left_to_swallow:
                raise
            left_to_swallow -= 1
            until = max(until, loop.time()) + SWALLOWED_S


def _end(act: Act) -> None:
    if act.end is End.RAISE:
        raise ValueError("as planned")
    if act.end is End.NEVER_AGAIN:
        raise NonRetryableError("as planned")
    if act.end is End.SNOOZE:
        raise Snooze(0.5)
    if act.end is End.CANCEL:
        raise Cancel("as planned")
    if act.end is End.CANCELLED_ERROR:
        raise asyncio.CancelledError


def _crunch(site: Worksite, name: str, context: Context) -> int:
    execution = site.evidence.begin(site, context)
    act = site.plans[name].act(execution.nth, execution.seq)
    site.in_thread = Call(execution, act)
    _end(act)
    return execution.number


class VirtualThreads(Executor):
    """The lane `thread` on virtual time: the function runs inline, and returns when its act's time is over.

    Like a thread it cannot be cancelled; code that looks at its flag ends a little after it is told to.
    """

    lane = "thread"

    def __init__(self, slots: int, site: Worksite, rng: Random) -> None:
        self.slots = slots
        self._site = site
        self._rng = rng
        self._ended: Callable[[Run, Outcome], None] | None = None
        self._calls: dict[Run, tuple[Call, asyncio.TimerHandle]] = {}

    def open(self, ended: Callable[[Run, Outcome], None], begun: Callable[[Run], None]) -> None:
        """Use the running loop."""
        self._ended = ended

    def start(self, run: Run) -> None:
        """Have it begin a little later, as a thread does."""
        asyncio.get_running_loop().call_later(self._rng.choice((0.0, 0.001)), self._begin, run)

    def _begin(self, run: Run) -> None:
        site = self._site
        site.in_thread = None
        try:
            outcome = run.context.run(lambda: run.returned(run.invoke()))
        except BaseException as error:  # noqa: BLE001 - as the real executor: whatever it raises is its outcome
            outcome = run.raised(error)
        call = site.in_thread
        assert call is not None
        if call.act.end is End.DIE and site.die():
            return
        timer = asyncio.get_running_loop().call_later(call.act.seconds, self._return, run, outcome)
        self._calls[run] = call, timer

    def _return(self, run: Run, outcome: Outcome) -> None:
        call, _ = self._calls.pop(run)
        how = RETURNED if call.act.end in {End.RETURN, End.DIE} else call.act.end.value
        self._site.evidence.end(call.execution, how)
        assert self._ended is not None
        self._ended(run, outcome)

    def cancel(self, run: Run) -> None:
        """Let code that looks at its flag end soon."""
        if run in self._calls:
            call, timer = self._calls[run]
            if not call.act.swallows and not timer.cancelled():
                timer.cancel()
                timer = asyncio.get_running_loop().call_later(0.01, self._stop, run)
                self._calls[run] = call, timer

    def _stop(self, run: Run) -> None:
        call, _ = self._calls.pop(run)
        self._site.evidence.end(call.execution, "cancelled")
        assert self._ended is not None
        self._ended(run, run.raised(Cancel("told to stop")))

    async def close(self) -> None:
        """Nothing to end."""
