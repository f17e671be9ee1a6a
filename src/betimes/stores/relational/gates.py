"""The gates that one turn looks at: read together, charged as values, and written once.

What a limit has out is not kept as a number: it is counted, over the attempts that run and the few whose
code runs on beyond its job (`betimes_permit`). Both are bounded by what workers run at once, never by what
waits; and so nothing can be counted twice, or be forgotten, whichever way an attempt ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from functools import lru_cache

import msgspec

from betimes.core.job import Micros
from betimes.core.limits import Gate, GateKind, GateTerms, rule_of
from betimes.stores.relational.rows import Specs, array
from betimes.stores.relational.statements import ManyRows, Records, Row, Sql, statement

LIMIT = GateKind.LIMIT

RULES = statement("rules")
GATE_ROWS = statement("gate_rows")
HELD = Records("held")
WRITE_GATE = ManyRows("write_gate")
DELETE_GATES = statement("delete_gates")
GATES_WAITED_AT = statement("gates_waited_at")

_decode_terms = msgspec.json.Decoder(GateTerms).decode


@lru_cache(maxsize=1000)
def terms_of(text: str) -> GateTerms:
    """Return the terms in a column of `betimes_rule`."""
    return _decode_terms(text)


def read_rules(sql: Sql, keys: Iterable[str]) -> dict[str, GateTerms]:
    """Return the terms by which gates go now, by their rules; a rule that was never declared is missing."""
    rules = array({rule_of(key) for key in keys})
    return {rule: terms_of(text) for rule, text in sql.execute(RULES, (rules,))}


def count_held(sql: Sql, specs: Specs) -> Counter[str]:
    """Count the permits that are out, by the gate's key."""
    held: Counter[str] = Counter()
    for text, count in HELD.read(sql, ()):
        for key in specs.gates(text):
            held[key] += count
    return held


def next_opening(gate: Gate, now: Micros) -> Micros | None:
    """Return when the passing of time lets one more pass than now; None: it does not."""
    terms = gate.terms
    if terms.kind is LIMIT:
        return None
    free = gate.free(now, terms.burst)
    if not free:
        return gate.opens_at(now)
    return None if free >= terms.burst or gate.full_at <= now else _token_after(gate, free)


def _token_after(gate: Gate, free: int) -> Micros:
    return gate.full_at - (gate.terms.burst - free - 1) * gate.terms.every_us


class Gates:
    """Reads gates when they are asked for, and remembers which ones are to be written.

    Attributes:
        opened: those that time has opened since somebody looked; to be taken off by whoever lets others up.
    """

    __slots__ = ("_again", "_gates", "_held", "_now", "_rules", "_specs", "_sql", "_stirred", "opened")

    def __init__(self, sql: Sql, specs: Specs, now: Micros) -> None:
        self._sql = sql
        self._specs = specs
        self._now = now
        self._gates: dict[str, Gate] = {}
        self._rules: dict[str, GateTerms] = {}
        self._held: Counter[str] | None = None
        self._stirred: set[str] = set()
        self.opened: set[str] = set()
        self._again: set[str] = set()

    def __getitem__(self, key: str) -> Gate:
        """Return a gate that has been loaded."""
        return self._gates[key]

    def load(self, keys: Iterable[str]) -> None:
        """Read these gates, as far as they have not been read."""
        gates = self._gates
        new = {key: rule_of(key) for key in keys if key not in gates}
        if not new:
            return
        if not self._rules.keys() >= set(new.values()):
            self._rules |= read_rules(self._sql, new)
        timed = []
        for key, rule in new.items():
            terms = self._rules[rule]
            if terms.kind is LIMIT:
                gates[key] = Gate(key, terms, held=self._count()[key])
            else:
                gates[key] = Gate(key, terms)
                timed.append(key)
        if timed:
            self._read_times(timed)

    def _read_times(self, keys: Collection[str]) -> None:
        for key, full_at, tripped_at, opens_at in self._sql.execute(GATE_ROWS, (array(keys),)):
            gate = self._gates[key]
            gate.full_at, gate.tripped_at = full_at, tripped_at
            if opens_at is not None and opens_at <= self._now:
                self.opened.add(key)
            if gate.heed(self._now):
                self._stirred.add(key)

    def _count(self) -> Counter[str]:
        """Count the permits out, once; what is charged later, its gate counts itself."""
        if self._held is None:
            self._held = count_held(self._sql, self._specs)
        return self._held

    def recount(self) -> None:
        """Count permits anew, since rows that held some are gone; all that holds any has been written."""
        if self._held is not None:
            self._held = None
            for key, gate in self._gates.items():
                if gate.terms.kind is LIMIT:
                    gate.held = self._count()[key]

    def stir(self, key: str) -> None:
        """Have a gate written, and looked after if somebody waits there."""
        self._stirred.add(key)

    def look_again(self, key: str) -> None:
        """Have the next turn look at those that wait at a gate: they were too many for this one."""
        self._again.add(key)

    def first_closed(self, keys: Iterable[str]) -> str | None:
        """Return the gate at which a job waits that has these; None: it may pass."""
        for key in keys:
            if not self._gates[key].is_open(self._now):
                return key
        return None

    def free(self, keys: Iterable[str], most: int) -> int:
        """Return how many jobs that have these gates may pass now, counted up to `most`."""
        return min((self._gates[key].free(self._now, most) for key in keys), default=most)

    def charge(self, keys: Iterable[str]) -> None:
        """Let one job pass that has these gates."""
        for key in keys:
            gate = self._gates[key]
            gate.charge(self._now)
            if gate.terms.kind is not LIMIT:
                self._stirred.add(key)

    def refund(self, keys: Iterable[str], claimed_at: Micros) -> None:
        """Take the tokens of a claim back that began nothing."""
        timed = [key for key in keys if not key.startswith(LIMIT.value)]
        if timed:
            self.load(timed)
            for key in timed:
                self._gates[key].refund(claimed_at)
                self._stirred.add(key)

    def write(self) -> None:
        """Write the gates that have changed, each with when to look at those that wait there."""
        again, self._again = self._again, set()
        stirred, self._stirred = self._stirred - again, set()
        self._write([key for key in stirred if self._gates[key].terms.kind is not LIMIT])
        rows = [(key, self._gates[key].full_at, self._gates[key].tripped_at, self._now) for key in again]
        WRITE_GATE.write(self._sql, rows)

    def go_by(self, terms: GateTerms) -> None:
        """Have gates of a rule that are loaded from now on go by other terms."""
        self._rules[terms.rule] = terms

    def due(self, keys: Collection[str]) -> None:
        """Note that it is time to look at gates: that is done now, and not again."""
        self.load(keys)
        self._stirred.update(keys)
        limits = [key for key in keys if self._gates[key].terms.kind is LIMIT]
        if limits:
            self._sql.execute(DELETE_GATES, (array(limits),))

    def _write(self, stirred: Collection[str]) -> None:
        if not stirred:
            return
        waited_at = {key for (key,) in self._sql.execute(GATES_WAITED_AT, (array(stirred),)).fetchall()}
        rows: list[Row] = []
        at_rest: list[str] = []
        for key in stirred:
            gate = self._gates[key]
            opens_at = next_opening(gate, self._now) if key in waited_at else None
            if opens_at is None and gate.is_at_rest(self._now):
                at_rest.append(key)
            else:
                rows.append((key, gate.full_at, gate.tripped_at, opens_at))
        WRITE_GATE.write(self._sql, rows)
        if at_rest:
            self._sql.execute(DELETE_GATES, (array(at_rest),))
