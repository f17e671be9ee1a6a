"""What the measured runs share: instants taken when jobs start, and what is reckoned from them."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

NOT_YET = 0
STEP_S = 0.005
"""A steady load comes in steps of so long, a handful of jobs each."""
PERIOD_S = 0.02
"""How often the schedule fires whose single fires are measured."""
REST_S = 0.3
"""How long a scheduler is left alone, before an instant at which much is due, to come to rest."""
IDLE_LOOK_S = 1.0
"""How long after its start a scheduler is taken to be idle."""
IDLE_S = 0.003
DURABLE_IDLE_S = 0.02
"""An idle scheduler is left alone for so long before the next job; on disk until the last end is recorded."""


class Latencies:
    """From submit to start, for each job by its number.

    Args:
        jobs: how many there will be.

    Example:
        latencies = Latencies(100)
        latencies.submitted(7)   # by whoever submits job 7, just before
        latencies.started(7)     # by the job's own code, first of all
    """

    def __init__(self, jobs: int) -> None:
        self._submitted = [NOT_YET] * jobs
        self._started = [NOT_YET] * jobs
        self.jobs = jobs

    def submitted(self, number: int) -> None:
        """Take the instant just before a job's submit."""
        self._submitted[number] = time.perf_counter_ns()

    def started(self, number: int) -> None:
        """Take the instant at which a job's code runs."""
        self._started[number] = time.perf_counter_ns()

    def started_at(self, number: int, instant_ns: int) -> None:
        """Take the instant at which another process says that a job's code ran."""
        self._started[number] = instant_ns

    def has_started(self, number: int) -> bool:
        """Whether a job's code has run."""
        return self._started[number] != NOT_YET

    def all_started(self) -> bool:
        """Whether every job's code has run."""
        return NOT_YET not in self._started

    def figures(self, *, skip: int = 0) -> dict[str, float]:
        """Return the quantiles in microseconds; the first `skip` jobs do not count: they warm up."""
        taken = [
            (started - submitted) / 1000
            for submitted, started in zip(self._submitted[skip:], self._started[skip:], strict=True)
        ]
        assert all(each > 0 for each in taken), "a job did not start"
        cuts = statistics.quantiles(taken, n=100)
        return {"p50_us": statistics.median(taken), "p99_us": cuts[98]}


class Stopwatch:
    """Started when it is made; tells what was done a second.

    `rate` counts by the wall clock. `cpu_rate` counts by this process's processor time, all threads together:
    where work keeps one processor busy it is the same, but for what others on the machine take away.
    """

    def __init__(self) -> None:
        self._cpu = time.process_time()
        self._began = time.perf_counter()

    def seconds(self) -> float:
        """Return how long ago it was made."""
        return time.perf_counter() - self._began

    def figures(self, jobs: int) -> dict[str, float]:
        """Return the rates of so many jobs done until now."""
        seconds = time.perf_counter() - self._began
        cpu = time.process_time() - self._cpu
        return {"rate": jobs / seconds, "cpu_rate": jobs / cpu, "seconds": seconds}


class StopwatchAhead:
    """Tells, like `Stopwatch`, what was done a second, counted from an instant that is still to come.

    Whoever waits for that instant takes no processor time, so that counts from where it is made.
    """

    def __init__(self, when: datetime) -> None:
        self._cpu = time.process_time()
        self._when = when.timestamp()
        assert self.ahead_s() > 0, "the instant came before all was ready for it"

    def ahead_s(self) -> float:
        """Return how long it is until then."""
        return self._when - time.time()

    def figures(self, jobs: int) -> dict[str, float]:
        """Return the rates of so many jobs done since then."""
        seconds = -self.ahead_s()
        return {
            "rate": jobs / seconds,
            "cpu_rate": jobs / (time.process_time() - self._cpu),
            "seconds": seconds,
        }


def instant_ahead(schedules: int, each_s: float = 0.0005) -> datetime:
    """Return an instant before which so many schedules can have been added, if each takes no longer."""
    return datetime.now(UTC) + timedelta(seconds=2.0 + schedules * each_s)


class Tally:
    """Counts what happens on the event loop, by name, and lets somebody wait for so many.

    Example:
        tally = Tally()
        tally.count("ran")              # by a job
        await tally.reaches("ran", 1)   # by who measures
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._awaited: tuple[str, int] = ("", 0)
        self._over = asyncio.Event()

    def count(self, name: str) -> None:
        """Count one."""
        count = self._counts[name] = self._counts.get(name, 0) + 1
        if self._awaited == (name, count):
            self._over.set()

    async def reaches(self, name: str, count: int) -> None:
        """Wait until so many were counted."""
        if self._counts.get(name, 0) < count:
            self._over.clear()
            self._awaited = (name, count)
            await self._over.wait()

    async def cost_of(self, name: str, count: int) -> dict[str, float]:
        """Return the processor time of one of so many, after a tenth of them have warmed up."""
        warm_up = self._counts.get(name, 0) + count // 10
        await self.reaches(name, warm_up)
        cpu = time.process_time()
        await self.reaches(name, warm_up + count)
        return {"cpu_us": (time.process_time() - cpu) / count * 1e6}


async def idle_share(seconds: float) -> dict[str, float]:
    """Return the share of a processor, in percent, that this process takes while nothing is to be done."""
    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.sleep(seconds)
    return {"percent": (time.process_time() - cpu) / (time.perf_counter() - began) * 100}


class Countdown:
    """Counts jobs down from any thread, and tells when the last one was counted.

    Args:
        jobs: how many there will be.
    """

    def __init__(self, jobs: int) -> None:
        self._last = jobs
        self._count = itertools.count(1)  # its `next` is one step, whichever thread takes it
        self._over = threading.Event()

    def count(self) -> None:
        """Count one job: to be called by its code."""
        if next(self._count) == self._last:
            self._over.set()

    def wait(self, seconds: float = 250.0) -> None:
        """Wait until the last job was counted."""
        assert self._over.wait(seconds), "not all jobs have run"


async def pace(
    submit: Callable[[int], Awaitable[object]],
    latencies: Latencies,
    *,
    per_second: int | None = None,
    is_waiting: bool = False,
    idle_s: float = IDLE_S,
) -> dict[str, float]:
    """Submit jobs by their number at a fixed rate, and return how long they took to start.

    Args:
        submit: takes the instant and submits.
        latencies: of all the jobs; the first tenth of them warms up.
        per_second: how many go a second, in steps of `STEP_S`; None: each when the one before has started and
            a pause is over, so that everything is idle.
        is_waiting: a submit has to wait for something, so that those of a step go side by side.
        idle_s: that pause.
    """
    loop = asyncio.get_running_loop()
    due = loop.time()
    submitting: list[asyncio.Future[object]] = []
    for number in range(latencies.jobs):
        if per_second is None:
            await submit(number)
            while not latencies.has_started(number):  # noqa: ASYNC110 - jobs tell it from any thread
                await asyncio.sleep(IDLE_S)
            await asyncio.sleep(idle_s)
            continue
        if number % round(per_second * STEP_S) == 0:
            due += STEP_S
            await asyncio.sleep(max(0.0, due - loop.time()))
        if is_waiting:
            submitting.append(asyncio.ensure_future(submit(number)))
        else:
            await submit(number)
    await asyncio.gather(*submitting)
    while not latencies.all_started():  # noqa: ASYNC110 - as above
        await asyncio.sleep(IDLE_S)
    return latencies.figures(skip=latencies.jobs // 10)
