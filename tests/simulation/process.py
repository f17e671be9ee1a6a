"""One simulated process: a loop of its own, and on it a real scheduler whose store is far away."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from tests.simulation.children import VirtualChildren
from tests.simulation.evidence import Evidence
from tests.simulation.faulty_store import FaultyStore
from tests.simulation.loops import SteppedLoop, pass_time
from tests.simulation.plans import Plan, Task
from tests.simulation.reckoning import Told
from tests.simulation.restraints import Restraints
from tests.simulation.settings import Settings
from tests.simulation.shared_store import SharedStore
from tests.simulation.tally import Met, Tally
from tests.simulation.timetables import Timetables
from tests.simulation.work import Call, Dependency, VirtualThreads, register

from betimes import Scheduler
from betimes.core.job import JobEvent
from betimes.errors import StoreUnavailable
from betimes.ports import Executor
from betimes.testing import VirtualClock

AGAIN_S = 0.2
OWN_TASKS = "betimes-"


class Process:
    """Starts a scheduler, and stops, pauses or crashes it when told to.

    Attributes:
        name, loop, store, scheduler, tasks: what it is made of.
        is_client: it submits and looks, and runs nothing.
        is_up: its scheduler is open and takes calls.
        told: the transitions its listener was told of, each with how often.
        is_dead: it has crashed or ended; nothing it does has any effect.
    """

    def __init__(
        self,
        name: str,
        settings: Settings,
        shared: SharedStore,
        *,
        clock: VirtualClock,
        evidence: Evidence,
        plans: dict[str, Plan],
        timetables: Timetables,
        restraints: Restraints,
        dependency: Dependency,
        tally: Tally,
        knows_rare: bool,
        is_client: bool = False,
        may_die: Callable[[], bool],
        fail: Callable[[str], None],
        on_up: Callable[[Process], None] = lambda _process: None,
    ) -> None:
        self.name = name
        self.evidence = evidence
        self.plans = plans
        self.timetables = timetables
        self.restraints = restraints
        self.dependency = dependency
        self.in_thread: Call | None = None
        self.is_client = is_client
        self.is_up = self.is_dead = False
        self.told: Counter[Told] = Counter()
        self.concurrency = settings.concurrency
        self.lane_slots = {
            "loop": settings.concurrency,
            "thread": settings.threads,
            "process": settings.children,
        }
        self._tally = tally
        self._may_die = may_die
        self._fail = fail
        self._on_up = on_up
        rng = Random(f"process {settings.seed} {name}")
        self.loop = SteppedLoop(
            clock, rng.getrandbits(32), lambda text: fail(f"on the loop of {name}: {text}")
        )
        self.store = FaultyStore(shared, self.loop, name, rng=rng, tally=tally)
        executors: list[Executor] = [VirtualThreads(min(settings.threads, settings.concurrency), self, rng)]
        if settings.restraints == "gates":
            executors.append(VirtualChildren(settings, self, rng, tally))
        self.scheduler = Scheduler(
            self.store,
            strategy=restraints.strategy,
            queues=restraints.shares,
            concurrency=settings.concurrency,
            threads=min(settings.threads, settings.concurrency),
            lease=settings.lease_s,
            grace=settings.grace_s,
            poll=settings.poll_s,
            watchdog=None,
            clock=clock,
            rng=Random(f"scheduler {settings.seed} {name}"),
            executors=executors,
        )
        self.tasks: dict[Task, Any] = register(self.scheduler, self, knows_rare=knows_rare)
        self.scheduler.listen(self._listen)
        self._stop_asked = asyncio.Event()
        self._how: dict[str, Any] = {}
        self._is_to_start_again = False
        self._spawned: set[asyncio.Task[None]] = set()
        self.main = self.loop.create_task(self._main(), name=f"main of {name}")

    async def _main(self) -> None:
        while True:
            await self._start()
            self.is_up = True
            self._on_up(self)
            await self._stop_asked.wait()
            self.is_up = False
            self._stop_asked.clear()
            try:
                await self.scheduler.stop(**self._how)
            except Exception as error:  # noqa: BLE001 - stopping must not fail, whatever the store does
                self._fail(f"{self.name} could not stop: {error!r}")
            self._check_tidy()
            if not self._is_to_start_again:
                break
            self._is_to_start_again = False
        self._vanish()

    async def _listen(self, event: JobEvent) -> None:
        if not self.is_dead:
            self.told[event.seq, event.before, event.after] += 1

    async def _start(self) -> None:
        while True:
            try:
                # What `scheduler.client()` does, without a block to stay in.
                await self.scheduler._engine.open(is_running=not self.is_client)
            except StoreUnavailable:
                await pass_time(AGAIN_S)
            else:
                return

    def _check_tidy(self) -> None:
        """Nothing of the scheduler's own may be left on the loop."""
        left = sorted(
            task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith(OWN_TASKS)
        )
        if left:
            self._fail(f"{self.name} has stopped, and left {left} behind")

    @property
    def worker(self) -> Any:
        """The worker that runs now; None while the scheduler is not open."""
        return self.scheduler._engine.worker

    def spawn(self, operation: Coroutine[Any, Any, None], name: str) -> None:
        """Run a client's operation in this process."""
        task = self.loop.create_task(operation, name=f"client: {name}")
        self._spawned.add(task)
        task.add_done_callback(self._spawned.discard)

    @property
    def is_busy(self) -> bool:
        """Whether any client's operation is still on its way."""
        return bool(self._spawned)

    def ask_to_stop(self, *, then_start_again: bool = False, **how: Any) -> None:
        """Stop the scheduler, then end, or start it again."""
        self._how, self._is_to_start_again = how, then_start_again
        self.loop.call_soon(self._stop_asked.set)

    def crash(self) -> None:
        """Be gone, this instant."""
        if not self.is_dead:
            self._tally[Met.CRASHED] += 1
            self._tally[Met.CRASHED_IN_CALL] += bool(self.store.calls)
            is_firing = any(call.startswith(("schedules", "fire ")) for call in self.store.calls)
            self._tally[Met.DIED_WHILE_FIRING] += is_firing
            self._vanish()

    def _vanish(self) -> None:
        self.is_dead = self.store.is_dead = self.loop.is_held = self.loop.is_over = True
        self.is_up = False

    def die(self) -> bool:
        """Crash on behalf of a job's code, if crashes are still to happen."""
        if self._may_die():
            self.crash()
        return self.is_dead

    def is_calm(self) -> bool:
        """Whether faults are over."""
        return not self._may_die()

    def hold(self) -> None:
        """Stop running, for a while."""
        self.loop.is_held = True

    def go_on(self) -> None:
        """Run again after a pause."""
        if not self.is_dead:
            self.loop.is_held = False

    def bury(self) -> None:
        """Free what a dead process has left; nothing of it has any effect."""
        self._vanish()
        self.loop.end()
