"""The fixture `jobs`: a program's scheduler in memory and on virtual time, told what happens when."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests.runtime.stage import pass_time

from betimes import (
    ConfigurationError,
    Context,
    JobEvent,
    JobFailed,
    JobStatus,
    JobTimedOut,
    RetryPolicy,
    Scheduler,
    SchedulerClosed,
    cron,
    every,
)
from betimes.testing import InlineExecutor, Jobs

START = datetime(2030, 1, 1, tzinfo=UTC)
WHEN = datetime(2031, 6, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Letter:
    """What a job is given, and must get as its own type."""

    to: str
    tags: frozenset[str] = frozenset()


class App:
    """A program whose scheduler names a file that cannot even be made."""

    def __init__(self) -> None:
        self.scheduler = Scheduler("/nowhere/at/all/jobs.db", concurrency=3)
        self.log: list[Any] = []
        self.down = False
        task = self.scheduler.task

        @task(name="send", retry=RetryPolicy(3, base_delay="5m", max_delay="1h", jitter=False))
        def send(user: str, *, urgent: bool = False) -> str:
            self.log.append((user, urgent))
            if self.down:
                raise ConnectionError("no server")
            return f"to {user}"

        @task(name="post")
        async def post(context: Context, letter: Letter, *more: int) -> Letter:
            self.log.append((letter, more, context.attempt))
            return letter

        @task(name="nothing")
        async def nothing() -> None:
            self.log.append("nothing")

        @task(name="repeat")
        async def repeat(word: str, times: int = 2) -> str:
            return word * times

        @task(name="fail")
        async def fail(text: str) -> None:
            raise ValueError(text)

        @task(name="chain")
        def chain(length: int) -> None:
            self.log.append(length)
            if length:
                chain.submit_blocking(length - 1)

        self.send, self.post, self.nothing = send, post, nothing
        self.repeat, self.fail, self.chain = repeat, fail, chain

    async def sign_up(self, user: str) -> str:
        job = await self.send.using(delay="1h").submit(user)
        return await job.result()


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
def betimes_scheduler(app: App) -> Scheduler:
    return app.scheduler


# --- time


def test_time_stands_still_until_the_test_moves_it(jobs: Jobs) -> None:
    assert jobs.now == START
    jobs.advance("1h30m")
    jobs.advance(0.25)
    jobs.advance(timedelta(microseconds=1))
    assert jobs.now == START + timedelta(hours=1, minutes=30, microseconds=250_001)
    jobs.advance_to(WHEN.astimezone(ZoneInfo("Asia/Tokyo")))
    assert jobs.now == WHEN
    jobs.advance_to(WHEN)
    assert jobs.now == WHEN


def test_when_a_call_returns_all_has_happened_that_can_happen_then(jobs: Jobs, app: App) -> None:
    async def submit() -> None:
        await app.send.submit("eve")

    jobs.submit(app.send, "ada")
    assert app.log == [("ada", False)]
    jobs.run(submit())
    assert app.log == [("ada", False), ("eve", False)]
    jobs.submit(app.chain, 2)
    assert app.log[2:] == [2, 1, 0]


def test_what_is_due_at_the_very_end_of_a_step_has_happened(jobs: Jobs, app: App) -> None:
    delays = [0.1, 0.2, 0.3, 0.7, 1.1]
    for delay in delays:
        jobs.submit(app.send.using(delay=delay), str(delay))
    for _ in range(11):
        jobs.advance(0.1)
        seconds = (jobs.now - START).total_seconds()
        assert [float(user) for user, _ in app.log] == [delay for delay in delays if delay <= seconds]


def test_every_timer_on_the_way_runs_at_its_own_instant(jobs: Jobs, app: App) -> None:
    seen: list[datetime] = []

    @app.scheduler.task(schedule=every("20m"))
    async def tick() -> None:
        seen.append(jobs.now)
        await pass_time(60)
        seen.append(jobs.now)

    jobs.advance("1h")
    minutes = [(instant - START) / timedelta(minutes=1) for instant in seen]
    assert minutes == [20, 21, 40, 41, 60]


def test_the_clock_can_be_set_as_an_operator_would(jobs: Jobs, app: App) -> None:
    job = jobs.submit(app.send.using(run_at=datetime(2030, 1, 2, tzinfo=UTC)), "ada")
    jobs.clock.jump("36h")
    assert jobs.now == START + timedelta(hours=36)
    jobs.advance(0)
    assert (jobs.now, job.status()) == (START + timedelta(hours=36), JobStatus.COMPLETED)


@pytest.mark.parametrize("instant", [datetime(2029, 12, 31, tzinfo=UTC), WHEN.replace(tzinfo=None)])
def test_time_does_not_go_to_the_past_or_to_naive_instants(jobs: Jobs, instant: datetime) -> None:
    with pytest.raises(ConfigurationError, match=r"is past.*clock\.jump|aware"):
        jobs.advance_to(instant)
    with pytest.raises(ConfigurationError, match="duration"):
        jobs.advance(-1)
    assert jobs.now == START


# --- running


def test_the_programs_coroutines_run_on_the_loop_and_time_passes_as_they_wait(jobs: Jobs, app: App) -> None:
    assert jobs.run(app.sign_up("ada")) == "to ada"
    assert jobs.now == START + timedelta(hours=1)


def test_a_job_is_followed_without_await(jobs: Jobs, app: App) -> None:
    app.down = True
    job = jobs.submit(app.send, "ada", urgent=True)
    assert job.status() is JobStatus.DELAYED
    jobs.advance("6m")
    app.down = False
    assert job.result() == "to ada"
    assert jobs.now == START + timedelta(minutes=15)
    assert [each.outcome for each in job.info().attempts] == ["failed", "failed", "completed"]


def test_arguments_and_results_make_their_way_through_json(jobs: Jobs, app: App) -> None:
    letter = Letter("ada", frozenset({"a", "b"}))
    job = jobs.submit(app.post, letter, 1, 2)
    result = job.result()
    assert app.log == [(letter, (1, 2), 1)]
    assert result == letter
    assert result is not letter
    assert app.log[0][0] is not letter


def test_code_without_a_loop_submits_as_it_always_does(jobs: Jobs, app: App) -> None:
    job = app.send.submit_blocking("ada")
    future = app.scheduler.submit_threadsafe(app.send.bind("eve"))
    assert future.done()
    assert job.result() == "to ada"
    assert jobs.run(future.result().result()) == "to eve"
    app.scheduler.submit_threadsafe(app.nothing.bind())
    jobs.drain()
    assert app.log == [("ada", False), ("eve", False), "nothing"]


def test_another_thread_submits_while_the_loop_waits_for_it(jobs: Jobs, app: App) -> None:
    found: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        with ThreadWork(loop):
            await asyncio.to_thread(lambda: found.append(app.send.submit_blocking("ada").result()))

    jobs.run(main())
    assert found == ["to ada"]


class ThreadWork:
    """Has `asyncio.to_thread` use a real thread meanwhile."""

    def __init__(self, loop: Any) -> None:
        self.pool = ThreadPoolExecutor(1)
        loop.set_default_executor(self.pool)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        self.pool.shutdown(wait=False)


def test_a_thread_job_submits_others_but_cannot_wait_for_them(jobs: Jobs, app: App) -> None:
    @app.scheduler.task
    def wait() -> None:
        app.nothing.submit_blocking().result()

    jobs.submit(app.chain, 3)
    waiting = jobs.submit(wait)
    jobs.drain()
    assert [each for each in app.log if each != "nothing"] == [3, 2, 1, 0]
    with pytest.raises(JobFailed, match="a thread job runs inline in a test, and cannot wait"):
        waiting.result()


def test_thread_jobs_run_in_the_tests_own_thread(jobs: Jobs, app: App) -> None:
    @app.scheduler.task
    def where() -> bool:
        return threading.current_thread() is threading.main_thread()

    assert jobs.submit(where).result()


def test_a_drain_waits_for_delays_retries_and_dependencies(jobs: Jobs, app: App) -> None:
    app.down = True
    first = jobs.submit(app.send.using(delay="60d"), "ada")
    second = jobs.submit(app.send.using(depends_on=first.handle, on_dependency_failure="run"), "eve")
    jobs.drain()
    assert (first.status(), second.status()) == (JobStatus.FAILED, JobStatus.FAILED)
    assert jobs.now == START + timedelta(days=60, minutes=30)


def test_a_drain_that_takes_too_long_says_what_is_left(jobs: Jobs, app: App) -> None:
    @app.scheduler.task(name="hang")
    async def hang() -> None:
        await asyncio.Event().wait()

    for _ in range(23):
        jobs.submit(app.nothing.using(delay="2d"))
    job = jobs.submit(hang)
    with pytest.raises(TimeoutError) as caught:
        jobs.drain("1d")
    lines = str(caught.value).splitlines()
    assert lines[0] == "after 1d of virtual time these are not done:"
    assert lines[1] == f"  RUNNING hang, job {job.id}"
    assert lines[2].startswith("  DELAYED nothing, job ")
    assert lines[-1] == "  and 4 more"
    with pytest.raises(TimeoutError, match="hang"):
        jobs.drain()
    assert jobs.now == START + timedelta(days=366)


def test_a_failed_job_fails_the_test_only_if_asked(jobs: Jobs, app: App) -> None:
    @app.scheduler.task(timeout="1s", name="slow")
    async def slow() -> None:
        await pass_time(10)

    jobs.submit(app.fail, "a")
    jobs.submit(slow)
    jobs.drain()
    with pytest.raises(JobFailed, match="ValueError: a") as caught:
        jobs.drain(raise_failures=True)
    notes = "\n".join(caught.value.__notes__)
    assert "raise ValueError(text)" in notes
    assert "and slow, job" in notes
    jobs.drain(raise_failures=True)  # they were raised once
    jobs.submit(slow)
    with pytest.raises(JobTimedOut):
        jobs.drain(raise_failures=True)


def test_an_attempt_that_is_made_up_for_is_no_failure(jobs: Jobs, app: App) -> None:
    app.down = True
    jobs.submit(app.send, "ada")
    jobs.advance("1m")
    app.down = False
    jobs.drain(raise_failures=True)
    assert "send, job" in jobs.failures()
    assert "attempt 1: DELAYED: ConnectionError: no server" in jobs.failures()


def test_many_failures_are_named_up_to_a_limit(jobs: Jobs, app: App) -> None:
    for number in range(30):
        jobs.submit(app.fail, str(number))
    with pytest.raises(JobFailed, match="ValueError: 0") as caught:
        jobs.drain(raise_failures=True)
    assert caught.value.__notes__[-1] == "and 9 more"


def test_a_stopped_program_misses_its_schedules(jobs: Jobs, app: App) -> None:
    @app.scheduler.task(name="tick", schedule=every("1h"), missed="all", overlap="allow")
    async def tick() -> None: ...

    jobs.advance("2h")
    jobs.stop()
    jobs.advance("3h")
    with pytest.raises(SchedulerClosed):
        jobs.submit(app.nothing)
    jobs.assert_submitted(tick, times=2)
    jobs.start()
    jobs.drain()
    jobs.assert_submitted(tick, times=5)


def test_a_program_that_opens_the_scheduler_itself_runs_once_it_is_stopped(jobs: Jobs, app: App) -> None:
    async def main() -> str:
        async with app.scheduler:
            return await (await app.send.submit("ada")).result()

    with pytest.raises(ConfigurationError, match="open already"):
        jobs.run(main())
    jobs.stop()
    assert jobs.run(main()) == "to ada"


def test_a_coroutine_is_run_and_nothing_else(jobs: Jobs, app: App) -> None:
    with pytest.raises(ConfigurationError, match=r"jobs\.run\(main\(\)\)"):
        jobs.run(app.sign_up)  # type: ignore[arg-type]


def test_only_tasks_of_the_scheduler_under_test_are_submitted(jobs: Jobs, app: App) -> None:
    other = App()
    with pytest.raises(ConfigurationError, match="another scheduler"):
        jobs.submit(other.nothing)
    with pytest.raises(ConfigurationError, match="takes a task"):
        jobs.submit(app.log.append, 1)  # type: ignore[arg-type]


def test_the_same_seed_gives_the_same_ids() -> None:
    ids = []
    for seed in (1, 1, 2):
        app = App()
        with Jobs(app.scheduler, seed=seed) as jobs:
            ids.append(jobs.submit(app.nothing).id)
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.betimes(start=WHEN)
class TestMarked:
    """The marker says when it is."""

    def test_the_nearest_marker_counts(self, jobs: Jobs) -> None:
        assert jobs.now == WHEN

    @pytest.mark.betimes(start=START + timedelta(days=1), seed=3)
    def test_that_of_the_function_is_nearer(self, jobs: Jobs) -> None:
        assert jobs.now == START + timedelta(days=1)

    @pytest.mark.betimes(seed=3)
    def test_what_it_does_not_say_is_said_by_the_next(self, jobs: Jobs) -> None:
        assert jobs.now == WHEN


# --- async tests


def test_in_an_async_test_it_says_what_to_do() -> None:
    app = App()

    async def use() -> None:
        with pytest.raises(ConfigurationError, match="plain 'def'"), Jobs(app.scheduler):
            raise AssertionError("it must not come so far")

    asyncio.run(use())
    assert "SqliteStore not open" in repr(app.scheduler)


def test_time_is_not_moved_from_within_what_runs(jobs: Jobs) -> None:
    async def move() -> None:
        jobs.advance(1)

    with pytest.raises(ConfigurationError, match=r"asyncio\.sleep"):
        jobs.run(move())


# --- a year


def test_a_year_of_schedules_on_virtual_time(jobs: Jobs, app: App) -> None:
    instants: dict[str, list[datetime]] = {"daily": [], "hourly": [], "office": []}

    @app.scheduler.task(name="daily", schedule=every("1d"))
    async def daily(context: Context) -> None:
        assert context.scheduled_for is not None
        instants["daily"].append(context.scheduled_for)

    @app.scheduler.task(name="hourly", schedule=every("1h"))
    def hourly(context: Context) -> None:
        assert context.scheduled_for is not None
        instants["hourly"].append(context.scheduled_for)

    @app.scheduler.task(name="office", schedule=cron("0 9 * * mon-fri", tz="Europe/Berlin"))
    async def office(context: Context) -> None:
        assert context.scheduled_for is not None
        instants["office"].append(context.scheduled_for)

    jobs.advance_to(datetime(2031, 1, 1, tzinfo=UTC))
    assert {name: len(each) for name, each in instants.items()} == {
        "daily": 365,
        "hourly": 8760,
        "office": 261,  # 2030 begins and ends on a Tuesday: 52 weeks and one day
    }
    berlin = [each.astimezone(ZoneInfo("Europe/Berlin")) for each in instants["office"]]
    assert {(each.hour, each.minute) for each in berlin} == {(9, 0)}
    assert {each.utcoffset() for each in berlin} == {timedelta(hours=1), timedelta(hours=2)}
    assert {each.weekday() for each in berlin} == {0, 1, 2, 3, 4}
    jobs.assert_submitted(hourly, times=8760)


def test_a_year_in_which_a_job_hangs_or_is_waited_for_takes_few_turns(
    jobs: Jobs, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.scheduler.task
    async def hang() -> None:
        await asyncio.Event().wait()

    exchange, ended, calls = jobs._store.exchange, jobs._store.ended, [0, 0]

    async def count_exchange(*args: Any) -> Any:
        calls[0] += 1
        return await exchange(*args)

    async def count_ended(*args: Any) -> Any:
        calls[1] += 1
        return await ended(*args)

    monkeypatch.setattr(jobs._store, "exchange", count_exchange)
    monkeypatch.setattr(jobs._store, "ended", count_ended)
    jobs.submit(hang)
    assert jobs.submit(app.send.using(delay="365d"), "ada").result() == "to ada"
    assert calls[0] < 12_000
    assert calls[1] < 12_000


# --- as it was


def wiring(scheduler: Scheduler) -> tuple[object, ...]:
    return (scheduler._parts, scheduler._engine, scheduler._maker, scheduler._store, scheduler._run_here)


@pytest.mark.parametrize("ending", ["plainly", "by an error", "stopped", "with jobs running"])
def test_the_scheduler_is_afterwards_what_it_was(app: App, ending: str) -> None:
    before, heard = wiring(app.scheduler), len(list(app.scheduler._engine.journal.listeners))
    began: list[int] = []

    @app.scheduler.task
    async def hang() -> None:
        began.append(1)
        await asyncio.Event().wait()

    def test() -> None:
        with Jobs(app.scheduler) as jobs:
            jobs.submit(app.nothing)
            app.scheduler.listen(app.log.append)
            if ending == "by an error":
                raise ZeroDivisionError
            if ending == "stopped":
                jobs.stop()
            if ending == "with jobs running":
                jobs.submit(hang)
                jobs.advance(1)
                assert began

    if ending == "by an error":
        with pytest.raises(ZeroDivisionError):
            test()
    else:
        test()
    assert wiring(app.scheduler) == before
    assert len(list(app.scheduler._engine.journal.listeners)) == heard
    assert repr(app.scheduler).startswith("<Scheduler SqliteStore not open")


def test_each_test_begins_with_an_empty_store() -> None:
    app = App()
    for _ in range(2):
        with Jobs(app.scheduler) as jobs:
            assert jobs.submitted() == []
            jobs.submit(app.nothing)
            jobs.assert_submitted(app.nothing, times=1)


def test_tasks_and_schedules_that_come_during_a_test_stay() -> None:
    app = App()
    with Jobs(app.scheduler) as jobs:

        @app.scheduler.task(name="late", schedule=every("1h"))
        async def late() -> None: ...

        jobs.advance("1h")
        jobs.assert_submitted(late, times=1)
    with Jobs(app.scheduler) as jobs:
        jobs.advance("2h")
        jobs.assert_submitted(late, times=2)
    assert [asked.id for asked in app.scheduler._engine.timetable.declared()] == ["late"]


def test_the_programs_listeners_hear_what_happens(app: App) -> None:
    heard: list[JobEvent] = []
    app.scheduler.listen(heard.append)
    with Jobs(app.scheduler) as jobs:
        jobs.submit(app.nothing)
        jobs.drain()
    assert [event.after for event in heard] == [JobStatus.READY, JobStatus.RUNNING, JobStatus.COMPLETED]


def test_an_open_scheduler_is_left_alone() -> None:
    scheduler = Scheduler(executors=[InlineExecutor()])

    async def main() -> None:
        async with scheduler:
            await asyncio.to_thread(refused)
            assert scheduler._engine.is_open

    def refused() -> None:
        with pytest.raises(ConfigurationError, match="is open, so a test cannot"), Jobs(scheduler):
            raise AssertionError("it must not come so far")

    before = wiring(scheduler)
    asyncio.run(main())
    assert wiring(scheduler) == before


def test_one_test_tests_one_scheduler() -> None:
    app, other = App(), App()
    with Jobs(app.scheduler) as jobs:
        jobs.use(app.scheduler)
        with pytest.raises(ConfigurationError, match="another scheduler already"):
            jobs.use(other.scheduler)
        jobs.submit(app.nothing)
    with Jobs() as jobs, pytest.raises(ConfigurationError, match="tests a Scheduler, not"):
        jobs.use("jobs.db")  # type: ignore[arg-type]


def test_it_can_be_told_later_which_scheduler() -> None:
    app = App()
    with Jobs() as jobs:
        for call in (jobs.drain, jobs.start, jobs.stop, jobs.submitted, lambda: jobs.advance(1)):
            with pytest.raises(ConfigurationError, match="def betimes_scheduler"):
                call()
        with pytest.raises(ConfigurationError, match="def betimes_scheduler"):
            jobs.run(app.sign_up("ada"))
        with pytest.raises(ConfigurationError, match="def betimes_scheduler"):
            jobs.assert_submitted(app.nothing)
        jobs.use(app.scheduler)
        jobs.submit(app.nothing)
        jobs.assert_submitted(app.nothing)
