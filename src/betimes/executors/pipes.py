"""The pipes to and from a child, served by the event loop; neither side ever blocks it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from betimes.core.output import Output

CHUNK = 64 * 1024
"""Bytes read or written in one step of the loop: as much as a pipe holds on Linux."""

LAST_CHUNKS = 32
"""Chunks read after the child's end: more than any pipe holds, and not what a stranger goes on to write."""


class OutputPipe:
    """Reads one stream of a child.

    Attributes:
        child_end: the file descriptor to hand to the child, which whoever starts it closes.
        output: what has been read.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, most: int, hear: Callable[[str], None]) -> None:
        """Make the pipe.

        Args:
            loop: serves it.
            most: how many bytes are kept.
            hear: is called with the lines that are finished.

        Raises:
            OSError: there are too many open files.
        """
        self._loop = loop
        self._hear = hear
        self.output = Output(most)
        self._fd, self.child_end = os.pipe()
        os.set_blocking(self._fd, False)
        loop.add_reader(self._fd, self._read)

    def close(self) -> None:
        """Read what is there, and no more; twice is fine."""
        for _ in range(LAST_CHUNKS):
            if not self._read():
                break
        self._close()
        self._tell(self.output.rest())

    def _read(self) -> bool:
        """Read one chunk; False if there is none now, or will be none any more."""
        if self._fd < 0:
            return False
        try:
            data = os.read(self._fd, CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._close()
            return False
        self._tell(self.output.take(data))
        return True

    def _tell(self, lines: str | None) -> None:
        if lines is not None:
            self._hear(lines)

    def _close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1


class InputPipe:
    """Feeds a child, as fast as it reads; one that reads no more is left in peace.

    Attributes:
        child_end: the file descriptor to hand to the child, which whoever starts it closes.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, data: bytes) -> None:
        """Make the pipe.

        Raises:
            OSError: there are too many open files.
        """
        self._loop = loop
        self._left = memoryview(data)
        self.child_end, self._fd = os.pipe()
        os.set_blocking(self._fd, False)
        loop.add_writer(self._fd, self._write)

    def close(self) -> None:
        """Write nothing more; twice is fine."""
        if self._fd >= 0:
            self._loop.remove_writer(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _write(self) -> None:
        try:
            self._left = self._left[os.write(self._fd, self._left[:CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:  # it has closed its end
            self._left = self._left[:0]
        if not self._left:
            self.close()
