"""What PostgreSQL's errors mean for the caller: try again, or repair something first; none leaks raw."""

from __future__ import annotations

import psycopg
from psycopg import errors

from betimes.errors import ConfigurationError, StoreUnavailable

AGAIN = (errors.SerializationFailure, errors.DeadlockDetected, errors.UniqueViolation)
"""The server has chosen this transaction to give way, or another was first: the same again will see that."""

_UNAVAILABLE: tuple[tuple[type[psycopg.Error], str, str], ...] = (
    (errors.DiskFull, "full", "has no room left on its disk; make room"),
    (
        errors.TooManyConnections,
        "connections",
        "takes no more connections: raise max_connections, or use a pooler",
    ),
    (errors.ReadOnlySqlTransaction, "read_only", "is read-only: is this a standby?"),
    (errors.LockNotAvailable, "locked", "has something locked that is needed here"),
    (errors.QueryCanceled, "timeout", "did not answer in time"),
    (
        errors.InsufficientPrivilege,
        "privilege",
        "does not let this role do that: see `betimes db sql --roles` for what it needs",
    ),
)
"""The word for programs (`StoreUnavailable.why`), and the words for people."""


_TOO_MANY = (
    "too many clients",
    "too many connections",
    "connection slots are reserved",
    "no more connections",
)
"""How servers and poolers refuse a connection: until there is one, there is no code beside the words."""


def translated(error: BaseException, shown: str) -> BaseException:
    """Return the error to raise instead; one that is not the driver's is returned as it is."""
    if not isinstance(error, psycopg.Error):
        return error
    detail = f"({_first_line(error)})"
    for kind, why, text in _UNAVAILABLE:
        if isinstance(error, kind):
            return StoreUnavailable(f"{shown} {text} {detail}", why=why)
    if isinstance(error, AGAIN):
        return StoreUnavailable(
            f"{shown} is too busy: this gave way to others each time {detail}", why="locked"
        )
    if isinstance(error, psycopg.DataError):
        return ConfigurationError(f"PostgreSQL cannot keep what it was given {detail}")
    if any(words in detail for words in _TOO_MANY):
        why, text = _UNAVAILABLE[1][1:]
        return StoreUnavailable(f"{shown} {text} {detail}", why=why)
    if is_lost(error):
        return StoreUnavailable(f"{shown} cannot be reached {detail}", why="connection")
    return ConfigurationError(
        f"{shown} cannot be used as a store: its tables are not what they should be {detail}"
    )


def is_lost(error: BaseException) -> bool:
    """Say whether an error means that the connection is, or may be, of no use any more."""
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and not isinstance(
        error, (*AGAIN, errors.LockNotAvailable, errors.QueryCanceled, errors.DiskFull)
    )


def _first_line(error: psycopg.Error) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
