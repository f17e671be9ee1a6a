"""The terms of gates: declared by the code, changed at run time; and circuits opened and closed by hand."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from betimes.core.limits import GateKind, GateTerms
from betimes.ports import Hint
from betimes.stores.relational.gates import terms_of
from betimes.stores.relational.statements import statement
from betimes.stores.relational.turn import Turn

READ_RULE = statement("read_rule")
DECLARE_RULE = statement("declare_rule")
CHANGE_RULE = statement("change_rule")
GATES_OF_RULE = statement("gates_of_rule")
GATES_WAITED_FOR = statement("gates_waited_for")

EVERY = 2**63 - 1

_encode = msgspec.json.Encoder().encode


def declare(turn: Turn, terms: Sequence[GateTerms]) -> None:
    """Keep the rules that the code declares; those changed at run time stay so."""
    for new in terms:
        declared, changed = _read(turn, new.rule)
        if declared == new:
            continue
        if declared is not None:
            turn.keep_order()
            declared, changed = _read(turn, new.rule)  # as whoever kept the order before has left it
        if changed is None:
            _go_by(turn, declared, new)
        turn.sql.execute(DECLARE_RULE, (new.rule, _encode(new).decode()))
    turn.flush()


def change(turn: Turn, rule: str, terms: GateTerms | None) -> GateTerms | None:
    """Have the gates of a rule go by other terms; None: by those declared. Return the terms in force."""
    turn.keep_order()  # first: who changes them at the same time is to be seen
    declared, changed = _read(turn, rule)
    if declared is None:
        return None
    before, now = changed or declared, terms or declared
    if now != before:
        _go_by(turn, before, now)
    turn.sql.execute(CHANGE_RULE, (rule, None if terms is None else _encode(terms).decode()))
    turn.flush()
    return now


def trip(turn: Turn, key: str, *, is_open: bool) -> None:
    """Open the circuit of a breaker, or close it; nothing if it was never declared."""
    declared, _ = _read(turn, key)
    if declared is None or declared.kind is not GateKind.BREAKER:
        return
    gates = turn.lines.gates
    gates.load((key,))
    if is_open:
        gates[key].trip(turn.now)
    else:
        gates[key].reset()
        turn.lines.open((key,))
    gates.stir(key)
    turn.hints.add(Hint.WORK)
    turn.flush()


def _read(turn: Turn, rule: str) -> tuple[GateTerms | None, GateTerms | None]:
    """Return the terms of a rule: those declared, and those put in their place."""
    row = turn.sql.execute(READ_RULE, (rule,)).fetchone()
    if row is None:
        return None, None
    declared, changed = row
    return terms_of(declared), None if changed is None else terms_of(changed)


def _go_by(turn: Turn, before: GateTerms | None, now: GateTerms) -> None:
    """Have the gates of a rule that are in use go by new terms; who waits there may pass."""
    if before is None:
        return
    rule, sql = now.rule, turn.sql
    standing = [key for (key,) in sql.execute(GATES_OF_RULE, (rule,)).fetchall()]
    waited_for = [key for (key,) in sql.execute(GATES_WAITED_FOR, (rule, EVERY)).fetchall()]
    keys = {*standing, *waited_for}
    gates = turn.lines.gates
    gates.load(keys)
    for key in keys:
        gates[key].change(now, turn.now)
        gates.stir(key)
    gates.go_by(now)
    turn.lines.open(waited_for)
    turn.hints.add(Hint.WORK)
