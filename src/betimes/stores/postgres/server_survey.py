"""What can be said of a server: its settings, its sessions, what its role may do, and how our tables are."""

from __future__ import annotations

from collections.abc import Mapping

from betimes.core.vitals import Horizon, ServerVitals, TableVitals
from betimes.stores.postgres.opening import Found, newest_version
from betimes.stores.postgres.roles import Role, needs
from betimes.stores.postgres.statements import PostgresSql
from betimes.stores.postgres.target import Target
from betimes.stores.relational.statements import statement

MANY_BEHIND = 1_000_000
"""A slot that lags behind by more transactions is told of, and not the oldest transaction."""

SERVER_SETTINGS = statement("server_settings")
SERVER_SESSIONS = statement("server_sessions")
SERVER_HORIZON = statement("server_horizon")
SERVER_SLOTS = statement("server_slots")
SERVER_TABLES = statement("server_tables")
SERVER_ROLE = statement("server_role")
SERVER_RIGHTS = statement("server_rights")


def look_at_server(sql: PostgresSql, target: Target, found: Found, *, is_pooled: bool) -> ServerVitals:
    """Say what can be said of a server, in a transaction that only looks.

    Args:
        sql: the transaction.
        target: where the schema is.
        found: which schema it is.
        is_pooled: whether a pooler stands between.
    """
    settings = dict(sql.execute(SERVER_SETTINGS).fetchall())
    role, is_standby, is_owner = sql.execute(SERVER_ROLE, (target.schema,)).fetchone()
    connections, hidden = sql.execute(SERVER_SESSIONS).fetchone()
    fits, lacks = ("owner", ()) if is_owner else _rights(sql) if found.is_usable else ("", ())
    tables = sql.execute(SERVER_TABLES, (target.schema,)).fetchall()
    return ServerVitals(
        version=settings["server_version"].partition(" ")[0],
        schema=found.version,
        newest_schema=newest_version(),
        serves=found.serves,
        role=role,
        fits=fits,
        lacks=lacks,
        is_standby=is_standby,
        is_pooled=is_pooled,
        synchronous_commit=settings["synchronous_commit"],
        fsync=settings["fsync"] == "on",
        full_page_writes=settings["full_page_writes"] == "on",
        autovacuum=settings["autovacuum"] == settings["track_counts"] == "on",
        statement_timeout_ms=_number(settings, "statement_timeout"),
        lock_timeout_ms=_number(settings, "lock_timeout"),
        idle_in_transaction_ms=_number(settings, "idle_in_transaction_session_timeout"),
        connections=connections,
        max_connections=_number(settings, "max_connections")
        - _number(settings, "superuser_reserved_connections")
        - _number(settings, "reserved_connections"),
        hidden=hidden,
        horizon=_horizon(sql),
        tables=tuple(
            TableVitals(name=name, size=size, live=live, dead=dead) for name, size, live, dead in tables
        ),
    )


def _number(settings: Mapping[str, str], name: str) -> int:
    return int(settings.get(name, "0"))  # some are there on later servers only


def _rights(sql: PostgresSql) -> tuple[str, tuple[str, ...]]:
    """Return the most that this role is fit for, and, if that is nothing, what it lacks for the least."""
    lacks: list[tuple[str, str]] = []
    for role in (Role.WORKER, Role.SUBMITTER, Role.VIEWER):
        columns = [list(column) for column in zip(*needs(role), strict=True)]
        lacks = sql.execute(SERVER_RIGHTS, columns).fetchall()
        if not lacks:
            return role.value, ()
    return "", tuple(f"{kind} on {thing}" for kind, thing in lacks)


def _horizon(sql: PostgresSql) -> Horizon | None:
    """Return the oldest transaction; or a slot that lags far behind: it stays when its reader is gone."""
    slot = sql.execute(SERVER_SLOTS).fetchone()
    oldest = sql.execute(SERVER_HORIZON).fetchone()
    if slot is not None and (oldest is None or slot[1] > MANY_BEHIND):
        return Horizon(kind="replication slot", name=slot[0], behind=slot[1])
    if oldest is None:
        return None
    kind, name, who, age_s = oldest
    return Horizon(kind=kind, name=name, who=who, age_s=max(age_s, 0.0))
