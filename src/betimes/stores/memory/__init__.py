"""The store that keeps everything in this process's memory; the default."""

from betimes.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
