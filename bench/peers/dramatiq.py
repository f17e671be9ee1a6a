"""dramatiq with its stub broker, in memory: eight worker threads, as it comes."""

from __future__ import annotations

import logging
import time

import dramatiq
from dramatiq import Worker
from dramatiq.brokers.stub import StubBroker

from bench.clockwork import IDLE_S, Countdown, Latencies, Stopwatch

WARM_UP = 200

logging.disable(logging.INFO)


def _broker() -> StubBroker:
    broker = StubBroker()
    dramatiq.set_broker(broker)
    return broker


def burst(jobs: int) -> dict[str, float]:
    """Send no-op messages while the workers run them."""
    broker = _broker()
    counts = [Countdown(WARM_UP), Countdown(jobs)]

    @dramatiq.actor(max_retries=2)
    def noop(which: int) -> None:
        counts[which].count()

    Worker(broker).start()
    for _ in range(WARM_UP):
        noop.send(0)
    counts[0].wait()
    watch = Stopwatch()
    for _ in range(jobs):
        noop.send(1)
    counts[1].wait()
    return watch.figures(jobs)


def starts(jobs: int) -> dict[str, float]:
    """Send one message at a time to idle workers."""
    broker = _broker()
    latencies = Latencies(jobs)

    @dramatiq.actor(max_retries=2)
    def job(number: int) -> None:
        latencies.started(number)

    Worker(broker).start()
    for number in range(jobs):
        time.sleep(IDLE_S)
        latencies.submitted(number)
        job.send(number)
        while not latencies.has_started(number):
            time.sleep(0.0005)
    return latencies.figures(skip=jobs // 10)
