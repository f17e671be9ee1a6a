"""What the witness reckons of limits, rates and circuits by itself, and what must hold of each.

A permit is out from its claim until the code has returned, by what the worker says and the code itself
confirms, or its worker's lease is over. A circuit may stand in doubt, where clocks that were set leave open
what came first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from tests.simulation.bucket import Bucket
from tests.simulation.evidence import Execution
from tests.simulation.lives import Life
from tests.simulation.reckoning import Reckoning
from tests.simulation.tally import Met
from tests.simulation.watched import CLOSED, DOUBTFUL, OPEN, Claim, Watched

from betimes.core.job import JobStatus, Micros
from betimes.core.limits import GateKind, GateTerms, GateView, rule_of
from betimes.core.transition import Transition
from betimes.ports import Report


class Gatekeeping:
    """Follows all gates.

    Attributes:
        rules_changed: the rules that were changed at run time.
        holders: whose permits are out: worker and gates, by attempt.
    """

    def __init__(self, model: Reckoning) -> None:
        self._model = model
        self._declared: dict[str, GateTerms] = {}
        self._changed: dict[str, GateTerms] = {}
        self._gates: dict[str, Watched] = {}
        self.holders: dict[Claim, tuple[str, tuple[str, ...]]] = {}
        self._claims: dict[Claim, tuple[int, Micros]] = {}
        self._allowed: dict[Claim, dict[str, int]] = {}

    # --- rules

    @property
    def rules_changed(self) -> list[str]:
        """Return the rules that do not go by what the code declares."""
        return sorted(self._changed)

    def declared(self, terms: Iterable[GateTerms]) -> None:
        """Rules were declared."""
        for one in terms:
            self._declared[one.rule] = one
            self._go_by(one.rule)

    def changed(self, rule: str, terms: GateTerms | None, answer: GateTerms | None) -> None:
        """Rules were changed."""
        if rule not in self._declared:
            if answer is not None:
                self._model.fail(f"{rule} was never declared, and was changed to {answer}")
            return
        if terms is None:
            self._changed.pop(rule, None)
        else:
            self._changed[rule] = terms
        if answer != self._terms(rule):
            self._model.fail(f"{rule} was to go by {self._terms(rule)}, and goes by {answer}")
        self._model.tally[Met.GATE_CHANGED] += 1
        self._go_by(rule)

    def _terms(self, rule: str) -> GateTerms:
        return self._changed.get(rule) or self._declared[rule]

    def _go_by(self, rule: str) -> None:
        terms, now = self._terms(rule), self._model.now()
        for gate in self._gates.values():
            if rule_of(gate.key) != rule or gate.terms == terms:
                continue
            gate.bucket.pass_time(now)
            if terms.every_us:
                gate.bucket.change(terms.every_us, terms.burst)
            gate.terms = terms
            is_lowered = terms.kind is GateKind.LIMIT and len(gate.out) > terms.max_running
            self._model.tally[Met.LIMIT_LOWERED] += is_lowered

    def _gate(self, key: str) -> Watched:
        gate = self._gates.get(key)
        if gate is None:
            terms = self._terms(rule_of(key))
            bucket = Bucket(terms.every_us or 1, terms.burst, self._model.now())
            gate = self._gates[key] = Watched(key, terms, set(), bucket)
        return gate

    def tripped(self, key: str, *, is_open: bool) -> None:
        """A circuit was opened, or closed, from outside."""
        if key not in self._declared:
            return
        gate, now = self._gate(key), self._model.now()
        gate.bucket.pass_time(now)
        gate.circuit = OPEN if is_open else CLOSED
        if is_open:
            gate.bucket.empty()
            gate.tripped_at, gate.tripped_after = now, len(self._claims)
            gate.is_shaken = False
            self._model.tally[Met.CIRCUIT_OPENED] += 1

    def heeded(self, left: Iterable[Life]) -> None:
        """A claim has looked at these, and left them: at their gates a clock set back lengthens no more."""
        if not any(gate.bucket.is_unheeded for gate in self._gates.values()):
            return
        now = self._model.now()
        for life in left:
            for key in life.gates:
                self._gate(key).bucket.heed(now)
                if not self._gate(key).must_pass(now):
                    break

    # --- who may pass

    def must_pass(self, keys: Iterable[str], but: Collection[str] = ()) -> bool:
        """Say whether all these gates let one more pass for sure; `but` are known to do so."""
        now = self._model.now()
        return all(key in but or self._gate(key).must_pass(now) for key in keys)

    def is_next(self, life: Life) -> bool:
        """Say whether a READY job must be let through now: its gates are open, nobody there is before it."""
        if not self.must_pass(life.gates):
            return False
        return not any(
            other.status is JobStatus.READY
            and other.parked is None
            and other.rank < life.rank
            and not set(life.gates).isdisjoint(other.gates)
            for other in self._model.lives
        )

    def claimed(self, life: Life, fence: int, worker: str) -> None:
        """A job was claimed: every one of its gates must have let it pass."""
        model, now, claim = self._model, self._model.now(), (life.seq, fence)
        self._claims[claim] = len(self._claims), now
        gates = [self._gate(key) for key in life.gates]
        for gate in gates:
            if not gate.may_pass(now):
                model.fail(f"{life} was claimed, but {self._why_closed(gate)}")
            self._charge(gate, claim)
        limits = [gate for gate in gates if gate.kind is GateKind.LIMIT]
        if limits:
            self.holders[claim] = worker, tuple(gate.key for gate in limits)
            self._allowed[claim] = {gate.key: gate.terms.max_running for gate in limits}

    def _charge(self, gate: Watched, claim: Claim) -> None:
        if gate.kind is GateKind.LIMIT:
            gate.out.add(claim)
            self._model.tally[Met.LIMIT_FULL] += len(gate.out) == gate.terms.max_running
            return
        if gate.kind is GateKind.BREAKER:
            if gate.circuit == CLOSED:
                return
            self._model.tally[Met.PROBED] += gate.circuit == OPEN
            if gate.circuit == DOUBTFUL:
                return
        gate.bucket.charge()

    @staticmethod
    def _why_closed(gate: Watched) -> str:
        if gate.kind is GateKind.LIMIT:
            return f"{gate.key} lets {gate.terms.max_running} run, and {len(gate.out)} do: {sorted(gate.out)}"
        if gate.kind is GateKind.BREAKER:
            return f"the circuit {gate.key} is open, and no probe is due for {gate.bucket.least} µs"
        owed = gate.bucket.least - gate.bucket.every * (gate.bucket.burst - 1)
        return f"the rate {gate.key} has its next token in {owed} µs"

    # --- permits

    def reported(self, report: Report) -> None:
        """A report came, stale or not: what has returned gives its permits back."""
        claim = report.job.seq, report.fence
        execution = self._model.evidence.executions.get(claim)
        if not report.has_begun and execution is not None:
            self._model.fail(f"{execution} has begun, and its report says that nothing did")
        if not report.has_returned:
            self._model.tally[Met.PERMIT_KEPT] += claim in self.holders
            return
        if execution is not None and execution.is_running:
            self._model.fail(f"{execution} still runs, and its report says that it has returned")
        self._give_back(claim)

    def returned(self, attempts: Iterable[Claim]) -> None:
        """Attempts that were reported earlier have returned since."""
        for claim in attempts:
            execution = self._model.evidence.executions.get(claim)
            if execution is not None and execution.is_running:
                self._model.fail(f"{execution} still runs, and was said to have returned")
            self._model.tally[Met.PERMIT_RETURNED_LATE] += claim in self.holders
            self._give_back(claim)

    def let_go(self, worker: str, kept: Mapping[int, int] | None = None) -> int:
        """A worker's lease is over, or it has told what it still runs; return how many permits that freed."""
        gone = [
            claim
            for claim, (holder, _) in self.holders.items()
            if holder == worker and (kept is None or kept.get(claim[0]) != claim[1])
        ]
        for claim in gone:
            self._give_back(claim)
        return len(gone)

    def _give_back(self, claim: Claim) -> None:
        _, keys = self.holders.pop(claim, ("", ()))
        for key in keys:
            self._gates[key].out.discard(claim)

    # --- tokens and circuits

    def settled(self, life: Life, report: Report, step: Transition) -> None:
        """A report counted: what began nothing has its tokens back, and a success may close a circuit."""
        if not report.has_begun:
            self._refund(life, is_sure=True)
            self._model.tally[Met.REFUNDED] += bool(life.gates)
        elif (life.seq, life.fence) not in self._model.evidence.executions:
            return
        elif step.after is JobStatus.COMPLETED:
            for key in life.gates:
                self._prove(self._gate(key), (life.seq, life.fence))

    def unclaimed(self, life: Life) -> None:
        """A beat gave back what its worker does not know of: nothing of it has begun."""
        if (life.seq, life.fence) in self._model.evidence.executions:
            self._model.fail(f"{life} has begun, and its worker does not know of it")
        self._model.tally[Met.REFUNDED] += bool(life.gates)
        self._refund(life, is_sure=True)

    def _refund(self, life: Life, *, is_sure: bool) -> None:
        now = self._model.now()
        for key in life.gates:
            gate = self._gate(key)
            gate.bucket.pass_time(now)
            if gate.kind is GateKind.RATE:
                gate.bucket.refund(is_sure=is_sure)
            elif gate.kind is GateKind.BREAKER and gate.circuit != CLOSED:
                came_after = self._came_after(gate, (life.seq, life.fence))
                if came_after is not False:
                    gate.bucket.refund(is_sure=is_sure and came_after is True)

    def _prove(self, gate: Watched, claim: Claim) -> None:
        if gate.kind is not GateKind.BREAKER or gate.circuit == CLOSED:
            return
        came_after = self._came_after(gate, claim)
        if came_after is True:
            gate.circuit = CLOSED
            self._model.tally[Met.CIRCUIT_CLOSED] += 1
        elif came_after is None:
            gate.circuit = DOUBTFUL
        else:
            self._model.tally[Met.NO_PROOF] += 1

    def _came_after(self, gate: Watched, claim: Claim) -> bool | None:
        """Say whether a claim came after the trip; None: the clock was set in between, and says otherwise."""
        number, at = self._claims[claim]
        is_later = number >= gate.tripped_after
        return is_later if is_later is (at > gate.tripped_at) and not gate.is_shaken else None

    def clock_is_set(self, seconds: float) -> None:
        """The clock is about to be set: what has filled by now has filled."""
        now = self._model.now()
        for gate in self._gates.values():
            gate.bucket.set_clock(now, seconds)
            gate.is_shaken |= seconds < 0

    # --- code

    def began(self, execution: Execution, live: Collection[Claim]) -> None:
        """Code begins: with all that runs under live leases, and was claimed before, it is not too much.

        Args:
            execution: the code.
            live: the attempts that run, in whatever process, under leases that hold.
        """
        claim = execution.seq, execution.fence
        for key, most in self._allowed.get(claim, {}).items():
            running = [
                other
                for other in live
                if key in self._allowed.get(other, ()) and self._claims[other] <= self._claims[claim]
            ]
            if len(running) > most:
                self._model.fail(f"{execution} is one of {len(running)} that run under {key}, of {most}")

    # --- looking

    def look_at_all(self, views: Sequence[GateView]) -> None:
        """Compare all gates that are in use."""
        self.look(views)
        shown = {view.key for view in views}
        for gate in self._gates.values():
            if gate.key not in shown and gate.out:
                self._model.fail(f"{gate.key} is not in use, and has permits out: {sorted(gate.out)}")

    def look(self, views: Iterable[GateView]) -> None:
        """Compare some gates."""
        for view in views:
            if rule_of(view.key) in self._declared:
                self._compare(view, self._gate(view.key))

    def _compare(self, view: GateView, gate: Watched) -> None:
        model, now = self._model, self._model.now()
        if view.terms != gate.terms:
            model.fail(f"{gate.key} goes by {view.terms}, and was told {gate.terms}")
        if gate.kind is GateKind.LIMIT:
            if view.held != len(gate.out):
                model.fail(
                    f"{view.held} permits of {gate.key} are held, and these are out: {sorted(gate.out)}"
                )
            return
        gate.bucket.pass_time(now)
        if gate.kind is GateKind.BREAKER:
            if gate.circuit == DOUBTFUL:
                return
            if (view.tripped_at > 0) is not (gate.circuit == OPEN):
                model.fail(f"the circuit {gate.key} is {gate.circuit}, and was opened at {view.tripped_at}")
                return
            if gate.circuit == CLOSED:
                return
        if not gate.bucket.has(view.full_at - now):
            model.fail(
                f"{gate.key} is full in {view.full_at - now} µs, and must be in "
                f"{gate.bucket.least} to {gate.bucket.most}"
            )

    def look_at_holders(self, views: Iterable[GateView]) -> None:
        """Compare who is said to hold the permits."""
        for view in views:
            if view.terms.kind is not GateKind.LIMIT or rule_of(view.key) not in self._declared:
                continue
            out = {(seq, self.holders[seq, fence][0]) for seq, fence in self._gate(view.key).out}
            told = {(seq, worker) for _, seq, worker in view.holders}
            if len(view.holders) == view.held and told != out:
                self._model.fail(f"{view.key} is said to be held by {told}, and is by {out}")

    def check_at_rest(self) -> None:
        """At the end nothing may be out."""
        for gate in self._gates.values():
            if gate.out:
                self._model.fail(f"nothing runs, and {gate.key} has permits out: {sorted(gate.out)}")
