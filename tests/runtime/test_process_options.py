"""What a scheduler takes for its processes, and that tests with virtual time start none."""

from __future__ import annotations

import logging
import os

import pytest

from betimes import ConfigurationError, Recycle, Scheduler
from betimes.testing import Jobs

scheduler = Scheduler(processes=3)


@scheduler.task(executor="process")
def where() -> int:
    return os.getpid()


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "2", 10**9])
def test_processes_is_a_count(value: object) -> None:
    with pytest.raises(ConfigurationError, match=r"processes is .* whole number"):
        Scheduler(processes=value)  # type: ignore[arg-type]


def test_more_processes_than_attempts_are_pointed_out(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "betimes"):
        Scheduler(processes=11, concurrency=10)
    assert "processes=11 never binds" in caplog.text


def test_recycle_is_a_recycle() -> None:
    Scheduler(recycle=Recycle(jobs=5))
    with pytest.raises(ConfigurationError, match="recycle is 5; it is a Recycle"):
        Scheduler(recycle=5)  # type: ignore[arg-type]


def test_on_virtual_time_process_jobs_run_inline() -> None:
    with Jobs(scheduler) as jobs:
        job = jobs.submit(where)
        jobs.drain()
        assert job.result() == os.getpid()
