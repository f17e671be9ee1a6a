"""What holds the simulated tasks back: which limits, rates, budgets and circuits there are; drawn by chance.

Every process declares the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.simulation.plans import GROUPS, Task
from tests.simulation.settings import Settings

from betimes import (
    CircuitBreaker,
    FairShareStrategy,
    Limit,
    PriorityStrategy,
    Rate,
    RetryBudget,
    RetryPolicy,
    SchedulingStrategy,
)

SHORT, LONG = ("4/s", "6/s", "10/s"), ("1/s", "2/3s")

OF_GATES = (
    *(Task.PAY, Task.PAY, Task.PRESS, Task.POUR, Task.UPLOAD, Task.UPLOAD, Task.CRAWL, Task.BOTH, Task.BOTH),
    *(
        Task.FRAGILE,
        Task.FRAGILE,
        Task.FRAGILE,
        Task.FRUGAL,
        Task.RENDER,
        Task.RENDER,
        Task.RENDER,
        Task.RARE,
        Task.WALK,
        Task.CRUNCH,
    ),
)
OF_TENANTS = (Task.SERVE,) * 10 + (Task.RARE, Task.ONCE)
OF_QUEUES = (Task.SERVE,) * 8 + (Task.PRESS, Task.POUR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restraints:
    """What there is in one run.

    Attributes:
        tasks: how often each task is chosen; empty: as in a run without restraints.
        options: what tasks are registered with, by task.
        limits, rates, circuits: names of what may be changed at run time.
        weights: of tenants; empty: there are none.
        shares: of queues; None: there are none.
    """

    tasks: tuple[Task, ...] = ()
    options: Mapping[Task, dict[str, Any]]
    limits: tuple[str, ...] = ("pay", "shared", "both", "render")
    rates: tuple[str, ...] = ("wire", "crawl", "both")
    circuits: tuple[str, ...] = (Task.FRAGILE.value,)
    weights: Mapping[str, float]
    shares: Mapping[str, int] | None = None

    @property
    def strategy(self) -> SchedulingStrategy:
        """A strategy of a process's own."""
        if not self.weights:
            return PriorityStrategy()
        return FairShareStrategy(by="group", weights=self.weights)

    @property
    def attempts(self) -> dict[str, int]:
        """How many attempts the jobs of each task have that does not give them one."""
        return {
            task.value: RetryPolicy.of(options["retry"]).max_attempts
            for task, options in self.options.items()
            if "retry" in options
        }

    @property
    def budgets(self) -> dict[str, RetryBudget]:
        """The retry budgets, by task."""
        return {
            task.value: options["retry_budget"]
            for task, options in self.options.items()
            if "retry_budget" in options
        }


def draw_restraints(settings: Settings) -> Restraints:
    """Draw the restraints of a run."""
    rng = Random(f"restraints {settings.seed}")
    kinds: dict[str, Callable[[Random], Restraints]] = {
        "gates": _with_gates,
        "tenants": _with_tenants,
        "queues": _with_queues,
    }
    kind = kinds.get(settings.restraints)
    return Restraints(options={}, weights={}) if kind is None else kind(rng)


def _with_gates(rng: Random) -> Restraints:
    return Restraints(tasks=OF_GATES, options=_options(rng), weights={})


def _with_tenants(rng: Random) -> Restraints:
    options: dict[Task, dict[str, Any]] = {Task.SERVE: {}}
    weights = {group: float(rng.choice((1, 1, 2, 3))) for group in GROUPS}
    return Restraints(tasks=OF_TENANTS, options=options, weights=weights, limits=(), rates=(), circuits=())


def _with_queues(rng: Random) -> Restraints:
    drawn = _options(rng)
    options = {Task.SERVE: dict[str, Any](), Task.PRESS: drawn[Task.PRESS], Task.POUR: drawn[Task.POUR]}
    return Restraints(
        tasks=OF_QUEUES,
        options=options,
        weights={},
        limits=("shared",),
        rates=(),
        circuits=(),
        shares={"default": rng.choice((2, 3)), "side": 1},
    )


def _options(rng: Random) -> dict[Task, dict[str, Any]]:
    shared = Limit("shared", rng.randint(1, 3))
    wire = Rate(rng.choice(SHORT), burst=rng.randint(1, 4), name="wire")
    retry = RetryPolicy(rng.randint(2, 4), base_delay=rng.choice((0.0, 0.3)), max_delay=1.0)
    breaker = CircuitBreaker(failures=rng.randint(2, 3), window="20s", open_for=rng.choice(("1s", "2500ms")))
    return {
        Task.PAY: {"limit": Limit("pay", rng.randint(1, 2), by="group")},
        Task.PRESS: {"limit": shared},
        Task.POUR: {"limit": shared},
        Task.UPLOAD: {"rate": wire},
        Task.CRAWL: {"rate": Rate(rng.choice(LONG), burst=2, name="crawl", by="group")},
        Task.BOTH: {
            "limit": Limit("both", rng.randint(1, 2)),
            "rate": [wire, Rate(rng.choice(SHORT), name="both")],
        },
        Task.FRAGILE: {"breaker": breaker, "retry": retry},
        Task.FRUGAL: {"retry": 4, "retry_budget": RetryBudget(ratio=rng.choice((0.1, 0.3)), window="10s")},
        Task.RENDER: {"limit": Limit("render", rng.choice((2, 4, 8))), "retry": 2},
        Task.RARE: {"rate": Rate(rng.choice(SHORT), burst=2, name="rare")},
    }
