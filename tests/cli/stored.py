"""A file with jobs in every state, made by a program that has ended: what an operator finds."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from betimes import Limit, Scheduler, cron


@dataclass(frozen=True)
class Stored:
    """The ids of its jobs."""

    done: str
    failed: str
    delayed: str
    ready: str
    blocked: str


def fill(path: Path) -> Stored:
    """Run a program on the file, and return what it has left."""
    scheduler = Scheduler(path, queues=["default"], watchdog=None)

    @scheduler.task(name="add", tags=["sums"])
    async def add(a: int) -> int:
        return a

    @scheduler.task(name="fail")
    def fail() -> None:
        print("about to fail")
        raise ValueError("no luck")

    @scheduler.task(name="nightly", schedule=cron("30 2 * * *", tz="Europe/Berlin"), limit=Limit("disk", 2))
    async def nightly() -> None: ...

    async def main() -> Stored:
        async with scheduler:
            done, failed = await add.submit(1), await fail.submit()
            await done.wait()
            await failed.wait()
            delayed = await add.using(delay=timedelta(days=2)).submit(2)
            ready = await add.using(queue="elsewhere").submit(3)
            blocked = await add.using(queue="elsewhere", depends_on=[ready]).submit(4)
        return Stored(done.id, failed.id, delayed.id, ready.id, blocked.id)

    return asyncio.run(main())
