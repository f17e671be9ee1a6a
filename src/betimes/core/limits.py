"""Limits, rates and circuit breakers: gates that let only so many jobs pass, and the arithmetic of each.

The rules, and why:

1. *A gate is charged in the claim*, and nowhere else. A job passes only if every one of its gates lets it
   pass; then each is charged. (Handing out future slots bunches jobs up after a pause, and lets cancelled
   ones keep theirs.)
2. *A limit counts permits.* A permit is one attempt's, named by the job's number and fence, from its claim
   until its code has returned or its worker's lease is over; the outcome alone does not free it.
3. *A rate is a token bucket*, kept as one instant: when the bucket would be full again (GCRA, the generic
   cell rate algorithm of ITU-T I.371). Nothing has to run for a bucket to fill.
4. *A circuit breaker that has tripped is a rate*: one probe for each `open_for`, until a job that was claimed
   after the trip succeeds, however long it took. One that has not tripped lets everything pass.
5. *Waiting is by line.* Jobs of one queue and lane with the same gates are alike to all gates: they form one
   line, in strategy order, and only its first job can be next. A line waits at the first of its gates that
   is closed, in the order of its head; it is never looked through. When a gate opens for n more, the n first
   lines of each queue and lane move on. A line that finds its gate closed again goes back.
6. *A claim that began nothing gives its token back* (`refund`): a worker that did not know the task, or
   whose claim's answer was lost.
7. *A clock that is set back lengthens no wait*: a bucket is never further from full than empty. Whoever looks
   at a gate has it `heed` the time first, and keeps what that changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from hashlib import sha256
from typing import TypeAlias

import msgspec

from betimes.core.job import Job, Micros

Line: TypeAlias = tuple[str, str, tuple[str, ...]]
"""What names a line: queue, lane, and the keys of its gates."""

VALUE_LENGTH = 200
"""Characters of a value that names a gate or a tenant; a longer one goes by a digest."""

_VALUE = "\t"  # between name and value: no name holds a tab
_KIND = ":"


class GateKind(StrEnum):
    """What a gate counts."""

    LIMIT = "limit"
    RATE = "rate"
    BREAKER = "breaker"


class GateTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of all gates of one kind and name, whatever value each is for.

    Attributes:
        kind, name: which gates.
        max_running: of a limit, how many may run at once.
        every_us: of a rate, how long it takes until there is one more token; of a breaker, `open_for`.
        burst: of a rate, how many tokens gather at most.
        by: the argument whose values have a gate each; None: one gate for all.
    """

    kind: GateKind
    name: str
    max_running: int = 0
    every_us: Micros = 0
    burst: int = 1
    by: str | None = None

    @property
    def rule(self) -> str:
        """What stands for them in a store: the key of their gate without a value."""
        return gate_key(self.kind, self.name)


def gate_key(kind: GateKind, name: str, value: str | None = None) -> str:
    r"""Return the key of a gate: of the one for this value, or of the only one.

    Example:
        >>> gate_key(GateKind.LIMIT, "payments", "acme")
        'limit:payments\tacme'
    """
    rule = f"{kind.value}{_KIND}{name}"
    return rule if value is None else key_under(rule, value)


def key_under(rule: str, value: str) -> str:
    """Return the key of the gate of a rule that is for this value."""
    return f"{rule}{_VALUE}{value}"


def value_name(text: str) -> str:
    """Return what a value is told apart by: the text, or a digest where it is too long or not printable."""
    if len(text) > VALUE_LENGTH or not text.isprintable():
        return f"sha256:{sha256(text.encode()).hexdigest()[:32]}"
    return text


def rule_of(key: str) -> str:
    """Return the key without its value: what its terms are kept under."""
    return key.partition(_VALUE)[0]


def named(key: str) -> tuple[GateKind, str, str | None]:
    """Return kind, name and value of a gate's key."""
    rule, has_value, value = key.partition(_VALUE)
    kind, _, name = rule.partition(_KIND)
    return GateKind(kind), name, value if has_value else None


