"""What a child prints: read as it comes, given to the job that printed it, and bounded.

A child's output is one stream, whatever job is in it. Where a job's part ends there is a mark (`mark_of`),
which the child writes before it answers; so whoever reads up to the mark of an answered request has all that
it printed. While only one request is in the child, its lines need not wait for the mark.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Protocol

from betimes.executors.process.frames import LOOKS, STREAMS, TAKEN
from betimes.ports import Run

MOST_PRINTED = 1024 * 1024
"""How much of one job's output to one stream goes into its log, in bytes; more is read and left out."""

LINE_COST = 50
"""What a line counts beside its bytes: a log of a million empty lines is not short."""

TAIL = 4096
"""The last bytes of an output that is too long, which are kept, since errors come at the end."""

CHUNK = 64 * 1024
LAST_CHUNKS = 32
"""Chunks read at a child's end: more than a pipe holds, and not what somebody else goes on to write."""

_LONGEST_NUMBER = 21
_LONGEST_LINE = 8192


class InChild(Protocol):
    """A request that is in the child."""

    number: int
    run: Run


class Printed:
    """One stream of a child (mutable: it gathers).

    Args:
        fd: where it is read.
        stream: 0 for stdout, 1 for stderr.
        words: the shared page.
        mark: what begins a mark.
        inside: the requests that are in the child, in order; the owner changes it.

    Attributes:
        is_early: the child has not started yet.
    """

    def __init__(
        self, fd: int, stream: int, words: memoryview, *, mark: bytes, inside: Sequence[InChild]
    ) -> None:
        self._fd = fd
        self._source = STREAMS[stream]
        self._words = words
        self._looks_at, self._taken_at = LOOKS[stream], TAKEN[stream]
        self._looks = self._taken = 0
        self._mark = mark
        self._inside = inside
        self._held = bytearray()
        self._marked = 0
        self._left = MOST_PRINTED
        self._left_out = 0
        self._tail = b""
        self.is_early = True
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read whatever comes, on this loop."""
        self._loop = loop
        loop.add_reader(self._fd, self.read)

    def close(self) -> None:
        """Read what is there, and no more; what belongs to no request yet is in `rest`."""
        for _ in range(LAST_CHUNKS):
            if not self.read():
                break
        self._stop()

    def _stop(self) -> None:
        if self._loop is not None:
            self._loop.remove_reader(self._fd)
            self._loop = None

    def read_up_to(self, number: int) -> None:
        """Read on until all that this request has printed is in its log; its mark has been written."""
        while self._marked < number and self.read():
            pass

    def read(self) -> bool:
        """Read one chunk; False if there is none."""
        # The counts are ours; the page only shows them, since a job may write there whatever it likes.
        self._words[self._looks_at] = self._looks = self._looks + 1
        try:
            data = os.read(self._fd, CHUNK)
            self._words[self._taken_at] = self._taken = self._taken + len(data)
        except BlockingIOError:
            return False
        finally:
            self._words[self._looks_at] = self._looks = self._looks + 1
        if not data:
            self._stop()
            return False
        self._held += data
        self._sort()
        return True

    def _sort(self) -> None:
        held, mark = self._held, self._mark
        while (at := held.find(mark)) >= 0:
            end = held.find(b"\n", at)
            if end < 0:
                break
            number = int(held[at + len(mark) : end])
            owner = next((one for one in self._inside if one.number == number), None)
            self._give(owner, bytes(held[:at]))
            self._conclude(owner)
            del held[: end + 1]
            self._marked = number
        if len(self._inside) > 1:
            # Whose it is the next mark will tell. If it is too much, the end is kept, as elsewhere.
            surplus = len(held) - MOST_PRINTED
            if surplus > 0:
                self._left_out += surplus
                del held[:surplus]
            return
        sure = self._without_mark()
        if not self._inside:
            # It is nobody's: of a thread that a job has left behind, say. Or it says why there is no start.
            del held[: max(0, sure - TAIL) if self.is_early else sure]
            return
        end = held.rfind(b"\n", 0, sure) + 1
        if not end and sure > _LONGEST_LINE:
            end = sure
        if end:
            self._give(self._inside[0], bytes(held[:end]))
            del held[:end]

    def _without_mark(self) -> int:
        """Return how many of the bytes that are held cannot be the beginning of a mark."""
        size = len(self._held)
        at = self._held.rfind(b"\0", max(0, size - len(self._mark) - _LONGEST_NUMBER))
        return size if at < 0 else at

    def conclude(self, owner: InChild | None) -> bytes:
        """Give what is left to a request whose child has died; returns it, for want of one."""
        rest = bytes(self._held)
        self._held.clear()
        if owner is not None:
            self._give(owner, rest)
            self._conclude(owner)
        return rest

    def _give(self, owner: InChild | None, data: bytes) -> None:
        if owner is None or not data:
            return
        if self._left > 0:
            now = data[: self._left]
            self._left -= len(now) + LINE_COST * now.count(b"\n")
            self._log(owner, now)
            data = data[len(now) :]
        if data:
            self._left_out += len(data)
            self._tail = (self._tail + data[-TAIL:])[-TAIL:]

    def _conclude(self, owner: InChild | None) -> None:
        if owner is not None and self._left_out:
            missing = self._left_out - len(self._tail)
            if missing:
                owner.run.write_log(
                    f"… {missing:,} bytes more than a log takes are left out here …", source=self._source
                )
            if self._tail:
                self._log(owner, self._tail)
        self._left, self._left_out, self._tail = MOST_PRINTED, 0, b""

    def _log(self, owner: InChild, data: bytes) -> None:
        owner.run.write_log(data.decode("utf-8", "backslashreplace"), source=self._source)
