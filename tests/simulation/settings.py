"""How one simulated run is set up; everything is drawn from its seed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from typing import Literal

from betimes.testing.clock import DEFAULT_START

StoreKind = Literal["memory", "sqlite", "sqlite-each"]
"""In the last one each process has its own object for the one file."""

RestraintKind = Literal["none", "gates", "tenants", "queues"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What goes wrong at the store's boundary while faults are on.

    Attributes:
        latency_s: the mean time that a request or a reply is on its way.
        slow, slow_s: how often one takes longer, and how long at most.
        stuck, stuck_s: how often the request of a worker's turn takes at least this long.
        lost_request, lost_reply, lost_hint: how often one never arrives.
    """

    latency_s: float
    slow: float = 0.0
    slow_s: float = 0.0
    stuck: float = 0.0
    stuck_s: float = 0.0
    lost_request: float = 0.0
    lost_reply: float = 0.0
    lost_hint: float = 0.0


CALM = Faults(latency_s=0.015)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One run.

    Attributes:
        seed, store: what it is named by.
        processes: how many run jobs at once.
        has_client: whether there is one more that only submits and looks.
        concurrency, threads, lease_s, poll_s, grace_s: of each process.
        faulty_s: how long faults go on.
        operations: how many calls clients make in that time.
        faults: at the boundary.
        crashes, pauses, outages, stops: how many of them.
        ids, keys: how many different ids and keys the clients choose from.
        schedules: how many schedules there are.
        start, zone: what the wall clock shows first, soon before the clocks change there.
        jumps: how often the wall clock is set, or the machine sleeps.
        timetable_operations: how many calls clients make on schedules in the time of faults.
        restraints: what holds tasks back: gates, or shares of tenants or of queues; `none` of them.
        restraint_operations: how many calls clients make on these in the time of faults.
        floods: how often somebody submits many jobs at once.
        downs: how often what some tasks depend on is down for a while.
        children, child_deaths, buffered: child processes of each process, how often one dies under a job, and
            how many jobs may lie behind the one that it runs.
    """

    seed: int
    store: StoreKind
    processes: int
    has_client: bool
    concurrency: int
    threads: int
    lease_s: float
    poll_s: float
    grace_s: float
    faulty_s: float
    operations: int
    faults: Faults
    crashes: int
    pauses: int
    outages: int
    stops: int
    ids: int = 5
    keys: int = 4
    schedules: int = 0
    start: datetime = DEFAULT_START
    zone: str = "UTC"
    jumps: int = 0
    timetable_operations: int = 0
    restraints: RestraintKind = "none"
    restraint_operations: int = 0
    floods: int = 0
    downs: int = 0
    children: int = 1
    child_deaths: float = 0.0
    buffered: int = 0

    @property
    def name(self) -> str:
        """What replays the run."""
        return f"{self.store}-{self.seed}"


PERIOD, FIRST_WITH_RESTRAINTS, FIRST_WITH_SCHEDULES = 100, 40, 60
"""Of each hundred seeds, the last forty give worlds with schedules, and the twenty before with restraints."""

CHANGES = (
    ("2030-03-31T01:00Z", "Europe/Berlin"),
    ("2030-10-27T01:00Z", "Europe/Berlin"),
    ("2030-10-05T15:30Z", "Australia/Lord_Howe"),
    ("2029-12-31T23:59Z", "UTC"),
)
"""When the clocks change: forward, back, forward by half an hour; and before the end of a year."""


def has_schedules(seed: int) -> bool:
    """Say whether this seed gives a world with schedules."""
    return seed % PERIOD >= FIRST_WITH_SCHEDULES


def has_restraints(seed: int) -> bool:
    """Say whether this seed gives a world with restraints."""
    return FIRST_WITH_RESTRAINTS <= seed % PERIOD < FIRST_WITH_SCHEDULES


def draw(seed: int, store: StoreKind) -> Settings:
    """Draw a run's settings. The store is not part of what is drawn: both see the same weather."""
    settings = _draw(seed, store)
    if has_restraints(seed):
        return _restrained(settings)
    return _scheduled(settings) if has_schedules(seed) else settings


def _restrained(settings: Settings) -> Settings:
    seed = settings.seed
    rng = Random(f"restrained {seed}")
    kinds: tuple[RestraintKind, ...] = ("gates", "gates", "gates", "tenants", "queues")
    kind = kinds[seed % len(kinds)]
    common = replace(settings, restraints=kind, jumps=rng.choice((0, 0, 1, 2)))
    if kind != "gates":
        # Shares tell only where there is more to do than slots, for long.
        return replace(
            common,
            processes=min(settings.processes, 2),
            concurrency=rng.randint(1, 2),
            threads=1,
            operations=settings.operations // 3,
            restraint_operations=rng.randint(0, 4),
            floods=rng.randint(5, 9),
            crashes=settings.crashes // 2,
        )
    return replace(
        common,
        concurrency=settings.concurrency + 2,
        restraint_operations=rng.randint(4, 14),
        floods=rng.randint(0, 2),
        downs=rng.randint(1, 3),
        children=rng.choice((1, 1, 2)),
        child_deaths=rng.choice((0.2, 0.4)),
        buffered=rng.choice((1, 2)),
    )


def _scheduled(settings: Settings) -> Settings:
    seed = settings.seed
    rng = Random(f"schedules {seed}")
    change, zone = rng.choice(CHANGES)
    # Schedules make jobs by themselves, so that clients need not make as many; and slots must do for all.
    return replace(
        settings,
        operations=settings.operations // 3,
        concurrency=settings.concurrency + 2,
        threads=settings.threads + 1,
        schedules=rng.randint(3, 6),
        start=datetime.fromisoformat(change) - timedelta(seconds=rng.randint(-2, 25)),
        zone=zone,
        jumps=rng.choice((0, 1, 2, 3)),
        timetable_operations=rng.randint(8, 30),
    )


def _draw(seed: int, store: StoreKind) -> Settings:
    rng = Random(f"settings {seed}")
    lease_s = rng.choice((1.5, 3.0, 6.0))
    return Settings(
        seed=seed,
        store=store,
        processes=rng.choice((1, 2, 2, 3, 4)),
        has_client=rng.random() < 0.3,
        concurrency=rng.randint(1, 4),
        threads=rng.randint(1, 2),
        lease_s=lease_s,
        poll_s=rng.choice((0.5, 2.0, 30.0)),
        grace_s=rng.choice((0.0, 0.5, 2.0)),
        faulty_s=rng.uniform(12.0, 30.0),
        operations=rng.randint(30, 90),
        faults=_draw_faults(rng, lease_s),
        crashes=rng.choice((0, 1, 2, 4)),
        pauses=rng.choice((0, 2, 4, 6)),
        outages=rng.choice((0, 1, 2)),
        stops=rng.choice((0, 2, 4, 6)),
    )


def _draw_faults(rng: Random, lease_s: float) -> Faults:
    return Faults(
        latency_s=rng.choice((0.0, 0.001, 0.01, 0.1)),
        slow=rng.choice((0.0, 0.02, 0.1, 0.2)),
        slow_s=rng.choice((0.3, lease_s, 1.5 * lease_s)),
        stuck=rng.choice((0.0, 0.05, 0.15)),
        stuck_s=lease_s,
        lost_request=rng.choice((0.0, 0.02, 0.1)),
        lost_reply=rng.choice((0.0, 0.05, 0.15)),
        lost_hint=rng.choice((0.0, 0.1, 0.5)),
    )
