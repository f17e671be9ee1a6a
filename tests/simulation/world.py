"""One simulated run: real schedulers on one real store, first with faults, then without.

In the calm after the faults everything must end; then all processes are stopped, and what is left is
compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.simulation.clients import Clients
from tests.simulation.clock_faults import LogWatch
from tests.simulation.evidence import Evidence
from tests.simulation.gate_clients import GateClients
from tests.simulation.loops import SteppedLoop, Stepper, pass_time
from tests.simulation.plans import QUEUES, TASKS, Planner, Task
from tests.simulation.process import Process
from tests.simulation.progress import LOOK_EVERY_S, Progress
from tests.simulation.reckoning import Reckoning
from tests.simulation.restraints import draw_restraints
from tests.simulation.settings import CALM, Settings
from tests.simulation.shared_store import SharedStore
from tests.simulation.tally import Met, Tally
from tests.simulation.timetable_clients import TimetableClients
from tests.simulation.timetables import Timetables
from tests.simulation.trace import Trace
from tests.simulation.weather import Sky, Weather
from tests.simulation.witness import Witness
from tests.simulation.work import Dependency

from betimes.core.job import JobStatus
from betimes.ports import Clock, Store
from betimes.stores.memory import MemoryStore
from betimes.stores.sqlite import SqliteStore
from betimes.testing import VirtualClock

HOME = "home"
"""In whose name the simulation itself acts."""
RESCUE_S = 2.0
BACK_OFF_S = 5.0
SLACK_S = 2.0
CALM_BURSTS, BURST, LOOKS_PER_BURST = 8, 4, 7
"""Work in the calm comes in bursts, with silence in between, in which nothing wakes a worker by chance."""
LOOKS_BEFORE_DRAIN = 16
"""After these many looks the operations begun before have come to their end, but for those that wait."""
REST_S = 240.0
"""What all the work that may be left at the end of the faults can take, one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run has shown.

    Attributes:
        violations: what broke a promise, in order; empty for a good run.
        tally: what was met.
        trace: what happened.
        turns, jobs, executions, virtual_s: how much there was.
    """

    settings: Settings
    violations: list[str]
    tally: Tally
    trace: Trace
    turns: int
    jobs: int
    executions: int
    virtual_s: float

    def __str__(self) -> str:
        broken = "\n".join(self.violations[:5])
        return f"{self.settings.name}: {self.settings}\n{self.trace.tail()}\n\nbroken:\n{broken}"


class World:
    """Everything of one run."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings = settings
        self._rng = Random(f"world {settings.seed}")
        # Where the clock is set, schedulers have to notice by themselves.
        self._clock = clock = VirtualClock(
            settings.start, tells_jumps=not (settings.schedules or settings.jumps)
        )
        self.tally = Tally()
        self.violations: list[str] = []
        self.trace = Trace(clock.monotonic)
        self._home = SteppedLoop(clock, settings.seed, lambda text: self._fail(f"at home: {text}"))
        self._stepper = Stepper(clock, self._rng)
        self._stepper.loops.append(self._home)
        self._restraints = restraints = draw_restraints(settings)
        self._dependency = Dependency()
        self._shared = shared = SharedStore(
            lambda: _new_store(settings, clock, folder),
            self._home,
            self.trace,
            each_its_own=settings.store == "sqlite-each",
            strategy=restraints.strategy.name,
        )
        evidence = Evidence(clock.monotonic, self.tally, self._fail)
        self._model = Reckoning(evidence, self.tally, now=clock.now, fail=self._fail, peek=shared.peek)
        self._witness = Witness(self._model, restraints, boottime=clock.boottime, elapsed_s=clock.monotonic)
        self.clock_is_set = self._witness.clock_is_set
        shared.witness = self._witness
        shared.schedules.are_simulated = settings.schedules > 0
        shared.gates.are_simulated = bool(restraints.tasks)
        planner = Planner(
            Random(f"plans {settings.seed}"),
            ids=settings.ids,
            keys=settings.keys,
            tasks=restraints.tasks or TASKS,
        )
        self._plans = planner.plans
        self._timetables = Timetables(
            Random(f"timetables {settings.seed}"), settings=settings, plans=planner.plans
        )
        self._clients = Clients(Random(f"clients {settings.seed}"), planner, self._model)
        self._timetable_clients = TimetableClients(
            Random(f"timetable clients {settings.seed}"), self._timetables, self._witness.schedules
        )
        self._processes: list[Process] = []
        self._weather = Weather(
            Sky(
                settings=settings,
                rng=self._rng,
                clock=clock,
                home=self._home,
                clients=self._clients,
                timetable_clients=self._timetable_clients,
                gate_clients=GateClients(Random(f"gate clients {settings.seed}"), restraints, self._fail),
                dependency=self._dependency,
                evidence=evidence,
                tally=self.tally,
                trace=self.trace,
            ),
            self,
        )
        self._is_faulty, self._is_over = True, False

    def _fail(self, text: str) -> None:
        if self._is_over:
            return
        self.trace.add(f"!!! {text}")
        self.violations.append(text)

    @property
    def alive(self) -> list[Process]:
        """The processes that live."""
        return [process for process in self._processes if not process.is_dead]

    # --- the run

    def run(self) -> Outcome:
        """Run it to its end, or to the first broken promise."""
        watch = LogWatch(self._fail, self.tally)
        with watch:
            self._home.run_until_complete(self._shared.open())
            director = self._home.create_task(self._direct(), name="director")
            try:
                self._stepper.run(lambda: bool(self.violations) or director.done())
                if director.done() and not director.cancelled() and (error := director.exception()):
                    raise error
            finally:
                self._clean_up()
        return Outcome(
            settings=self.settings,
            violations=self.violations,
            tally=self.tally,
            trace=self.trace,
            turns=self._stepper.turns,
            jobs=len(self._model.lives),
            executions=len(self._model.evidence.executions),
            virtual_s=self._clock.monotonic(),
        )

    async def _direct(self) -> None:
        for number in range(self.settings.processes):
            # A worker that does not know a task may take its jobs, and park them until the next poll.
            polls_often = self.settings.poll_s < self.settings.lease_s
            self.start(knows_rare=number == 0 or not polls_often or self._rng.random() < 0.4)
        if self.settings.has_client:
            self.start(knows_rare=True, is_client=True)
        await self._weather.pass_over()
        await self._calm()
        await self._stop_all()
        self._check_end()

    @property
    def workers(self) -> list[Process]:
        """Those that run jobs."""
        return [process for process in self.alive if not process.is_client]

    def start(self, *, knows_rare: bool, is_client: bool = False) -> None:
        """Start one more process."""
        name = f"p{len(self._processes)}"
        process = Process(
            name,
            self.settings,
            self._shared,
            clock=self._clock,
            evidence=self._model.evidence,
            plans=self._plans,
            timetables=self._timetables,
            restraints=self._restraints,
            dependency=self._dependency,
            tally=self.tally,
            knows_rare=knows_rare,
            is_client=is_client,
            may_die=lambda: self._is_faulty,
            fail=self._fail,
            on_up=self._timetable_clients.begin,
        )
        process.store.faults = self.settings.faults if self._is_faulty else CALM
        self._processes.append(process)
        self._stepper.loops.append(process.loop)
        self.trace.add(f"{name}: starts, knows rare: {knows_rare}")
        due_at = self._shared.schedules.next_due()
        self.tally[Met.DUE_AT_START] += due_at is not None and due_at <= self._clock.now()

    # --- the calm

    async def _calm(self) -> None:
        settings = self.settings
        self._is_faulty = False
        for process in self.alive:
            process.store.faults, process.store.is_out = CALM, False
            process.go_on()
        for queue in list(self._witness.paused):
            self._shared.resume_queue(HOME, queue)
        if not any(process.is_up for process in self.workers):
            self.start(knows_rare=True)
        self.trace.add("calm")
        # What is slowly on its way, there or back, is a fault that has not ended yet.
        await pass_time(
            2 * max(settings.faults.slow_s, settings.faults.stuck_s, 10 * settings.faults.latency_s)
        )
        for queue in QUEUES:
            self._shared.resume_queue(HOME, queue)
        self._shared.gates.put_back(HOME)
        self._dependency.is_down = False
        if not any(Task.RARE in process.tasks for process in self.workers):
            self.start(knows_rare=True)
        await pass_time(settings.lease_s + RESCUE_S + settings.poll_s + BACK_OFF_S + SLACK_S)
        await self._watch()

    async def _watch(self) -> None:
        """See that everything goes on as it should: what was left by the faults, and some more work."""
        progress = Progress(self._witness, self._clients, self._shared.schedules.all)
        more = CALM_BURSTS * LOOKS_PER_BURST
        deadline = self._clock.monotonic() + REST_S
        while self._clock.monotonic() < deadline:
            progress.look(self.alive, self._clock.monotonic())
            if more > 0:
                for _ in range(0 if more % LOOKS_PER_BURST else BURST):
                    self._weather.operate()
            elif self._shared.schedules.are_simulated:
                # They would never end; by now each has had the time to fire again.
                self._end_schedules()
            elif more == 0 and self.settings.restraints == "gates":
                # Then only time lets them pass, one by one, and nothing else happens meanwhile.
                self._weather.flood(Task.CRAWL)
            elif more == -LOOKS_BEFORE_DRAIN:
                self._drain()
            elif all(life.status.is_terminal for life in self._model.lives) and not self._are_clients_busy:
                return
            more -= 1
            await pass_time(LOOK_EVERY_S)
        left = [str(life) for life in self._model.lives if not life.status.is_terminal]
        self._fail(f"after {REST_S} s in the calm these have not ended: {left}")

    def _end_schedules(self) -> None:
        schedules = self._shared.schedules
        schedules.look()
        for record in schedules.all():
            schedules.remove(HOME, record.id)
        schedules.are_simulated = False

    def _drain(self) -> None:
        for process in self.alive:
            if process.is_up:
                process.spawn(self._clients.drain(process), "drain")

    @property
    def _are_clients_busy(self) -> bool:
        return any(process.is_up and process.is_busy for process in self.alive)

    async def _stop_all(self) -> None:
        for process in self.alive:
            if process.is_up:
                process.ask_to_stop()
        deadline = self._clock.monotonic() + 60.0
        while self.alive and self._clock.monotonic() < deadline:
            await pass_time(LOOK_EVERY_S)
        if self.alive:
            self._fail(f"{[process.name for process in self.alive]} do not stop")

    def _check_end(self) -> None:
        """Compare everything once more: what is recorded, what is counted, and what was executed."""
        self._shared.look()
        for life in self._model.lives:
            executions = self._model.evidence.of(life.seq)
            if life.status is JobStatus.COMPLETED and not any(
                one.number == _result(life.final) for one in executions
            ):
                self._fail(f"{life} is COMPLETED, and no execution has its result")
        for process in self._processes:
            for told, times in process.told.items():
                if times > self._model.made[told]:
                    self._fail(f"a listener in {process.name} was told {times} times of {told}")
        for lease in self._model.leases:
            if self._model.running(lease.info.id):
                self._fail(f"{lease.info.id} still holds jobs")
        self._witness.gates.check_at_rest()

    def _clean_up(self) -> None:
        self._is_over = True
        for process in self._processes:
            process.bury()
        self._home.run_until_complete(self._shared.close())
        self._home.end()


def _result(final: tuple[object, ...] | None) -> int | None:
    result = None if final is None else final[1]
    return int(result) if isinstance(result, bytes) else None


def _new_store(settings: Settings, clock: Clock, folder: Path) -> Store:
    if settings.store == "memory":
        return MemoryStore(clock=clock)
    return SqliteStore(folder / f"{settings.name}.db", clock=clock, inline=True)


def simulate(settings: Settings, folder: Path) -> Outcome:
    """Run one simulation; `folder` is for a store's file."""
    return World(settings, folder).run()
