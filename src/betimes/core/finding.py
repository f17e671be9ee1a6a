"""What a checkup answers: findings, each with a remedy, and the worst of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum, StrEnum


class Severity(Enum):
    """How bad a finding is, the mildest first."""

    OK = "ok"
    """It is as it should be."""
    NOTE = "note"
    """Somebody may want to know; nothing need be done."""
    WARNING = "warning"
    """Work is held up or at risk; look at it soon."""
    ERROR = "error"
    """Work is lost, or does not go on at all."""

    @property
    def exit_code(self) -> int:
        """What a command ends with if nothing worse was found: 0, 1 for a warning, 2 for an error."""
        return {Severity.WARNING: 1, Severity.ERROR: 2}.get(self, 0)

    def __lt__(self, other: Severity) -> bool:
        return _ORDER.index(self) < _ORDER.index(other)


_ORDER = list(Severity)


class FindingCode(StrEnum):
    """What a finding is about. The list is closed: every finding is one of these."""

    PYTHON = "python"
    """The interpreter."""
    STORE = "store"
    """The store: what it is, or why it cannot be used."""
    SQLITE = "sqlite"
    """The version of SQLite."""
    JOURNAL = "journal"
    """The journal mode of the file, and why it is safe."""
    SCHEMA = "schema"
    """The version of the store's tables."""
    SERVER = "server"
    """The database server: its version, and whether it can be written to."""
    DURABILITY = "durability"
    """The server's settings that decide whether what was acknowledged is on its disk."""
    RIGHTS = "rights"
    """What the role may do that the store is opened with."""
    CONNECTIONS = "connections"
    """How many of the server's connections are taken."""
    TIMEOUTS = "timeouts"
    """The time limits that the server sets to a session of this role."""
    POOLER = "pooler"
    """A pooler between this process and the server."""
    CLOCK_OFFSET = "clock_offset"
    """How far this machine's clock is from the server's."""
    OLD_TRANSACTION = "old_transaction"
    """A transaction that keeps the server from clearing dead rows away."""
    DEAD_ROWS = "dead_rows"
    """Rows of the busy tables that wait to be cleared away, and whether anybody does so."""
    TABLE_SIZES = "table_sizes"
    """How large the tables are."""
    STRATEGY = "strategy"
    """The strategy that the store was made with."""
    PERMISSIONS = "permissions"
    """Who may read and write the file."""
    FREE_SPACE = "free_space"
    """What the disk has left."""
    LOG_SIZE = "log_size"
    """The size of the write-ahead log."""
    INTEGRITY = "integrity"
    """Whether the file is sound."""
    ZONE_DATA = "zone_data"
    """The data of time zones."""
    CLOCK = "clock"
    """The wall clock."""
    WORKERS = "workers"
    """Who runs the store's jobs."""
    DEAD_WORKER = "dead_worker"
    """A worker that is gone, or silent for longer than its lease."""
    QUEUE_NOT_SERVED = "queue_not_served"
    """A queue with jobs that no worker serves."""
    QUEUE_PAUSED = "queue_paused"
    """A queue that is paused."""
    QUEUE_LATE = "queue_late"
    """How long the oldest job that is due has waited in a queue."""
    TASK_UNKNOWN = "task_unknown"
    """Jobs or schedules of a task that no worker knows."""
    PUT_ASIDE = "put_aside"
    """Jobs that no worker so far could run, for another reason."""
    POISON_PILL = "poison_pill"
    """Jobs that ended FAILED because workers kept dying while they held them."""
    CIRCUIT_OPEN = "circuit_open"
    """A circuit breaker that is open."""
    SCHEDULES = "schedules"
    """How many schedules there are."""
    SCHEDULE_BROKEN = "schedule_broken"
    """A schedule that the scheduler has paused by itself."""
    SCHEDULE_PAUSED = "schedule_paused"
    """Schedules that somebody has paused."""
    SCHEDULE_LATE = "schedule_late"
    """A schedule whose instant has passed, and that nobody has fired."""
    SLOTS_STUCK = "slots_stuck"
    """Slots of this process held by code whose outcome is recorded."""
    SLOTS_DEADLOCKED = "slots_deadlocked"
    """Slots of this process held by jobs that wait for each other."""
    NOT_WORKING = "not_working"
    """The worker of this process has tried for long, and in vain, to have a turn with the store."""
    STORE_ERRORS = "store_errors"
    """Calls of the store that failed in this process."""
    LEASES_LOST = "leases_lost"
    """Jobs of this process whose lease was over before it was renewed."""
    LOOP_STALLS = "loop_stalls"
    """How often the event loop of this process was blocked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a checkup has looked at.

    Attributes:
        code: what it is about.
        severity: how bad it is.
        text: what is so, in a sentence.
        remedy: what to do about it; empty where nothing need be done.
        about: the queue, task, schedule, worker or job it speaks of; None: none of them.
    """

    code: FindingCode
    severity: Severity
    text: str
    remedy: str = ""
    about: str | None = None

    def __str__(self) -> str:
        line = f"{self.severity.value:<7}  {self.text}"
        return f"{line}\n         {self.remedy}" if self.remedy else line


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """What `doctor()` has found; `str()` gives it as text, the worst first.

    Attributes:
        at: when it was made (aware, UTC).
        store: which store, in words.
        findings: all of them, the worst first; never empty.

    Example:
        checkup = await scheduler.doctor()
        print(checkup)
        raise SystemExit(checkup.exit_code)
    """

    at: datetime
    store: str
    findings: tuple[Finding, ...]

    @property
    def worst(self) -> Severity:
        """How bad the worst finding is."""
        return max(finding.severity for finding in self.findings)

    @property
    def exit_code(self) -> int:
        """0 where all is well (notes included), 1 where something is a warning, 2 where it is an error."""
        return self.worst.exit_code

    @property
    def codes(self) -> frozenset[FindingCode]:
        """What the findings that are not `OK` are about."""
        return frozenset(each.code for each in self.findings if each.severity is not Severity.OK)

    def __str__(self) -> str:
        lines = [f"Checkup of {self.store} at {self.at:%Y-%m-%d %H:%M:%S} UTC: {self.worst.value}"]
        return "\n".join([*lines, *(str(finding) for finding in self.findings)])
