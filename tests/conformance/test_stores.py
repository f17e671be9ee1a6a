"""Every store is held to the one contract."""

from __future__ import annotations

from betimes.ports import Store
from betimes.stores.memory import MemoryStore
from betimes.testing import VirtualClock
from betimes.testing.store_contract import StoreContract


class TestMemoryStore(StoreContract):
    def make_store(self, clock: VirtualClock) -> Store:
        return MemoryStore(clock=clock)
