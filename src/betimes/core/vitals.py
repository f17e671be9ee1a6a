"""What a store says of its own state, for a checkup: values that `checkup` reads."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from betimes.core.job import Micros


class Trouble(StrEnum):
    """Why a store cannot be used."""

    MISSING = "missing"
    """There is no such file yet, or the schema is empty."""
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
class TableVitals:
    """What a server says of one table.

    Attributes:
        name: the table.
        size: with its indexes, in bytes.
        live, dead: how many rows live, and how many wait to be cleared away, as far as was counted.
    """

    name: str
    size: int = 0
    live: int = 0
    dead: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizon:
    """What keeps the longest, or the most, from being cleared away.

    Attributes:
        kind: `transaction`, `prepared transaction` or `replication slot`.
        name: the process id of the server's session; the name of the others.
        who: its user, program and state, as far as this role may see.
        age_s: since when it has been open, in seconds; 0 for a slot.
        behind: how many transactions a slot lags behind.
    """

    kind: str
    name: str
    who: str = ""
    age_s: float = 0.0
    behind: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerVitals:
    """What a database server says of itself and of our schema. Nothing was changed to find it out.

    Attributes:
        version: of the server.
        schema: the version of our tables; 0: there are none yet; None: it could not be looked at.
        newest_schema: the version that is known here.
        serves: the oldest version whose code works with these tables, too.
        role: whom the server takes us for.
        fits: what the role has the rights for: `owner`, `worker`, `submitter` or `viewer`; empty: for none.
        lacks: the rights that it lacks for the least of these.
        is_standby: whether nothing can be written there.
        is_pooled: whether a pooler stands between.
        synchronous_commit, fsync, full_page_writes, autovacuum: the settings of these names.
        statement_timeout_ms, lock_timeout_ms, idle_in_transaction_ms: with which a session of the role
            begins; 0: without.
        connections, max_connections: sessions of clients, and the most that there can be.
        hidden: sessions of this database that the role may see nothing of.
        clock_ahead_us: how far its clock is ahead of this machine's; None: they were not compared.
        horizon: what keeps dead rows from being cleared away; None: nothing does.
        tables: ours, the largest first.
    """

    version: str = ""
    schema: int | None = None
    newest_schema: int = 0
    serves: int = 0
    role: str = ""
    fits: str = ""
    lacks: tuple[str, ...] = ()
    is_standby: bool = False
    is_pooled: bool = False
    synchronous_commit: str = "on"
    fsync: bool = True
    full_page_writes: bool = True
    autovacuum: bool = True
    statement_timeout_ms: int = 0
    lock_timeout_ms: int = 0
    idle_in_transaction_ms: int = 0
    connections: int = 0
    max_connections: int = 0
    hidden: int = 0
    clock_ahead_us: Micros | None = None
    horizon: Horizon | None = None
    tables: tuple[TableVitals, ...] = ()

    @property
    def is_usable(self) -> bool:
        """Whether the code here works with these tables."""
        return self.schema == self.newest_schema or (
            self.schema is not None and self.schema > self.newest_schema >= self.serves > 0
        )


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
        server: of the server, if it is on one and that lets us in.
    """

    kind: str
    is_durable: bool
    place: str = ""
    trouble: Trouble | None = None
    problem: str = ""
    strategy: str | None = None
    latest: Micros | None = None
    file: FileVitals | None = None
    server: ServerVitals | None = None

    @property
    def schema(self) -> int | None:
        """The version of its schema; 0: it has none yet; None: it could not be looked at."""
        found = self.file or self.server
        return None if found is None else found.schema

    @property
    def newest_schema(self) -> int:
        """The version of the schema that is known here; 0: that is not said."""
        found = self.file or self.server
        return 0 if found is None else found.newest_schema

    @property
    def can_be_looked_at(self) -> bool:
        """Whether its jobs can be read as they are: nothing is wrong, and the code here knows the schema."""
        if self.server is not None:
            return self.trouble is None and self.server.is_usable
        is_today = self.file is None or self.file.schema == self.file.newest_schema
        return self.trouble is None and is_today
