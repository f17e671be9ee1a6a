"""Opening the schema: created if it is empty, refused if it is not ours to use."""

from __future__ import annotations

from betimes.errors import ConfigurationError, SchemaMismatch
from betimes.stores.postgres.statements import PostgresSql
from betimes.stores.postgres.target import Target
from betimes.stores.postgres.wire import Wire
from betimes.stores.relational.statements import migrations_of, statement

NAMES = statement("names")
READ_SCHEMA_VERSION = statement("read_schema_version")
READ_STRATEGY = statement("read_strategy")
WRITE_STRATEGY = statement("write_strategy")
HAS_JOBS = statement("has_jobs")

OLDEST_SERVER = 150000
"""PostgreSQL 15."""


def migrations() -> list[tuple[int, str]]:
    """Return the steps from an empty schema to today's, each with the version it leads to."""
    return migrations_of("postgres")


SCHEMA_VERSION = len(migrations())


def prepare(wire: Wire, target: Target, strategy: str | None) -> None:
    """Make the schema what this version needs, if it is empty, and agree on the strategy.

    Raises:
        ConfigurationError: the server is too old, or the store was made with another strategy.
        SchemaMismatch: the schema is of another version, or holds tables of another making.
    """
    _refuse_old_server(wire, target)
    wire.begin()
    try:
        # Of several that find nothing here, one creates it, and the others find it then.
        wire.run("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", (f"betimes {target.schema}",))
        sql = PostgresSql(wire)
        names = names_in(sql, target)
        if not any(name.startswith("betimes_") for name in names):
            _create(wire, target)
        elif "betimes_meta" not in names:
            raise _of_another_making(target)
        _refuse_other_version(schema_version(sql), target)
        if strategy is not None:
            _agree_on_strategy(sql, target, strategy)
        wire.commit()
    except BaseException:
        wire.rollback()
        raise


def names_in(sql: PostgresSql, target: Target) -> set[str]:
    """Return what stands in the schema, whoever made it."""
    return {name for (name,) in sql.execute(NAMES, (target.schema,)).fetchall()}


def schema_version(sql: PostgresSql) -> int | None:
    """Return the version of the schema; None: it does not say."""
    row = sql.execute(READ_SCHEMA_VERSION).fetchone()
    return None if row is None else row[0]


def read_strategy(sql: PostgresSql) -> str | None:
    """Return the stored name of the strategy that the store was made with; None: of none yet."""
    row = sql.execute(READ_STRATEGY).fetchone()
    return None if row is None else row[0]


def _refuse_old_server(wire: Wire, target: Target) -> None:
    version = wire.conn.info.server_version
    if version < OLDEST_SERVER:
        raise ConfigurationError(
            f"{target.shown} is PostgreSQL {version // 10000}; Betimes needs {OLDEST_SERVER // 10000} or "
            "later"
        )


def _create(wire: Wire, target: Target) -> None:
    wire.run(f"CREATE SCHEMA IF NOT EXISTS {target.schema}")
    for _, text in migrations():
        wire.run(text)


def _of_another_making(target: Target) -> SchemaMismatch:
    return SchemaMismatch(
        f"{target.shown} has tables named betimes_* of another making; use another schema; nothing was "
        "changed",
        expected=SCHEMA_VERSION,
    )


def _refuse_other_version(found: int | None, target: Target) -> None:
    if found is None:
        raise _of_another_making(target)
    if found > SCHEMA_VERSION:
        raise SchemaMismatch(
            f"{target.shown} has schema version {found}; this version of betimes knows up to "
            f"{SCHEMA_VERSION}. Nothing was changed; use the version of betimes that made it, or a later one",
            found=found,
            expected=SCHEMA_VERSION,
        )
    if found < SCHEMA_VERSION:
        raise SchemaMismatch(
            f"{target.shown} has schema version {found}; this version of betimes needs {SCHEMA_VERSION}. "
            "Nothing was changed; run `betimes db migrate` once, as the owner of the schema",
            found=found,
            expected=SCHEMA_VERSION,
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
    sql.execute(WRITE_STRATEGY, (strategy,))
