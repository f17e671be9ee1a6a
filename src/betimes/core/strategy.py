"""Which job goes first: one number per job, computed once, at submit, and kept.

Every order here is static. Two waiting jobs never change places by waiting, so that a strategy's key is an
ordinary heap key in memory and an ordinary index column in a database, and ageing rewrites no waiting row.
Smaller keys go first; equal keys go in the order of submission.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Protocol

from betimes.core.job import Micros, Tenant
from betimes.core.limits import value_name
from betimes.core.priority import HIGHEST_PRIORITY
from betimes.core.shares import COST, UNTAGGED
from betimes.core.sort_key import LARGEST_KEY, SMALLEST_KEY
from betimes.core.wording import shown
from betimes.errors import ConfigurationError

_LAST_INSTANT: Micros = 253_402_300_800_000_000  # the end of the year 9999


class Sortable(Protocol):
    """What a strategy may look at: nothing else of a job is known when its key is computed."""

    @property
    def priority(self) -> int:
        """-1000…1000, larger first."""

    @property
    def run_at(self) -> Micros:
        """The earliest start."""

    @property
    def submitted_at(self) -> Micros:
        """When it was submitted."""


class SchedulingStrategy(ABC):
    """Gives each job the number that orders it among those that are ready.

    A strategy holds no state: equal jobs get equal keys, in every process. `name` is kept in the store,
    parameters included, and a store refuses a strategy of another name. To write your own, give it a `key`,
    and a name, which outlives the renaming of its class.

    Example:
        >>> class OldestFirst(SchedulingStrategy):
        ...     name = "oldest_first"
        ...     def key(self, job: Sortable) -> int:
        ...         return job.submitted_at
    """

    name: str
    """Stable text that says which strategy this is, with its parameters, such as `aging:0.1`; a class that
    does not say has its module's and its own name."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Name the class after itself, unless it has a name of its own; its parent's would be a lie."""
        super().__init_subclass__(**options)
        if "name" not in cls.__dict__:
            cls.name = f"{cls.__module__}.{cls.__qualname__}"

    @abstractmethod
    def key(self, job: Sortable) -> int:
        """Return the sort key, a signed 64-bit number: smaller first, ties by order of submission."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class PriorityStrategy(SchedulingStrategy):
    """The highest priority first; under a constant load of higher ones, a low one can wait for ever."""

    name = "priority"

    def key(self, job: Sortable) -> int:
        """Return -priority."""
        return -job.priority


class AgingPriorityStrategy(SchedulingStrategy):
    """The highest effective priority first: priority + `age_rate` times seconds waited.

    A job waits from t₀ = max(submitted, run_at) on. All effective priorities grow at the same rate, so the
    order of two jobs never changes, and t₀ - priority / age_rate stands for it. It follows that nobody waits
    for ever: a job of priority p is ahead of every job whose own t₀ is later by more than
    (highest - p) / age_rate seconds.

    Args:
        age_rate: priority steps gained per second. At the default of 0.1, a LOW that has waited 10 s equals a
            fresh MEDIUM, and after 20 s it goes before a fresh HIGH.

    Raises:
        ConfigurationError: the rate is not a number above 0 and up to 1,000, or so small that keys leave 64
            bits.
    """

    def __init__(self, age_rate: float = 0.1) -> None:
        self.age_rate = _rate(age_rate)
        # The shortest decimal that means this float is what was meant: 0.1 is a tenth, and a step 10 s sharp.
        # Otherwise a step is rounded down to whole microseconds, which keeps the bound on waiting exact.
        self._step_us = int(1_000_000 / Fraction(repr(self.age_rate)))
        if HIGHEST_PRIORITY * self._step_us > LARGEST_KEY - _LAST_INSTANT:
            raise ConfigurationError(f"age_rate={self.age_rate!r} is too small: its keys leave 64 bits")
        self.name = f"aging:{self.age_rate!r}"

    def key(self, job: Sortable) -> int:
        """Return t₀ - priority / age_rate, in microseconds."""
        return max(job.submitted_at, job.run_at) - job.priority * self._step_us


