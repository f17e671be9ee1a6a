"""How many connections a process opens, and when."""

from __future__ import annotations

import asyncio

from betimes import Context, Scheduler
from betimes.core.checkup_server import OF_A_PROCESS
from betimes.stores.postgres import PostgresStore


class Watched:
    """A scheduler whose connections can be counted."""

    def __init__(self, url: str) -> None:
        self.scheduler = Scheduler(url, watchdog=None, lease=1)

        @self.scheduler.task(name="add")
        async def add(a: int) -> int:
            return a

        @self.scheduler.task(name="submit")
        async def submit(ctx: Context) -> None:
            await asyncio.gather(*(add.using(key=f"{ctx.job_id} {number}").submit(1) for number in range(20)))

        self.add, self.submit = add, submit

    def connections(self) -> int:
        """How many of its sessions are connected."""
        store = self.scheduler._store
        assert isinstance(store, PostgresStore)
        return sum(each._wire is not None for each in store._open_sessions()._all)


def test_a_client_opens_a_connection_when_it_first_needs_it(postgres_url: str) -> None:
    watched = Watched(postgres_url)

    async def main() -> None:
        async with watched.scheduler.client():
            assert watched.connections() <= 1, "to hear of others, at most"
            job = await watched.add.submit(1)
            assert watched.connections() <= 2
            await job.status()
            assert 2 <= watched.connections() <= 3
            await watched.add.using(key="once").submit(1)
            assert 3 <= watched.connections() <= 4

    asyncio.run(main())


def test_a_worker_has_four_and_never_more_than_eight(postgres_url: str) -> None:
    watched = Watched(postgres_url)

    async def main() -> None:
        async with watched.scheduler as scheduler:
            await scheduler.jobs()
            assert watched.connections() <= 4
            jobs = [await watched.submit.submit() for _ in range(5)]
            for job in jobs:
                await job.result(timeout=20)
            assert 5 <= watched.connections() <= OF_A_PROCESS

    asyncio.run(main())
