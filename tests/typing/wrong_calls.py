"""What both type checkers must refuse: each marked line. A mark that has become needless fails the check.

Nothing here runs: `./run check` reads it.
"""

from __future__ import annotations

from betimes import CircuitBreaker, FairShareStrategy, Limit, Rate, RetryBudget, Scheduler, cron, every

scheduler = Scheduler()


@scheduler.task
async def fetch(url: str, *, attempts: int = 1) -> int:
    return len(url) * attempts


@scheduler.task(retry=5)
def shout(text: str) -> str:
    return text.upper()


async def wrong_arguments() -> None:
    await fetch.submit(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await fetch.submit()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await fetch.submit("a", 2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await fetch.submit("a", tries=2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await shout.submit(text=b"a")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    shout.bind(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await shout.using(delay=5).submit(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def wrong_options() -> None:
    shout.using(priority="high")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    shout.using(delai=5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    scheduler.task(retries=5)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    Scheduler(concurrancy=5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def wrong_commands() -> None:
    backup = scheduler.command("backup", ["pg_dump"])
    await backup.submit(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await backup.submit(stdin=b"a")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await backup.submit(env={"A": 1})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
    await backup.submit(input="a")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    scheduler.command("a", [1])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    scheduler.command("a", "true", timeuot=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    scheduler.command("a", "true", executor="loop")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    scheduler.command("a", "true", tags=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    number: int = await (await backup.submit()).result()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    print(number)


async def wrong_schedules() -> None:
    scheduler.task(schedule="0 9 * * *")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    await scheduler.add_schedule("a", shout, every("5m"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await scheduler.add_schedule("a", shout.bind("a"), "5m")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await scheduler.add_schedule("a", shout.bind("a"), every("5m"), overlap="never")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await scheduler.add_schedule("a", shout.bind("a"), every("5m"), missed="newest")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    cron("0 9 * * *", zone="UTC")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    cron("0 9 * * *").next("today")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def wrong_results() -> None:
    handle = await shout.submit("a")
    number: int = await handle.result()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    print(number)


async def wrong_restraints() -> None:
    scheduler.task(limit=5)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    scheduler.task(rate="10/s")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    scheduler.task(retry_budget=0.1)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    scheduler.task(breaker=5)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    scheduler.command("a", "true", limit="l")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Limit("l")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Limit("l", "5")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Rate(10)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    RetryBudget("0.1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    CircuitBreaker(failures=2.5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    FairShareStrategy()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await scheduler.set_limit("l", "5")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await scheduler.set_rate("r", 5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await scheduler.limit(name=None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
