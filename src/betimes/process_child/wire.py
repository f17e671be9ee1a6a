"""The child's ends of the pipes, and the page that it shares with the scheduler's process."""

from __future__ import annotations

import array
import fcntl
import mmap
import os
import select
import sys
import termios
import threading
from typing import NoReturn

from betimes.executors.process.frames import (
    LOOKS,
    LOST_PIPE,
    PAGE_BYTES,
    TAKEN,
    TICKET_BYTES,
    FrameReader,
    FromChild,
    Request,
    decode_request,
    frame_of,
    mark_of,
)


class Page:
    """The shared page: the child only looks."""

    def __init__(self, fd: int) -> None:
        self.words = memoryview(mmap.mmap(fd, PAGE_BYTES)).cast("Q")
        os.close(fd)


class Requests:
    """What is to be run: requests, and the tickets that let them be run."""

    def __init__(self, requests: int, tickets: int) -> None:
        self._fd = requests
        self._tickets = tickets
        self._poll = select.poll()
        self._poll.register(tickets, select.POLLIN)
        self._frames = FrameReader()
        self._waiting: list[Request] = []

    def next(self) -> Request | None:
        """Wait for the next request and begin it; None: there will be none."""
        number = self._next_ticket()
        while number is not None:
            # Those before it were taken back.
            while self._waiting:
                request = self._waiting.pop(0)
                if request.number == number:
                    return request
            data = os.read(self._fd, 1 << 18)
            if not data:
                break
            self._waiting += map(decode_request, self._frames.feed(data))
        return None

    def _next_ticket(self) -> int | None:
        while True:
            try:
                ticket = os.read(self._tickets, TICKET_BYTES)
            except BlockingIOError:  # the parent reads there, too, and must not wait
                self._poll.poll()
            else:
                return int.from_bytes(ticket, "little") if ticket else None


class Answers:
    """The pipe to the scheduler's process; any thread may write."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._identity = _identity(fd)
        self._lock = threading.Lock()

    def send(self, message: FromChild) -> None:
        """Write a message, whole; it waits until it is taken.

        A job may have closed all files, and opened others since: what is not our pipe is not written to.
        """
        data = memoryview(frame_of(message))
        with self._lock:
            if _identity(self._fd) != self._identity:
                self._end()
            while data:
                data = data[os.write(self._fd, data) :]

    def _end(self) -> NoReturn:
        # Nothing can be said any more, and nothing of ours may be written into somebody's file: not even by
        # an interpreter that ends in good order.
        os._exit(LOST_PIPE)


class Output:
    """The child's stdout or stderr, which are pipes to the scheduler's process.

    Args:
        fd: 1 or 2.
        page: the shared page.
        token: what begins the marks.
    """

    def __init__(self, fd: int, page: Page, token: str) -> None:
        self._fd = fd
        self._words = page.words
        self._looks, self._taken = LOOKS[fd - 1], TAKEN[fd - 1]
        self._identity = _identity(fd)
        self._mark = mark_of(token)
        self._marked_at = 0
        self._in_pipe = array.array("i", [0])

    @property
    def is_whole(self) -> bool:
        """Whether it is the pipe that it was at the start."""
        return _identity(self._fd) == self._identity

    def mark(self, number: int) -> bool:
        """Write where the output of this request ends; False: there has been none since the last mark."""
        written = self._written()
        if written == self._marked_at >= 0:
            return False
        data = self._mark + b"%d\n" % number
        self._marked_at = -1 if written < 0 else written + len(data)
        while data:
            try:
                data = data[os.write(self._fd, data) :]
            except BlockingIOError:  # a job has made it so
                select.select([], [self._fd], [])
        return True

    def _written(self) -> int:
        """Return how many bytes were ever written, by this process or by those it has started; -1: unknown.

        They are those that the parent has taken out and those that are in the pipe, counted while the parent
        does not look.
        """
        if sys.platform != "linux":  # elsewhere the writing end does not tell what is in a pipe
            return -1
        words = self._words
        looks = words[self._looks]
        fcntl.ioctl(self._fd, termios.FIONREAD, self._in_pipe)
        written = words[self._taken] + self._in_pipe[0]
        return -1 if looks % 2 or words[self._looks] != looks else written


def _identity(fd: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino
