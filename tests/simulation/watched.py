"""One gate as the witness reckons it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulation.bucket import Bucket

from betimes.core.job import Micros
from betimes.core.limits import GateKind, GateTerms

Claim = tuple[int, int]
"""An attempt: a version, and the fence it was claimed under."""

OPEN, CLOSED, DOUBTFUL = "open", "closed", "doubtful"


@dataclass(slots=True)
class Watched:
    """One gate.

    Attributes:
        key, terms: which, and its rules.
        out: the permits that are out.
        bucket: of a rate its tokens, of a breaker its probes.
        circuit: of a breaker: how its circuit stands.
        tripped_at, tripped_after: when it was opened, by the clock, and after how many claims.
        is_shaken: a clock was set back since: who came first, nobody can say by it.
    """

    key: str
    terms: GateTerms
    out: set[Claim]
    bucket: Bucket
    circuit: str = CLOSED
    tripped_at: Micros = 0
    tripped_after: int = 0
    is_shaken: bool = False

    @property
    def kind(self) -> GateKind:
        """What it counts."""
        return self.terms.kind

    def may_pass(self, now: Micros) -> bool:
        """Whether one more may pass."""
        if self.kind is GateKind.LIMIT:
            return len(self.out) < self.terms.max_running
        self.bucket.pass_time(now)
        return self._is_circuit(CLOSED, DOUBTFUL) or self.bucket.may_pass

    def must_pass(self, now: Micros) -> bool:
        """Whether one more may pass for sure."""
        if self.kind is GateKind.LIMIT:
            return len(self.out) < self.terms.max_running
        self.bucket.pass_time(now)
        return self._is_circuit(CLOSED) or self.bucket.must_pass

    def _is_circuit(self, *states: str) -> bool:
        return self.kind is GateKind.BREAKER and self.circuit in states
