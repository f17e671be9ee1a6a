"""Submitting in a caller's transaction on a server: every kind of connection, and how it is left."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg.types.string import TextLoader
from sqlalchemy import create_engine
from sqlalchemy.orm import Session
from tests.postgres.connections import (
    KINDS,
    Theirs,
    of_async_psycopg,
    of_asyncpg,
    of_psycopg,
    of_session,
    plain_url,
)
from tests.postgres.server import Server

from betimes import ConfigurationError, DuplicateJob, Scheduler, StoreUnavailable, UnknownJob
from betimes.stores.postgres import PostgresStore

WAIT_S = 60
SETTINGS = (
    "SELECT current_setting('search_path'), current_setting('enable_seqscan'), "
    "current_setting('enable_bitmapscan'), current_setting('jit')"
)

pass_time = asyncio.sleep  # noqa: TID251 - the server needs a moment of real time
every_kind = pytest.mark.parametrize("kind", list(KINDS))


class Scene:
    """An open scheduler, and a table of the application's beside its own."""

    def __init__(self, url: str, *, runs: bool) -> None:
        self.url = url
        self.runs = runs
        self.scheduler = Scheduler(url, watchdog=None)
        self.table = f"{parse_qs(urlsplit(url).query)['schema'][0]}.customer"

        @self.scheduler.task(name="greet")
        async def greet(name: str) -> str:
            return f"Hello {name}"

        self.greet = greet

    async def play(self, scene: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
        async with asyncio.timeout(WAIT_S), self.scheduler if self.runs else self.scheduler.client():
            with psycopg.connect(plain_url(self.url), autocommit=True) as conn:
                conn.execute(f"CREATE TABLE {self.table} (name text UNIQUE)")
            await scene(self)

    async def ids(self) -> list[str]:
        return [info.id for info in await self.scheduler.jobs()]

    def names(self) -> list[str]:
        with psycopg.connect(plain_url(self.url)) as conn:
            return [
                name for (name,) in conn.execute(f"SELECT name FROM {self.table} ORDER BY name").fetchall()
            ]


def play(url: str, scene: Callable[[Scene], Coroutine[Any, Any, None]], *, runs: bool = False) -> None:
    asyncio.run(Scene(url, runs=runs).play(scene))


# ------------------------------------------------------------------------------------ both, or neither


@every_kind
def test_p04_the_job_and_the_row_are_committed_together(postgres_url: str, kind: str) -> None:
    async def scene(at: Scene) -> None:
        theirs = await KINDS[kind](at.url)
        try:
            await theirs.run(f"INSERT INTO {at.table} VALUES ('Ada')")
            job = await at.greet.using(conn=theirs.conn).submit("Ada")
            with pytest.raises(UnknownJob, match="not committed"):
                await job.status()
            waiting = asyncio.ensure_future(job.result())
            await theirs.commit()
            assert await waiting == "Hello Ada"
            await theirs.begin()
            await theirs.run(f"INSERT INTO {at.table} VALUES ('Bob')")
            lost = await at.greet.using(conn=theirs.conn, key="k").submit("Bob")
            await theirs.rollback()
            with pytest.raises(UnknownJob, match="rolled back"):
                await lost.result()
        finally:
            await theirs.close()
        assert (await at.ids(), at.names()) == ([job.id], ["Ada"])

    play(postgres_url, scene, runs=True)


@every_kind
def test_p04_what_is_refused_leaves_the_transaction_usable(postgres_url: str, kind: str) -> None:
    async def scene(at: Scene) -> None:
        await at.greet.using(job_id="taken").submit("x")
        theirs = await KINDS[kind](at.url)
        try:
            await theirs.run(f"INSERT INTO {at.table} VALUES ('Ada')")
            with pytest.raises(DuplicateJob):
                await at.greet.using(conn=theirs.conn, job_id="taken").submit("x")
            with pytest.raises(UnknownJob):
                await at.greet.using(conn=theirs.conn, depends_on=["nobody"]).submit("x")
            job = await at.greet.using(conn=theirs.conn).submit("Ada")
            await theirs.commit()
        finally:
            await theirs.close()
        assert (await at.ids(), at.names()) == ([job.id, "taken"], ["Ada"])

    play(postgres_url, scene)


@every_kind
def test_a_transaction_s_settings_are_put_back(postgres_url: str, kind: str) -> None:
    async def scene(at: Scene) -> None:
        theirs = await KINDS[kind](at.url)
        try:
            (at_first,) = await theirs.run(SETTINGS)
            await theirs.run("SET LOCAL search_path TO pg_temp, public")
            (before,) = await theirs.run(SETTINGS)
            assert before != at_first
            await at.greet.using(conn=theirs.conn).submit("Ada")
            with pytest.raises(UnknownJob):
                await at.greet.using(conn=theirs.conn, depends_on=["nobody"]).submit("x")
            assert await theirs.run(SETTINGS) == [before]
            await theirs.commit()
            await theirs.begin()
            assert await theirs.run(SETTINGS) == [at_first]
        finally:
            await theirs.close()

    play(postgres_url, scene)


def test_p04_without_a_loop_the_work_is_done_in_the_calling_thread(postgres_url: str) -> None:
    at = Scene(postgres_url, runs=True)
    engine = create_engine(plain_url(postgres_url).replace("postgresql://", "postgresql+psycopg://"))
    with at.scheduler.blocking(), psycopg.connect(plain_url(postgres_url)) as conn:
        first = at.greet.using(conn=conn).submit_blocking("Ada")
        conn.commit()
        assert first.result(timeout=WAIT_S) == "Hello Ada"
        with Session(engine) as session, session.begin():
            second = at.greet.using(conn=session).submit_blocking("Bob")
        assert second.result(timeout=WAIT_S) == "Hello Bob"
    engine.dispose()


@pytest.mark.parametrize("kind", ["async_psycopg", "asyncpg", "async_session", "async_connection"])
def test_an_asynchronous_connection_is_awaited(postgres_url: str, kind: str) -> None:
    async def scene(at: Scene) -> None:
        theirs = await KINDS[kind](at.url)
        try:
            with pytest.raises(ConfigurationError, match="await the submit"):
                at.greet.using(conn=theirs.conn).submit_blocking("Ada")
            job = await at.greet.using(conn=theirs.conn).submit("Bob")  # nothing of the other is under way
            await theirs.commit()
            assert await at.ids() == [job.id]
        finally:
            await theirs.close()

    play(postgres_url, scene)


# ------------------------------------------------------------------------------------ which connections


def test_a_connection_that_commits_at_once_is_refused(postgres_url: str) -> None:
    async def scene(at: Scene) -> None:
        theirs = await of_psycopg(at.url, autocommit=True)
        with pytest.raises(ConfigurationError, match="begin one"):
            await at.greet.using(conn=theirs.conn).submit("Ada")
        with theirs.conn.transaction():
            job = await at.greet.using(conn=theirs.conn).submit("Ada")
        await theirs.close()
        other = await of_asyncpg(at.url)
        await other.rollback()
        with pytest.raises(ConfigurationError, match="begin one"):
            await at.greet.using(conn=other.conn).submit("Ada")
        await other.close()
        assert await at.ids() == [job.id]

    play(postgres_url, scene)


def test_a_transaction_that_cannot_take_jobs_is_refused(postgres_url: str) -> None:
    async def refuse(at: Scene, first: str, match: str, **options: Any) -> None:
        for make in (of_psycopg, of_asyncpg):
            theirs = await make(at.url)
            with suppress(Exception):
                await theirs.run(first)
            with pytest.raises(ConfigurationError, match=match):
                await at.greet.using(conn=theirs.conn, **options).submit("Ada")
            await theirs.close()

    async def scene(at: Scene) -> None:
        await refuse(at, "SET TRANSACTION READ ONLY", "read-only")
        await refuse(at, "SELECT 1 / 0", "failed already")
        await refuse(at, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "REPEATABLE READ", job_id="x")
        await refuse(at, "SET client_encoding TO SQL_ASCII", "client_encoding")
        assert await at.ids() == []

    play(postgres_url, scene)


def test_p03_a_snapshot_that_is_too_old_for_a_key_is_told_so(postgres_url: str) -> None:
    async def scene(at: Scene) -> None:
        theirs = await of_psycopg(at.url)
        await theirs.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        await theirs.run("SELECT 1")
        first = await at.greet.using(key="k").submit("Ada")
        with pytest.raises(StoreUnavailable, match="run it again"):
            await at.greet.using(conn=theirs.conn, key="k").submit("Ada")
        await theirs.rollback()
        again = await at.greet.using(conn=theirs.conn, key="k").submit("Ada")
        assert again.id == first.id
        await theirs.close()

    play(postgres_url, scene)


def test_a_connection_to_another_database_is_refused(postgres: Server, postgres_url: str) -> None:
    async def scene(at: Scene) -> None:
        theirs = await of_psycopg(postgres.url(database="template1"))
        with pytest.raises(ConfigurationError, match="another database"):
            await at.greet.using(conn=theirs.conn).submit("Ada")
        await theirs.close()

    play(postgres_url, scene)


def test_a_connection_to_another_server_is_refused_whatever_its_names(postgres_url: str) -> None:
    async def scene(at: Scene) -> None:
        store = at.scheduler._engine.store
        assert isinstance(store, PostgresStore)
        sessions = store._open_sessions()
        assert sessions.identity.server is not None
        sessions._identity = replace(sessions.identity, server=sessions.identity.server + 1)
        theirs = await of_psycopg(at.url)
        with pytest.raises(ConfigurationError, match="another database"):
            await at.greet.using(conn=theirs.conn).submit("Ada")
        await theirs.close()

    play(postgres_url, scene)


def test_a_connection_of_no_use_is_refused(postgres_url: str) -> None:
    async def scene(at: Scene) -> None:
        for make in (of_psycopg, of_async_psycopg, of_asyncpg):
            theirs = await make(at.url)
            await theirs.close()
            with pytest.raises(ConfigurationError):
                await at.greet.using(conn=theirs.conn).submit("Ada")
        session = await of_session("sqlite://")
        session.conn.bind = create_engine("sqlite://")
        for conn in (object(), session.conn, create_engine("sqlite://")):
            with pytest.raises(ConfigurationError, match="SQLAlchemy"):
                await at.greet.using(conn=conn).submit("Ada")
        session.conn.close()

    play(postgres_url, scene)


# ------------------------------------------------------------------------------------ how it is left


def test_the_owner_s_ways_with_rows_and_values_do_no_harm_and_stay(postgres_url: str) -> None:
    async def scene(at: Scene) -> None:
        theirs = await of_psycopg(at.url, row_factory=dict_row, prepare_threshold=0)
        conn = theirs.conn
        for name in ("int8", "text", "bytea", "bool"):
            conn.adapters.register_loader(name, TextLoader)
        parent = await at.greet.using(conn=conn, job_id="p", key="k").submit("Ada")
        await at.greet.using(conn=conn, depends_on=[parent]).submit("Bob")
        assert conn.execute("SELECT 1::int8 AS one").fetchone() == {"one": "1"}
        ours = "SELECT count(*) AS n FROM pg_prepared_statements WHERE statement LIKE '%betimes%'"
        assert conn.execute(ours, prepare=False).fetchone() == {"n": "0"}
        conn.commit()
        assert len(await at.ids()) == 2
        conn.close()

    play(postgres_url, scene)


def test_json_of_asyncpg_may_be_the_owner_s_own(postgres_url: str) -> None:
    async def scene(at: Scene) -> None:
        theirs = await of_asyncpg(at.url)
        await theirs.conn.set_type_codec("json", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
        parent = await at.greet.using(conn=theirs.conn).submit("Ada")
        await at.greet.using(conn=theirs.conn, depends_on=[parent], key="k").submit("Bob")
        await theirs.commit()
        await theirs.close()
        assert len(await at.ids()) == 2

    play(postgres_url, scene)


@pytest.mark.parametrize("make", [of_async_psycopg, of_asyncpg])
def test_a_submit_that_is_cancelled_is_undone_and_the_transaction_goes_on(
    postgres_url: str, make: Callable[[str], Coroutine[Any, Any, Theirs]]
) -> None:
    async def scene(at: Scene) -> None:
        other, theirs = await make(at.url), await make(at.url)
        await at.greet.using(conn=other.conn, key="k").submit("Ada")
        await theirs.run(f"INSERT INTO {at.table} VALUES ('Ada')")
        waiting = asyncio.ensure_future(at.greet.using(conn=theirs.conn, key="k").submit("Ada"))
        await pass_time(0.2)
        assert not waiting.done()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        job = await at.greet.using(conn=theirs.conn).submit("Bob")
        await theirs.commit()
        await other.rollback()
        for each in (other, theirs):
            await each.close()
        assert (await at.ids(), at.names()) == ([job.id], ["Ada"])

    play(postgres_url, scene)
