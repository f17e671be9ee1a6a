"""Where the store is: a server, a database, and a schema in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from betimes.errors import ConfigurationError

DEFAULT_SCHEMA = "betimes"
SCHEMES = ("postgresql", "postgres")

_OTHER_SCHEME = (
    "the store's URL does not begin with 'postgresql://': write for example "
    "'postgresql://user@host:5432/database', without a driver's name"
)

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")

CONNECT_TIMEOUT_S = 10
"""How long to wait for a server that does not answer at all, unless the URL says otherwise."""

_LIVELY = {
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
"""A connection whose other end is gone is noticed within some ten seconds, unless the URL says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A store's place.

    Attributes:
        parameters: what libpq is given.
        schema: where our tables are.
        shown: the place in words, without the password.
    """

    parameters: dict[str, str]
    schema: str
    shown: str


def target_of(url: str) -> Target:
    """Return the place that a URL names: libpq's own parameters, and `schema`.

    Raises:
        ConfigurationError: it is no such URL, or names no schema that could be.
    """
    try:
        parts = urlsplit(url)
        if parts.scheme not in SCHEMES:
            raise ConfigurationError(_OTHER_SCHEME)
        if parts.netloc.count("@") > 1 or "@" in parts.path or parts.fragment:
            raise ValueError("a part of the password would be taken for something else, and shown")
        ours = [value for name, value in parse_qsl(parts.query, keep_blank_values=True) if name == "schema"]
        theirs = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] != "schema"]
        query = urlencode(theirs)
        given = conninfo_to_dict(urlunsplit((parts.scheme, parts.netloc, parts.path, query, "")))
    except (ValueError, psycopg.Error):  # whose text may quote the password
        raise ConfigurationError(
            "the store's URL cannot be read; write for example 'postgresql://user@host:5432/database', with "
            "reserved characters of names and passwords percent-encoded, and libpq's own parameters behind "
            "a '?'"
        ) from None
    schema = ours[-1] if ours else DEFAULT_SCHEMA
    if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_"):
        raise ConfigurationError(
            f"schema {schema!r:.100} cannot be used: it is of small letters, digits and '_', begins with no "
            "digit and not with 'pg_', and has at most 63 characters"
        )
    parameters = {name: str(value) for name, value in given.items() if value is not None}
    host = parameters.get("host", "the local socket")
    port, database = parameters.get("port", ""), parameters.get("dbname", "")
    where = f"{host}:{port}" if port else host
    return Target(
        parameters={"connect_timeout": str(CONNECT_TIMEOUT_S), "application_name": "betimes", **_LIVELY}
        | parameters,
        schema=schema,
        shown=f"PostgreSQL at {where}, database {database or '(the default)'}, schema {schema}",
    )