class Gate:
    """One gate as it stands (mutable: it is charged by each claim).

    Attributes:
        key: which gate.
        terms: its rules.
        held: how many permits of a limit are out.
        full_at: when the bucket of a rate is full; of a tripped breaker, when its next probe may go; 0: it
            has not tripped.
        tripped_at: when the circuit of a breaker was opened last; 0 while it is closed.
    """

    __slots__ = ("full_at", "held", "key", "terms", "tripped_at")

    def __init__(
        self, key: str, terms: GateTerms, *, held: int = 0, full_at: Micros = 0, tripped_at: Micros = 0
    ) -> None:
        self.key = key
        self.terms = terms
        self.held = held
        self.full_at = full_at
        self.tripped_at = tripped_at

    def heed(self, now: Micros) -> bool:
        """Shorten what has become too long because a clock was set back; True: there was something to keep.

        Without it the gate would stay as far from open as it is until the clock shows again what it showed.
        """
        if self.full_at <= now + self.terms.burst * self.terms.every_us:
            return False
        self.full_at = self._full_at(now)
        if self.tripped_at >= now:  # the next probe is claimed after the trip, whatever its instant says
            self.tripped_at = now - 1
        return True

    def free(self, now: Micros, most: int) -> int:
        """Return how many more may pass now, counted up to `most`."""
        terms = self.terms
        if terms.kind is GateKind.LIMIT:
            left = terms.max_running - self.held
            return most if left > most else max(0, left)
        if self._is_idle_breaker:
            return most
        missing = self._full_at(now) - now
        if missing <= 0:
            return min(terms.burst, most)
        return min(max(terms.burst + -missing // terms.every_us, 0), most)

    def is_open(self, now: Micros) -> bool:
        """Say whether one more may pass now."""
        terms = self.terms
        if terms.kind is GateKind.LIMIT:
            return self.held < terms.max_running
        return self.free(now, 1) > 0

    def opens_at(self, now: Micros) -> Micros | None:
        """Return when one more may pass by the passing of time alone; None: time does not open it."""
        terms = self.terms
        if terms.kind is GateKind.LIMIT:
            return now if self.is_open(now) else None
        if self._is_idle_breaker:
            return now
        return max(now, self._full_at(now) - (terms.burst - 1) * terms.every_us)

    def charge(self, now: Micros) -> None:
        """Let one pass."""
        terms = self.terms
        if terms.kind is GateKind.LIMIT:
            self.held += 1
        elif not self._is_idle_breaker:
            self.full_at = max(self._full_at(now), now) + terms.every_us

    def release(self) -> None:
        """Take one permit of a limit back."""
        assert self.held > 0, f"a permit of {self.key} was given back twice"
        self.held -= 1

    def refund(self, claimed_at: Micros) -> None:
        """Take the token of a claim back that began nothing; a breaker took one only since it has tripped."""
        kind = self.terms.kind
        if kind is GateKind.RATE or (kind is GateKind.BREAKER and self.is_proof(claimed_at)):
            self.full_at -= self.terms.every_us

    def trip(self, now: Micros) -> None:
        """Open a circuit: nothing passes for `open_for`."""
        self.full_at = now + self.terms.every_us
        self.tripped_at = now

    def is_proof(self, claimed_at: Micros) -> bool:
        """Say whether the success of a job that was claimed then closes the circuit: it was open already.

        What was claimed before the trip, or at its very instant, went before it.
        """
        return self.is_tripped and claimed_at > self.tripped_at

    def reset(self) -> None:
        """Close a circuit again: everything passes."""
        self.full_at = self.tripped_at = 0

    @property
    def is_tripped(self) -> bool:
        """Whether it is a breaker whose circuit is open."""
        return self.terms.kind is GateKind.BREAKER and self.full_at > 0

    def is_at_rest(self, now: Micros) -> bool:
        """Say whether it stands as a fresh one would, so that nothing of it need be kept."""
        if self.terms.kind is GateKind.RATE:
            return self.full_at <= now
        return not self.held and not self.is_tripped

    def change(self, terms: GateTerms, now: Micros) -> None:
        """Go by other rules from now on: permits stay out, and tokens that were used stay used."""
        if self.full_at and self.terms.every_us and terms.every_us:
            missing = max(self._full_at(now) - now, 0)
            self.full_at = now - (-missing * terms.every_us // self.terms.every_us)  # rounded up: never early
        self.terms = terms
        self.heed(now)

    @property
    def _is_idle_breaker(self) -> bool:
        return not self.full_at and self.terms.kind is GateKind.BREAKER

    def _full_at(self, now: Micros) -> Micros:
        """The instant, were it not that a clock was set back: a bucket is never further from full than empty.

        Of a breaker likewise: its next probe is never further off than `open_for`.
        """
        return min(self.full_at, now + self.terms.burst * self.terms.every_us)

    def __repr__(self) -> str:
        return f"<Gate {self.key!r} held={self.held} full_at={self.full_at}>"


def first_closed(gates: Iterable[Gate], now: Micros) -> Gate | None:
    """Return the gate at which a job has to wait; None: it may pass."""
    for gate in gates:
        if not gate.is_open(now):
            return gate
    return None


def line_of(job: Job) -> Line:
    """Return which line a job stands in."""
    return job.spec.queue, job.spec.lane, job.gates


class GateView(msgspec.Struct, frozen=True, kw_only=True):
    """A gate as a store shows it.

    Attributes:
        key: which gate.
        terms: its rules.
        is_changed: whether they were changed at run time, and are not what the code declares.
        held: permits that are out, of a limit.
        full_at, tripped_at: as of the `Gate`.
        holders: who holds the permits: (job id, `seq`, worker), the longest first; a bounded number.
        waiting: READY jobs whose line waits here, counted up to a limit.
        waiters: the first of them, in the order in which they will pass: (job id, `seq`).
    """

    key: str
    terms: GateTerms
    is_changed: bool = False
    held: int = 0
    full_at: Micros = 0
    tripped_at: Micros = 0
    holders: tuple[tuple[str, int, str], ...] = ()
    waiting: int = 0
    waiters: tuple[tuple[str, int], ...] = ()

    @property
    def gate(self) -> Gate:
        """The gate itself, to ask when it opens."""
        return Gate(self.key, self.terms, held=self.held, full_at=self.full_at, tripped_at=self.tripped_at)
