"""The only reader of time and randomness, and the only maker of ids.

Everything else gets its instants, its random numbers and its ids from objects made here, so that a test can
put a virtual clock and a seeded generator in their place and see the same run twice.
"""

from __future__ import annotations

import os
import random
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import time_ns as _time_ns  # by this name, since every id reads it

from betimes.ports import Clock, WorkerInfo

_BOOT_ID_FILE = Path("/proc/sys/kernel/random/boot_id")

# What the three hex digits after the version digit can be, in order: handing them out from a tuple's
# iterator is the cheapest counter there is, and `next()` on it is one step for every thread.
_COUNTS = tuple(f"{count:03x}" for count in range(1 << 12))


def monotonic_s() -> float:
    """Seconds on a clock that never goes back; only differences mean anything.

    Example:
        >>> monotonic_s() <= monotonic_s()
        True
    """
    return time.monotonic()


def new_rng(seed: int | None = None) -> random.Random:
    """A random number generator of its own; with a `seed`, one that repeats itself.

    Without a seed the operating system gives one. It is for jitter, ids and simulations, not for secrets.

    Example:
        >>> new_rng(7).random() == new_rng(7).random()
        True
    """
    chosen = int.from_bytes(os.urandom(32)) if seed is None else seed
    return random.Random(chosen)  # noqa: S311 - it guards nothing


def _boottime_ns_source() -> Callable[[], int]:
    """The reader of the boot clock in nanoseconds; the monotonic clock where the system has none."""
    boot_clock = getattr(time, "CLOCK_BOOTTIME", None)
    if boot_clock is None:
        return time.monotonic_ns
    try:
        time.clock_gettime_ns(boot_clock)
    except OSError:  # A kernel or a sandbox that lacks this clock.
        return time.monotonic_ns
    return lambda: time.clock_gettime_ns(boot_clock)


_boottime_ns = _boottime_ns_source()


def _read_boot_id() -> str:
    """The machine's boot id; failing that one of our own, so that nobody compares boot clocks by mistake."""
    try:
        return _BOOT_ID_FILE.read_text("ascii").strip()
    except OSError:
        return f"process-{os.urandom(16).hex()}"


_BOOT_ID = _read_boot_id()


class SystemClock(Clock):
    """The machine's own clocks.

    Example:
        >>> SystemClock().now() > 1_700_000_000_000_000
        True
    """

    __slots__ = ()

    def now(self) -> int:
        """Wall clock, in microseconds since the Unix epoch; it jumps when somebody sets it."""
        return _time_ns() // 1000

    def boottime(self) -> int:
        """Microseconds on a clock that never jumps and runs through suspend, where the system has one."""
        return _boottime_ns() // 1000

    def boot_id(self) -> str:
        """Identity of the machine's boot; where there is none, one of this process alone."""
        return _BOOT_ID

    def monotonic(self) -> float:
        """Seconds for measuring; only differences mean anything."""
        return time.monotonic()


