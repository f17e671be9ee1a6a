"""How one simulated run is set up; everything is drawn from its seed."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

StoreKind = Literal["memory", "sqlite", "sqlite-each"]
"""In the last one each process has its own object for the one file."""


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

    @property
    def name(self) -> str:
        """What replays the run."""
        return f"{self.store}-{self.seed}"


def draw(seed: int, store: StoreKind) -> Settings:
    """Draw a run's settings. The store is not part of what is drawn: both see the same weather."""
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
