"""The process behind `betimes dev`: it starts a worker, watches its files, and starts it anew.

The worker is a child with a process group of its own, so that Ctrl-C reaches this process alone, which then
has the child stop in its own time. The child holds the other end of a pipe as its stdin: should this process
be killed, the pipe ends, and so does the child.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from betimes.blocking import run_on_own_loop
from betimes.cli.exits import Exit, Failure
from betimes.cli.watching import MOST_FILES, Stamps, changed, places_of, stamps_of
from betimes.cli.working import log_to_stderr
from betimes.core.wording import listed

_log = logging.getLogger("betimes.dev")

LOOK_EVERY_S = 0.5
"""How often the files are looked at."""


class Supervisor:
    """Keeps one worker of a program running, through its changes.

    Args:
        command: what starts the worker.
        places: the folders and files to watch.
    """

    def __init__(self, command: Sequence[str], places: Sequence[Path]) -> None:
        self._command = command
        self._places = places
        self._signals = 0
        self._asked = asyncio.Event()
        self._child: asyncio.subprocess.Process | None = None
        self._is_told = False

    async def run(self) -> None:
        """Run until a signal comes."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._hear)
        try:
            while not self._asked.is_set():
                await self._one_life()
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def _hear(self) -> None:
        self._signals += 1
        self._asked.set()
        if self.was_hurried and self._child is not None and self._child.returncode is None:
            self._child.kill()

    def _tell_child(self) -> None:
        """Have the worker stop; once, for the second signal would end it at once."""
        if self._child is not None and self._child.returncode is None and not self._is_told:
            self._is_told = True
            self._child.terminate()

    @property
    def was_hurried(self) -> bool:
        """Whether a second signal came."""
        return self._signals > 1

    async def _one_life(self) -> None:
        """Start a worker, and return when it is to be started anew, or a signal has come and it has ended."""
        seen = stamps_of(self._places)  # before the start: what changes during it starts it once more
        child = self._child = await asyncio.create_subprocess_exec(
            *self._command, stdin=asyncio.subprocess.PIPE, process_group=0
        )
        self._is_told = False
        ended = asyncio.ensure_future(child.wait())
        asked: asyncio.Future[Any] = asyncio.ensure_future(self._asked.wait())
        try:
            await self._until_change(seen, ended, asked)
            self._tell_child()
            await ended
        finally:
            asked.cancel()
            if child.returncode is None:
                child.kill()
                await child.wait()
            assert child.stdin is not None
            child.stdin.close()

    async def _until_change(
        self, seen: Stamps, ended: asyncio.Future[int], asked: asyncio.Future[Any]
    ) -> None:
        """Return when a file has changed or a signal has come; a worker that ends by itself is reported."""
        waits: set[asyncio.Future[Any]] = {ended, asked}
        while not asked.done():
            await asyncio.wait(waits, timeout=LOOK_EVERY_S, return_when=asyncio.FIRST_COMPLETED)
            if ended in waits and ended.done() and not asked.done():
                waits.discard(ended)
                _log.warning("the worker has ended (exit code %d): waiting for a change", ended.result())
            if files := changed(seen, stamps_of(self._places)):
                _log.info("changed: %s; starting the worker anew", listed([path.name for path in files]))
                return


def supervise(app: str, options: Sequence[str], watch: Sequence[Path]) -> None:
    """Run a worker of a program until a signal comes, and start it anew after each change of its files.

    Raises:
        Failure: a second signal has ended it at once.
    """
    log_to_stderr("info")
    places = [*places_of(app), *watch]
    files = len(stamps_of(places))
    folders = listed([str(each) for each in places])
    _log.info("watching %s in %s", "1 Python file" if files == 1 else f"{files} Python files", folders)
    if files >= MOST_FILES:
        _log.warning(
            "there are more files than are watched: name the ones that matter, by --watch, elsewhere"
        )
    command = [sys.executable, "-m", "betimes", "worker", app, "--until-stdin-ends", *options]
    supervisor: Supervisor | None = None

    async def main() -> None:
        nonlocal supervisor
        supervisor = Supervisor(command, places)
        await supervisor.run()

    run_on_own_loop(main())
    if supervisor is not None and supervisor.was_hurried:
        raise Failure(
            "ended at once; jobs that ran then run again when their lease is over", Exit.INTERRUPTED
        )
