"""Lines: the claimable jobs of a queue and lane that have the same gates, each line in the strategy's order.

A row of `betimes_line` says where a line's first job stands and at which gate it waits, if at any. What
must hold when a turn is over:

1. A line that waits at a gate that is closed is right to wait. One that waits at a gate which is open for n
   more has at least n better lines of its queue and lane, which wait nowhere: so it could not be next.
2. A line that waits nowhere may find its gate closed when a claim comes to it; then it goes to wait there.
3. So whatever worsens a line that waits nowhere (it is routed elsewhere, its first job goes, or its last)
   lets the next one of each of its open gates move up; and when a gate opens for n more, n move up.

Lines are touched while a turn changes jobs, and settled when the rows are written: few statements, however
many lines there are.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from betimes.core.job import Job, Micros
from betimes.ports import Hint
from betimes.stores.sqlite.gates import Gates
from betimes.stores.sqlite.rows import Specs, array
from betimes.stores.sqlite.statements import ManyRows, Records, Row, statement

UP_LIMIT = 1000
"""The most lines that move up at one gate in one step; those behind follow as these are claimed from."""
MOVES_LIMIT = 10_000
"""The most lines that move in one turn; the next turn goes on."""

LINE_STATES = Records("line_states")
ADD_LINE = ManyRows("add_line")
MOVE_LINE = ManyRows("move_line")
DELETE_LINES = statement("delete_lines")
LINE_PLACES = statement("line_places")
WAITING_LINES = Records("waiting_lines")


@dataclass(slots=True)
class Line:
    """One line, as its row says and as it is now (mutable: it is routed).

    Attributes:
        number: of its row; None: it has none yet.
        queue, lane, text: what names it; its gates as their column holds them.
        keys: its gates.
        head: where its first job stands; None: nobody is left.
        was_head, waited_at: what its row says.
    """

    number: int | None
    queue: str
    lane: str
    text: str
    keys: tuple[str, ...]
    head: tuple[int, int] | None
    was_head: tuple[int, int] | None
    waited_at: str | None

    @property
    def was_ready(self) -> bool:
        """Whether its row says that it waits nowhere."""
        return self.number is not None and self.waited_at is None


class Lines:
    """The lines that one turn touches.

    Attributes:
        gates: the gates that it looks at.
        moved_up: whether a line was settled that waits nowhere and did not before.
    """

    __slots__ = (
        "_freed", "_hints", "_moves", "_opened", "_pulls", "_specs", "_sql", "_touched", "gates", "moved_up",
    )  # fmt: skip

    def __init__(self, sql: sqlite3.Connection, specs: Specs, *, now: Micros, hints: set[Hint]) -> None:
        self.gates = Gates(sql, specs, now)
        self.moved_up = False
        self._sql = sql
        self._specs = specs
        self._hints = hints
        self._touched: dict[tuple[str, str, str], None] = {}
        self._opened: set[str] = set()
        self._freed = False
        self._moves = 0
        self._pulls: Counter[tuple[str, str, str]] = Counter()

    def touch(self, job: Job) -> None:
        """Note that a job with gates joins or leaves its line."""
        spec = job.spec
        self.touch_line(spec.queue, spec.lane, self._specs.gates_text(job.gates))

    def touch_line(self, queue: str, lane: str, text: str) -> None:
        """Note that a line is to be looked at anew."""
        self._touched[queue, lane, text] = None

    def open(self, keys: Iterable[str]) -> None:
        """Note that gates may let more pass than before."""
        self._opened.update(keys)

    def free(self, keys: Iterable[str]) -> None:
        """Note that permits of gates are back."""
        self._freed = True
        self._opened.update(keys)

    def settle(self) -> None:
        """Route what was touched, and move up whoever may pass now; all rows of jobs must be written."""
        if self._freed:
            self._freed = False
            self.gates.recount()
        if self._touched:
            touched, self._touched = self._touched, {}
            self._route(self._read(list(touched)))
        while self._opened or self._pulls:
            self._move_up()
        self.gates.write()

    def pass_over(self, queue: str, lane: str, text: str) -> None:
        """Let the next one of each gate move up, although this line stays: it has nobody for who claims."""
        for key in self._specs.gates(text):
            self._pulls[key, queue, lane] += 1

    def _read(self, touched: list[tuple[str, str, str]]) -> list[Line]:
        lines = []
        for index, number, was_key, was_seq, waited_at, key, seq in LINE_STATES.read(
            self._sql, (array(touched),)
        ):
            queue, lane, text = touched[index]
            lines.append(
                Line(
                    number,
                    queue,
                    lane,
                    text,
                    self._specs.gates(text),
                    None if seq is None else (key, seq),
                    None if number is None else (was_key, was_seq),
                    waited_at,
                )
            )
        return lines

    def _route(self, lines: Iterable[Line]) -> None:
        """Have each line wait at the first of its gates that is closed, or nowhere, and write that."""
        lines = [line for line in lines if line.head is not None or line.number is not None]
        gates = self.gates
        gates.load(key for line in lines for key in line.keys)
        new: list[Row] = []
        moved: list[Row] = []
        gone: list[int] = []
        for line in lines:
            waits_at = None
            if line.head is None:
                assert line.number is not None, "whoever has neither jobs nor a row has been left out"
                gone.append(line.number)
            else:
                waits_at = gates.first_closed(line.keys)
                if waits_at is not None:
                    gates.stir(waits_at)
                else:
                    self.moved_up = self.moved_up or not line.was_ready
                if line.number is None:
                    new.append((line.queue, line.lane, line.text, *line.head, waits_at))
                elif (line.head, waits_at) != (line.was_head, line.waited_at):
                    moved.append((line.number, *line.head, waits_at))
            self._let_others_up(line, waits_at)
        ADD_LINE.write(self._sql, new)
        MOVE_LINE.write(self._sql, moved)
        if gone:
            self._sql.execute(DELETE_LINES, (array(gone),))
        if self.moved_up:
            self._hints.add(Hint.WORK)

    def _let_others_up(self, line: Line, waits_at: str | None) -> None:
        """Ask for the next at each open gate of a line that waited nowhere and is worse off now."""
        if not line.was_ready:
            return
        assert line.was_head is not None, "a line that has a row has had a first job"
        if waits_at is None and line.head is not None and line.head <= line.was_head:
            return
        for key in line.keys:
            if key != waits_at:
                self._pulls[key, line.queue, line.lane] += 1

    def _move_up(self) -> None:
        """Move up as many lines as were asked for, and as each gate that has opened lets pass."""
        opened, self._opened = self._opened, set()
        pulls, self._pulls = self._pulls, Counter()
        keys = opened | {key for key, _, _ in pulls}
        for key, queue, lane in self._sql.execute(LINE_PLACES, (array(keys),)).fetchall():
            count = UP_LIMIT if key in opened else pulls[key, queue, lane]
            if count:
                self._pull(key, queue, lane, count)

    def _pull(self, key: str, queue: str, lane: str, count: int) -> None:
        """Move up the first lines that wait at a gate, as far as it is open."""
        self.gates.load((key,))
        count = self.gates.free((key,), count)
        if not count:
            return
        if self._moves >= MOVES_LIMIT:
            self.gates.look_again(key)
            return
        rows = WAITING_LINES.read(self._sql, (key, queue, lane, count))
        self._moves += len(rows)
        self.gates.stir(key)
        lines = [self._waiting(row) for row in rows]
        self._route(lines)
        elsewhere = sum(self.gates.first_closed(line.keys) is not None for line in lines)
        if elsewhere:
            # They wait at another gate now: those behind them are next. More than needed does no harm.
            self._pulls[key, queue, lane] += 2 * elsewhere

    def _waiting(self, row: Row) -> Line:
        number, queue, lane, text, key, seq, waits_at = row
        head = (key, seq)
        return Line(number, queue, lane, text, self._specs.gates(text), head, head, waits_at)
