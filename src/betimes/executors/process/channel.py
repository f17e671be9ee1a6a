"""The pipes between the scheduler's process and one child, and the page of memory that both share."""

from __future__ import annotations

import asyncio
import fcntl
import mmap
import os
import sys
import tempfile
from contextlib import suppress

from betimes.executors.held import hold, let_go
from betimes.executors.process.frames import PAGE_BYTES, TICKET_BYTES, numbers_of, tickets_of

MOST_TICKETS = 64
"""The most requests that are in a child at once: so many tickets are taken back in one read."""


class Channel:
    """The open ends, of both sides until the child has its own.

    Attributes:
        requests, tickets: the parent writes here.
        returned: the parent reads here the tickets that the child has not taken.
        answers, stdout, stderr: the parent reads here.
        lifeline: the end that only this process holds: it breaks when this process dies, and a byte in it
            says that somebody was told to stop.
        words: the shared page, in words of 64 bits.
        child_requests, child_tickets, child_answers, child_lifeline, child_page, child_stdout, child_stderr:
            the child's ends, which whoever starts it closes.

    Raises:
        OSError: there are too many open files.
    """

    def __init__(self) -> None:
        self._open: list[int] = []
        try:
            self.child_requests, self.requests = self._pipe()
            self.returned, self.tickets = self._pipe()
            self.answers, self.child_answers = self._pipe()
            self.stdout, self.child_stdout = self._pipe()
            self.stderr, self.child_stderr = self._pipe()
            self.child_lifeline, self.lifeline = self._pipe()
            self.child_tickets = self._keep(os.dup(self.returned))
            self.child_page = self._keep(_page())
            self._page = mmap.mmap(self.child_page, PAGE_BYTES)
        except OSError:
            for fd in self._open:
                os.close(fd)
            raise
        # The ends of the tickets that are read have this setting in common: the child waits by `poll`.
        ours = {self.requests, self.returned, self.tickets, self.answers, self.stdout, self.stderr}
        for fd in ours:
            os.set_blocking(fd, False)
        self._ours = ours | {self.lifeline}
        hold(self.lifeline)
        self.words = memoryview(self._page).cast("Q")

    def _pipe(self) -> tuple[int, int]:
        reading, writing = os.pipe()
        return self._keep(reading), self._keep(writing)

    def _keep(self, fd: int) -> int:
        self._open.append(fd)
        return fd

    def discard(self) -> None:
        """Close everything: there will be no child."""
        let_go(self.lifeline)
        self.words.release()
        self._page.close()
        for fd in self._open:
            os.close(fd)

    def hang_up(self) -> None:
        """Let the child know that there are no more requests; twice is fine."""
        for fd in {self.requests, self.returned, self.tickets} & self._ours:
            self._ours.discard(fd)
            os.close(fd)

    def ring(self) -> None:
        """Have the child's code hear that it is told to stop, if the signal alone does not reach it."""
        with suppress(OSError):  # the child has closed its end, or is dead
            os.write(self.lifeline, b"!")

    def close(self) -> None:
        """Close this process's ends."""
        self.hang_up()
        let_go(self.lifeline)
        for fd in self._ours:
            os.close(fd)
        self._ours.clear()
        self.words.release()
        self._page.close()


def _page() -> int:
    """Return the descriptor of a page of memory that has no name, and whose size no job can change.

    (If it were cut, this process would die of a look at it. Where there is no `memfd`, that is possible.)
    """
    if sys.platform == "linux":
        fd = os.memfd_create("betimes", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, PAGE_BYTES)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        return fd
    with tempfile.TemporaryFile() as file:
        fd = os.dup(file.fileno())
    os.ftruncate(fd, PAGE_BYTES)
    return fd


class Outbox:
    """Sends requests and then their tickets, and takes back what the child has not begun.

    It never blocks: what a pipe does not take at once follows when there is room.
    """

    def __init__(self, channel: Channel, loop: asyncio.AbstractEventLoop) -> None:
        self._channel = channel
        self._loop = loop
        self._frames: list[bytes] = []
        self._numbers: list[int] = []
        self._rest = bytearray()
        self._is_closed = False

    def add(self, number: int, frame: bytes) -> None:
        """Have a request sent by the next `flush`."""
        self._frames.append(frame)
        self._numbers.append(number)

    def flush(self) -> None:
        """Send what was added, as far as it goes."""
        frames, self._frames = self._frames, []
        data: bytes | bytearray = b"".join(frames)
        if self._rest:
            self._rest += data
            data = self._rest
        if data:
            written = self._write(self._channel.requests, data)
            if written < len(data):
                if data is not self._rest:
                    self._loop.add_writer(self._channel.requests, self.flush)
                    self._rest = bytearray(data)
                del self._rest[:written]
                return
            if data is self._rest:
                self._loop.remove_writer(self._channel.requests)
                self._rest = bytearray()
        if self._numbers:
            numbers, self._numbers = self._numbers, []
            self._write(self._channel.tickets, tickets_of(numbers))

    def _write(self, fd: int, data: bytes | bytearray) -> int:
        try:
            return os.write(fd, data)
        except BlockingIOError:
            return 0
        except OSError:  # the child has closed its end, and will soon be heard to be dead
            return len(data)

    def withdraw(self) -> set[int]:
        """Take back every request that the child has not begun; it never will. Returns their numbers."""
        numbers, self._numbers = set(self._numbers), []
        if not self._is_closed:
            with suppress(BlockingIOError):
                numbers.update(numbers_of(os.read(self._channel.returned, TICKET_BYTES * MOST_TICKETS)))
        return numbers

    def close(self) -> None:
        """Send nothing more; the child ends when it has done what it holds tickets for. Twice is fine."""
        if not self._is_closed:
            self._is_closed = True
            self._loop.remove_writer(self._channel.requests)
            self._channel.hang_up()
