"""Everything that goes wrong in a run, and all that clients do meanwhile, each at a time drawn by chance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Protocol

from tests.simulation.clients import Clients
from tests.simulation.clock_faults import ClockFaults
from tests.simulation.evidence import Evidence
from tests.simulation.gate_clients import GateClients
from tests.simulation.loops import SteppedLoop, pass_time
from tests.simulation.plans import Task
from tests.simulation.process import Process
from tests.simulation.settings import Settings
from tests.simulation.tally import Met, Tally
from tests.simulation.timetable_clients import TimetableClients
from tests.simulation.trace import Trace
from tests.simulation.work import Dependency

from betimes.testing import VirtualClock


class Ground(Protocol):
    """Whom the weather comes over."""

    @property
    def alive(self) -> list[Process]:
        """The processes that live."""

    def clock_is_set(self, seconds: float) -> None:
        """Hear that the clock is about to be set."""

    @property
    def workers(self) -> list[Process]:
        """Those that run jobs."""

    def start(self, *, knows_rare: bool) -> None:
        """Start one more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sky:
    """What the weather is made with.

    Attributes:
        settings, rng, clock, home, clients, timetable_clients, gate_clients, dependency, evidence, tally,
            trace: of the run.
    """

    settings: Settings
    rng: Random
    clock: VirtualClock
    home: SteppedLoop
    clients: Clients
    timetable_clients: TimetableClients
    gate_clients: GateClients
    dependency: Dependency
    evidence: Evidence
    tally: Tally
    trace: Trace


class Weather:
    """Draws and brings about faults and operations."""

    def __init__(self, sky: Sky, ground: Ground) -> None:
        self._sky = sky
        self._ground = ground
        self._settings = sky.settings
        self._rng = sky.rng
        self._clock_faults = ClockFaults(sky.clock, sky.rng, sky.trace.add, ground.clock_is_set)

    async def pass_over(self) -> None:
        """Do everything that is to be done while faults are on."""
        settings, rng, clock = self._settings, self._rng, self._sky.clock
        plan: list[tuple[float, Callable[[], None]]] = []
        for number, act in (
            (settings.operations, self.operate),
            (settings.crashes, self._crash),
            (settings.pauses, self._pause),
            (settings.outages, self._cut_off),
            (settings.stops, self._stop),
            (settings.jumps, self._jump),
            (settings.timetable_operations, self._operate_on_schedules),
            (settings.restraint_operations, self._operate_on_restraints),
            (settings.floods, self.flood),
            (settings.downs, self._break_down),
        ):
            plan += [(rng.uniform(0.0, settings.faulty_s), act) for _ in range(number)]
        plan.sort(key=lambda entry: entry[0])
        for at, act in plan:
            await pass_time(max(0.0, at - clock.monotonic()))
            self._replace_the_dead()
            act()
        await pass_time(max(0.0, settings.faulty_s - clock.monotonic()))

    def _replace_the_dead(self) -> None:
        """Keep as many processes as there are to be, of which one knows every task."""
        missing = self._settings.processes - len(self._ground.workers)
        for _ in range(missing if self._rng.random() < 0.5 or not self._ground.workers else 0):
            self._ground.start(knows_rare=True)

    def operate(self) -> None:
        """Have a client do something."""
        up = [process for process in self._ground.alive if process.is_up]
        if up:
            self._sky.clients.operate(self._rng.choice(up))

    def _operate_on_schedules(self) -> None:
        up = [process for process in self._ground.alive if process.is_up]
        if up:
            self._sky.timetable_clients.operate(self._rng.choice(up))

    def _operate_on_restraints(self) -> None:
        up = [process for process in self._ground.alive if process.is_up]
        if up:
            self._sky.gate_clients.operate(self._rng.choice(up))

    def flood(self, task: Task | None = None) -> None:
        """Have a client submit many jobs at once."""
        up = [process for process in self._ground.alive if process.is_up]
        if up:
            self._sky.clients.flood(self._rng.choice(up), task)

    def _break_down(self) -> None:
        """Have what some tasks depend on be down for a while."""
        dependency = self._sky.dependency
        dependency.is_down = True
        self._sky.trace.add("what others depend on is down")
        self._sky.home.call_later(self._rng.uniform(2.0, 7.0), setattr, dependency, "is_down", False)

    def _jump(self) -> None:
        """Move the clock of the machine that all processes share; at times somebody puts it right soon."""
        back = self._clock_faults.strike()
        if back is not None:
            self._sky.home.call_later(self._rng.uniform(0.5, 14.0), self._clock_faults.set, -back)

    def _crash(self) -> None:
        if self._ground.alive:
            process = self._rng.choice(self._ground.alive)
            self._sky.trace.add(f"{process.name}: crashes")
            process.crash()

    def _pause(self) -> None:
        """Pause a process, often for longer than its lease."""
        if not self._ground.alive:
            return
        process = self._rng.choice(self._ground.alive)
        seconds = self._settings.lease_s * self._rng.uniform(0.2, 2.5)
        self._sky.trace.add(f"{process.name}: pauses for {seconds:.2f} s")
        self._sky.tally[Met.PAUSED] += seconds > self._settings.lease_s
        process.hold()
        self._sky.home.call_later(seconds, process.go_on)

    def _cut_off(self) -> None:
        """Let nothing of a process get through for a while."""
        if not self._ground.alive:
            return
        store = self._rng.choice(self._ground.alive).store
        store.is_out = True
        self._sky.home.call_later(
            self._settings.lease_s * self._rng.uniform(0.1, 1.5), setattr, store, "is_out", False
        )

    def _stop(self) -> None:
        """Have a process stop as its owner would."""
        rng = self._rng
        up = [process for process in self._ground.alive if process.is_up]
        busy = [process for process in up if self._sky.evidence.running_in(process)]
        if up:
            process = rng.choice(busy or up)
            again = rng.random() < 0.5
            cancel, timeout = rng.random() < 0.3, rng.choice((None, 0.0, 0.5))
            self._sky.trace.add(f"{process.name}: stops, cancel={cancel} timeout={timeout} again={again}")
            process.ask_to_stop(then_start_again=again, cancel_running=cancel, timeout=timeout)
