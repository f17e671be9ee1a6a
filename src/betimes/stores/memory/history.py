"""What memory remembers of jobs by name: newest versions, older ones, keys, and a bounded past."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from sys import getrefcount
from weakref import WeakValueDictionary

from betimes.core.job import TERMINAL, Job, Micros
from betimes.stores.memory.logs import Logs


def _references_of_a_local() -> int:
    only = object()
    return getrefcount(only)


_OWN_REFERENCES = _references_of_a_local()
"""What `getrefcount` says of an object that one local name holds: 2, or 1 where Python lends it to the call.

Where it says more, somebody holds a handle.
"""


@dataclass(frozen=True, slots=True)
class _Key:
    job: Job
    digest: bytes
    until: Micros


class History:
    """Finds jobs by id and key, and forgets the oldest finished ones beyond its limit.

    A forgotten job whose record somebody still holds (through a handle) can be found as long as it is held.
    """

    def __init__(self, limit: int, logs: Logs) -> None:
        """Keep at most `limit` finished jobs; what is forgotten loses its log, too."""
        self._limit = limit
        self._logs = logs
        self.newest: dict[str, Job] = {}
        self._older: dict[str, list[Job]] = {}
        self.finished: deque[Job] = deque()
        self._keys: dict[str, _Key] = {}
        self._tokens: dict[int, str] = {}
        self.held: WeakValueDictionary[str, Job] = WeakValueDictionary()
        self.pruned = 0

    def find(self, job_id: str) -> Job | None:
        """Return the newest version of an id."""
        return self.newest.get(job_id) or self.held.get(job_id)

    def versions(self, job_id: str) -> list[Job]:
        """Return the remembered versions of an id, oldest first."""
        newest = self.newest.get(job_id)
        return [] if newest is None else [*self._older.get(job_id, ()), newest]

    def all(self) -> Iterator[Job]:
        """Iterate over every remembered version."""
        return chain(self.newest.values(), chain.from_iterable(self._older.values()))

    def add(self, job: Job) -> None:
        """Remember a new version."""
        before = self.newest.get(job.id)
        if before is not None:
            self._older.setdefault(job.id, []).append(before)
        self.newest[job.id] = job

    def keyed(self, key: str, now: Micros) -> tuple[Job, bytes] | None:
        """Return the job a key stands for, and the digest of what was asked, while it is remembered."""
        known = self._keys.get(key)
        if known is None or known.until <= now:
            return None
        return known.job, known.digest

    def remember_key(self, key: str, job: Job, digest: bytes, until: Micros) -> None:
        """Have the key stand for the job until then."""
        self._keys[key] = _Key(job, digest, until)

    def remember_token(self, job: Job, token: str) -> None:
        """Have a repeated submission under this token find the job."""
        self._tokens[job.seq] = token

    def token(self, job: Job) -> str | None:
        """Return the token a named job was submitted under."""
        return self._tokens.get(job.seq)

    def add_finished(self, job: Job) -> None:
        """Remember that a job ended."""
        self.finished.append(job)

    def trim(self) -> None:
        """Forget those that ended first, down to the limit."""
        finished, newest, older, logs = self.finished, self.newest, self._older, self._logs
        while len(finished) > self._limit:
            job = finished.popleft()
            if job.key is None and newest.get(job.id) is job and job.id not in older and not self._tokens:
                del newest[job.id]
                self.pruned += 1
                if logs:
                    logs.drop(job.seq)
                if getrefcount(job) > _OWN_REFERENCES:
                    self.held[job.id] = job
            else:
                self.forget(job)

    def reopen(self, job: Job) -> None:
        """Take a job that lives again off the list of the finished."""
        self.finished.remove(job)

    def prune(self, now: Micros, keep_us: int, limit: int) -> int:
        """Forget what ended longer ago than it is kept, at most `limit`; and keys whose time is over."""
        gone: list[Job] = []
        stay: list[Job] = []
        for job in self.finished:
            (gone if len(gone) < limit and _is_over(job, now, keep_us) else stay).append(job)
        if gone:
            self.finished = deque(stay)
        forgotten = sum(self.forget(job) for job in gone)
        for key in [key for key, known in self._keys.items() if known.until <= now]:
            del self._keys[key]
        return forgotten

    def prunable(self, now: Micros, keep_us: int) -> int:
        """Count what `prune` would forget."""
        return sum(
            _is_over(job, now, keep_us) and job.status in TERMINAL and job.seq != 0 for job in self.finished
        )

    def forget(self, job: Job) -> bool:
        """Forget one finished job and its key; False, and nothing, if it is live again."""
        if job.status not in TERMINAL or job.seq == 0:
            return False
        if self.newest.get(job.id) is job:
            self._forget_newest(job)
        else:
            older = self._older.get(job.id, [])
            if job not in older:
                return False
            older.remove(job)
            if not older:
                del self._older[job.id]
        if self._tokens:
            self._tokens.pop(job.seq, None)
        if job.key is not None and (known := self._keys.get(job.key)) is not None and known.job is job:
            del self._keys[job.key]
        self.pruned += 1
        self._logs.drop(job.seq)
        return True

    def _forget_newest(self, job: Job) -> None:
        older = self._older.get(job.id)
        del self.newest[job.id]
        if older:
            # The one before is what the id now stands for, until it is forgotten in its turn.
            self.newest[job.id] = older.pop()
            if not older:
                del self._older[job.id]
        else:
            self.held[job.id] = job


def _is_over(job: Job, now: Micros, keep_us: int) -> bool:
    """Say whether a finished job has been kept as long as it was to be."""
    keep_s = job.spec.keep_s
    keep = keep_us if keep_s is None else round(keep_s * 1_000_000)
    return job.finished_at is not None and job.finished_at + keep <= now
