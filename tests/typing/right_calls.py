"""What both type checkers must infer. Nothing here runs: `./run check` reads it."""

from __future__ import annotations

import sqlite3
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any, assert_type

from betimes import (
    BoundJob,
    CircuitBreaker,
    CommandResult,
    Context,
    FairShareStrategy,
    JobHandle,
    Limit,
    LimitInfo,
    LogLine,
    Missed,
    Overlap,
    Priority,
    Rate,
    RetryBudget,
    ScheduleInfo,
    Scheduler,
    Trigger,
    at,
    calendar,
    cron,
    every,
)

scheduler = Scheduler()


@scheduler.task
async def fetch(url: str, *, attempts: int = 1) -> int:
    return len(url) * attempts


@scheduler.task(retry=5, timeout="30s")
def shout(text: str) -> str:
    return text.upper()


@scheduler.task
async def count(context: Context, *words: str) -> dict[str, int]:
    return dict.fromkeys(words, context.attempt)


@scheduler.task(priority=Priority.HIGH)
def tell(context: Context, text: str) -> None:
    context.log.info(text)


@scheduler.task(schedule=cron("0 9 * * mon-fri", tz="Europe/Berlin"), overlap="queue_one", missed=Missed.ALL)
async def digest(context: Context) -> None:
    assert_type(context.scheduled_for, datetime | None)


backup = scheduler.command("backup", ["pg_dump", "--file"], retry=3, timeout="1h", env={"PGUSER": None})
tidy = scheduler.command("tidy", "rm -f *.tmp", cwd="/tmp", ok_codes=(0, 1), schedule=cron("0 3 * * *"))


async def commands_take_texts_and_return_their_result(variables: dict[str, str]) -> None:
    job = await backup.submit("a.sql", "b.sql", stdin="text", env=variables, cwd="/tmp")
    assert_type(job, JobHandle[CommandResult])
    assert_type((await job.result()).exit_code, int)
    assert_type(await tidy.using(delay="5m").submit(env={"A": None, "B": "1"}), JobHandle[CommandResult])
    assert_type(backup("a.sql"), CommandResult)
    assert_type(await job.log(after=1), list[LogLine])


async def schedules_take_triggers_and_bound_calls() -> None:
    workdays = cron("0 9 * * mon-fri") | every("5m", align=True)
    assert_type(workdays, Trigger)
    assert_type(calendar(days=1, at="09:00").next(datetime(2030, 1, 1, tzinfo=UTC)), datetime | None)
    info = await scheduler.add_schedule("a", shout.bind("a"), workdays, overlap=Overlap.SKIP, missed="all")
    assert_type(info, ScheduleInfo)
    await scheduler.add_schedule("b", fetch.using(priority=2).bind("a"), at(datetime(2030, 1, 1, tzinfo=UTC)))
    assert_type(await scheduler.trigger_now("a"), JobHandle[Any])


async def results_have_the_type_that_the_function_returns() -> None:
    handle = await fetch.submit("a", attempts=2)
    assert_type(handle, JobHandle[int])
    assert_type(await handle.result(timeout=5), int)
    assert_type(await (await shout.submit("a")).result(), str)
    assert_type(await (await count.submit("a", "b")).result(), dict[str, int])
    assert_type(await tell.submit("a"), JobHandle[None])


async def options_keep_the_types() -> None:
    late = fetch.using(priority=Priority.HIGH, delay="5m", depends_on=[await shout.submit("a")])
    within = fetch.using(conn=sqlite3.connect("app.db"))
    assert_type(await within.submit("a"), JobHandle[int])
    assert_type(await late.submit("a", attempts=2), JobHandle[int])
    assert_type(late.bind("a"), BoundJob[int])


async def many_keep_the_types() -> None:
    assert_type(shout.bind("a"), BoundJob[str])
    assert_type(await scheduler.submit_many([shout.bind("a"), shout.bind("b")]), list[JobHandle[str]])
    assert_type(scheduler.submit_threadsafe(fetch.bind("a")), Future[JobHandle[int]])


async def a_task_is_still_its_function() -> None:
    assert_type(await fetch("a"), int)
    assert_type(shout("a"), str)


def blocking_calls_keep_the_types() -> None:
    with scheduler.blocking() as blocking:
        assert_type(blocking.submit(shout.bind("a")).result(), str)
        assert_type(fetch.submit_blocking("a").result(), int)


@scheduler.task(
    limit=Limit("api", 5, by="customer"),
    rate=[Rate("10/s", burst=2), Rate("1000/h", name="api", by="customer")],
    retry_budget=RetryBudget(0.1, window="1m"),
    breaker=CircuitBreaker(failures=5, window=60, open_for="30s"),
)
async def pay(customer: str, cents: int) -> bool:
    return bool(customer) and cents > 0


zipped = scheduler.command(
    "zip", ["zip"], limit=[Limit("disk", 2)], rate=Rate("5/d"), breaker=CircuitBreaker()
)


async def restraints_can_be_looked_at_and_changed() -> None:
    assert_type(await pay.submit("acme", 5), JobHandle[bool])
    assert_type(await scheduler.limits(), list[LimitInfo])
    info = await scheduler.limit("api", "acme", kind="rate")
    assert_type(info.opens_at, datetime | None)
    assert_type([holder.job_id for holder in info.holders], list[str])
    await scheduler.set_limit("api", 7)
    await scheduler.set_limit("api", None)
    await scheduler.set_rate("api", "5/s", burst=3)
    await scheduler.set_rate("api", None)
    await scheduler.open_circuit(pay.name)
    await scheduler.close_circuit(pay.name)
    with scheduler.blocking() as blocking:
        assert_type(blocking.limits("api"), list[LimitInfo])
        blocking.set_limit("api", 3)


async def shares_are_given_by_name() -> None:
    fair = Scheduler(strategy=FairShareStrategy(by="customer", weights={"acme": 3, "others": 0.5}))
    assert_type(await fair.rekey(), int)
    Scheduler(queues={"default": 9, "low": 1})
    Scheduler(queues=["default", "low"])
