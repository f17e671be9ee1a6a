"""A scheduler with process jobs for the tests, and a look at what is left when it has ended."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from betimes import JobHandle, JobStatus, Scheduler, Task

WAIT_S = 40


def open_files() -> set[str]:
    return {each.name for each in Path("/proc/self/fd").iterdir()}


def children() -> set[int]:
    """The children of this process, zombies included."""
    found = set()
    for each in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((each / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == os.getpid():
            found.add(int(each.name))
    return found


def is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


def wait_until(holds: Callable[[], bool], what: str) -> None:
    until = monotonic() + WAIT_S
    while not holds():
        assert monotonic() < until, f"waited in vain: {what}"
        sleep(0.005)


async def until(holds: Callable[[], bool], what: str) -> None:
    async with asyncio.timeout(WAIT_S):
        while not holds():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.005)
    assert holds(), what


@contextmanager
def nothing_left() -> Iterator[None]:
    """See that no file, child or thread of ours is there afterwards that was not there before."""
    files, before = open_files(), children()
    yield
    for thread in threading.enumerate():
        if thread.name == "betimes-child":
            thread.join(WAIT_S)
            assert not thread.is_alive()
    wait_until(lambda: children() <= before, f"children are left: {children() - before}")
    assert open_files() == files


class Stage:
    """An open scheduler, and tasks of it."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self._tasks: dict[tuple[Callable[..., Any], str], Task[..., Any]] = {}

    def task(self, fn: Callable[..., Any], **options: Any) -> Task[..., Any]:
        key = fn, repr(options)
        if key not in self._tasks:
            name = f"{fn.__name__}-{len(self._tasks)}"
            decorate: Any = self.scheduler.task(name=name, executor="process", **options)
            self._tasks[key] = decorate(fn)
        return self._tasks[key]

    async def submit(self, fn: Callable[..., Any], *args: Any, **options: Any) -> JobHandle[Any]:
        return await self.task(fn, **options).submit(*args)

    async def run(self, fn: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return await (await self.submit(fn, *args, **options)).result(timeout=WAIT_S)

    async def end_of(self, job: JobHandle[Any]) -> JobStatus:
        return await job.wait(timeout=WAIT_S)

    async def error_of(self, fn: Callable[..., Any], *args: Any, **options: Any) -> str:
        """Run it, and return what it fails with."""
        job = await self.submit(fn, *args, **options)
        status = await self.end_of(job)
        assert status is JobStatus.FAILED, status
        return str((await job.info()).error)

    async def log_of(self, job: JobHandle[Any], source: str | None = None) -> list[str]:
        return [line.text for line in await job.log() if source in {None, line.source}]


@asynccontextmanager
async def opened(processes: int = 2, **options: Any) -> AsyncIterator[Stage]:
    scheduler = Scheduler(processes=processes, **{"grace": 20, "watchdog": None, "concurrency": 60} | options)
    async with scheduler:
        try:
            yield Stage(scheduler)
        except BaseException:
            await scheduler.stop(cancel_running=True, timeout=1)  # a test that failed is not waited for
            raise


def play(scene: Callable[[Stage], Coroutine[Any, Any, None]], **options: Any) -> None:
    """Play a scene with a scheduler, and see that nothing is left of it."""

    async def main() -> None:
        async with opened(**options) as stage:
            await scene(stage)

    with nothing_left():
        asyncio.run(main())


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
