"""Every store is held to the one contract."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from betimes.ports import Store
from betimes.stores.memory import MemoryStore
from betimes.stores.sqlite import SqliteStore
from betimes.testing import VirtualClock
from betimes.testing.store_contract import DurableStoreContract, StoreContract


class TestMemoryStore(StoreContract):
    def make_store(self, clock: VirtualClock) -> Store:
        return MemoryStore(clock=clock)


class InOneFile(DurableStoreContract):
    """A fresh folder for each test."""

    path: Path

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.path = tmp_path / "jobs.db"


class TestSqliteStoreInline(InOneFile):
    """The writer and the readers run in the calling thread, on virtual time: as simulations use it."""

    def make_store(self, clock: VirtualClock) -> Store:
        return SqliteStore(self.path, clock=clock, inline=True)


class TestSqliteStore(InOneFile):
    """The writer and the readers run in their threads, on a real loop; only the clock stands still."""

    def make_store(self, clock: VirtualClock) -> Store:
        return SqliteStore(self.path, clock=clock, max_stall_us=0)  # nobody beats but the scene

    def run(self, main: Callable[[], Coroutine[Any, Any, None]], clock: VirtualClock) -> None:
        asyncio.run(main())
