"""What happens to lines, gates and untagged jobs in a turn that does not keep them: noted for whoever does.

Where many write at once, only one at a time keeps the order of jobs with gates or tenants: who claims such
jobs, or changes a gate by hand. All others only add a row for what they have touched, which nobody waits for;
the next keeper takes the rows away and does then what they would have done.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from betimes.stores.relational.lines import LineKey
from betimes.stores.relational.statements import ManyRows, Sql, statement

ADD_STIRRED = ManyRows("add_stirred")
TAKE_STIRRED = statement("take_stirred")

TAKEN_AT_ONCE = 10_000
"""The most rows that one keeper takes away; the next goes on."""

Names: TypeAlias = tuple[list[LineKey], list[str]]
"""Lines, and the keys of gates that may let more pass."""


class Stirred:
    """What one turn has touched."""

    __slots__ = ("_gates", "_lines")

    def __init__(self) -> None:
        self._lines: dict[LineKey, None] = {}
        self._gates: dict[str, None] = {}

    def touch(self, line: LineKey) -> None:
        """Note that a job joins or leaves a line."""
        self._lines[line] = None

    def open(self, keys: Iterable[str]) -> None:
        """Note that gates may let more pass than before."""
        self._gates.update(dict.fromkeys(keys))

    def take(self) -> Names:
        """Return what was noted, and forget it."""
        taken = list(self._lines), list(self._gates)
        self._lines, self._gates = {}, {}
        return taken

    def write(self, sql: Sql) -> bool:
        """Leave what was noted to the next keeper; return whether there was anything."""
        lines, gates = self.take()
        rows = [(queue, lane, text) for queue, lane, text in lines]
        ADD_STIRRED.write(sql, [*rows, *((None, None, key) for key in gates)])
        return bool(lines or gates)


def take_stirred(sql: Sql) -> Names:
    """Take away what others have left, and return it."""
    lines: dict[LineKey, None] = {}
    gates: dict[str, None] = {}
    for queue, lane, name in sql.execute(TAKE_STIRRED, (TAKEN_AT_ONCE,)).fetchall():
        if queue is None:
            gates[name] = None
        else:
            lines[queue, lane, name] = None
    return list(lines), list(gates)
