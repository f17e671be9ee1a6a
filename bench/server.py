"""A PostgreSQL server for the rows that need one: it syncs each commit, and is gone when the measuring is."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

DURABLE = {"shared_buffers": "1GB", "max_wal_size": "8GB", "checkpoint_timeout": "30min", "jit": "off"}
"""What a server of some size has; fsync, full_page_writes and synchronous_commit are on, as by default."""

_numbers = itertools.count()


@contextmanager
def running_server() -> Iterator[str]:
    """Start the server of the test suite, but one that keeps what it has acknowledged; return its URL."""
    from tests.postgres.server import start_server  # noqa: PLC0415 - only who starts one needs it

    with start_server(settings=DURABLE) as server:
        yield server.url()


@contextmanager
def fresh_schema(server: str) -> Iterator[str]:
    """Return a URL with a schema of its own, which is dropped afterwards; the server is at rest before."""
    name = f"bench_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute("CHECKPOINT")
    try:
        yield f"{server}?schema={name}"
    finally:
        with psycopg.connect(server, autocommit=True) as conn:
            conn.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")


@contextmanager
def fresh_database(server: str) -> Iterator[str]:
    """Return a URL with a database of its own, for those who bring no schema; it is dropped afterwards."""
    name = f"bench_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute("CHECKPOINT")
        conn.execute(f"CREATE DATABASE {name}")
    try:
        yield f"{server.rpartition('/')[0]}/{name}"
    finally:
        with psycopg.connect(server, autocommit=True) as conn:
            conn.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def pinned_horizon(url: str) -> Iterator[None]:
    """Keep a transaction open meanwhile that sees the state of now, so that no dead row can be taken away."""
    with psycopg.connect(url.partition("?")[0]) as conn:
        conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        conn.execute("SELECT 1")
        yield


def multiply(url: str, *, backlog: int = 0, history: int = 0) -> None:
    """Add ready jobs and ended ones to a schema that has one job: copies of it."""
    server, _, schema = url.partition("?schema=")
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(f"SET search_path TO {schema}")
        if backlog:
            _copy(conn, "betimes_job", {"seq": "nextval('betimes_number')"}, backlog)
        if history:
            ended = {
                "seq": "nextval('betimes_number')",
                "status": "'completed'",
                "finished_at": "submitted_at + 1000",
                "started_at": "submitted_at + 500",
                "result": "'null'",
                "forget_at": "NULL",
            }
            _copy(conn, "betimes_finished", ended, history)
        for table in ("betimes_job", "betimes_finished"):
            conn.execute(f"VACUUM (ANALYZE) {table}")
        conn.execute("CHECKPOINT")


def _copy(conn: psycopg.Connection, table: str, changed: dict[str, str], rows: int) -> None:
    found = conn.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
        (table,),
    ).fetchall()
    values = {name: changed.get(name, name) for (name,) in found}
    values["id"] = "encode(uuid_send(gen_random_uuid()), 'hex') || n"
    conn.execute(
        f"INSERT INTO {table} ({', '.join(values)}) SELECT {', '.join(values.values())}"
        f" FROM (SELECT * FROM betimes_job LIMIT 1) AS one, generate_series(1, {rows}) AS n"
    )
