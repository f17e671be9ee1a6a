"""huey: its memory and its SQLite storage, mostly with one worker thread, which is its best here.

A no-op task returns None, of which huey stores nothing: there is no record that such a job has ended.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

from huey import Huey, MemoryHuey, SqliteHuey
from huey.consumer import Consumer

from bench.clockwork import DURABLE_IDLE_S, IDLE_S, Countdown, Latencies, Stopwatch
from bench.pending import Weighing

WARM_UP = 200
POLL_S = 0.1
"""How often an idle worker looks for work, as it comes; the waits grow by 15 % each, up to 10 s."""

logging.disable(logging.INFO)


def _consumer(huey: Huey, workers: int, poll_s: float = POLL_S) -> Consumer:
    return huey.create_consumer(
        workers=workers, periodic=False, initial_delay=poll_s, max_delay=max(poll_s, 1.0)
    )


def burst(jobs: int, workers: int) -> dict[str, float]:
    """Submit no-op jobs to the memory storage while a consumer runs them."""
    return _burst(MemoryHuey(immediate=False), jobs, workers)


def _burst(huey: Huey, jobs: int, workers: int) -> dict[str, float]:
    counts = [Countdown(WARM_UP), Countdown(jobs)]

    @huey.task(retries=2)
    def noop(which: int) -> None:
        counts[which].count()

    consumer = _consumer(huey, workers)
    consumer.start()
    for _ in range(WARM_UP):
        noop(0)
    counts[0].wait()
    watch = Stopwatch()
    for _ in range(jobs):
        noop(1)
    counts[1].wait()
    return watch.figures(jobs)


def starts(jobs: int, poll_s: float = POLL_S) -> dict[str, float]:
    """Submit one job at a time to the memory storage."""
    return _starts(MemoryHuey(immediate=False), jobs, poll_s)


def _starts(huey: Huey, jobs: int, poll_s: float, idle_s: float = IDLE_S) -> dict[str, float]:
    latencies = Latencies(jobs)

    @huey.task(retries=2)
    def job(number: int) -> None:
        latencies.started(number)

    consumer = _consumer(huey, 1, poll_s)
    consumer.start()
    for number in range(jobs):
        time.sleep(idle_s + number % 7 * poll_s / 7)  # not in step with the consumer's own looks
        latencies.submitted(number)
        job(number)
        while not latencies.has_started(number):
            time.sleep(0.0005)
    return latencies.figures(skip=jobs // 10)


def weigh(jobs: int, *, traced: bool) -> dict[str, float]:
    """Keep delayed jobs in the memory storage."""
    huey = MemoryHuey(immediate=False)

    @huey.task(retries=2)
    def noop() -> None:
        """Do nothing."""

    weighing = Weighing(traced=traced)
    for _ in range(jobs):
        noop.schedule(delay=3600)
    # What is due later only moves to the schedule when a consumer reads it from the queue.
    return weighing.figures(jobs, huey.pending_count)


def durable_submits(jobs: int, folder: Path) -> dict[str, float]:
    """Submit jobs one after the other to a SQLite file in WAL mode, each with its own fsync."""
    huey = _durable(folder)

    @huey.task(retries=2)
    def noop() -> None:
        """Do nothing."""

    for _ in range(WARM_UP):
        noop()
    watch = Stopwatch()
    for _ in range(jobs):
        noop()
    figures = watch.figures(jobs)
    assert huey.pending_count() == jobs + WARM_UP
    return figures


def drain(jobs: int, workers: int, folder: Path) -> dict[str, float]:
    """Run jobs that a SQLite file holds."""
    huey = _durable(folder)
    countdown = Countdown(jobs)

    @huey.task(retries=2)
    def noop() -> None:
        countdown.count()

    for _ in range(jobs):
        noop()
    consumer = _consumer(huey, workers)
    watch = Stopwatch()
    consumer.start()
    countdown.wait()
    figures = watch.figures(jobs)
    assert huey.pending_count() == 0
    return figures


def durable_starts(jobs: int, folder: Path, poll_s: float = POLL_S) -> dict[str, float]:
    """Submit one job at a time to a SQLite file."""
    return _starts(_durable(folder), jobs, poll_s, DURABLE_IDLE_S)


def _durable(folder: Path) -> SqliteHuey:
    huey = SqliteHuey(filename=str(folder / "huey.db"), fsync=True, immediate=False)
    assert huey.storage.conn.execute("PRAGMA synchronous").fetchone() == (2,)
    assert huey.storage.conn.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    return huey
