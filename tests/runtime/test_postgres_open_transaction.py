"""A caller's transaction that stays open: it holds up nobody but who asks for what it has locked itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import psycopg
import pytest
from tests.postgres.connections import plain_url
from tests.runtime.stage import BLOCKED, CANCELLED, RUNNING

from betimes import Scheduler, UnknownJob

WAIT_S = 90

pass_time = asyncio.sleep  # noqa: TID251 - others need a moment of real time


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something holds; the test's own time limit ends it."""
    while not await holds():
        await pass_time(0.01)


class Scene:
    """A scheduler whose tasks end when the gate is opened, or at once."""

    def __init__(self, url: str, *, concurrency: int) -> None:
        self.scheduler = Scheduler(url, watchdog=None, concurrency=concurrency)
        self.gate = asyncio.Event()

        @self.scheduler.task(name="slow")
        async def slow() -> str:
            await self.gate.wait()
            return "slow"

        @self.scheduler.task(name="fails")
        async def fails() -> None:
            await self.gate.wait()
            raise ValueError("boom")

        @self.scheduler.task(name="quick")
        async def quick(number: int) -> int:
            return number

        self.slow, self.fails, self.quick = slow, fails, quick

    async def run_others(self) -> None:
        """Have 200 other jobs submitted, in all ways, run and recorded."""
        quick = self.quick
        jobs = [await quick.submit(number) for number in range(100)]
        jobs += await self.scheduler.submit_many(quick.bind(number) for number in range(100, 190))
        jobs += [await quick.using(key=f"k{number}").submit(number) for number in range(190, 200)]
        assert [await job.result() for job in jobs] == list(range(200))


@pytest.mark.parametrize("commits", [True, False])
def test_p04_p15_an_open_transaction_holds_up_nobody(postgres_url: str, commits: bool) -> None:
    at = Scene(postgres_url, concurrency=4)
    slow, quick = at.slow, at.quick

    async def main() -> None:
        async with asyncio.timeout(WAIT_S), at.scheduler:
            parent, other = await slow.submit(), await slow.submit()
            child = await quick.using(depends_on=[other]).submit(-1)

            async def both_run() -> bool:
                return [await parent.status(), await other.status()] == [RUNNING, RUNNING]

            await until(both_run)
            with psycopg.connect(plain_url(postgres_url)) as conn:
                keyed = await quick.using(conn=conn, key="k").submit(1)
                named = await quick.using(conn=conn, job_id="x").submit(2)
                of_parent = await quick.using(conn=conn, depends_on=[parent]).submit(3)
                of_child = await quick.using(conn=conn, depends_on=[child]).submit(4)
                at.gate.set()
                assert await other.result() == "slow"  # although the one that waits for it is locked
                same_key = asyncio.ensure_future(quick.using(key="k").submit(1))
                await at.run_others()
                assert [await parent.status(), await child.status()] == [RUNNING, BLOCKED]
                assert not same_key.done()
                (conn.commit if commits else conn.rollback)()

                assert [await parent.result(), await child.result()] == ["slow", -1]
                again = await same_key
                assert (await again.result(), again.id == keyed.id) == (1, commits)
                for job, number in ((named, 2), (of_parent, 3), (of_child, 4)):
                    if commits:
                        assert await job.result() == number
                    else:
                        with pytest.raises(UnknownJob):
                            await job.result()
            await at.scheduler.drain(timeout=WAIT_S)
            assert (await at.scheduler.metrics()).peak_running <= 4

    asyncio.run(main())


def test_p13_p15_a_failure_reaches_those_who_were_locked_and_a_cancel_waits_alone(postgres_url: str) -> None:
    at = Scene(postgres_url, concurrency=2)
    fails, quick = at.fails, at.quick

    async def main() -> None:
        async with asyncio.timeout(WAIT_S), at.scheduler:
            parent = await fails.submit()
            child = await quick.using(depends_on=[parent]).submit(1)
            later = await quick.using(delay="1h").submit(2)
            with psycopg.connect(plain_url(postgres_url)) as conn:
                grandchild = await quick.using(conn=conn, depends_on=[child]).submit(3)
                await quick.using(conn=conn, depends_on=[later]).submit(4)
                at.gate.set()
                await parent.wait()
                cancelling = asyncio.ensure_future(later.cancel())
                await at.run_others()
                assert (await child.status(), cancelling.done()) == (BLOCKED, False)
                conn.commit()
            assert (await cancelling).name == "CANCELLED"
            for job in (child, grandchild):
                await job.wait()
                assert await job.status() is CANCELLED

    asyncio.run(main())
