"""A lock of ours around every commit and every checkpoint, over threads and processes.

SQLite 3.7.0 to 3.51.2 (but for the backports 3.44.6 and 3.50.7) can lose commits in WAL mode: a checkpoint
that starts while another connection commits a transaction that resets the log may overlook the reset, and
later checkpoints then skip part of the log. It takes a commit *during* a checkpoint. So:

1. Whoever writes holds this lock from before BEGIN IMMEDIATE until after COMMIT or ROLLBACK; whoever
   checkpoints holds it meanwhile. Both happen on the writing connection only, whose automatic checkpoints
   are off. Opening and closing hold it, too.
2. Readers are opened read-only: they neither write nor checkpoint, not even when they close last.
3. Hence no checkpoint ever overlaps a commit or another checkpoint, in whatever process, and the fault
   cannot happen, whatever the version. The lock is taken on every version, since a process with a sound
   SQLite may share the file with one that has not.

Two steps need no lock of ours, since SQLite keeps everybody else out of them. A *close* checkpoints only
under the exclusive lock on the database file, which nobody gets while another connection has the log open;
so a close may go on when this lock cannot be had, and so may a stranger's. A *recovery* of the log's index,
by whoever reads first after a crash, takes all locks of the log, and counts what has been copied into the
database from nothing again: no checkpoint afterwards skips anything.

*Kills.* The system frees this lock and SQLite's together when their holder dies, not before what it was
writing is written. A commit that was cut short is not in the log as one; of a checkpoint that was cut short
nothing counts as copied. A process that is *stopped* within a commit keeps the lock: the others wait, and
then hear `StoreUnavailable`, until it goes on.

*With a rollback journal* there is no log, and the fault does not exist. The lock is taken all the same: it
keeps our own processes from SQLite's way of waiting, which sleeps up to a tenth of a second.

*Others.* The lock cannot cover commits that are not ours. On versions with the fault, a file with tables
that are not ours, or one in which jobs are submitted on callers' own connections, is used with the rollback
journal, and refused when it is in WAL mode already. Whoever writes to a file of ours by hand, past Betimes
and while it is in use, is on his own on such versions; looking does no harm.

It is `flock` on a file beside the database: free at once when its holder dies, about two microseconds
where nobody competes, and apart from the locks that SQLite itself keeps on the database file, which any
close of that file in this process would drop. The side file is never deleted.
"""

from __future__ import annotations

import fcntl
import os
import threading
import weakref
from pathlib import Path
from types import TracebackType

from betimes.errors import StoreUnavailable
from betimes.stores.sqlite.side_files import open_side_file

_WAITS_S = (0.0002, 0.0005, *(0.001 for _ in range(200)), 0.005)
"""How long to wait between tries; the last one goes on. Holders are done within a commit.

Who has just let go takes it again soon, if there is more to commit. A process that tries rarely seldom finds
the moment between: with waits of ten milliseconds a call in a hundred took twice as long as it does now.
"""


class CommitLock:
    """Exclusive among all who commit to one database; a context manager.

    Args:
        database: the database's real path.
        patience_s: how long to try before `StoreUnavailable`.

    Attributes:
        path: the side file.
    """

    def __init__(self, database: Path, *, patience_s: float) -> None:
        self._database = database
        self.path = database.with_name(f"{database.name}-betimes-lock")
        self._patience_s = patience_s
        self._file: int | None = None
        self._waiting = threading.Event()
        _locks.add(self)

    def open(self) -> None:
        """Make the side file, with the database's own owner and permissions, and open it."""
        self._file = open_side_file(self.path, database=self._database)

    def close(self) -> None:
        """Close the side file; it stays for others."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def __enter__(self) -> None:
        assert self._file is not None, "the lock is open as long as the store is"
        waited = 0.0
        tries = 0
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pass
            else:
                return
            if waited >= self._patience_s:
                raise StoreUnavailable(f"{self.path} has been held by another process for {waited:.0f} s")
            pause = _WAITS_S[min(tries, len(_WAITS_S) - 1)]
            self._waiting.wait(pause)
            waited += pause
            tries += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)


_locks: weakref.WeakSet[CommitLock] = weakref.WeakSet()


def _close_all_in_child() -> None:
    # A forked child shares its parent's lock, and would keep it held if the parent died within a commit.
    for lock in list(_locks):
        lock.close()


os.register_at_fork(after_in_child=_close_all_in_child)
