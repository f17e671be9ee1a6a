"""What a store on PostgreSQL says of its server: looked at on a real one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import psycopg
import pytest
from tests.postgres.server import Server

from betimes import Scheduler
from betimes.clock import SystemClock
from betimes.core.finding import Checkup, FindingCode
from betimes.core.vitals import ServerVitals, Trouble, Vitals
from betimes.stores.postgres import PostgresStore
from betimes.stores.postgres.target import target_of
from betimes.testing import VirtualClock


@pytest.fixture
def conn(postgres: Server) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres.url(), autocommit=True) as conn:
        yield conn


@pytest.fixture
def url(postgres_url: str) -> str:
    """A URL whose schema is there."""
    asyncio.run(PostgresStore(postgres_url, clock=SystemClock()).migrate())
    return postgres_url


def vitals(url: str) -> Vitals:
    return asyncio.run(PostgresStore(url, clock=SystemClock()).vitals())


def server(url: str) -> ServerVitals:
    found = vitals(url).server
    assert found is not None
    return found


def checkup(url: str) -> Checkup:
    return asyncio.run(Scheduler(url, watchdog=None).doctor())


def test_the_server_says_what_it_is(url: str, postgres: Server) -> None:
    found = server(url)
    assert found.version.partition(".")[0] == str(postgres.major)
    assert (found.role, found.fits, found.lacks) == ("postgres", "owner", ())
    assert (found.is_standby, found.is_pooled, found.autovacuum) == (False, False, True)
    assert (found.fsync, found.full_page_writes, found.synchronous_commit) == (False, False, "on")
    assert (found.schema, found.newest_schema) == (1, 1)
    assert 0 < found.connections < found.max_connections < 200
    assert {each.name for each in found.tables} >= {"betimes_job", "betimes_finished", "betimes_worker"}
    assert found.tables[0].size >= found.tables[-1].size > 0
    codes = {finding.code for finding in checkup(url).findings}
    assert codes >= {
        FindingCode.SERVER, FindingCode.DURABILITY, FindingCode.RIGHTS, FindingCode.CONNECTIONS,
        FindingCode.CLOCK_OFFSET, FindingCode.OLD_TRANSACTION, FindingCode.DEAD_ROWS, FindingCode.TABLE_SIZES,
    }  # fmt: skip


def test_the_clocks_are_compared_unless_the_store_goes_by_another(url: str) -> None:
    ahead_us = server(url).clock_ahead_us
    assert ahead_us is not None
    assert abs(ahead_us) < 1_000_000, "it is the same machine"
    store = PostgresStore(url, clock=VirtualClock(), goes_by_clock=True)
    found = asyncio.run(store.vitals()).server
    assert found is not None
    assert found.clock_ahead_us is None


def test_a_role_s_own_settings_are_those_that_count(url: str, conn: psycopg.Connection) -> None:
    conn.execute("CREATE ROLE hasty LOGIN SUPERUSER")
    try:
        conn.execute("ALTER ROLE hasty SET statement_timeout = '3s'")
        conn.execute("ALTER ROLE hasty SET synchronous_commit = 'off'")
        conn.execute("ALTER ROLE hasty SET idle_in_transaction_session_timeout = '1min'")
        found = server(url.replace("postgres@", "hasty@"))
    finally:
        conn.execute("DROP ROLE hasty")
    assert (found.role, found.statement_timeout_ms, found.lock_timeout_ms) == ("hasty", 3000, 0)
    assert (found.synchronous_commit, found.idle_in_transaction_ms) == ("off", 60_000)


def test_the_oldest_transaction_that_holds_dead_rows_is_named(
    url: str, conn: psycopg.Connection, postgres: Server
) -> None:
    assert server(url).horizon is None
    with psycopg.connect(postgres.url(application_name="report")) as other:
        other.execute("SELECT txid_current()")
        horizon = server(url).horizon
        assert horizon is not None
        assert (horizon.kind, horizon.name) == ("transaction", str(other.info.backend_pid))
        assert horizon.who == "postgres, report, idle in transaction"
        assert 0 <= horizon.age_s < 60
    assert server(url).horizon is None


def test_who_may_not_see_others_sessions_is_told_how_many_there_are(
    url: str, conn: psycopg.Connection, postgres: Server
) -> None:
    conn.execute("CREATE ROLE stranger LOGIN")
    schema, theirs = target_of(url).schema, url.replace("postgres@", "stranger@")
    try:
        found = vitals(theirs)
        assert (found.trouble, found.server) == (Trouble.REFUSED, None)
        assert "does not let this role use that schema: see `betimes db sql --roles`" in found.problem
        conn.execute(f"GRANT USAGE ON SCHEMA {schema} TO stranger".encode())
        for table in ("meta", "job", "finished", "fire"):
            conn.execute(f"GRANT SELECT ON {schema}.betimes_{table} TO stranger".encode())
        seen = server(theirs)
        assert seen.hidden >= 1
        assert (seen.fits, seen.role, "SELECT on betimes_log" in seen.lacks) == ("", "stranger", True)
        assert FindingCode.RIGHTS in checkup(theirs).codes
    finally:
        conn.execute("DROP OWNED BY stranger")
        conn.execute("DROP ROLE stranger")


def test_dead_rows_are_counted(url: str, conn: psycopg.Connection) -> None:
    schema = target_of(url).schema
    conn.execute(f"ALTER TABLE {schema}.betimes_tenant SET (autovacuum_enabled = off)".encode())
    conn.execute(f"INSERT INTO {schema}.betimes_tenant SELECT n, n FROM generate_series(1, 50) n".encode())
    conn.execute(f"DELETE FROM {schema}.betimes_tenant WHERE finish > 10".encode())
    conn.execute("SELECT pg_stat_force_next_flush()")
    conn.execute("SELECT 1")
    (tenant,) = [each for each in server(url).tables if each.name == "betimes_tenant"]
    assert (tenant.live, tenant.dead) == (10, 40)


def test_a_look_at_a_schema_that_is_not_there_makes_none(postgres_url: str, conn: psycopg.Connection) -> None:
    found = vitals(postgres_url)
    assert (found.trouble, found.schema, found.can_be_looked_at) == (Trouble.MISSING, 0, False)
    assert found.server is not None
    assert (found.server.fits, found.server.tables) == ("", ())
    schema = target_of(postgres_url).schema
    assert conn.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone() is None
