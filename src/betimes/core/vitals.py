"""What a store says of its own state, for a checkup: values that `checkup` reads."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from betimes.core.job import Micros


class Trouble(StrEnum):
    """Why a store cannot be used."""

    MISSING = "missing"
    """There is no such file yet."""
    UNAVAILABLE = "unavailable"
    """It cannot be opened now: it is locked, or this process may not open it."""
    REPLACED = "replaced"
    """Another file goes by its name since this process has opened it, or none does."""
    LEFT_OPEN = "left_open"
    """A crash has left a transaction half done; who opens it next for writing rolls it back."""
    REFUSED = "refused"
    """It is damaged, or is no store of ours, or lies where it must not."""
    NEWER = "newer"
    """A later version of Betimes made it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVitals:
    """What a store in a file says of the file. Nothing was changed to find it out.

    Attributes:
        size: of the file, in bytes.
        log_size: of its write-ahead log; 0 without one.
        free: what the file system has left for this user; None: it does not say.
        is_full: whether new jobs are refused until there is more room.
        mode: the permission bits.
        is_writable: whether this process may write to the file and to its folder.
        sqlite: the version of SQLite here.
        has_reset_fault: whether that version can lose commits in WAL mode, if left to itself.
        journal_mode: `wal`, `delete`, …; empty: it could not be looked at.
        is_shared: whether others commit to the file too: it holds their tables, or jobs they submitted.
        schema: the version of its schema; 0: it has none yet; None: it could not be looked at.
        newest_schema: the version that is known here.
        damage: what a check of the whole file has found; None: it was not asked for.
    """

    size: int = 0
    log_size: int = 0
    free: int | None = None
    is_full: bool = False
    mode: int = 0o600
    is_writable: bool = True
    sqlite: str = ""
    has_reset_fault: bool = False
    journal_mode: str = ""
    is_shared: bool = False
    schema: int | None = None
    newest_schema: int = 0
    damage: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """What a store says of itself; also one that is not open, or that cannot be opened.

    Attributes:
        kind: `memory`, `sqlite`, …
        place: where it is, in words; empty: nowhere else than in this process.
        is_durable: whether jobs outlive the process.
        trouble: why it cannot be used; None: it can.
        problem: the same in words; empty where there is none.
        strategy: the stored name of the strategy it was made with; None: of none yet.
        latest: the latest instant at which something is on record to have happened; None: nothing is.
        file: of the file, if it is one and is there.
    """

    kind: str
    is_durable: bool
    place: str = ""
    trouble: Trouble | None = None
    problem: str = ""
    strategy: str | None = None
    latest: Micros | None = None
    file: FileVitals | None = None

    @property
    def can_be_looked_at(self) -> bool:
        """Whether its jobs can be read as they are: nothing is wrong, and the schema is today's."""
        is_today = self.file is None or self.file.schema == self.file.newest_schema
        return self.trouble is None and is_today
