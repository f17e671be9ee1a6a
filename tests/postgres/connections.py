"""Connections as the users of a PostgreSQL store have them, each with an open transaction.

All of them are asynchronous here, so that one test can go through all kinds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import psycopg
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool


class Theirs(ABC):
    """A connection with an open transaction.

    Attributes:
        conn: the connection itself.
    """

    def __init__(self, conn: Any) -> None:
        self.conn = conn

    @abstractmethod
    async def run(self, text: str) -> list[Any]:
        """Carry out a statement; return its rows."""

    async def begin(self) -> None:
        """Begin the next transaction, where that is not done by itself."""
        assert self.conn is not None

    async def commit(self) -> None:
        """Commit."""
        await self.conn.commit()

    async def rollback(self) -> None:
        """Roll back."""
        await self.conn.rollback()

    async def close(self) -> None:
        """Close the connection."""
        await self.conn.close()


def plain_url(url: str) -> str:
    """A store's URL without what only the store knows."""
    return url.partition("?")[0]


def sqlalchemy_url(url: str, driver: str) -> str:
    """The same, as SQLAlchemy reads it."""
    return plain_url(url).replace("postgresql://", f"postgresql+{driver}://", 1)


class _Psycopg(Theirs):
    async def run(self, text: str) -> list[Any]:
        cursor = self.conn.execute(text)
        return cursor.fetchall() if cursor.description else []

    async def commit(self) -> None:
        self.conn.commit()

    async def rollback(self) -> None:
        self.conn.rollback()

    async def close(self) -> None:
        self.conn.close()


async def of_psycopg(url: str, **options: Any) -> Theirs:
    """A `psycopg.Connection`, which begins transactions by itself."""
    return _Psycopg(psycopg.connect(plain_url(url), **options))


class _AsyncPsycopg(Theirs):
    async def run(self, text: str) -> list[Any]:
        cursor = await self.conn.execute(text)
        return await cursor.fetchall() if cursor.description else []


async def of_async_psycopg(url: str, **options: Any) -> Theirs:
    """A `psycopg.AsyncConnection`."""
    return _AsyncPsycopg(await psycopg.AsyncConnection.connect(plain_url(url), **options))


class _Asyncpg(Theirs):
    def __init__(self, conn: Any) -> None:
        super().__init__(conn)
        self.transaction: Any = None

    async def begin(self) -> None:
        self.transaction = self.conn.transaction()
        await self.transaction.start()

    async def run(self, text: str) -> list[Any]:
        return [tuple(row) for row in await self.conn.fetch(text)]

    async def commit(self) -> None:
        await self.transaction.commit()

    async def rollback(self) -> None:
        await self.transaction.rollback()


async def of_asyncpg(url: str, **options: Any) -> Theirs:
    """A connection of asyncpg, with a transaction begun, as one must."""
    theirs = _Asyncpg(await asyncpg.connect(plain_url(url), **options))
    await theirs.begin()
    return theirs


class _Session(Theirs):
    async def run(self, text: str) -> list[Any]:
        result = self.conn.connection().exec_driver_sql(text)
        return [tuple(row) for row in result] if result.returns_rows else []

    async def commit(self) -> None:
        self.conn.commit()

    async def rollback(self) -> None:
        self.conn.rollback()

    async def close(self) -> None:
        self.conn.close()


async def of_session(url: str) -> Theirs:
    """A session of SQLAlchemy over psycopg."""
    return _Session(Session(create_engine(sqlalchemy_url(url, "psycopg"), poolclass=NullPool)))


class _AsyncSession(Theirs):
    async def run(self, text: str) -> list[Any]:
        conn = self.conn if isinstance(self.conn, AsyncConnection) else await self.conn.connection()
        result = await conn.exec_driver_sql(text)
        return [tuple(row) for row in result] if result.returns_rows else []


async def of_async_session(url: str) -> Theirs:
    """A session of SQLAlchemy over asyncpg."""
    engine = create_async_engine(sqlalchemy_url(url, "asyncpg"), poolclass=NullPool)
    return _AsyncSession(AsyncSession(engine))


async def of_async_connection(url: str) -> Theirs:
    """A connection of SQLAlchemy over psycopg's asynchronous one."""
    engine = create_async_engine(sqlalchemy_url(url, "psycopg"), poolclass=NullPool)
    return _AsyncSession(await engine.connect())


KINDS: Mapping[str, Callable[[str], Awaitable[Theirs]]] = MappingProxyType(
    {
        "psycopg": of_psycopg,
        "async_psycopg": of_async_psycopg,
        "asyncpg": of_asyncpg,
        "session": of_session,
        "async_session": of_async_session,
        "async_connection": of_async_connection,
    }
)
