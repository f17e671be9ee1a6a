"""A transaction of a store stands still in the middle, as when its process is stopped: others go on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any

import psycopg
import pytest
from tests.postgres.server import Server
from tests.system.test_postgres_faults_sessions import PATIENCE_S, Work, until

from betimes import StoreUnavailable
from betimes.clock import SystemClock
from betimes.ports import WorkerInfo
from betimes.stores.postgres import PostgresStore, wire
from betimes.stores.postgres.bell import Bell
from betimes.stores.postgres.watchman import Watchman
from betimes.stores.relational.statements import text_of
from betimes.stores.relational.upkeep import Renewals


@contextmanager
def claim_that_hangs(server: Server, url: str, worker: str) -> Iterator[None]:
    """A transaction that has begun to claim for this worker, and does not go on."""
    schema = url.partition("schema=")[2]
    with psycopg.connect(server.url(), cursor_factory=psycopg.RawCursor) as conn:
        conn.execute(f"SET search_path TO {schema}".encode())
        (holds, _), *_ = conn.execute(text_of("postgres", "lease_holds").encode(), (worker, 0, "")).fetchall()
        assert holds
        yield


def test_p25_a_claim_that_hangs_costs_its_worker_no_lease_and_others_no_time(
    postgres: Server, postgres_url: str
) -> None:
    async def main() -> None:
        work, other = Work(postgres_url, lease="3s"), Work(postgres_url, lease="3s")
        async with work.scheduler as scheduler:
            handle = await work.task.submit(6.0)
            await until(lambda: len(work.runs) == 1)
            worker = next(info.worker for info in await scheduler.jobs())
            assert worker is not None
            with claim_that_hangs(postgres, postgres_url, worker):
                async with other.scheduler:
                    assert await handle.result(timeout=PATIENCE_S) == handle.id
            metrics = await scheduler.metrics()
        assert (metrics.lost_leases, metrics.rescued, metrics.store_errors) == (0, 0, 0)
        assert len(work.runs) == 1
        assert other.runs == []

    asyncio.run(main())


def test_p08_a_rescue_does_not_wait_for_a_claim_of_the_dead_that_hangs(
    postgres: Server, postgres_url: str
) -> None:
    async def main() -> None:
        store = PostgresStore(postgres_url, clock=SystemClock())
        await store.open(strategy="priority")
        await store.register(WorkerInfo(id="dead", lease_us=300_000))
        await store.register(WorkerInfo(id="alive", lease_us=30_000_000))
        with claim_that_hangs(postgres, postgres_url, "dead"):
            store._renewals.end("dead")
            await asyncio.sleep(0.5)
            async with asyncio.timeout(5):
                await store.rescue({"t"})
            assert {info.id for info, _ in await store.workers()} == {"dead", "alive"}
        await store.rescue({"t"})
        assert {info.id for info, _ in await store.workers()} == {"alive"}
        await store.close()

    asyncio.run(main())


def test_a_worker_that_ends_waits_for_its_own_claim_and_no_longer(
    postgres: Server, postgres_url: str
) -> None:
    async def main() -> None:
        store = PostgresStore(postgres_url, clock=SystemClock())
        await store.open(strategy="priority")
        await store.register(WorkerInfo(id="w", lease_us=30_000_000))
        with claim_that_hangs(postgres, postgres_url, "w"):
            ending = asyncio.create_task(store.retire("w"))
            await asyncio.sleep(0.5)
            assert not ending.done(), "what that claims is to be given back, too"
        await asyncio.wait_for(ending, PATIENCE_S)
        assert await store.workers() == []
        await store.close()

    asyncio.run(main())


def test_p23_what_waits_for_a_lock_gives_up_and_is_kept_afterwards(
    postgres: Server, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "LOCK_MS", 1000)

    async def main() -> None:
        work = Work(postgres_url)
        schema = postgres_url.partition("schema=")[2]
        async with work.scheduler:
            with psycopg.connect(postgres.url()) as conn:
                conn.execute(f"LOCK TABLE {schema}.betimes_job IN EXCLUSIVE MODE".encode())
                with pytest.raises(StoreUnavailable) as caught:
                    await work.task.submit()
                assert caught.value.why == "locked"
                await asyncio.sleep(1.5)
            handle = await work.task.submit()
            assert await handle.result(timeout=PATIENCE_S) == handle.id

    asyncio.run(main())


def test_p25_a_blocked_loop_loses_no_lease(postgres: Server, postgres_url: str) -> None:
    schema = postgres_url.partition("schema=")[2]
    seen: list[bool] = []

    def look(until_at: float) -> None:
        now = "extract(epoch FROM clock_timestamp()) * 1000000"
        text = f"SELECT lease_until > {now} FROM {schema}.betimes_worker"
        with psycopg.connect(postgres.url(), autocommit=True) as conn:
            while monotonic() < until_at:
                seen.extend(holds for (holds,) in conn.execute(text.encode()).fetchall())
                sleep(0.05)

    async def main() -> None:
        work = Work(postgres_url, lease="3s")
        async with work.scheduler as scheduler:
            handle = await work.task.submit(6.0)
            await until(lambda: len(work.runs) == 1)
            looking = asyncio.create_task(asyncio.to_thread(look, monotonic() + 4.5))
            await asyncio.sleep(0.1)
            sleep(5.0)  # noqa: ASYNC251 - the point of it
            await looking
            assert await handle.result(timeout=PATIENCE_S) == handle.id
            metrics = await scheduler.metrics()
        assert len(seen) > 10
        assert all(seen)
        assert (metrics.lost_leases, metrics.stale_reports) == (0, 0)
        assert len(work.runs) == 1

    asyncio.run(main())


def test_p25_a_fault_in_a_thread_of_the_store_ends_none_of_them(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    faults: list[str] = []

    def first_fails(owner: type[Any], name: str) -> None:
        call = getattr(owner, name)

        def called(*args: Any) -> Any:
            if name not in faults:
                faults.append(name)
                raise ZeroDivisionError(name)
            return call(*args)

        monkeypatch.setattr(owner, name, called)

    first_fails(Renewals, "due")
    first_fails(Bell, "_listen")
    first_fails(Watchman, "look")

    async def main() -> None:
        work = Work(postgres_url, lease="6s")
        async with work.scheduler as scheduler:
            handle = await work.task.submit(8.0)
            assert await handle.result(timeout=PATIENCE_S) == handle.id
            assert (await scheduler.metrics()).lost_leases == 0
            names = {thread.name for thread in threading.enumerate()}
        assert {f"betimes-postgres-{name}" for name in ("heart", "bell", "watchman", "worker")} <= names

    asyncio.run(main())
    assert set(faults) == {"due", "_listen", "look"}
    assert sum("met a fault, and goes on" in record.getMessage() for record in caplog.records) == 3
