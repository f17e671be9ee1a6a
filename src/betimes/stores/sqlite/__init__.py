"""The store in one SQLite file."""

from betimes.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
