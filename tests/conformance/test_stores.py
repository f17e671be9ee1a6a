"""Every store is held to the one contract."""

from __future__ import annotations

import asyncio
import sqlite3
import weakref
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.postgres import connections

from betimes.core.job import JobStatus
from betimes.errors import ConfigurationError
from betimes.ports import Store
from betimes.stores.memory import MemoryStore
from betimes.stores.postgres import PostgresStore
from betimes.stores.sqlite import SqliteStore, opening
from betimes.testing import VirtualClock
from betimes.testing.store_contract import (
    DurableStoreContract,
    StoreContract,
    Transaction,
    TransactionContract,
)
from betimes.testing.store_contract.stage import Stage, played, refused


class TestMemoryStore(StoreContract):
    def make_store(self, clock: VirtualClock) -> Store:
        return MemoryStore(clock=clock)

    @pytest.mark.parametrize("history", [0, -1])
    def test_a_history_of_nothing_is_refused(self, history: int) -> None:
        with pytest.raises(ConfigurationError, match="history"):
            MemoryStore(clock=VirtualClock(), history=history)

    @played
    async def test_p04_a_connection_is_refused_with_the_remedy(self, stage: Stage) -> None:
        with refused(ConfigurationError) as caught:
            await stage.store.submit_within(object(), [stage.job()])
        assert "sqlite:///app.db" in str(caught.error)


async def cancel_found(stage: Stage, job_id: str) -> None:
    """Cancel a job by its id, and keep no reference to it."""
    job = await stage.store.find(job_id)
    assert job is not None
    await stage.cancel(job)


class TestMemoryStoreWithAShortHistory(StoreContract):
    """Beyond its limit, memory forgets what ended first, but not what somebody still holds."""

    def make_store(self, clock: VirtualClock) -> Store:
        return MemoryStore(clock=clock, history=400)

    def test_p27_only_so_many_finished_jobs_are_remembered(self) -> None:
        async def scene(stage: Stage) -> None:
            kept = [weakref.ref(job) for job in await stage.submit(*(stage.job() for _ in range(1_000)))]
            ids = [job.id for job in map(weakref.ref.__call__, kept) if job is not None]
            held = await stage.store.find(ids[0])
            live = await stage.add()
            for job_id in ids:
                await cancel_found(stage, job_id)
            assert await stage.store.pruned() == 600
            assert {one.id for one in await stage.everything()} == {*ids[600:], live.id}
            assert held is not None
            assert await stage.store.find(held.id) is held
            assert held.status is JobStatus.CANCELLED
            assert [await stage.store.find(job_id) for job_id in ids[1:600]] == [None] * 599
            assert all(ref() is None for ref in kept[1:600]), "what is forgotten is not kept alive"

        self.play(scene)


class InOneFile(DurableStoreContract):
    """A fresh folder for each test."""

    path: Path

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.path = tmp_path / "jobs.db"


class TestSqliteStoreInline(InOneFile):
    """The writer and the readers run in the calling thread, on virtual time: as simulations use it."""

    def make_store(self, clock: VirtualClock) -> Store:
        return SqliteStore(self.path, clock=clock, inline=True)


class TestSqliteStore(InOneFile):
    """The writer and the readers run in their threads, on a real loop; only the clock stands still."""

    def make_store(self, clock: VirtualClock) -> Store:
        return SqliteStore(self.path, clock=clock, max_stall_us=0)  # nobody beats but the scene

    def run(self, main: Callable[[], Coroutine[Any, Any, None]], clock: VirtualClock) -> None:
        asyncio.run(main())


class TestPostgresStore(DurableStoreContract):
    """A real server, and threads on a real loop; only the clock stands still."""

    url: str

    @pytest.fixture(autouse=True)
    def _schema(self, postgres_url: str) -> None:
        self.url = postgres_url

    def make_store(self, clock: VirtualClock) -> Store:
        return PostgresStore(self.url, clock=clock, max_stall_us=0, goes_by_clock=True)

    def run(self, main: Callable[[], Coroutine[Any, Any, None]], clock: VirtualClock) -> None:
        asyncio.run(main())


class OnSqlite3:
    """A connection of Python's own, which is not asynchronous."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self.conn = conn

    async def commit(self) -> None:
        self.conn.commit()

    async def rollback(self) -> None:
        self.conn.rollback()

    async def close(self) -> None:
        self.conn.close()


class InOneSharedFile(TransactionContract):
    """A file with a rollback journal, which on any version of SQLite may be shared."""

    path: Path

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.path = tmp_path / "app.db"

    async def begin(self) -> Transaction:
        conn = sqlite3.connect(self.path, isolation_level=None)
        conn.execute("BEGIN IMMEDIATE")
        return OnSqlite3(conn)


class TestTransactionsOnSqliteInline(InOneSharedFile):
    def make_store(self, clock: VirtualClock) -> Store:
        return SqliteStore(self.path, clock=clock, inline=True, journal="delete")


class TestTransactionsOnSqlite(InOneSharedFile):
    def make_store(self, clock: VirtualClock) -> Store:
        return SqliteStore(self.path, clock=clock, max_stall_us=0, journal="delete")

    def run(self, main: Callable[[], Coroutine[Any, Any, None]], clock: VirtualClock) -> None:
        asyncio.run(main())


class TestTransactionsOnSqliteInWal(InOneSharedFile):
    """As on a version of SQLite without the WAL-reset fault."""

    @pytest.fixture(autouse=True)
    def _sound(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(opening, "has_wal_reset_fault", lambda: False)

    def make_store(self, clock: VirtualClock) -> Store:
        return SqliteStore(self.path, clock=clock, inline=True)


class OnOneServer(TransactionContract):
    """A schema of a real server; only the clock stands still."""

    url: str

    @pytest.fixture(autouse=True)
    def _schema(self, postgres_url: str) -> None:
        self.url = postgres_url

    def make_store(self, clock: VirtualClock) -> Store:
        return PostgresStore(self.url, clock=clock, max_stall_us=0, goes_by_clock=True)

    def run(self, main: Callable[[], Coroutine[Any, Any, None]], clock: VirtualClock) -> None:
        asyncio.run(main())


class TestTransactionsOfPsycopg(OnOneServer):
    async def begin(self) -> Transaction:
        return await connections.of_psycopg(self.url)


class TestTransactionsOfAsyncPsycopg(OnOneServer):
    async def begin(self) -> Transaction:
        return await connections.of_async_psycopg(self.url)


class TestTransactionsOfAsyncpg(OnOneServer):
    async def begin(self) -> Transaction:
        return await connections.of_asyncpg(self.url)


class TestTransactionsOfSqlAlchemySessions(OnOneServer):
    async def begin(self) -> Transaction:
        return await connections.of_session(self.url)


class TestTransactionsOfSqlAlchemyAsyncSessions(OnOneServer):
    async def begin(self) -> Transaction:
        return await connections.of_async_session(self.url)
