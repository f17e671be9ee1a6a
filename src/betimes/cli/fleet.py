"""The process behind `betimes worker --processes`: it keeps several workers running until a signal comes.

Each worker is a process of its own, with a process group of its own, so that Ctrl-C reaches this process
alone. Between the two stands a pair of sockets, of which the worker's end is its stdin. Over it the worker
says that it is up, and when the other end is closed, it stops in its own time: because it was asked to, or
because this process is gone, however it went. So a service manager may send every process its signal: none
gets a second one from here, which would end it at once.

The first worker comes up before the others are started: what keeps it from that is said once.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Sequence
from contextlib import suppress

from betimes.blocking import run_on_own_loop
from betimes.cli.exits import Exit, Failure
from betimes.cli.working import LEFT_S, log_to_stderr
from betimes.clock import monotonic_s

_log = logging.getLogger("betimes.workers")

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
"""How long to wait before a worker that has ended is started anew: twice as long each time."""
LONG_LIFE_S = 60.0
"""A worker that was up for so long has not failed at once."""
LAST_S = 5.0
"""How much longer than a worker gives itself before it is killed from here."""
LAST_WORD_S = 1.0

HOPELESS = (Exit.USAGE, Exit.SETTINGS, Exit.SCHEMA)
"""How a worker ends that would end so again."""
CODES = frozenset(map(int, Exit))
TOLD = (-signal.SIGTERM, -signal.SIGINT, 0)
"""How a worker may end that was told to, by whomever."""


class Fleet:
    """Keeps workers of a program running.

    Args:
        command: what starts one.
        count: how many.
        is_burst: one that ends by itself is not started anew.
        drain_s: how long each may take to finish when it is told to stop.
    """

    def __init__(self, command: Sequence[str], count: int, *, is_burst: bool, drain_s: float) -> None:
        self._command = command
        self._count = count
        self._is_burst = is_burst
        self._patience_s = drain_s + LEFT_S + LAST_S
        self._asked = asyncio.Event()
        self._first_is_up = asyncio.Event()
        self._signals = 0
        self._up: set[int] = set()
        self._children: set[asyncio.subprocess.Process] = set()
        self.code = 0

    @property
    def was_hurried(self) -> bool:
        """Whether a second signal came."""
        return self._signals > 1

    async def run(self) -> None:
        """Run until a signal comes, or nothing is left to run; `code` then says how that went."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._hear, number)
        try:
            async with asyncio.TaskGroup() as group:
                for worker in range(1, self._count + 1):
                    group.create_task(self._keep(worker))
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def _hear(self, number: signal.Signals) -> None:
        self._signals += 1
        self._asked.set()
        if self.was_hurried:
            for child in self._children:
                _kill(child)
        else:
            _log.info("%s: all workers stop; the next signal ends them at once", signal.Signals(number).name)

    async def _keep(self, worker: int) -> None:
        """Keep one worker running, again after each of its ends."""
        if worker > 1:
            await _first(self._first_is_up, self._asked)
        failures = 0
        while not self._asked.is_set():
            began = monotonic_s()
            try:
                code, was_up = await self._one_life(worker)
            except OSError as error:  # no memory, or too many processes, for now
                how, was_up = f"cannot be started: {error}", False
            else:
                how = f"has ended ({_end(code)})"
                if self._asked.is_set():
                    if code not in TOLD or (code and was_up):
                        self._note(code)
                    return
                if self._is_over(code, was_up=was_up):
                    return
            failures = 0 if was_up and monotonic_s() - began >= LONG_LIFE_S else failures + 1
            pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(failures, 20) / 2)
            _log.warning("worker %d %s: it starts anew in %g s", worker, how, pause_s)
            await _first(self._asked, timeout_s=pause_s)

    def _is_over(self, code: int, *, was_up: bool) -> bool:
        """Say whether a worker that has ended by itself is not to be started anew."""
        if code in HOPELESS and not self._up and not was_up:
            self._note(code)
            self._asked.set()
            return True
        if self._is_burst and code >= 0:
            self._note(code)
            if not was_up:
                self._asked.set()  # nor would the others come up
            return True
        return False

    def _note(self, code: int) -> None:
        """Remember how a worker has ended, if it is the first that did so badly."""
        self.code = self.code or (code if code in CODES else int(Exit.NO))

    async def _one_life(self, worker: int) -> tuple[int, bool]:
        """Start a worker and return when it has ended: how, and whether it was up before."""
        ours, theirs = socket.socketpair()
        with ours:
            ours.settimeout(0)
            with theirs:
                child = await asyncio.create_subprocess_exec(
                    *self._command, stdin=theirs.fileno(), process_group=0
                )
            self._children.add(child)
            ended = asyncio.ensure_future(child.wait())
            hears = asyncio.ensure_future(self._hear_of_start(worker, child, ours))
            try:
                if self.was_hurried:
                    _kill(child)
                asked = asyncio.ensure_future(self._asked.wait())
                await asyncio.wait({ended, asked}, return_when=asyncio.FIRST_COMPLETED)
                asked.cancel()
                with suppress(OSError):
                    ours.shutdown(socket.SHUT_WR)
                if not (await asyncio.wait({ended}, timeout=self._patience_s))[0]:
                    _log.error("worker %d (process %d) does not end: it is killed", worker, child.pid)
            finally:
                _kill(child)
                code = await child.wait()
                # What it said last may still be to be heard; a process that it has left behind says nothing.
                await asyncio.wait({hears}, timeout=LAST_WORD_S)
                was_up = worker in self._up
                self._up.discard(worker)
                self._children.discard(child)
                hears.cancel()
                await asyncio.wait({ended, hears})
        return code, was_up

    async def _hear_of_start(
        self, worker: int, child: asyncio.subprocess.Process, end: socket.socket
    ) -> None:
        with suppress(OSError):
            if await asyncio.get_running_loop().sock_recv(end, 1):
                _log.info("worker %d of %d is up: process %d", worker, self._count, child.pid)
                self._up.add(worker)
                self._first_is_up.set()


def _kill(child: asyncio.subprocess.Process) -> None:
    if child.returncode is None:
        with suppress(ProcessLookupError):
            child.kill()


async def _first(*events: asyncio.Event, timeout_s: float | None = None) -> None:
    """Return when one of these is set, or the time is over."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    for each in waits:
        each.cancel()
    await asyncio.wait(waits)


def _end(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:  # a signal without a name, as the real-time ones
        return f"signal {-code}"


def run_fleet(command: Sequence[str], count: int, *, is_burst: bool, drain_s: float, log_level: str) -> None:
    """Keep so many workers running until a signal comes; as a burst, until each has ended by itself.

    Raises:
        Failure: a second signal has ended them at once; or one of them has ended badly.
    """
    log_to_stderr(log_level)
    fleet: Fleet | None = None

    async def main() -> None:
        nonlocal fleet
        fleet = Fleet(command, count, is_burst=is_burst, drain_s=drain_s)
        await fleet.run()

    run_on_own_loop(main())
    assert fleet is not None
    if fleet.was_hurried:
        raise Failure(
            "ended at once; the jobs that ran then run again, within seconds where a worker is left on this "
            "machine, elsewhere when their lease is over",
            Exit.INTERRUPTED,
        )
    if fleet.code:
        raise Failure("a worker has ended badly: what it logged above says why", Exit(fleet.code))
