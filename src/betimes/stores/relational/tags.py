"""Fair share in a turn: virtual time and finish tags are read when they are needed, and written once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from betimes.core.job import Job, JobStatus
from betimes.core.shares import UNTAGGED, finish_tag, key_of, start_tag, tag_of
from betimes.stores.relational.rows import array
from betimes.stores.relational.statements import ManyRows, Sql, statement

READ_VIRTUAL_TIME = statement("read_virtual_time")
WRITE_VIRTUAL_TIME = statement("write_virtual_time")
RESET_VIRTUAL_TIME = statement("reset_virtual_time")
FINISHES = statement("finishes")
WRITE_FINISH = ManyRows("write_finish")
FORGET_TENANTS = statement("forget_tenants")
DELETE_TENANTS = statement("delete_tenants")


def is_untagged(job: Job, status: JobStatus) -> bool:
    """Say whether a job that has come into this status is to be given its sort key now."""
    return job.tenant is not None and status is JobStatus.READY and job.sort_key == UNTAGGED


class Tags:
    """Gives jobs their sort keys in the order in which they become ready."""

    __slots__ = ("_changed", "_finishes", "_sql", "_virtual")

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._virtual: int | None = None
        self._finishes: dict[str, int | None] = {}
        self._changed: set[str] = set()

    def keys(self, jobs: Sequence[Job]) -> list[int]:
        """Return the sort keys of jobs that are ready for the first time; `write` keeps what that moves."""
        tenants = [job.tenant for job in jobs if job.tenant is not None]
        assert len(tenants) == len(jobs), "only who has a tenant is given a tag"
        self._read(tenant.name for tenant in tenants)
        keys = []
        for job, (name, cost) in zip(jobs, tenants, strict=True):
            start = start_tag(self._now(), self._finishes[name])
            self._finishes[name] = finish_tag(start, cost)
            self._changed.add(name)
            keys.append(key_of(start, job.spec.priority))
        return keys

    def tag(self, jobs: Sequence[Job]) -> None:
        """Give jobs that are ready for the first time their sort keys."""
        for job, key in zip(jobs, self.keys(jobs), strict=True):
            job.sort_key = key

    def claimed(self, jobs: Iterable[Job]) -> None:
        """Move the virtual time on to jobs that were claimed."""
        latest = max((tag_of(job.sort_key) for job in jobs if job.tenant is not None), default=0)
        if latest > self._now():
            self._virtual = latest
            self._sql.execute(WRITE_VIRTUAL_TIME, (latest,))

    def write(self) -> None:
        """Keep the finish tags that have moved."""
        if self._changed:
            rows = [(name, self._finishes[name]) for name in self._changed]
            self._changed = set()
            WRITE_FINISH.write(self._sql, rows)

    def begin_anew(self) -> None:
        """Forget all tenants, and begin the virtual time at zero."""
        self._sql.execute(DELETE_TENANTS)
        self._sql.execute(RESET_VIRTUAL_TIME)
        self._virtual = 0
        self._finishes.clear()
        self._changed.clear()

    def forget(self, limit: int) -> None:
        """Forget tenants that stand no worse than a new one, a bounded number."""
        self._sql.execute(FORGET_TENANTS, (self._now(), limit))

    def _now(self) -> int:
        if self._virtual is None:
            self._virtual = int(self._sql.execute(READ_VIRTUAL_TIME).fetchone()[0])
        return self._virtual

    def _read(self, names: Iterable[str]) -> None:
        new = {name for name in names if name not in self._finishes}
        if new:
            self._finishes.update(dict.fromkeys(new))
            self._finishes.update(self._sql.execute(FINISHES, (array(new),)).fetchall())
