"""pebble's `ProcessPool`, from asyncio: what it runs can be cancelled: its process is killed."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pebble import ProcessPool

from bench.limits.in_process import WARM_UP
from bench.limits.pipes import CHILDREN
from bench.process_work import WORK
from bench.windows import Call, rate_in_windows
from bench.windows import starts as starts_of


def burst(jobs: int, what: str = "noop", warm_up: int = WARM_UP) -> dict[str, float]:
    """Run calls in two processes, in windows of 100."""
    work = WORK[what]

    async def main() -> dict[str, float]:
        with ProcessPool(CHILDREN) as pool:
            return await rate_in_windows(
                lambda: asyncio.wrap_future(pool.schedule(work)), jobs, warm_up=warm_up
            )

    return asyncio.run(main())


def starts(jobs: int, method: str, *, is_cold: bool) -> dict[str, float]:
    """From a call to its first line, in a process started by this method that is there, or is not yet."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Call]:
        with ProcessPool(1, context=multiprocessing.get_context(method)) as pool:
            yield lambda: asyncio.wrap_future(pool.schedule(WORK["now"]))

    return asyncio.run(starts_of(opened, jobs, is_cold=is_cold))
