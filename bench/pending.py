"""How much memory pending jobs take: the difference that keeping them makes."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096


class Weighing:
    """Bytes for each job, counted by `tracemalloc` (what Python allocated) or as resident memory.

    Args:
        traced: count with `tracemalloc`; it slows the run down, so such a run measures nothing else.
    """

    def __init__(self, *, traced: bool) -> None:
        self._traced = traced
        gc.collect()
        if traced:
            tracemalloc.start()
        self._before = self._now()

    def _now(self) -> int:
        gc.collect()
        return tracemalloc.get_traced_memory()[0] if self._traced else _resident()

    def figures(self, jobs: int, count: Callable[[], int]) -> dict[str, float]:
        """Return the bytes for each of the jobs, which `count` must find pending."""
        grown = self._now() - self._before
        assert count() == jobs, f"{count()} are pending, not {jobs}"
        return {"bytes": grown / jobs}
