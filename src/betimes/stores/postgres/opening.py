"""Opening the schema: created if it is empty, carried over when asked, refused if it is not ours to use.

Steps from one version to the next first expand, then contract: what a step adds is used by later code only,
and what nobody uses any more is taken away by a later step. The tables say themselves which is the oldest
version whose code still works with them (`serves` in `betimes_meta`), so that workers of two versions can run
side by side; a step that takes something away raises it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import errors

from betimes.errors import ConfigurationError, SchemaMismatch, StoreUnavailable
from betimes.stores.postgres.failures import translated
from betimes.stores.postgres.statements import PostgresSql
from betimes.stores.postgres.target import Target
from betimes.stores.postgres.wire import Wire
from betimes.stores.relational.statements import migrations_of, statement

NAMES = statement("names")
MAY_USE_SCHEMA = statement("may_use_schema")
READ_SCHEMA_VERSION = statement("read_schema_version")
READ_STRATEGY = statement("read_strategy")
WRITE_STRATEGY = statement("write_strategy")
HAS_JOBS = statement("has_jobs")

OLDEST_SERVER = 150000
"""PostgreSQL 15."""


def migrations() -> list[tuple[int, str]]:
    """Return the steps from an empty schema to today's, each with the version it leads to."""
    return migrations_of("postgres")


def newest_version() -> int:
    """Return the version of the schema that the code here is written for."""
    return migrations()[-1][0]


LOCK_PATIENCE = "10s"
"""How long a step waits for a table that somebody uses: behind it, everybody else waits for that table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Which schema is there.

    Attributes:
        version: its version; 0: there is none yet; None: the tables are of another making.
        serves: the oldest version whose code works with it, too.
    """

    version: int | None
    serves: int = 0

    @property
    def is_usable(self) -> bool:
        """Whether the code here works with it."""
        newest = newest_version()
        return self.version == newest or (self.version or 0) > newest >= self.serves > 0


def prepare(wire: Wire, target: Target, strategy: str | None) -> None:
    """Make the schema what this version needs, if it is empty, and agree on the strategy.

    Raises:
        ConfigurationError: the server is too old, or the store was made with another strategy.
        SchemaMismatch: the schema is of another version, or holds tables of another making.
        StoreUnavailable: the server cannot be reached, or does not let this role do that.
    """
    refuse_old_server(wire, target)
    try:
        with _changing(wire, target) as sql:
            found = find_schema(sql, target)
            if found.version == 0:
                _step(wire, target, after=0)
            else:
                _refuse_other_version(found, target)
            if strategy is not None:
                _agree_on_strategy(sql, target, strategy)
    except psycopg.Error as error:
        raise translated(error, target.shown) from error


def migrate(wire: Wire, target: Target) -> int:
    """Carry the schema over to today's version, all steps or none; return the version that was there before.

    Raises:
        ConfigurationError: the server is too old.
        SchemaMismatch: the schema is of a later version, or holds tables of another making.
        StoreUnavailable: the server cannot be reached, or a table is in use for too long.
    """
    refuse_old_server(wire, target)
    try:
        with _changing(wire, target) as sql:
            wire.run("SELECT set_config('lock_timeout', $1, true)", (LOCK_PATIENCE,))
            found = find_schema(sql, target)
            if found.version is None or found.version > newest_version():
                _refuse_other_version(found, target)
            if (before := found.version or 0) < newest_version():
                _step(wire, target, after=before)
    except psycopg.Error as error:
        raise translated(error, target.shown) from error
    return before


def find_schema(sql: PostgresSql, target: Target) -> Found:
    """Say which schema is there.

    Raises:
        StoreUnavailable: the role may not use it.
    """
    names = {name for (name,) in sql.execute(NAMES, (target.schema,)).fetchall()}
    if not any(name.startswith("betimes_") for name in names):
        return Found(version=0)
    if "betimes_meta" not in names:
        return Found(version=None)
    if not sql.execute(MAY_USE_SCHEMA, (target.schema,)).fetchone()[0]:  # else: as if it were not there
        raise StoreUnavailable(
            f"{target.shown} does not let this role use that schema: see `betimes db sql --roles` for what "
            "it needs",
            why="privilege",
        )
    meta = dict(sql.execute(READ_SCHEMA_VERSION).fetchall())
    version = meta.get("schema_version")
    return Found(version=version, serves=meta.get("serves") or version or 0)


@contextmanager
def _changing(wire: Wire, target: Target) -> Iterator[PostgresSql]:
    """Go through a transaction in which nobody else makes or changes the schema."""
    wire.begin()
    try:
        # Of several that find nothing here, one creates it, and the others find it then.
        wire.run("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", (f"betimes {target.schema}",))
        yield PostgresSql(wire)
        wire.commit()
    except BaseException:
        wire.rollback()
        raise


def _step(wire: Wire, target: Target, *, after: int) -> None:
    """Carry out the steps behind a version."""
    if after == 0:
        wire.run(f"CREATE SCHEMA IF NOT EXISTS {target.schema}")
    for number, text in migrations():
        if number > after:
            wire.run(text)
            wire.run("UPDATE betimes_meta SET value = $1 WHERE name = 'schema_version'", (str(number),))


def read_strategy(sql: PostgresSql) -> str | None:
    """Return the stored name of the strategy that the store was made with; None: of none yet."""
    row = sql.execute(READ_STRATEGY).fetchone()
    return None if row is None else row[0]


def refuse_old_server(wire: Wire, target: Target) -> None:
    """Refuse a server that cannot do what is needed.

    Raises:
        ConfigurationError: it is too old.
    """
    version = wire.conn.info.server_version
    if version < OLDEST_SERVER:
        raise ConfigurationError(
            f"{target.shown} is PostgreSQL {version // 10000}; Betimes needs {OLDEST_SERVER // 10000} or "
            "later"
        )


def _refuse_other_version(found: Found, target: Target) -> None:
    newest = newest_version()
    if found.is_usable:
        return
    if found.version is None:
        raise SchemaMismatch(
            f"{target.shown} has tables named betimes_* of another making; use another schema; nothing was "
            "changed",
            expected=newest,
        )
    what = (
        "needs {}. Nothing was changed; run `betimes db migrate` once, as the owner of the schema"
        if found.version < newest
        else "knows up to {}. Nothing was changed; use the version of betimes that made it, or a later one"
    ).format(newest)
    raise SchemaMismatch(
        f"{target.shown} has schema version {found.version}; this version of betimes {what}",
        found=found.version,
        expected=newest,
    )


def _agree_on_strategy(sql: PostgresSql, target: Target, strategy: str) -> None:
    stored = read_strategy(sql)
    if stored == strategy:
        return
    if stored is not None and sql.execute(HAS_JOBS).fetchone()[0]:
        raise ConfigurationError(
            f"{target.shown} holds jobs ordered by strategy {stored!r} and was opened with {strategy!r}; "
            "open it with the same strategy, order its jobs anew by `rekey`, or use another schema"
        )
    try:
        sql.execute(WRITE_STRATEGY, (strategy,))
    except errors.InsufficientPrivilege as error:
        raise ConfigurationError(
            f"{target.shown} has no strategy yet, and this role may not settle it: start a worker first, or "
            "run `betimes db migrate APP` as the owner"
        ) from error
