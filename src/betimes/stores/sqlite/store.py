"""`SqliteStore`: the whole contract in one SQLite file.

Every change goes through the writer (see `writer`), every look through the reader. What moves jobs is shared
with other databases (`stores.relational`); here is what a file can do, and a server cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from betimes.core.job import Job
from betimes.core.limits import GateTerms
from betimes.ports import Joined
from betimes.stores.sqlite.batch import replaced
from betimes.stores.sqlite.caller import Ground, submit_within
from betimes.stores.sqlite.copying import copy_file
from betimes.stores.sqlite.door import Door
from betimes.stores.sqlite.room import no_room


class SqliteStore(Door):
    """Keeps jobs in one SQLite file; what was acknowledged survives the process, and a power cut.

    Args:
        path: the file; it is created (for its user alone) when the store is opened.
        clock: where time comes from; its boot clock counts the leases.
        inline: carry every call out at once, in the calling thread, as is done on a loop of virtual time in
            any case. Leases are then prolonged by `beat` alone, and others' changes are found by polling.
        is_gone: tells whether a worker's process has ended, so that its jobs need not wait for its lease.
        max_stall_us: a worker that has not beaten for this long is left to lose its lease.
        busy_timeout_s: how long to wait for somebody else's lock before `StoreUnavailable`.
        journal: the journal mode that the file is made with: `"wal"`, or `"delete"` for a rollback journal,
            which a file that is shared with other code needs on some versions of SQLite. A file that was
            made with the other is refused. None: WAL for a new file, and whatever an old one has.
        reserve_bytes: the size of a file beside the database that keeps some room on the disk, so that what
            runs can be recorded when the disk is full, and new jobs are refused; at most a sixteenth of the
            disk. 0: none.

    Raises:
        ConfigurationError: the path names no file, or a setting is not among those that there are.

    Example:
        >>> from betimes.clock import SystemClock
        >>> store = SqliteStore("jobs.db", clock=SystemClock())
        >>> store.is_durable
        True
    """

    async def submit_within(
        self, conn: object, jobs: Sequence[Job], *, terms: Sequence[GateTerms] = ()
    ) -> Joined:
        """Keep new jobs if and when the transaction of an `Sql` commits."""
        if self._open_writer().is_replaced:  # what is written to a file without a name is lost
            raise replaced(self._where.path)
        disk = self.disk()
        if disk.is_full:
            raise no_room(self._where.path, free=disk.free_bytes, needed=2 * disk.wanted_bytes)
        ground = Ground(path=self._where.path, clock=self._clock, specs=self._specs)
        return await submit_within(conn, jobs, terms, ground)

    def backup(self, target: Path, *, tell: Callable[[int, int], None]) -> int:
        """Copy the file as it is now, whether the store is open or not, and return the copy's size in bytes.

        It is a whole store again; workers may go on meanwhile. In the calling thread, which it occupies.

        Args:
            target: where the copy is to be, for its user alone; there must be nothing yet.
            tell: is called now and then with the pages copied and their number in all.

        Raises:
            ConfigurationError: there is nothing to copy, or the target cannot be.
            StoreUnavailable: it cannot be read now, it is damaged, or there is no room; no copy is left.
        """
        return copy_file(self._where, target, tell=tell)
