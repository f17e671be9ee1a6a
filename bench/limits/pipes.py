"""The limits of work in other processes: bare children over pipes, no scheduler; and bare commands."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from subprocess import DEVNULL, PIPE

from bench.clockwork import Stopwatch
from bench.limits.in_process import IN_FLIGHT, WARM_UP
from bench.limits.pipe_child import READ, contents, frame
from bench.windows import Call, rate_in_windows
from bench.windows import starts as starts_of

CALL = frame(b'["bench.process_work","noop","{}",1,1]')
"""A call: as long as the least that has to be said of one. The bare child knows what it is to call."""
CHILDREN = 2


class _Child:
    """A child process and its two pipes, on the event loop that is running.

    Args:
        what: the name of the function that it calls.
        answered: is told what the function returned, for each call of what was read together.
    """

    def __init__(self, what: str, answered: Callable[[_Child, list[bytes]], None]) -> None:
        command = [sys.executable, "-m", "bench.limits.pipe_child", what]
        self._process = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, start_new_session=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._answered = answered
        self._rest = b""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._out, self._read)

    def send(self, calls: int) -> None:
        """Send so many calls with one write; a hundred go into a pipe without waiting."""
        if calls:
            os.write(self._in, CALL * calls)

    def _read(self) -> None:
        answers, self._rest = contents(self._rest + os.read(self._out, READ))
        self._answered(self, answers)

    def close(self) -> None:
        """End it."""
        self._loop.remove_reader(self._out)
        with self._process:
            self._process.kill()


class _Dealer:
    """Has calls made by children, each with its share of 100 in flight: one more goes for each answer.

    So several wait in each pipe, and no child idles.
    """

    def __init__(self, what: str) -> None:
        self._children = [_Child(what, self._answered) for _ in range(CHILDREN)]
        self._loop = asyncio.get_running_loop()
        self._done = self._loop.create_future()
        self._left = self._unsent = 0

    async def finish(self, jobs: int) -> None:
        """Have so many calls answered."""
        self._done = self._loop.create_future()
        first = min(jobs, IN_FLIGHT) // CHILDREN
        self._left, self._unsent = jobs, jobs - first * CHILDREN
        for child in self._children:
            child.send(first)
        await self._done

    def _answered(self, child: _Child, answers: list[bytes]) -> None:
        self._left -= len(answers)
        more = min(len(answers), self._unsent)
        self._unsent -= more
        child.send(more)
        if not self._left:
            self._done.set_result(None)

    def close(self) -> None:
        """End the children."""
        for child in self._children:
            child.close()


def burst(jobs: int, what: str = "noop", warm_up: int = WARM_UP) -> dict[str, float]:
    """Have calls made by two children."""

    async def main() -> dict[str, float]:
        dealer = _Dealer(what)
        await dealer.finish(warm_up)
        watch = Stopwatch()
        await dealer.finish(jobs)
        figures = watch.figures(jobs)
        dealer.close()
        return figures

    return asyncio.run(main())


@asynccontextmanager
async def _opened() -> AsyncIterator[Call]:
    """Have one child, and a call to it."""
    loop = asyncio.get_running_loop()
    waiting: list[asyncio.Future[int]] = []
    child = _Child("now", lambda _, answers: waiting.pop().set_result(int(answers[0])))

    def call() -> asyncio.Future[int]:
        waiting.append(loop.create_future())
        child.send(1)
        return waiting[0]

    try:
        yield call
    finally:
        child.close()


def starts(jobs: int, *, is_cold: bool) -> dict[str, float]:
    """From a call to its first line, in a child that is there, or in one that has to be started first."""
    return asyncio.run(starts_of(_opened, jobs, is_cold=is_cold))


def commands(jobs: int, window: int) -> dict[str, float]:
    """Run `true` in windows, each in a process group of its own, what it prints read to the end."""

    async def run() -> None:
        process = await asyncio.create_subprocess_exec(
            "true", stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True
        )
        await process.communicate()
        assert process.returncode == 0

    async def main() -> dict[str, float]:
        return await rate_in_windows(run, jobs, warm_up=window * 2, window=window)

    return asyncio.run(main())
