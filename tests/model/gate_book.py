"""What gates must do, the plainest way: sets of permits, tokens in exact fractions, tags of tenants.

Like the reference that it is part of, it shares no code with the library.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from fractions import Fraction

SECOND = 1_000_000
Attempt = tuple[int, int]
"""A job's number and fence."""


@dataclass
class Permit:
    """What one attempt holds."""

    worker: str
    gates: tuple[str, ...]


@dataclass
class Bucket:
    """So many tokens, as of an instant."""

    every: int
    burst: int
    tokens: Fraction
    at: int = 0

    def look(self, now: int) -> Fraction:
        """The tokens that there are now."""
        gathered = self.tokens + Fraction(now - self.at, self.every)
        self.tokens, self.at = min(gathered, Fraction(self.burst)), now
        return self.tokens

    def change(self, every: int, burst: int, now: int) -> None:
        """Go by other rules: what is missing stays missing, up to a whole bucket."""
        missing = self.burst - self.look(now)
        until_full = -(-missing * every // 1)  # in whole microseconds, and never early
        self.every, self.burst = every, burst
        self.tokens = burst - min(Fraction(until_full, every), Fraction(burst))


@dataclass
class Circuit:
    """A breaker: closed, or open since an instant, with the instant of its next probe."""

    open_for: int
    tripped_at: int | None = None
    probe_at: int = 0


@dataclass
class GateBook:
    """All gates, by key."""

    limits: dict[str, int] = field(default_factory=dict)
    buckets: dict[str, Bucket] = field(default_factory=dict)
    circuits: dict[str, Circuit] = field(default_factory=dict)
    permits: dict[Attempt, Permit] = field(default_factory=dict)

    def held(self, key: str) -> int:
        """How many permits of a limit are out."""
        return sum(key in permit.gates for permit in self.permits.values())

    def opens_at(self, key: str, now: int) -> int | None:
        """When one more may pass; None: time does not open it."""
        if key in self.limits:
            return now if self.held(key) < self.limits[key] else None
        if key in self.buckets:
            bucket = self.buckets[key]
            missing = 1 - bucket.look(now)
            return now + max(0, -(-missing * bucket.every // 1))
        circuit = self.circuits[key]
        return now if circuit.tripped_at is None else max(now, circuit.probe_at)

    def passes_at(self, gates: Iterable[str], now: int) -> int | None:
        """When all of them are open, if nothing but time passes; None: time does not bring it about."""
        opens = [self.opens_at(key, now) for key in gates]
        return None if None in opens else max([now, *(at for at in opens if at is not None)])

    def charge(self, attempt: Attempt, gates: tuple[str, ...], worker: str, now: int) -> None:
        """Let an attempt pass."""
        limits = tuple(key for key in gates if key in self.limits)
        if limits:
            self.permits[attempt] = Permit(worker, limits)
        for key in gates:
            if key in self.buckets:
                self.buckets[key].look(now)
                self.buckets[key].tokens -= 1
            elif key in self.circuits and self.circuits[key].tripped_at is not None:
                self.circuits[key].probe_at = now + self.circuits[key].open_for

    def release(self, attempt: Attempt) -> None:
        """An attempt's code has returned."""
        self.permits.pop(attempt, None)

    def release_all(self, worker: str, kept: Collection[Attempt] = ()) -> None:
        """Take all that a worker's attempts hold, but for some of them."""
        for attempt in [one for one, permit in self.permits.items() if permit.worker == worker]:
            if attempt not in kept:
                del self.permits[attempt]

    def refund(self, gates: tuple[str, ...], claimed_at: int, now: int) -> None:
        """A claim began nothing."""
        for key in gates:
            if key in self.buckets:
                bucket = self.buckets[key]
                bucket.tokens = min(bucket.look(now) + 1, Fraction(bucket.burst))
            elif self.is_proof(key, claimed_at):
                self.circuits[key].probe_at -= self.circuits[key].open_for

    def is_proof(self, key: str, claimed_at: int) -> bool:
        """Whether what was claimed then was let through an open circuit."""
        circuit = self.circuits.get(key)
        return circuit is not None and circuit.tripped_at is not None and claimed_at > circuit.tripped_at

    def succeeded(self, gates: tuple[str, ...], claimed_at: int) -> None:
        """An attempt succeeded: what it proves is closed."""
        for key in gates:
            if self.is_proof(key, claimed_at):
                self.circuits[key].tripped_at = None

    def trip(self, key: str, now: int) -> None:
        """Open a circuit."""
        circuit = self.circuits[key]
        circuit.tripped_at, circuit.probe_at = now, now + circuit.open_for


@dataclass
class Tags:
    """Start-time fair queueing, with tags in sort keys as the documents say."""

    virtual: int = 0
    finishes: dict[str, int] = field(default_factory=dict)

    def tag(self, name: str, cost: int) -> int:
        """The sort key of a tenant's job, of priority 1, that is ready for the first time."""
        start = max(self.virtual, self.finishes.get(name, 0))
        self.finishes[name] = start + cost
        return -(2**63) + start // 1024 * 2048 + 999

    def claimed(self, key: int) -> None:
        """A tenant's job was claimed."""
        self.virtual = max(self.virtual, (key + 2**63) // 2048 * 1024)


@dataclass
class Deal:
    """Whose turn it is among queues, each of which moves on by its cost."""

    costs: dict[str, int]
    passes: dict[str, int] = field(default_factory=dict)
    virtual: int = 0

    def next(self, queues: Collection[str]) -> str:
        """The queue of the next dispatch, of those that have something to dispatch."""
        starts = {queue: max(self.passes.get(queue, 0), self.virtual) for queue in self.costs}
        queue = min((one for one in self.costs if one in queues), key=starts.__getitem__)
        self.virtual = starts[queue]
        self.passes[queue] = starts[queue] + self.costs[queue]
        return queue