class EarliestDueStrategy(SchedulingStrategy):
    """The earliest `run_at` first, then the highest priority, then the order of submission.

    Both are packed into one number: 53 bits of microseconds and 11 of priority. That holds from 1970 to
    June 2255; jobs due before or after are ordered among themselves by priority alone.
    """

    name = "earliest_due"

    def key(self, job: Sortable) -> int:
        """Return (run_at, -priority) as one number."""
        due = min(max(job.run_at, 0), _HORIZON - 1)
        return SMALLEST_KEY + (due << _PRIORITY_BITS) + (HIGHEST_PRIORITY - job.priority)


class FairShareStrategy(SchedulingStrategy):
    """Each tenant gets its share of starts, however much the others submit; priority breaks ties.

    Tenants are told apart by an argument of the jobs. Over any time in which two of them have jobs waiting,
    the starts they get are in proportion to their weights, to within one job; a flood of one delays nobody
    else's first job by more than one round; who was idle gets no credit. Within a tenant the order is that of
    becoming ready. A job gets its place when it first becomes ready, from the store (`core.shares`).

    The weights may be changed at any time: they hold for the jobs that become ready from then on.

    Args:
        by: the argument's name. Jobs of tasks without it count as one tenant more.
        weights: tenant → weight, more than 0; 1 for those not named. A tenant is named by the argument's
            value: text as it is, other values as JSON.

    Raises:
        ConfigurationError: an argument is wrong; the text names it.

    Example:
        >>> FairShareStrategy(by="customer", weights={"acme": 3}).tenant("acme").cost
        860160
    """

    def __init__(self, by: str, weights: Mapping[str, float] | None = None) -> None:
        if not isinstance(by, str) or not by.isidentifier():
            raise ConfigurationError(f"by is {shown(by)}; it is the name of an argument, such as 'customer'")
        self.by = by
        self.weights = _weights({} if weights is None else weights)
        self.name = f"fair_share:{by}"
        self._tenants: dict[str, Tenant] = {}

    def key(self, job: Sortable) -> int:
        """Return the key of a job that has no place yet: the store gives it one."""
        del job
        return UNTAGGED

    def tenant(self, value: str | None) -> Tenant:
        """Return the tenant of this name (None: of jobs without the argument), with what a job costs it."""
        name = "" if value is None else value
        tenant = self._tenants.get(name)
        if tenant is None:
            if len(self._tenants) >= _TENANTS_KEPT:
                self._tenants.clear()
            cost = max(1, round(COST / self.weights.get(name, 1.0)))
            tenant = self._tenants[name] = Tenant(name, cost)
        return tenant


_FASTEST = 1_000
_LIGHTEST, _HEAVIEST = 0.001, 10_000.0
_TENANTS_KEPT = 100_000
_PRIORITY_BITS = 11  # 2,001 priorities
_HORIZON: Micros = 1 << (64 - _PRIORITY_BITS)


def _rate(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= _FASTEST:
        return float(value)
    raise ConfigurationError(
        f"age_rate must be steps per second, more than 0 and at most {_FASTEST:,}, not {shown(value)}"
    )


def _weights(given: object) -> dict[str, float]:
    if not isinstance(given, Mapping):
        raise ConfigurationError(f"weights is {shown(given)}; it is a dict from tenants to their weights")
    for tenant, weight in given.items():
        is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not isinstance(tenant, str) or not is_number or not _LIGHTEST <= weight <= _HEAVIEST:
            raise ConfigurationError(
                f"weights has {shown(tenant)}: {shown(weight)}; it maps text to numbers from {_LIGHTEST:g} "
                f"to {_HEAVIEST:,.0f}"
            )
    return {value_name(tenant): float(weight) for tenant, weight in given.items()}


def check_key(key: object, *, strategy: str) -> int:
    """Return the key that a strategy gave, or refuse it: stores keep signed 64-bit numbers and nothing else.

    Args:
        key: what `SchedulingStrategy.key` returned.
        strategy: the strategy's name, for the message.

    Raises:
        ConfigurationError: not a whole number, or too large.
    """
    if isinstance(key, int) and not isinstance(key, bool) and SMALLEST_KEY <= key <= LARGEST_KEY:
        return key
    raise ConfigurationError(
        f"the strategy {strategy!r} gave the sort key {shown(key)}; it must be a signed 64-bit number"
    )
