"""Looking at gates: how they stand, who holds their permits, and who waits there in which order.

A line that waits nowhere may name a gate that has closed since (`lines`, rule 2): whoever looks sees it
wait there all the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from betimes.core.job import Job, Micros
from betimes.core.limits import GateTerms, GateView, rule_of
from betimes.stores.relational.gates import Gates, terms_of
from betimes.stores.relational.lines import LINE_PLACES, WAITING_LINES
from betimes.stores.relational.rows import Specs, array
from betimes.stores.relational.statements import Records, Sql, statement

HOLDERS = Records("holders")
READY_LINES_NAMING = Records("ready_lines_naming")
READY_LINES_BEFORE = Records("ready_lines_before")
FIRST_IN_LINE = Records("first_in_line")
AHEAD = statement("ahead")
AHEAD_IN_LINE = statement("ahead_in_line")
ALL_RULES = statement("all_rules")
GATES_STANDING = statement("gates_standing")
GATES_WAITED_FOR = statement("gates_waited_for")

WAITING_COUNTED = 1000
"""The most waiting jobs of one gate that are counted."""
LINES_LOOKED_AT = 1000
"""The most lines of one gate that are looked at, of each queue and lane."""


class GateLook:
    """One look at gates, on the snapshot of a `Look`."""

    __slots__ = ("_gates", "_late", "_now", "_specs", "_sql")

    def __init__(self, sql: Sql, specs: Specs, now: Micros) -> None:
        self._sql = sql
        self._specs = specs
        self._now = now
        self._gates = Gates(sql, specs, now)
        self._late: dict[str, list[tuple[str, str, str]]] = {}

    def gates(self, keys: Sequence[str], most: int) -> list[GateView]:
        """Show these gates with the first who hold permits, and the first who wait."""
        rules = self._rules()
        known = [key for key in keys if rule_of(key) in rules]
        holders = self._holders(known)
        self._gates.load(known)
        views = []
        for key in known:
            self._find_late(array((key,))[1:-1])
            waiting = self._waiting(key, max(most, WAITING_COUNTED))
            holding = tuple((job_id, seq, worker) for _, seq, job_id, worker in holders[key][:most])
            first = tuple((job_id, seq) for _, seq, job_id in waiting[:most])
            view = self._view(key, rules[rule_of(key)], min(len(waiting), WAITING_COUNTED))
            views.append(_with(view, holding, first))
        return views

    def gates_under(self, rule: str | None, limit: int) -> list[GateView]:
        """Show the gates of a rule that are in use; a rule of which none is shows as one at rest."""
        rules = self._rules()
        wanted = rules if rule is None else {rule: rules[rule]} if rule in rules else {}
        in_use = self._in_use(rule, wanted, limit)
        used = {rule_of(key) for key in in_use}
        keys = sorted({*in_use, *(name for name in wanted if name not in used)})[:limit]
        self._gates.load(keys)
        self._find_late("" if rule is None else array((rule,))[1:-2])
        return [
            self._view(key, wanted[rule_of(key)], len(self._waiting(key, WAITING_COUNTED))) for key in keys
        ]

    def declared(self) -> dict[str, GateTerms]:
        """Return the terms that the code declares, by rule."""
        return {rule: terms_of(text) for rule, text, _ in self._sql.execute(ALL_RULES).fetchall()}

    def ahead(self, job: Job, most: int) -> int:
        """Count the claimable jobs of the same queue and lane that go before this one."""
        spec, rank = job.spec, (job.sort_key, job.seq)
        where = spec.queue, spec.lane
        count: int = self._sql.execute(AHEAD, (*where, *rank, most)).fetchone()[0]
        own = self._specs.gates_text(job.gates) if job.gates else None
        lines = [] if own is None else [own]
        for (text,) in READY_LINES_BEFORE.read(self._sql, (*where, *rank, LINES_LOOKED_AT)):
            keys = self._specs.gates(text)
            self._gates.load(keys)
            if text != own and self._gates.first_closed(keys) is None:
                lines.append(text)
        for text in lines:
            if count >= most:
                break
            values = (*where, text, *rank, most - count)
            count += self._sql.execute(AHEAD_IN_LINE, values).fetchone()[0]
        return count

    def _rules(self) -> dict[str, tuple[GateTerms, bool]]:
        """Return by rule the terms in force, and whether they were changed."""
        rules = {}
        for rule, declared, changed in self._sql.execute(ALL_RULES).fetchall():
            rules[rule] = terms_of(changed or declared), changed is not None
        return rules

    def _view(self, key: str, terms: tuple[GateTerms, bool], waiting: int) -> GateView:
        gate = self._gates[key]
        return GateView(
            key=key,
            terms=terms[0],
            is_changed=terms[1],
            held=gate.held,
            full_at=gate.full_at,
            tripped_at=gate.tripped_at,
            waiting=waiting,
        )

    def _holders(self, keys: Collection[str]) -> dict[str, list[tuple[Micros, int, str, str]]]:
        """Return by gate who holds permits, the longest first: (since, number, id, worker)."""
        holders: dict[str, list[tuple[Micros, int, str, str]]] = {key: [] for key in keys}
        for seq, job_id, worker, text, since in HOLDERS.read(self._sql, ()):
            for key in self._specs.gates(text):
                if key in holders and key.startswith("limit"):
                    holders[key].append((since or 0, seq, job_id, worker))
        for each in holders.values():
            each.sort()
        return holders

    def _waiting(self, key: str, most: int) -> list[tuple[int, int, str]]:
        """Return who waits at a gate, in the order in which they pass: (sort key, number, id)."""
        found: list[tuple[int, int, str]] = []
        for line in self._lines_at(key):
            found += [(row[0], row[1], row[2]) for row in FIRST_IN_LINE.read(self._sql, (*line, most))]
            if len(found) >= most * 10:
                break
        return sorted(found)[:most]

    def _lines_at(self, key: str) -> Iterable[tuple[str, str, str]]:
        """Return the lines that wait at a gate: (queue, lane, gates)."""
        for first in LINE_PLACES.read(self._sql, (array((key,)),)):
            place = array(((key, first[1], first[2]),))
            for row in WAITING_LINES.read(self._sql, (place, LINES_LOOKED_AT)):
                yield row[1], row[2], row[3]
        yield from self._late.get(key, ())

    def _find_late(self, part: str) -> None:
        """Find the lines that wait nowhere though a gate is closed, and have this in their gates' text."""
        self._late.clear()
        lines = READY_LINES_NAMING.read(self._sql, (part, LINES_LOOKED_AT))
        self._gates.load(key for _, _, text in lines for key in self._specs.gates(text))
        for queue, lane, text in lines:
            key = self._gates.first_closed(self._specs.gates(text))
            if key is not None:
                self._late.setdefault(key, []).append((queue, lane, text))

    def _in_use(self, rule: str | None, rules: Collection[str], limit: int) -> set[str]:
        keys = {key for (key,) in self._sql.execute(GATES_STANDING, (rule, self._now, limit))}
        keys |= {key for (key,) in self._sql.execute(GATES_WAITED_FOR, (rule, limit))}
        for _, _, _, text, _ in HOLDERS.read(self._sql, ()):
            keys |= {key for key in self._specs.gates(text) if key.startswith("limit")}
        return {key for key in keys if rule_of(key) in rules}


def _with(
    view: GateView, holders: tuple[tuple[str, int, str], ...], waiters: tuple[tuple[str, int], ...]
) -> GateView:
    """Add who holds permits and who waits."""
    return GateView(
        key=view.key,
        terms=view.terms,
        is_changed=view.is_changed,
        held=view.held,
        full_at=view.full_at,
        tripped_at=view.tripped_at,
        holders=holders,
        waiting=view.waiting,
        waiters=waiters,
    )
