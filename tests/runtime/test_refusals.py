"""Bad input: every wrong call fails at the call, with one clear error and nothing half done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.stage import COMPLETED, Scene, make_scheduler, play

from betimes import (
    BetimesError,
    ConfigurationError,
    JobFailed,
    PriorityStrategy,
    RetryPolicy,
    Scheduler,
    SchedulerClosed,
    SchedulingStrategy,
    Task,
)
from betimes.core.strategy import Sortable
from betimes.stores.memory import MemoryStore
from betimes.testing import VirtualClock, run_virtual

Bad = list[tuple[dict[str, Any], str]]


def check(call: Callable[..., object], cases: Bad, error: type[Exception] = ConfigurationError) -> None:
    """See that each of these calls is refused in words of ours."""
    for options, text in cases:
        with pytest.raises(error, match=text):
            call(**options)


# ---------------------------------------------------------------------------------------- the scheduler


def test_a_wrong_store_is_refused_and_the_forms_are_named() -> None:
    wrong: list[Any] = [
        "redis://localhost",
        "memory://",
        "sqlite://jobs.db",
        ":memory:",
        "",
        "   ",
        None,
        42,
        object(),
    ]
    for store in wrong:
        with pytest.raises(ConfigurationError, match=r"it is 'memory:', a file such as 'jobs\.db'"):
            Scheduler(store)
    with pytest.raises(ConfigurationError, match="names no file"):
        Scheduler("sqlite:///")
    with pytest.raises(ConfigurationError, match="names no file"):
        Scheduler("sqlite:///folder/")


def test_the_schedulers_options_are_checked_and_named(tmp_path: Path) -> None:
    cases: Bad = [
        ({"concurrency": 0}, "concurrency is 0"),
        ({"concurrency": True}, "concurrency is True"),
        ({"concurrency": 2.5}, r"concurrency is 2\.5"),
        ({"concurrency": 100_001}, "concurrency is 100001"),
        ({"threads": 0}, "threads is 0"),
        ({"threads": "4"}, "threads is '4'"),
        ({"processes": 0}, "processes is 0"),
        ({"processes": True}, "processes is True"),
        ({"queues": "mail"}, "queues is 'mail'"),
        ({"queues": []}, "queues is empty"),
        ({"queues": [""]}, "queues must be text"),
        ({"queues": 3}, "queues is 3"),
        ({"queues": {}}, "queues is empty"),
        ({"queues": {"default": 0}}, "the share of queue 'default' is 0"),
        ({"queues": {"default": "9"}}, "the share of queue 'default' is '9'"),
        ({"queues": {3: 9}}, "queues must be text"),
        ({"lease": 0}, "lease must be more than zero"),
        ({"lease": -1}, "lease must not be negative"),
        ({"lease": "soon"}, "lease='soon' is no duration"),
        ({"grace": -1}, "grace must not be negative"),
        ({"keep": float("inf")}, "keep must be finite"),
        ({"poll": 0}, "poll must be more than zero"),
        ({"watchdog": 0}, "watchdog must be more than zero"),
        ({"history": 0}, "history is 0"),
        ({"history": "many"}, "history is 'many'"),
        ({"strategy": PriorityStrategy}, "strategy is <class"),
        ({"strategy": "priority"}, "strategy is 'priority'"),
        ({"clock": 3}, "clock is 3"),
        ({"rng": 3}, "rng is 3"),
        ({"executors": [3]}, "executors"),
    ]
    check(Scheduler, cases)
    check(partial(Scheduler, tmp_path / "jobs.db"), cases)
    assert list(tmp_path.iterdir()) == []


def test_case_160_an_unknown_option_names_the_nearest() -> None:
    scheduler = make_scheduler(VirtualClock())

    @scheduler.task
    async def work() -> None: ...

    untyped: Any = work
    check(
        Scheduler,
        [
            (
                {"concurency": 3},
                r"Scheduler\(\) got an unknown option 'concurency'; did you mean 'concurrency'",
            ),
            ({"workers": 3}, "the options are .*concurrency"),
        ],
        TypeError,
    )
    check(
        untyped.using,
        [
            ({"prioritty": 3}, r"using\(\) got an unknown option 'prioritty'; did you mean 'priority'"),
            ({"retries": 3}, "did you mean 'retry'"),
            ({"time_out": 3}, "did you mean 'timeout'"),
            ({"depend_on": 3}, "did you mean 'depends_on'"),
        ],
        TypeError,
    )
    check(
        untyped_task(scheduler),
        [
            ({"que": "x"}, r"task\(\) got an unknown option 'que'; did you mean 'queue'"),
            ({"time_limit": 1}, "unknown option 'time_limit'"),
        ],
        TypeError,
    )


def untyped_task(scheduler: Scheduler) -> Any:
    return scheduler.task


# ---------------------------------------------------------------------------------------- tasks


def test_a_tasks_options_are_checked_and_named() -> None:
    scheduler = make_scheduler(VirtualClock())

    async def work() -> None: ...

    cases: Bad = [
        ({"name": ""}, "name must be text"),
        ({"name": 3}, "name must be text"),
        ({"name": "x" * 501}, "name must be text"),
        ({"name": "a\nb"}, "name must be text"),
        ({"queue": None}, "queue must be text"),
        ({"priority": 1001}, "priority"),
        ({"priority": "high"}, "priority"),
        ({"priority": True}, "priority"),
        ({"retry": 0}, "retry must be a whole number of at least 1"),
        ({"retry": -1}, "retry must be a whole number of at least 1"),
        ({"retry": "3"}, "retry must be a number of attempts or a RetryPolicy"),
        ({"retry": True}, "retry must be a number of attempts or a RetryPolicy"),
        ({"timeout": 0}, "timeout must be more than zero"),
        ({"timeout": -5}, "timeout must not be negative"),
        ({"timeout": float("inf")}, "timeout must be finite.*None"),
        ({"timeout": float("nan")}, "timeout must be finite"),
        ({"timeout": "90"}, "timeout='90' is no duration"),
        ({"timeout": timedelta(days=40_000)}, "timeout must be at most 100 years"),
        ({"expires": 0}, "expires must be more than zero"),
        ({"keep": -1}, "keep must not be negative"),
        ({"delivery": "exactly_once"}, "delivery is 'exactly_once'; it is 'at_least_once' or 'at_most_once'"),
        ({"executor": "thraed"}, "executor is 'thraed'.*did you mean 'thread'"),
        ({"executor": "process"}, "cannot run with executor='process'.* it is a coroutine function"),
        ({"limit": 5}, "limit is 5; write limit=Limit"),
        ({"rate": "10/s"}, "rate is '10/s'; write rate=Rate"),
        ({"retry_budget": 0.1}, "retry_budget is 0.1; write retry_budget=RetryBudget"),
        ({"breaker": 5}, "breaker is 5; write breaker=CircuitBreaker"),
        ({"executor": 3}, "executor is 3"),
        ({"tags": "one"}, r"tags takes several texts: write tags=\['one'\]"),
        ({"tags": [3]}, "tags must be text"),
        ({"tags": 3}, "tags takes several texts"),
    ]
    for options, text in cases:
        with pytest.raises(ConfigurationError, match=text):
            untyped_task(scheduler)(**options)(work)
    assert "0 tasks" in repr(scheduler)
    scheduler.task(timeout=None, retry=None, expires=None, keep=None)(work)


def test_case_160_attempts_and_limits_are_switched_off_by_none_only() -> None:
    for wrong in (0, -1, 1.5, "3", None, True):
        with pytest.raises(ConfigurationError, match="max_attempts must be a whole number of at least 1"):
            RetryPolicy(wrong)  # type: ignore[arg-type]
    assert RetryPolicy(1).max_attempts == 1
    assert RetryPolicy(1, max_delay=None).max_delay > 1e9


def test_a_name_is_taken_once() -> None:
    scheduler = make_scheduler(VirtualClock())

    @scheduler.task(name="work")
    async def first() -> None: ...

    async def second() -> None: ...

    with pytest.raises(ConfigurationError, match="a task named 'work' is registered already"):
        scheduler.task(name="work")(second)
    with pytest.raises(ConfigurationError, match="is a task already"):
        scheduler.task(first)


class Callable1:
    """An object with an asynchronous call."""

    async def __call__(self, number: int) -> int:
        return number


def test_only_functions_can_be_tasks() -> None:
    scheduler = make_scheduler(VirtualClock())

    def generator() -> Any:
        yield 1

    async def async_generator() -> Any:
        yield 1

    def unreadable(number: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    register = untyped_task(scheduler)
    for fn, text in [
        (3, "a task is made of a function"),
        ("work", "a task is made of a function"),
        (generator, "generator"),
        (async_generator, "generator"),
        (lambda: 1, "has no name to store with its jobs"),
        (Callable1(), "has no name to store with its jobs"),
        (dict, "class"),
        (unreadable, "'Missing', which is not there at run time"),
    ]:
        with pytest.raises(ConfigurationError, match=text):
            register(fn)
    assert "0 tasks" in repr(scheduler)


def test_case_068_lambdas_and_the_like_need_a_name_and_then_run() -> None:
    async def scene(stage: Scene) -> None:
        register = stage.scheduler.task

        def add(a: int, b: int) -> int:
            return a + b

        tasks: list[Task[..., Any]] = [
            untyped_task(stage.scheduler)(name="lambda")(lambda a: a + 1),
            register(name="partial")(partial(add, 1)),
            register(name="object")(Callable1()),
            register(name="method")(stage.__class__.settle.__get__(stage)),
        ]
        calls: list[tuple[Any, ...]] = [(1,), (1,), (5,), ()]
        handles = [await task.submit(*call) for task, call in zip(tasks, calls, strict=True)]
        results = [await handle.result() for handle in handles]
        assert results == [2, 2, 5, None]
        with pytest.raises(ConfigurationError, match=r"executor='process'.* it is a lambda"):
            untyped_task(stage.scheduler)(executor="process", name="late")(lambda: 1)
        with pytest.raises(ConfigurationError, match=r"executor='process'.* it is a lambda"):
            untyped_task(stage.scheduler)(executor="process")(lambda: 1)
        with pytest.raises(ConfigurationError, match=r"scheduler\.command\("):
            untyped_task(stage.scheduler)(executor="command")(len)

    play(scene)


def test_case_070_a_coroutine_is_never_taken_for_a_result() -> None:
    async def scene(stage: Scene) -> None:
        async def coroutine_function(number: int) -> int:
            return number

        for fn in (coroutine_function, partial(coroutine_function, 1), Callable1()):
            with pytest.raises(ConfigurationError, match="would never be awaited"):
                untyped_task(stage.scheduler)(executor="thread", name="x")(fn)
        with pytest.raises(ConfigurationError, match="plain function: on the event loop it would block"):
            untyped_task(stage.scheduler)(executor="loop")(plain)

        @stage.scheduler.task
        def returns_a_coroutine() -> Any:
            return coroutine_function(1)

        with pytest.raises(JobFailed, match="PayloadError"):
            await (await returns_a_coroutine.submit()).result()
        task = stage.scheduler.task(name="partial")(partial(coroutine_function, 7))
        assert await (await task.submit()).result() == 7
        assert (await stage.scheduler.metrics()).completed == 1

    def plain() -> None: ...

    play(scene)


def test_case_156_plain_functions_do_not_run_on_the_loop() -> None:
    import threading  # noqa: PLC0415 - only here

    async def main() -> None:
        scheduler = Scheduler(watchdog=None)

        @scheduler.task
        def where() -> bool:
            return threading.current_thread() is threading.main_thread()

        async with scheduler:
            assert await (await where.submit()).result(timeout=30) is False

    asyncio.run(main())


# ---------------------------------------------------------------------------------------- submits


def test_the_options_of_a_submit_are_checked_and_named() -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work() -> None: ...

        naive = datetime(2030, 1, 1)  # noqa: DTZ001 - the point
        aware = stage.clock.now()
        cases: Bad = [
            ({"priority": 5000}, "priority"),
            ({"priority": None}, "priority"),
            ({"delay": -1}, "delay must not be negative"),
            ({"delay": "yesterday"}, "delay='yesterday' is no duration"),
            ({"delay": float("nan")}, "delay must be finite"),
            ({"delay": None}, "delay must be"),
            ({"delay": "200000w"}, "delay must be at most 100 years"),
            ({"run_at": naive}, "run_at must be an aware datetime"),
            ({"run_at": aware}, "run_at must be an aware datetime"),
            ({"expires": naive}, "expires must be an aware datetime"),
            ({"expires": 0}, "expires must be more than zero"),
            ({"delay": 1, "run_at": stage_start()}, "delay and run_at"),
            ({"job_id": ""}, "job_id must be text"),
            ({"job_id": 7}, "job_id must be text"),
            ({"replace": True}, "replace=True"),
            ({"key": ""}, "key must be text"),
            ({"key": "k", "key_for": 0}, "key_for must be more than zero"),
            ({"key_for": 60}, "key_for"),
            ({"queue": ""}, "queue must be text"),
            ({"timeout": 0}, "timeout must be more than zero"),
            ({"timeout": -1}, "timeout must not be negative"),
            ({"retry": 0}, "retry must be a whole number of at least 1"),
            ({"retry": "often"}, "retry"),
            ({"tags": "one"}, "tags takes several texts"),
            ({"tags": [None]}, "tags must be text"),
            ({"on_dependency_failure": "explode"}, "on_dependency_failure is 'explode'"),
        ]
        check(work.using, cases)
        assert await stage.scheduler.jobs() == []

    play(scene)


def stage_start() -> datetime:
    from betimes.testing.clock import DEFAULT_START  # noqa: PLC0415 - only here

    return DEFAULT_START


def test_submitting_something_else_than_a_bound_call_is_refused() -> None:
    async def scene(stage: Scene) -> None:
        scheduler: Any = stage.scheduler

        @stage.scheduler.task
        async def work() -> None: ...

        other = make_scheduler(VirtualClock())

        async def nothing() -> None: ...

        theirs = other.task(nothing).bind()
        for wrong, text in [
            (work, r"made with task\.bind"),
            (work.submit(), r"write task\.bind\(…\), not task\.submit\(…\)"),
            (3, r"made with task\.bind"),
            (theirs, "is a task of another scheduler"),
        ]:
            with pytest.raises(ConfigurationError, match=text):
                await scheduler.submit_many([work.bind(), wrong])
        with pytest.raises(ConfigurationError, match=r"made with task\.bind"):
            scheduler.submit_threadsafe(work)
        with pytest.raises(ConfigurationError, match=r"made with task\.bind"):
            await scheduler.submit_graph({"a": (work, [])})
        entries: list[Any] = [3, work, (work.bind(),), (work.bind(), 3), (work.bind(), [], [])]
        for entry in entries:
            with pytest.raises(ConfigurationError, match=r"'a' in the graph is .*; it is task\.bind"):
                await scheduler.submit_graph({"a": entry})
        with pytest.raises(ConfigurationError, match="takes a dict from names to calls"):
            await scheduler.submit_graph([work.bind()])
        assert await stage.scheduler.jobs() == []

    play(scene)


def test_looking_and_acting_with_wrong_arguments_is_refused() -> None:
    async def scene(stage: Scene) -> None:
        scheduler: Any = stage.scheduler
        wrong: list[tuple[Callable[[], Any], str]] = [
            (lambda: scheduler.jobs(limit=0), "limit is 0"),
            (lambda: scheduler.jobs(limit=1001), "limit is 1001"),
            (lambda: scheduler.jobs(limit="all"), "limit is 'all'"),
            (lambda: scheduler.jobs(status="done"), "status is 'done'; it is one of blocked"),
            (lambda: scheduler.jobs(before="x"), "before is 'x'"),
            (lambda: scheduler.jobs(task=3), "task must be text"),
            (lambda: scheduler.jobs(queue=3), "queue must be text"),
            (lambda: scheduler.jobs(tag=3), "tag must be text"),
            (lambda: scheduler.job(3), "job_id must be text"),
            (lambda: scheduler.cancel(None), "job_id must be text"),
            (lambda: scheduler.retry(""), "job_id must be text"),
            (lambda: scheduler.pause_queue(""), "name must be text"),
            (lambda: scheduler.resume_queue(3), "name must be text"),
            (lambda: scheduler.drain(timeout=-1), "timeout must not be negative"),
            (lambda: scheduler.stop(timeout="later"), "timeout='later' is no duration"),
        ]
        for call, text in wrong:
            with pytest.raises(ConfigurationError, match=text):
                await call()

        @stage.scheduler.task
        async def work() -> None: ...

        handle = await work.submit()
        with pytest.raises(ConfigurationError, match="timeout must not be negative"):
            await handle.wait(timeout=-1)
        with pytest.raises(ConfigurationError, match="timeout='x' is no duration"):
            await handle.result(timeout="x")
        assert await handle.wait() is COMPLETED

    play(scene)


def test_everything_but_the_metrics_needs_an_open_scheduler() -> None:
    async def main() -> None:
        scheduler = make_scheduler(VirtualClock())

        @scheduler.task
        async def work() -> None: ...

        async with scheduler:
            handle = await work.submit()
            await handle.wait()
        calls: list[Callable[[], Any]] = [
            lambda: scheduler.job(handle.id),
            scheduler.jobs,
            lambda: scheduler.cancel(handle.id),
            lambda: scheduler.retry(handle.id),
            lambda: scheduler.explain(handle.id),
            lambda: scheduler.pause_queue("default"),
            lambda: scheduler.resume_queue("default"),
            scheduler.drain,
            handle.status,
            handle.info,
            handle.wait,
            handle.result,
            handle.cancel,
            handle.explain,
        ]
        for call in calls:
            with pytest.raises(SchedulerClosed, match="not open"):
                await call()

    run_virtual(main())


# ---------------------------------------------------------------------------------------- strategies


class Broken(SchedulingStrategy):
    """Fails for some priorities, and gives wrong keys for others."""

    name = "broken"

    def key(self, job: Sortable) -> int:
        answers: dict[int, Any] = {1: 1, 2: 2**63, 3: "first", 4: 1.5, 5: None}
        if job.priority == 9:
            raise ZeroDivisionError("by zero")
        return answers[job.priority]  # type: ignore[no-any-return]


def test_a_strategy_that_raises_fails_the_submit_and_nothing_else() -> None:
    async def scene(stage: Scene) -> None:
        @stage.scheduler.task
        async def work() -> str:
            return "fine"

        with pytest.raises(
            ConfigurationError, match="raised ZeroDivisionError: by zero; the job was not submitted"
        ):
            await work.using(priority=9).submit()
        for priority in (2, 3, 4, 5):
            with pytest.raises(ConfigurationError, match="the strategy 'broken' gave the sort key"):
                await stage.scheduler.submit_many([work.bind(), work.using(priority=priority).bind()])
        assert await stage.scheduler.jobs() == []
        assert await (await work.submit()).result() == "fine"

    play(scene, strategy=Broken())


def test_a_store_refuses_another_strategy() -> None:
    async def main() -> None:
        store = MemoryStore(clock=clock)
        first = make_scheduler(clock, store)

        async def work() -> None: ...

        first.task(name="work")(work)
        async with first.client():
            await first.task(name="again")(work).submit()
        second = make_scheduler(clock, store, strategy=Broken())
        with pytest.raises(ConfigurationError, match=r"'priority'.*'broken'"):
            await second.start()

    clock = VirtualClock()
    run_virtual(main(), clock=clock)


def test_every_error_has_the_one_root() -> None:
    assert issubclass(ConfigurationError, BetimesError)
    assert issubclass(SchedulerClosed, BetimesError)