class IdMaker:
    """Makes ids: canonical lower-case UUIDv7 text (RFC 9562), each greater than all it made before.

    The 12 bits after the version count within one millisecond; the 62 bits after the variant are drawn afresh
    for each. When the count is used up, or the wall clock has gone back, the maker goes on in the millisecond
    after its last one: an id's time may then be ahead of the clock, and its order is still right. Ids are
    unique, not secret: neighbours within a millisecond share their random bits.

    Any thread may call it. A forked child draws from a new generator, so it never repeats its parent's ids.

    Args:
        clock: its wall clock is read once per call.
        rng: used for nothing but the random bits; with a seeded one and a virtual clock the ids repeat.

    Example:
        >>> make = IdMaker(SystemClock(), new_rng())
        >>> make() < make()
        True
    """

    __slots__ = ("__weakref__", "_block", "_last_ms", "_lock", "_now", "_rng")

    def __init__(self, clock: Clock, rng: random.Random) -> None:
        self._now = clock.now
        self._rng = rng
        self._lock = threading.Lock()
        self._last_ms = -1
        # One millisecond's worth of ids: the instant at which it ends, the text before the counter, the
        # counter, the text after it. It is replaced as a whole, so that no thread sees parts of two.
        self._block: tuple[int, str, Iterator[str], str] = (-1, "", iter(()), "")
        _makers.add(self)

    def __call__(self) -> str:
        """A new id, greater than every id this maker has made before."""
        return self.at(self._now())

    def at(self, now: int) -> str:
        """A new id, for a caller who has just read the wall clock: `now` is what it said, in microseconds."""
        while True:
            block = self._block
            until, before, counts, after = block
            if now < until:
                digits = next(counts, None)
                if digits is not None:
                    return f"{before}{digits}{after}"
            self._replace(block, now)

    def many(self, count: int) -> list[str]:
        """As many new ids as asked for, in order, from one reading of the clock: for large batches."""
        made: list[str] = []
        now = self._now()
        while len(made) < count:
            block = self._block
            until, before, counts, after = block
            if now < until:
                made += [f"{before}{digits}{after}" for digits in islice(counts, count - len(made))]
            if len(made) < count:
                self._replace(block, now)
        return made

    def _replace(self, used_up: tuple[int, str, Iterator[str], str], now: int) -> None:
        """Begin the next millisecond, unless another thread has begun it meanwhile."""
        with self._lock:
            if self._block is not used_up:
                return
            self._last_ms = ms = max(now // 1000, self._last_ms + 1)
            head = f"{ms:012x}"
            tail = f"{0b10 << 62 | self._rng.getrandbits(62):016x}"
            before, after = f"{head[:8]}-{head[8:]}-7", f"-{tail[:4]}-{tail[4:]}"
            self._block = ((ms + 1) * 1000, before, iter(_COUNTS), after)

    def start_over(self) -> None:
        """Share nothing with the process this one was forked from; called by itself in every forked child."""
        # The parent goes on with the same random state and the same half-used block, and the thread that
        # perhaps held the lock does not exist here.
        self._lock = threading.Lock()
        self._rng = new_rng()
        self._block = (-1, "", iter(()), "")


_makers: weakref.WeakSet[IdMaker] = weakref.WeakSet()


def _start_all_over() -> None:
    for maker in list(_makers):
        maker.start_over()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_all_over)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """Which process this is, told apart from every other one that has had the same pid.

    Attributes:
        host: the machine's (or the container's) name.
        pid: the process id, as seen from inside `pid_namespace`.
        started: the process's start in clock ticks since boot; None where the system does not tell.
        boot_id: the boot during which it runs.
        pid_namespace: where the pid holds: containers of one machine share the boot id, not the pids. Empty
            where there are no namespaces.
    """

    host: str
    pid: int
    started: int | None
    boot_id: str
    pid_namespace: str


def process_identity() -> ProcessIdentity:
    """The identity of the calling process, for the row of a worker.

    Example:
        >>> process_identity() == process_identity()
        True
    """
    pid = os.getpid()
    return ProcessIdentity(
        host=socket.gethostname(),
        pid=pid,
        started=process_started(pid),
        boot_id=_BOOT_ID,
        pid_namespace=_pid_namespace(),
    )


def process_started(pid: int) -> int | None:
    """When a process of this machine started, in clock ticks since boot; None when it is gone or not visible.

    Source: proc(5), field 22 of `/proc/<pid>/stat`. The name in field 2 may hold blanks and brackets, so the
    fields are counted from its last bracket.
    """
    fields = _process_fields(pid)
    return None if fields is None else int(fields[19])


def is_gone(worker: WorkerInfo) -> bool:
    """Whether a worker's process has ended; True is only said where it is certain.

    That takes a worker of this machine, boot and pid namespace. A process that has ended but that nobody has
    waited for yet (a zombie) is gone, and so is one whose pid another process has now.
    """
    me = process_identity()
    is_ours = (worker.host, worker.boot_id, worker.pid_namespace) == (me.host, me.boot_id, me.pid_namespace)
    if not (is_ours and me.pid_namespace and worker.pid > 0 and worker.process_started > 0):
        return False
    try:
        os.kill(worker.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # it lives, under another user
    fields = _process_fields(worker.pid)
    if fields is None:
        return False  # hidden from us: kill() has just said that it lives
    return fields[0] in _ENDED or int(fields[19]) != worker.process_started


_ENDED = (b"Z", b"X")
"""States of a process whose code runs no more (proc(5), field 3)."""


def _process_fields(pid: int) -> list[bytes] | None:
    """The fields of `/proc/<pid>/stat` from the third, the state, on; None if the process cannot be seen."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    return stat.rpartition(b")")[2].split()


def _pid_namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""
