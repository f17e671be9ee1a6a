"""What can be said of a schema without using it: it is looked at, and nothing in it is created or changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import psycopg

from betimes.core.job import Micros
from betimes.core.vitals import Trouble, Vitals
from betimes.errors import BetimesError, StoreUnavailable
from betimes.stores.postgres.failures import translated
from betimes.stores.postgres.opening import find_schema, newest_version, read_strategy, refuse_old_server
from betimes.stores.postgres.server_survey import look_at_server
from betimes.stores.postgres.statements import PostgresSql
from betimes.stores.postgres.target import Target
from betimes.stores.postgres.watchman import watched
from betimes.stores.postgres.wire import Wire
from betimes.stores.relational.statements import statement

LATEST = statement("latest")


def survey(
    target: Target, *, monotonic: Callable[[], float], now: Callable[[], Micros] | None = None
) -> Vitals:
    """Say what can be said of a schema and its server; what is wrong is said, not raised.

    Args:
        target: where.
        monotonic: seconds on a clock that never jumps.
        now: this machine's clock, to compare with the server's.
    """
    vitals = Vitals(kind="postgres", is_durable=True, place=target.shown)
    try:
        wire = Wire(target, monotonic=monotonic)
    except BetimesError as error:
        return _troubled(vitals, error)
    try:
        with watched(wire):
            return _inside(wire, target, vitals, now)
    except (psycopg.Error, BetimesError) as error:
        return _troubled(vitals, translated(error, target.shown))
    finally:
        wire.close()


def _inside(wire: Wire, target: Target, vitals: Vitals, now: Callable[[], Micros] | None) -> Vitals:
    refuse_old_server(wire, target)
    before = None if now is None else now()
    # So that a step from one version to the next does not keep the look waiting.
    at = wire.begin(for_looking=True)
    ahead_us = None if now is None or before is None else at - (before + now()) // 2
    wire.run("SELECT set_config('lock_timeout', '2s', true)")
    sql = PostgresSql(wire, is_looking=True)
    found = find_schema(sql, target)
    server = look_at_server(sql, target, found, is_pooled=wire.is_pooled)
    vitals = replace(vitals, server=replace(server, clock_ahead_us=ahead_us))
    if found.version == 0:
        problem = f"{target.shown} holds nothing of Betimes's yet"
        return replace(vitals, trouble=Trouble.MISSING, problem=problem)
    if found.version is None:
        problem = f"{target.shown} has tables named betimes_* of another making"
        return replace(vitals, trouble=Trouble.REFUSED, problem=problem)
    if found.version > newest_version() and not found.is_usable:
        problem = (
            f"{target.shown} has schema version {found.version}; this Betimes knows up to {newest_version()}"
        )
        return replace(vitals, trouble=Trouble.NEWER, problem=problem)
    if not found.is_usable:
        return vitals
    try:
        return replace(vitals, strategy=read_strategy(sql), latest=sql.execute(LATEST).fetchone()[0])
    except psycopg.errors.InsufficientPrivilege as error:
        return _troubled(vitals, translated(error, target.shown))


def _troubled(vitals: Vitals, error: BaseException) -> Vitals:
    passes = isinstance(error, StoreUnavailable) and error.why != "privilege"
    trouble = Trouble.UNAVAILABLE if passes else Trouble.REFUSED
    return replace(vitals, trouble=trouble, problem=str(error).rstrip("."))
