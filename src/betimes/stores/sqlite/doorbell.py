"""The doorbell: what the writer's thread sleeps on.

It is rung by whoever calls the store, and, on Linux, by whoever writes to the file: inotify tells of writes
of every process and every connection, ours or not, and costs nothing while nobody writes. There is no such
thing in the standard library, so that three calls of the C library are made by `ctypes`. Elsewhere, or where
the system refuses (its watches are used up, the file system does not tell), the file is looked at every few
milliseconds instead: slower by some milliseconds, dearer by a percent of a core, and the same otherwise.

What is watched is the file that a commit writes to first: the log in WAL mode, the database itself with a
rollback journal. A write is not yet a commit, and a commit not always followed by a write; what to make of
a touch is for `Watch` to say.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

_IN_MODIFY = 0x2
_EVENTS_BYTES = 4096


class Touches(Protocol):
    """Tells of writes to a file, whoever makes them."""

    def fileno(self) -> int:
        """Return the descriptor that becomes readable with a write."""
        ...

    def drain(self) -> bool:
        """Forget the writes so far; say whether there were any."""
        ...

    def close(self) -> None:
        """Watch no longer."""
        ...


class Inotify:
    """Writes to one file, told by the Linux kernel.

    Args:
        path: the file.
        probe: a file of ours beside it, to which a byte is written to see whether that is told.

    Raises:
        OSError: the system does not tell, or not any more.
    """

    def __init__(self, path: Path, *, probe: Path) -> None:
        # Loaded where it is needed: it takes some milliseconds, which a start without a file should not pay.
        import ctypes  # noqa: PLC0415

        try:
            libc = ctypes.CDLL(None, use_errno=True)
            init, add, remove = libc.inotify_init1, libc.inotify_add_watch, libc.inotify_rm_watch
        except (AttributeError, TypeError) as error:
            raise OSError(f"the C library has no inotify ({error})") from error

        def watch(file: Path) -> int:
            number: int = add(self._fd, os.fsencode(file), _IN_MODIFY)
            if number < 0:
                raise OSError(ctypes.get_errno(), f"{file} cannot be watched")
            return number

        self._fd: int = init(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "no inotify instance is left")
        try:
            probed = watch(probe)
            with probe.open("r+b", buffering=0) as file:
                file.write(b"\n")
            if not self.drain():
                raise OSError(f"writes to {probe} are not told")
            remove(self._fd, probed)
            self.drain()
            watch(path)
        except BaseException:
            self.close()
            raise

    def fileno(self) -> int:
        """Return the descriptor that becomes readable with a write."""
        return self._fd

    def drain(self) -> bool:
        """Forget the writes so far; say whether there were any."""
        # Equal events in a row are kept as one, so that one read empties the queue.
        try:
            return bool(os.read(self._fd, _EVENTS_BYTES))
        except OSError:
            return False

    def close(self) -> None:
        """Watch no longer."""
        os.close(self._fd)


def touches_of(path: Path, *, probe: Path) -> Touches | None:
    """Return what tells of writes to this file, tried on `probe`; None where nothing does."""
    if sys.platform != "linux":
        return None
    try:
        return Inotify(path, probe=probe)
    except OSError:
        return None


class Doorbell:
    """Lets one thread sleep until it is called, or the file is touched, or for so long.

    Args:
        touches: tells of writes to the file; it is closed together with the bell.

    Attributes:
        touches: the same; None if nothing tells.
    """

    def __init__(self, touches: Touches | None = None) -> None:
        self.touches = touches
        self._is_asleep = self._is_closed = False
        self._closing = threading.Lock()
        # A pipe, since what is slept on must be a descriptor, and Linux alone has a cheaper one.
        self._out, self._in = os.pipe()
        os.set_blocking(self._out, False)
        os.set_blocking(self._in, False)
        self._calls = select.poll()
        self._calls.register(self._out, select.POLLIN)
        self._calls_and_touches = select.poll()
        self._calls_and_touches.register(self._out, select.POLLIN)
        if touches is not None:
            self._calls_and_touches.register(touches.fileno(), select.POLLIN)

    def ring(self) -> None:
        """Wake the sleeper, from any thread; what it is to see must have been put in place before."""
        if self._is_asleep:
            with self._closing:  # or it might write to what the descriptor has become since
                if not self._is_closed:
                    self._is_asleep = False
                    os.write(self._in, b"x")

    def sleep(self, timeout_s: float | None, *, is_called: Callable[[], bool], for_touches: bool) -> bool:
        """Sleep until called, at most so long (None: no limit); say whether the file was touched.

        Args:
            timeout_s: the limit.
            is_called: whether there is work already, asked once the bell can be heard.
            for_touches: whether a touch ends the sleep, too; it is forgotten by that.
        """
        self._is_asleep = True
        try:
            if is_called():
                return False
            # Poll counts in milliseconds, and rounds up.
            timeout_ms = None if timeout_s is None else timeout_s * 1000
            ready = (self._calls_and_touches if for_touches else self._calls).poll(timeout_ms)
        finally:
            self._is_asleep = False
        fds = {fd for fd, _ in ready}
        if self._out in fds:
            os.read(self._out, _EVENTS_BYTES)
        return self.touches is not None and self.touches.fileno() in fds and self.touches.drain()

    def hush(self) -> bool:
        """Forget the touches so far; say whether there were any."""
        return self.touches is not None and self.touches.drain()

    def close(self) -> None:
        """Let go of the descriptors; whoever rings is not heard any more."""
        with self._closing:
            self._is_closed = True
            if self.touches is not None:
                self.touches.close()
            os.close(self._out)
            os.close(self._in)
