"""The next instant of cron expressions: the limit, cronsim on its own; croniter; `trigger.next`.

Two dozen questions, twelve expressions in two zones, weigh alike: what counts is the geometric mean. What is
cheap in one of them says nothing of another: from a minute to the next it is a step, to the next 29 February
a search.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

EXPRESSIONS = (
    "* * * * *",
    "*/5 * * * *",
    "0 * * * *",
    "0 9-17 * * *",
    "30 2 * * *",
    "0 9 * * mon-fri",
    "0 0 * * sun",
    "15 6 1 * *",
    "0 12 L * *",
    "30 8 * * mon#1",
    "0 0 1 1 *",
    "0 3 29 2 *",
)
ZONES = ("UTC", "Europe/Berlin")
START = datetime(2025, 3, 1)  # noqa: DTZ001 - the zone comes later
WARM_UP = 20

Step = Callable[[datetime], datetime]


def cronsim(expression: str, zone: tzinfo) -> Step:
    """cronsim as it comes: an iterator, which keeps its place."""
    from cronsim import CronSim  # noqa: PLC0415 - each run needs one library

    found = CronSim(expression, START.replace(tzinfo=zone))
    return lambda _: next(found)


def croniter(expression: str, zone: tzinfo) -> Step:
    """croniter as it comes: an iterator, which keeps its place."""
    from croniter import croniter as library  # noqa: PLC0415 - as above

    found = library(expression, START.replace(tzinfo=zone))
    return lambda _: found.get_next(datetime)


def betimes(expression: str, zone: tzinfo) -> Step:
    """Betimes: a pure function of the instant before."""
    from betimes import cron  # noqa: PLC0415 - as above

    return cron(expression, tz=str(zone)).next  # type: ignore[return-value]


def run(which: str, steps: int) -> dict[str, float]:
    """Return the microseconds of one step: over all questions, and of the slowest one.

    Args:
        which: one of the functions above.
        steps: how many steps each question takes.
    """
    make = {"cronsim": cronsim, "croniter": croniter, "betimes": betimes}[which]
    taken = [
        _step_us(make(expression, UTC if zone == "UTC" else ZoneInfo(zone)), steps)
        for expression in EXPRESSIONS
        for zone in ZONES
    ]
    return {"step_us": statistics.geometric_mean(taken), "slowest_us": max(taken)}


def _step_us(step: Step, steps: int) -> float:
    at = START.replace(tzinfo=UTC)
    for _ in range(WARM_UP):
        at = step(at)
    began = time.process_time()
    for _ in range(steps):
        at = step(at)
    return (time.process_time() - began) / steps * 1e6
