"""The store on a PostgreSQL server."""

from betimes.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
