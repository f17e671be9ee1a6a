"""What the witness reckons of each version by itself: an independent, simple model of one job's life."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from betimes.core.job import Job, JobSpec, JobStatus, Micros, Need
from betimes.core.retry import RetryPolicy

Final = tuple[object, ...]


@dataclass(slots=True)
class Life:
    """One version, as the store's answers and our own reckoning have it.

    Attributes:
        seq, id, spec, sort_key, expires_at: as submitted.
        status: where it stands, by what the store has said.
        earliest: before this it must not start, by what was submitted and reported.
        fence: the highest fence seen.
        worker: who holds it while RUNNING.
        unmet: versions it still waits for, and what it needs of each.
        is_lost: one of its needs can never be met.
        is_announced: the store has said that it took it.
        is_claimed: it has been claimed at least once.
        used: attempts used up in this round.
        crashes: workers lost in this round.
        rounds: how often an operator took it back.
        is_cancel_asked, is_superseded: what was asked of it while it ran.
        parked: under which name.
        final: its record when it ended last; None while it lives.
        gates: what must let it pass.
        tenant: whose share it takes; None: there are no shares.
        default_attempts: how many its task gives it.
        is_placed: under fair share, whether its place in the order is known.
        has_old_place: whether it was taken back into a place that it had before.
        finals: each final status it has had.
    """

    seq: int
    id: str
    spec: JobSpec
    sort_key: int
    expires_at: Micros | None
    status: JobStatus
    earliest: Micros
    unmet: dict[int, Need] = field(default_factory=dict)
    is_lost: bool = False
    is_announced: bool = False
    fence: int = 0
    worker: str | None = None
    is_claimed: bool = False
    used: int = 0
    crashes: int = 0
    rounds: int = 0
    is_cancel_asked: bool = False
    is_superseded: bool = False
    parked: str | None = None
    final: Final | None = None
    finals: list[JobStatus] = field(default_factory=list)
    ended_at: Micros | None = None
    gates: tuple[str, ...] = ()
    tenant: str | None = None
    default_attempts: int = 1
    is_placed: bool = False
    has_old_place: bool = False

    @property
    def max_attempts(self) -> int:
        """How many attempts it has: as its task has unless the job says otherwise."""
        retry = self.spec.retry
        default = self.default_attempts
        return default if retry is None else RetryPolicy.from_stored(retry, RetryPolicy(1)).max_attempts

    @property
    def rank(self) -> tuple[int, int]:
        """Where it stands in the order."""
        return self.sort_key, self.seq

    def reopen(self, at: Micros) -> None:
        """Begin a new round, on an operator's word: with fresh budgets, and whatever it once waited for."""
        self.rounds += 1
        self.has_old_place = self.is_placed
        self.used = self.crashes = 0
        self.earliest = at
        self.is_lost = self.is_cancel_asked = self.is_superseded = False
        self.unmet.clear()
        self.expires_at = self.final = self.ended_at = None

    def __str__(self) -> str:
        return f"#{self.seq} ({self.id}, {self.spec.task}, {self.status.value})"


def final_of(job: Job) -> Final:
    """Everything of a finished record that must never change again."""
    return (
        job.status,
        job.result,
        job.error,
        job.reason,
        job.finished_at,
        job.fence,
        job.attempt,
        job.attempts,
    )


class Lives:
    """All versions."""

    def __init__(self) -> None:
        self._lives: dict[int, Life] = {}
        self._of_id: dict[str, list[Life]] = {}

    def add(self, life: Life) -> None:
        """Add a new version."""
        self._lives[life.seq] = life
        self._of_id.setdefault(life.id, []).append(life)

    def __contains__(self, seq: int) -> bool:
        return seq in self._lives

    def __getitem__(self, seq: int) -> Life:
        return self._lives[seq]

    def get(self, seq: int) -> Life | None:
        """Return a version, if it is known."""
        return self._lives.get(seq)

    def __iter__(self) -> Iterator[Life]:
        return iter(self._lives.values())

    def __len__(self) -> int:
        return len(self._lives)

    def versions(self, job_id: str) -> list[Life]:
        """Return the versions of an id, oldest first."""
        return self._of_id.get(job_id, [])

    def waiting_for(self, seq: int) -> list[Life]:
        """Return those that need something of a version."""
        return [life for life in self if seq in life.unmet]
