"""What holds tasks back, as users write it: `Limit`, `Rate`, `RetryBudget`, `CircuitBreaker`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from betimes.core.durations import Duration, duration_us
from betimes.core.limits import GateKind, GateTerms
from betimes.core.wording import shown
from betimes.errors import ConfigurationError

NAME_LENGTH = 200
MOST_RUNNING = 1_000_000
MOST_TOKENS = 1_000_000

_SECOND_US = 1_000_000
_UNITS = {
    "s": "1s", "sec": "1s", "second": "1s",
    "m": "1m", "min": "1m", "minute": "1m",
    "h": "1h", "hour": "1h",
    "d": "1d", "day": "1d",
}  # fmt: skip
_RATE = re.compile(r"\s*([0-9]{1,9})\s*/\s*([0-9a-z. ]{1,40}?)\s*")


@dataclass(frozen=True, slots=True, init=False)
class Limit:
    """At most so many jobs that name it run at once, over all processes of the store.

    A job holds its place until its code has returned, or its worker's lease is over. Those that have to wait
    do so in the strategy's order, outside what workers look at: they hold up nobody else.

    Args:
        name: which limit; tasks that name the same one share it, and must say the same of it.
        max_running: how many.
        by: the name of an argument: each of its values has a limit of its own.

    Raises:
        ConfigurationError: an argument is wrong; the text names it.

    Example:
        @scheduler.task(limit=Limit("payments API", max_running=5, by="customer"))
        async def pay(customer: str, cents: int) -> None: ...
    """

    name: str
    max_running: int
    by: str | None

    def __init__(self, name: str, max_running: int, by: str | None = None) -> None:
        put = object.__setattr__
        put(self, "name", _name(name, "a limit's name"))
        put(self, "max_running", _whole(max_running, "max_running", least=1, most=MOST_RUNNING))
        put(self, "by", None if by is None else _name(by, "by"))

    @property
    def terms(self) -> GateTerms:
        """What a store keeps of it."""
        return GateTerms(kind=GateKind.LIMIT, name=self.name, max_running=self.max_running, by=self.by)


@dataclass(frozen=True, slots=True, init=False)
class Rate:
    """So many starts in a length of time: a token bucket, charged when a job is claimed.

    The starts are spread evenly, `period / count` apart; up to `burst` of them may come together after a time
    without any. A job without a token waits in the strategy's order, and holds up nobody else.

    Args:
        rate: count and period: `"10/s"`, `"600/min"`, `"1000/h"`, `"5/d"`, or with any duration, `"3/10s"`.
        burst: how many tokens gather at most.
        name: tasks that name the same one share it; None: each task has its own.
        by: the name of an argument: each of its values has a rate of its own.

    Raises:
        ConfigurationError: an argument is wrong; the text names it.

    Example:
        @scheduler.task(rate=Rate("10/s", burst=5))
        async def upload(path: str) -> None: ...
    """

    rate: str
    burst: int
    name: str | None
    by: str | None
    every_us: int

    def __init__(self, rate: str, burst: int = 1, name: str | None = None, by: str | None = None) -> None:
        put = object.__setattr__
        put(self, "rate", rate)
        put(self, "burst", _whole(burst, "burst", least=1, most=MOST_TOKENS))
        put(self, "name", None if name is None else _name(name, "a rate's name"))
        put(self, "by", None if by is None else _name(by, "by"))
        put(self, "every_us", _every_us(rate))

    def terms(self, task: str) -> GateTerms:
        """Return what a store keeps of it, as a rate of this task unless it has a name of its own."""
        return GateTerms(
            kind=GateKind.RATE, name=self.name or task, every_us=self.every_us, burst=self.burst, by=self.by
        )


@dataclass(frozen=True, slots=True, init=False)
class RetryBudget:
    """Retries of a task are at most this share of its starts, in each process and over a sliding window.

    When a dependency is down, everything fails and everything is retried: the budget keeps retries from
    becoming the load. An attempt that fails while it is spent is the job's last. One retry a window is always
    there, or a task that rarely runs could never be retried.

    Args:
        ratio: retries / starts, more than 0 and at most 1.
        window: over how long both are counted.

    Raises:
        ConfigurationError: an argument is wrong; the text names it.
    """

    ratio: float
    window_us: int

    def __init__(self, ratio: float = 0.1, window: Duration = "1m") -> None:
        if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 < ratio <= 1:
            raise ConfigurationError(f"ratio is {shown(ratio)}; it is a share, more than 0 and at most 1")
        object.__setattr__(self, "ratio", float(ratio))
        object.__setattr__(self, "window_us", duration_us(window, name="window"))


@dataclass(frozen=True, slots=True, init=False)
class CircuitBreaker:
    """Stops claiming a task whose dependency is down, in all processes of the store, then tries with one.

    When so many attempts have failed within the window in one process, the circuit opens: no job of the task
    is claimed for `open_for`. Then one is, as a probe, and another for each further `open_for`, until one
    succeeds; that closes the circuit. Its jobs wait meanwhile, and use up no attempts.

    What counts as a failure: an attempt that raised (also what is not retried) or timed out. What does not: a
    cancel, a snooze, `NonRetryableError`.

    Args:
        failures: how many open the circuit.
        window: within what time.
        open_for: how long nothing is claimed, and how far probes are apart.

    Raises:
        ConfigurationError: an argument is wrong; the text names it.
    """

    failures: int
    window_us: int
    open_for_us: int

    def __init__(self, failures: int = 5, window: Duration = "1m", open_for: Duration = "30s") -> None:
        put = object.__setattr__
        put(self, "failures", _whole(failures, "failures", least=1, most=10_000))
        put(self, "window_us", duration_us(window, name="window"))
        put(self, "open_for_us", duration_us(open_for, name="open_for"))

    def terms(self, task: str) -> GateTerms:
        """Return what a store keeps of the breaker of this task."""
        return GateTerms(kind=GateKind.BREAKER, name=task, every_us=self.open_for_us)


def _name(value: object, what: str) -> str:
    if not isinstance(value, str) or not value or len(value) > NAME_LENGTH or not value.isprintable():
        raise ConfigurationError(
            f"{what} must be text of 1 to {NAME_LENGTH} printable characters, not {shown(value)}"
        )
    return value


def _whole(value: object, what: str, *, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ConfigurationError(f"{what} is {shown(value)}; it is a whole number from {least} to {most:,}")
    return value


def _every_us(rate: object) -> int:
    """The time from one token to the next, rounded up, so that the rate is never exceeded."""
    match = _RATE.fullmatch(rate) if isinstance(rate, str) else None
    count = int(match[1]) if match else 0
    if match is None or not count:
        raise ConfigurationError(
            f'rate is {shown(rate)}; write how many in what time, such as "10/s", "100/min" or "3/10s"'
        )
    period_us = duration_us(_UNITS.get(match[2], match[2]), name="the rate's period")
    if count > period_us:
        raise ConfigurationError(f"rate {shown(rate)} is too fast: at most 1,000,000 a second")
    return -(-period_us // count)
