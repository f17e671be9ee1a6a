"""What a store must do, said once more in the plainest way: a dict of rows, and sorted lists.

It shares no code with the library, so that the two do not make the same mistake. It is slow and keeps no
indexes; what a store finds by index, it finds by looking at every row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from tests.model.gate_book import Deal, GateBook, Tags

SECOND = 1_000_000
CRASHES = 3
UNTAGGED = 2**63 - 1
LIVE = {"blocked", "delayed", "ready", "running"}
WAITING = LIVE - {"running"}


class Refusal(Exception):
    """The model refuses a call; a store must raise an error of one of these names, and change nothing."""

    def __init__(self, *names: str) -> None:
        super().__init__(names)
        self.names = names


T = TypeVar("T")


def refusal_or(call: Callable[[], T]) -> T | Refusal:
    """The answer of a call on the model, or how it refuses."""
    try:
        return call()
    except Refusal as refusal:
        return refusal


@dataclass
class Row:
    """One version of one job."""

    seq: int
    id: str
    task: str
    queue: str
    lane: str
    sort_key: int
    run_at: int
    expires_at: int | None
    at_most_once: bool
    status: str = "ready"
    fence: int = 0
    attempt: int = 0
    crashes: int = 0
    worker: str | None = None
    parked: str | None = None
    was_started: bool = False
    is_cancelled: bool = False
    is_superseded: bool = False
    finished_at: int | None = None
    started_at: int | None = None
    gates: tuple[str, ...] = ()
    tenant: tuple[str, int] | None = None
    unmet: dict[int, str] = field(default_factory=dict)


@dataclass
class Request:
    """What a submit asks for."""

    id: str
    is_named: bool
    replaces: bool
    key: str | None
    digest: bytes
    key_until: int
    needs: list[tuple[int, str]]
    row: Callable[[int], Row]


@dataclass
class Model:
    """All that is in a store."""

    now: int = 0
    pruned: int = 0
    rows: dict[int, Row] = field(default_factory=dict)
    keys: dict[str, tuple[int, bytes, int]] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)
    leases: dict[str, int] = field(default_factory=dict)
    book: GateBook = field(default_factory=GateBook)
    tags: Tags = field(default_factory=Tags)

    # submitting

    def submit(self, asked: Request, seq: int) -> Row:
        """Keep a job under this number, or find the one that its key stands for."""
        if asked.key is not None and asked.key in self.keys:
            known, digest, until = self.keys[asked.key]
            if until > self.now:
                if digest != asked.digest:
                    raise Refusal("ConfigurationError")
                return self.rows[known]
        older = self.versions(asked.id, alive=True)
        if asked.is_named and older and not asked.replaces:
            raise Refusal("DuplicateJob")
        row = asked.row(seq)
        needs = dict(sorted(asked.needs, key=lambda need: need[1] == "completed"))
        if asked.replaces:
            for old in older:
                if old.status == "running":
                    old.is_superseded = True
                    needs.setdefault(old.seq, "ended")
                else:
                    self.end(old, "cancelled")
        self.rows[row.seq] = row
        if asked.key is not None:
            self.keys[asked.key] = (row.seq, asked.digest, asked.key_until)
        self._place(row, needs)
        return row

    def _place(self, row: Row, needs: dict[int, str]) -> None:
        states = [(seq, need, self.rows[seq].status) for seq, need in needs.items()]
        row.unmet = {seq: need for seq, need, status in states if status in LIVE}
        if any(
            need == "completed" and status in {"failed", "timed_out", "cancelled"}
            for _, need, status in states
        ):
            self.end(row, "cancelled")
        elif row.unmet:
            row.status = "blocked"
        else:
            row.status = "delayed" if row.run_at > self.now else "ready"
            self._tag(row)

    def _tag(self, row: Row) -> None:
        if row.status == "ready" and row.tenant is not None and row.sort_key == UNTAGGED:
            row.sort_key = self.tags.tag(*row.tenant)

    def versions(self, job_id: str, *, alive: bool = False) -> list[Row]:
        """The versions of an id, oldest first."""
        return [row for row in self.rows.values() if row.id == job_id and (not alive or row.status in LIVE)]

    # ending

    def end(self, row: Row, status: str) -> None:
        """End a job, and settle whatever waits for it, all the way down."""
        row.status, row.finished_at = status, self.now
        row.worker = row.parked = None
        row.unmet = {}
        for child in list(self.rows.values()):
            need = child.unmet.pop(row.seq, None)
            if need is None or child.status != "blocked":
                continue
            if need == "completed" and status != "completed":
                self.end(child, "cancelled")
            elif not child.unmet:
                self._release(child)

    def _release(self, child: Row) -> None:
        child.status = "delayed" if child.run_at > self.now else "ready"
        child.run_at = max(child.run_at, self.now)
        self._tag(child)

    def is_current(self, row: Row, fence: int) -> bool:
        """Whether a report under this fence counts."""
        return row.status == "running" and row.fence == fence

    def is_repeated(self, row: Row, fence: int) -> bool:
        """Whether a report under this fence was taken before."""
        return row.status != "running" and row.fence == fence > 0

    def report(self, row: Row, kind: str, delay: int | None, *, has_begun: bool = True) -> None:
        """Take a current report: `kind` is a final status, or `snoozed`, or `given_back`, or `lost`."""
        claimed_at = row.started_at or 0
        if not has_begun:
            self.book.refund(row.gates, claimed_at, self.now)
        if kind == "lost":
            row.crashes += 1
            row.fence += 1
        if row.is_cancelled:
            self.end(row, "cancelled")
        elif (
            kind in {"failed", "timed_out"}
            and delay is not None
            and not (row.is_superseded or row.at_most_once)
        ):
            self._again(row, delay)
        elif kind == "snoozed" and not row.is_superseded:
            row.attempt -= 1
            self._again(row, delay or 0)
        elif kind in {"given_back", "lost"} and not row.is_superseded:
            self._give_back(row, kind)
        else:
            self.end(row, kind if kind in {"completed", "failed", "timed_out"} else "cancelled")
            if row.status == "completed" and has_begun:
                self.book.succeeded(row.gates, claimed_at)

    def _again(self, row: Row, delay: int) -> None:
        row.status = "delayed" if delay > 0 else "ready"
        row.run_at = self.now + delay
        row.worker = None

    def _give_back(self, row: Row, kind: str) -> None:
        if kind == "lost" and (row.at_most_once or row.crashes >= CRASHES):
            self.end(row, "failed")
        else:
            row.attempt -= 1
            row.status, row.worker = "ready", None

    def cancel(self, row: Row, *, abandon: bool) -> str:
        """Cancel a job; the answer is the name of a `CancelAnswer`."""
        if row.status not in LIVE:
            return "FINISHED"
        if row.status == "running" and not abandon:
            row.is_cancelled = True
            return "REQUESTED"
        row.fence += row.status == "running"
        self.end(row, "cancelled")
        return "CANCELLED"

    def retry(self, row: Row) -> None:
        """Take a finished job back."""
        others = [other for other in self.versions(row.id, alive=True) if other is not row]
        if row.status in LIVE:
            raise Refusal("IllegalTransition", *(["DuplicateJob"] if others else []))
        if others:
            raise Refusal("DuplicateJob")
        row.status, row.run_at = "ready", self.now
        row.attempt = row.crashes = 0
        row.started_at = None
        self._tag(row)
        row.expires_at = row.finished_at = None
        row.is_cancelled = row.is_superseded = False

    def prune(self, keep: int) -> int:
        """Forget what ended longer ago."""
        old = [
            row
            for row in self.rows.values()
            if row.finished_at is not None and row.finished_at + keep < self.now
        ]
        for row in old:
            del self.rows[row.seq]
        gone = {row.seq for row in old}
        self.keys = {key: known for key, known in self.keys.items() if known[0] not in gone}
        self.pruned += len(old)
        return len(old)

    # working

    def holds(self, worker: str) -> bool:
        """Whether a worker's lease holds."""
        return self.leases.get(worker, 0) > self.now

    def pass_time(self) -> None:
        """Expire and promote what is due."""
        for row in sorted(self.rows.values(), key=lambda row: (row.expires_at or 0, row.seq)):
            if row.status in WAITING and not row.was_started and (row.expires_at or self.now + 1) <= self.now:
                self.end(row, "cancelled")
        for row in sorted(self.rows.values(), key=lambda row: (row.run_at, row.seq)):
            if row.status == "delayed" and row.run_at <= self.now:
                row.status = "ready"
                self._tag(row)

    def next_at(self) -> int | None:
        """When waiting alone brings something about."""
        waiting = [row for row in self.rows.values() if row.status in WAITING]
        due = [row.run_at for row in waiting if row.status == "delayed"]
        ends = [row.expires_at for row in waiting if row.expires_at is not None and not row.was_started]
        return min([*due, *ends], default=None)

    def passes_at(self) -> int | None:
        """When waiting alone lets somebody pass, of those places where nobody can be claimed by now."""
        waiting: dict[tuple[str, str], list[int | None]] = {}
        for row in self.rows.values():
            if row.status == "ready" and row.parked is None:
                at = self.book.passes_at(row.gates, self.now)
                waiting.setdefault((row.queue, row.lane), []).append(at)
        asleep = [at for place in waiting.values() if self.now not in place for at in place]
        return min((at for at in asleep if at is not None), default=None)

    def claim(
        self,
        worker: str,
        limit: int,
        lanes: dict[str, int],
        *,
        queues: Collection[str] | None,
        hold: Collection[str],
        deal: Deal | None = None,
    ) -> list[int]:
        """Claim; the versions taken, in order."""
        free = dict(lanes)
        taken: list[Row] = []
        while self.holds(worker) and len(taken) < limit:
            first: dict[str, Row] = {}
            for row in sorted(self.rows.values(), key=lambda row: (row.sort_key, row.seq)):
                if (
                    row.status == "ready"
                    and row.parked is None
                    and row.id not in hold
                    and row.queue not in self.paused
                    and (queues is None or row.queue in queues)
                    and free.get(row.lane, 0) > 0
                    and self.book.passes_at(row.gates, self.now) == self.now
                ):
                    first.setdefault(row.queue, row)
            if not first:
                break
            row = next(iter(first.values())) if deal is None else first[deal.next(first)]
            free[row.lane] -= 1
            self._start(row, worker)
            taken.append(row)
        for row in taken:
            if row.tenant is not None:
                self.tags.claimed(row.sort_key)
        return [row.seq for row in sorted(taken, key=lambda row: (row.sort_key, row.seq))]

    def _start(self, row: Row, worker: str) -> None:
        row.status, row.worker, row.was_started = "running", worker, True
        row.fence += 1
        row.attempt += 1
        row.started_at = self.now
        self.book.charge((row.seq, row.fence), row.gates, worker, self.now)

    def held(self, worker: str) -> list[Row]:
        """What runs under a worker's name."""
        return [row for row in self.rows.values() if row.worker == worker]

    def give_back(self, rows: Iterable[Row], *, has_begun: bool = True) -> None:
        """Take jobs back from a worker that retires, or does not know of them."""
        for row in rows:
            if row.status == "running":
                self.report(row, "given_back", None, has_begun=has_begun)

    def rescue(self, tasks: Collection[str]) -> list[int]:
        """Take jobs from whoever is silent; the versions taken."""
        silent = [
            row
            for row in self.rows.values()
            if row.status == "running" and not self.holds(row.worker or "") and row.task in tasks
        ]
        for row in silent:
            self.report(row, "lost", None)
        for worker in {permit.worker for permit in self.book.permits.values()}:
            if not self.holds(worker):
                self.book.release_all(worker)
                self.leases[worker] = 0
        return [row.seq for row in silent]
