"""What can be said of a schema without using it: it is looked at, and nothing in it is created or changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import psycopg

from betimes.core.vitals import Trouble, Vitals
from betimes.errors import BetimesError, StoreUnavailable
from betimes.stores.postgres.failures import translated
from betimes.stores.postgres.opening import SCHEMA_VERSION, names_in, read_strategy, schema_version
from betimes.stores.postgres.statements import PostgresSql
from betimes.stores.postgres.target import Target
from betimes.stores.postgres.watchman import watched
from betimes.stores.postgres.wire import Wire
from betimes.stores.relational.statements import statement

LATEST = statement("latest")


def survey(target: Target, *, monotonic: Callable[[], float]) -> Vitals:
    """Say what can be said of a schema; what is wrong is said, not raised."""
    vitals = Vitals(kind="postgres", is_durable=True, place=target.shown)
    try:
        wire = Wire(target, monotonic=monotonic)
    except BetimesError as error:
        return _troubled(vitals, error)
    try:
        with watched(wire):
            wire.begin(for_looking=True)
            return _inside(PostgresSql(wire, is_looking=True), target, vitals)
    except psycopg.Error as error:
        return _troubled(vitals, translated(error, target.shown))
    finally:
        wire.close()


def _inside(sql: PostgresSql, target: Target, vitals: Vitals) -> Vitals:
    names = names_in(sql, target)
    if not any(name.startswith("betimes_") for name in names):
        return replace(
            vitals, trouble=Trouble.MISSING, problem=f"{target.shown} holds nothing of Betimes's yet"
        )
    version = schema_version(sql) if "betimes_meta" in names else None
    if version is None:
        problem = f"{target.shown} has tables named betimes_* of another making"
        return replace(vitals, trouble=Trouble.REFUSED, problem=problem)
    if version > SCHEMA_VERSION:
        problem = f"{target.shown} has schema version {version}; this Betimes knows up to {SCHEMA_VERSION}"
        return replace(vitals, trouble=Trouble.NEWER, problem=problem)
    row = sql.execute(LATEST).fetchone()
    return replace(vitals, strategy=read_strategy(sql), latest=row[0])


def _troubled(vitals: Vitals, error: BaseException) -> Vitals:
    trouble = Trouble.UNAVAILABLE if isinstance(error, StoreUnavailable) else Trouble.REFUSED
    return replace(vitals, trouble=trouble, problem=str(error))
