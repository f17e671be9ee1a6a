"""Room on the disk: new jobs need some, and what runs must be recorded although there is none.

A full disk must not keep a job that has run from being recorded, a cancel from being heard, or pruning from
making room. So a small file beside the database, the reserve, really takes up some of the disk. Rules:

1. Whatever is not a new job and finds the disk full may use the reserve: the file is emptied, and the
   write is tried again. While it is empty, every commit is followed by a checkpoint, so that the log is
   written over and not prolonged.
2. New jobs (submits, fires, new schedules) never use it. While it is empty, in whatever process it was
   emptied, they are refused (`StoreUnavailable`, `why="full"`) before they touch the disk.
3. It is filled again once twice as much is free; so the limit does not flicker.
4. A log that was long once can take up new jobs although the disk is full, and a later checkpoint would
   find no room for them in the database. So what the log owes the database counts as taken.

The file is never deleted: other processes may look at it. Its content means nothing.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from betimes.errors import StoreUnavailable
from betimes.stores.sqlite.side_files import open_side_file

_log = logging.getLogger("betimes")

RESERVE_BYTES = 2 * 1024 * 1024
"""Dozens of turns of a worker fit, each with its log; results of some hundred KiB do."""
SMALLEST_PART = 16
"""On a small disk the reserve is at most this part of it."""
ROOMY_BYTES = 256 * 1024 * 1024
"""With so much free, nobody looks closer."""
SCARCE_BYTES = 64 * 1024
"""With less than this free, an error of the disk is taken for a lack of room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFacts:
    """How the disk of a database stands.

    Attributes:
        free_bytes: what this user may still write.
        total_bytes: the size of the file system.
        reserve_bytes: how much of the reserve is there.
        wanted_bytes: how much of it there should be; 0: none is kept.
    """

    free_bytes: int
    total_bytes: int
    reserve_bytes: int
    wanted_bytes: int

    @property
    def is_full(self) -> bool:
        """Whether new jobs are refused until there is more room."""
        return self.reserve_bytes < self.wanted_bytes and self.free_bytes < 2 * self.wanted_bytes


def disk_facts(database: Path, *, reserve_bytes: int = RESERVE_BYTES) -> DiskFacts:
    """Look at the disk of a database, by two system calls.

    Raises:
        OSError: its folder is not there.
    """
    disk = os.statvfs(database.parent)
    total = disk.f_blocks * disk.f_frsize
    wanted = min(reserve_bytes, total // SMALLEST_PART)
    found = 0
    if wanted:
        with suppress(FileNotFoundError):
            found = reserve_of(database).stat().st_size
    return DiskFacts(
        free_bytes=_free_bytes(disk), total_bytes=total, reserve_bytes=found, wanted_bytes=wanted
    )


def _free_bytes(disk: os.statvfs_result) -> int:
    # What a file system keeps for the administrator is the administrator's to use.
    return (disk.f_bfree if os.geteuid() == 0 else disk.f_bavail) * disk.f_frsize


def reserve_of(database: Path) -> Path:
    """Return the path of a database's reserve."""
    return database.with_name(f"{database.name}-betimes-reserve")


def is_disk_full(database: Path) -> bool:
    """Say whether next to nothing can be written any more."""
    try:
        return disk_facts(database, reserve_bytes=0).free_bytes < SCARCE_BYTES
    except OSError:
        return False


def no_room(database: Path, *, free: int, needed: int) -> StoreUnavailable:
    """Return what to raise when there is no room for new jobs."""
    return StoreUnavailable(
        f"{database} takes no new jobs: its disk is full ({_size(free)} free, {_size(needed)} are needed, "
        "and more for the jobs). Make room; what runs is recorded meanwhile",
        why="full",
    )


class Room:
    """Watches over the room of one database, on behalf of its writer; it says each change once.

    Args:
        database: the database's real path.
        reserve_bytes: how large the reserve is to be; 0: none, and nothing is refused before SQLite does.

    Attributes:
        is_scarce: whether the reserve is not there, as far as this process knows.
    """

    def __init__(self, database: Path, *, reserve_bytes: int = RESERVE_BYTES) -> None:
        """Look at nothing yet."""
        self._database = database
        self._folder = str(database.parent)
        self._reserve_bytes = reserve_bytes
        self.is_scarce = False

    def facts(self) -> DiskFacts:
        """Look at the disk."""
        return disk_facts(self._database, reserve_bytes=self._reserve_bytes)

    def refusal(self, owed_bytes: Callable[[], int]) -> StoreUnavailable | None:
        """Return why no new job can be taken now; None: there is room.

        Args:
            owed_bytes: tells by how much the database will grow at the next checkpoint.
        """
        try:
            if not self.is_scarce and _free_bytes(os.statvfs(self._folder)) >= ROOMY_BYTES:
                return None
            facts = self.facts()
        except OSError:
            return None  # the folder is gone: the write itself says so
        free = facts.free_bytes
        if not facts.wanted_bytes:
            return None
        if not self._fill(facts):
            needed = 2 * facts.wanted_bytes
        elif free < owed_bytes():
            needed = owed_bytes()
        else:
            return None
        return no_room(self._database, free=free, needed=needed)

    def fill(self) -> None:
        """Fill the reserve, if it is not there and there is room."""
        with suppress(OSError):
            self._fill(self.facts())

    def give_up(self) -> bool:
        """Empty the reserve, so that there is room for what must be written; False: it was empty."""
        try:
            facts = self.facts()
            self._note(is_scarce=facts.wanted_bytes > 0, facts=facts)
            if not facts.reserve_bytes:
                return False
            os.truncate(reserve_of(self._database), 0)
        except OSError:
            return False
        return True

    def _fill(self, facts: DiskFacts) -> bool:
        """Return whether the reserve is there now."""
        wanted = facts.wanted_bytes
        is_there = facts.reserve_bytes >= wanted
        if not is_there and facts.free_bytes >= 2 * wanted:
            is_there = self._allocate(wanted)
        self._note(is_scarce=not is_there, facts=facts)
        return is_there

    def _allocate(self, size: int) -> bool:
        path = reserve_of(self._database)
        try:
            file = open_side_file(path, database=self._database)
        except OSError:
            return False
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file, 0, size)
            else:  # macOS
                os.pwrite(file, bytes(size), 0)
        except OSError:
            with suppress(OSError):
                os.ftruncate(file, 0)
            return False
        finally:
            os.close(file)
        return True

    def _note(self, *, is_scarce: bool, facts: DiskFacts) -> None:
        if is_scarce is self.is_scarce:
            return
        self.is_scarce = is_scarce
        if is_scarce:
            _log.error(
                "the disk of %s is full (%s free): no new jobs are taken until there is room; others go on",
                self._database,
                _size(facts.free_bytes),
            )
        else:
            _log.warning("there is room on the disk of %s again: new jobs are taken", self._database)


def _size(count: int) -> str:
    return f"{count / 1024 / 1024:.1f} MiB" if count >= 1024 * 1024 else f"{count // 1024} KiB"
