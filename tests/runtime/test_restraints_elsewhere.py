"""Limits, rates and breakers without a loop, under the fixture `jobs`, and in inline mode."""

from __future__ import annotations

import pytest

from betimes import (
    CircuitBreaker,
    ConfigurationError,
    JobFailed,
    JobStatus,
    Limit,
    Rate,
    RetryBudget,
    RetryPolicy,
    Scheduler,
)
from betimes.testing import Jobs, inline_mode

COMPLETED, FAILED, READY = JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.READY


def double(number: int) -> int:
    return 2 * number


class App:
    """A program whose tasks are held back in all ways."""

    def __init__(self) -> None:
        self.scheduler = Scheduler("/nowhere/at/all/jobs.db", concurrency=5)
        self.log: list[str] = []
        self.is_down = True
        task = self.scheduler.task

        @task(name="upload", rate=Rate("1/10s", burst=2))
        def upload(path: str) -> str:
            self.log.append(path)
            return path

        @task(name="call", breaker=CircuitBreaker(failures=2, open_for="1m"), limit=Limit("l", 1))
        async def call() -> None:
            self.log.append("call")
            if self.is_down:
                raise ConnectionError("down")

        @task(name="flaky", retry=RetryPolicy(5, base_delay=0), retry_budget=RetryBudget(0.1))
        def flaky() -> None:
            raise ConnectionError("down")

        self.double = task(executor="process", name="double", limit=Limit("cpu", 2))(double)
        self.echo = self.scheduler.command("echo", ["echo"], limit=Limit("disk", 1), rate=Rate("100/s"))
        self.upload, self.call, self.flaky = upload, call, flaky


def test_the_calls_without_await_show_and_change_what_holds_tasks_back() -> None:
    scheduler = Scheduler()

    @scheduler.task(name="work", limit=Limit("l", 2), rate=Rate("1000000/s"), breaker=CircuitBreaker())
    def work() -> int:
        return 7

    with scheduler.blocking() as s:
        assert work.submit_blocking().result(timeout=30) == 7
        assert [each.name for each in s.limits()] == ["work", "l", "work"]
        s.set_limit("l", 0)
        s.set_rate("work", "1/s", burst=3)
        s.open_circuit("work")
        job = work.submit_blocking()
        assert "Limit 'l' lets 0 run at once." in str(job.explain())
        assert (s.limit("l").max_running, s.limit("work", kind="rate").burst) == (0, 3)
        assert s.limit("work", kind="breaker").is_tripped
        s.close_circuit("work")
        s.set_rate("work", None)
        s.set_limit("l", None)
        assert job.result(timeout=30) == 7
        assert (s.limit("l").max_running, s.limit("l").held) == (2, 0)
        with pytest.raises(ConfigurationError, match="kind is 'gate'; it is one of limit, rate, breaker"):
            s.limit("l", kind="gate")


def test_with_the_fixture_a_rate_s_jobs_start_as_time_is_let_pass() -> None:
    app = App()
    with Jobs(app.scheduler) as jobs:
        sent = [jobs.submit(app.upload, name) for name in "abcd"]
        assert app.log == ["a", "b"]
        assert [job.status() for job in sent] == [COMPLETED, COMPLETED, READY, READY]
        jobs.advance("9s")
        assert len(app.log) == 2
        jobs.advance("1s")
        assert app.log == ["a", "b", "c"]
        jobs.drain()
        assert app.log == ["a", "b", "c", "d"]


def test_with_the_fixture_a_breaker_opens_and_a_budget_is_spent() -> None:
    app = App()
    with Jobs(app.scheduler) as jobs:
        calls = [jobs.submit(app.call) for _ in range(4)]
        assert app.log == ["call"] * 2
        assert [job.status() for job in calls] == [FAILED, FAILED, READY, READY]
        app.is_down = False
        jobs.advance("61s")
        assert [job.status() for job in calls[2:]] == [COMPLETED] * 2
        job = jobs.submit(app.flaky)
        with pytest.raises(JobFailed, match="ConnectionError: down"):
            job.result()
        assert job.info().attempt == 2


def test_with_the_fixture_processes_and_commands_run_inline() -> None:
    app = App()
    with Jobs(app.scheduler) as jobs:
        assert jobs.submit(app.double, 21).result() == 42
        assert jobs.submit(app.echo, "hello").result().stdout == "hello\n"


def test_in_inline_mode_what_may_start_has_run() -> None:
    app = App()
    with inline_mode(app.scheduler):
        assert app.double.submit_blocking(21).result() == 42
        assert app.echo.submit_blocking("hello").result().stdout == "hello\n"
        sent = [app.upload.submit_blocking(name) for name in "abc"]
        assert app.log == ["a", "b"]
        assert [job.status() for job in sent] == [COMPLETED, COMPLETED, READY]
