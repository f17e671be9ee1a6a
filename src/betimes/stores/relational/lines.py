"""Lines: the claimable jobs of a queue and lane that have the same gates, each line in the strategy's order.

A row of `betimes_line` says where a line's first job stands and at which gate it waits, if at any. What
must hold when a turn is over:

1. A line that waits at a gate that is closed is right to wait. One that waits at a gate which is open for n
   more has at least n better lines of its queue and lane, which wait nowhere: so it could not be next.
2. A line that waits nowhere may find its gate closed when a claim comes to it; then it goes to wait there.
3. So whatever worsens a line that waits nowhere (it is routed elsewhere, its first job goes, or its last)
   lets the next one of each of its open gates move up; and when a gate opens for n more, n move up. Only a
   line that was claimed from has been worsened for its due: what it took is no longer free.

Lines are touched while a turn changes jobs, and settled when the rows are written: few statements, however
many lines there are. Before a claim, what was settled is kept and not written yet, since the claim nearly
always changes it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from betimes.core.job import Job, Micros
from betimes.ports import Hint
from betimes.stores.relational.gates import Gates
from betimes.stores.relational.rows import Specs, array
from betimes.stores.relational.statements import ManyRows, Records, Row, Sql, statement

UP_LIMIT = 1000
"""The most lines that move up at one gate in one step; those behind follow as these are claimed from."""
MOVES_LIMIT = 10_000
"""The most lines that move in one turn; the next turn goes on."""

LINE_STATES = Records("line_states")
ADD_LINE = ManyRows("add_line")
MOVE_LINE = ManyRows("move_line")
DELETE_LINES = statement("delete_lines")
LINE_PLACES = Records("line_places")
WAITING_LINES = Records("waiting_lines")

LineKey: TypeAlias = tuple[str, str, str]
"""What names a line here: queue, lane, and its gates as their column holds them."""
Pull: TypeAlias = tuple[str, str, str]
"""Whom to let move up: those at this gate, in this queue and lane."""
Rank: TypeAlias = tuple[int, int]
"""A place in the order: (sort key, number)."""


@dataclass(slots=True)
class Line:
    """One line, as its row says and as it is now (mutable: it is routed, and claimed from).

    Attributes:
        number: of its row; None: it has none yet.
        name: its queue, lane and gates.
        keys: its gates.
        head: where its first job stands; None: nobody is left.
        waits_at: the gate at which it waits; None: at none.
        was_head, waited_at: what its row says.
        stood: where its first job stood when it was routed last; None: it waited then.
        is_claimed_from: whether the turn's claim has taken some of its jobs.
    """

    number: int | None
    name: LineKey
    keys: tuple[str, ...]
    head: Rank | None
    waits_at: str | None
    was_head: Rank | None
    waited_at: str | None
    stood: Rank | None
    is_claimed_from: bool = False

    def route(self, waits_at: str | None) -> bool:
        """Have it wait there; return whether it is worse off than before: those behind may move up."""
        stood, self.stood = self.stood, self.head if waits_at is None else None
        self.waits_at = waits_at
        return stood is not None and not self.is_claimed_from and (self.stood is None or self.stood > stood)


class Lines:
    """The lines that one turn touches.

    Attributes:
        gates: the gates that it looks at.
        is_claim_ahead: whether a claim comes next, so that nothing need be written before.
    """

    __slots__ = (
        "_freed", "_hints", "_known", "_moves", "_opened", "_pulled", "_pulls", "_risen", "_specs", "_sql",
        "_touched", "gates", "is_claim_ahead",
    )  # fmt: skip

    def __init__(self, sql: Sql, specs: Specs, *, now: Micros, hints: set[Hint]) -> None:
        self.gates = Gates(sql, specs, now)
        self.is_claim_ahead = False
        self._sql = sql
        self._specs = specs
        self._hints = hints
        self._known: dict[LineKey, Line] = {}
        self._touched: dict[LineKey, None] = {}
        self._opened: set[str] = set()
        self._freed = False
        self._moves = 0
        self._pulls: Counter[Pull] = Counter()
        self._pulled: Counter[Pull] = Counter()
        self._risen: list[Line] = []

    # what happens to lines

    def touch(self, job: Job) -> None:
        """Note that a job with gates joins or leaves its line."""
        spec = job.spec
        self._touched[spec.queue, spec.lane, self._specs.gates_text(job.gates)] = None

    def touch_line(self, name: LineKey) -> None:
        """Note that a line is to be looked at anew."""
        self._touched[name] = None

    def claim_from(self, line: Line, head: Rank | None) -> None:
        """Note that the first jobs of a line were claimed, and who is first now."""
        line.is_claimed_from = True
        line.head = head
        self._known[line.name] = line

    def set_aside(self, line: Line) -> None:
        """Have a line wait, one of whose gates is closed, whatever its row says."""
        self._route([line])

    def pass_over(self, line: Line) -> None:
        """Let the next of each gate move up, although this line stays: who claims cannot have its first."""
        self._known[line.name] = line
        for key in line.keys:
            self._pulls[key, line.name[0], line.name[1]] += 1

    def rise(self) -> list[Line]:
        """Let move up whoever may, and return these lines: of the queue and lane that is claimed from."""
        self._risen = []
        while self._pulls:
            self._move_up(set())
        return self._risen

    def open(self, keys: Iterable[str]) -> None:
        """Note that gates may let more pass than before."""
        self._opened.update(keys)

    def free(self, keys: Iterable[str]) -> None:
        """Note that permits of gates are back."""
        self._freed = True
        self._opened.update(keys)

    # what a claim reads

    def ready(self, queue: str, lane: str) -> list[Line]:
        """Return the lines of a queue and lane that wait nowhere and are not written yet."""
        return [
            line
            for line in self._known.values()
            if line.name[0] == queue and line.name[1] == lane and line.head is not None and not line.waits_at
        ]

    def ready_queues(self) -> list[str]:
        """Return the queues of all such lines."""
        ready = (line for line in self._known.values() if line.head is not None and not line.waits_at)
        return list(dict.fromkeys(line.name[0] for line in ready))

    def line_of(self, row: Row) -> Line | None:
        """Return the line that a row describes; None: it is known already, perhaps otherwise."""
        number, queue, lane, text, key, seq, waits_at = row
        name = (queue, lane, text)
        if name in self._known:
            return None
        head = (key, seq)
        stood = head if waits_at is None else None
        return Line(number, name, self._specs.gates(text), head, waits_at, head, waits_at, stood)

    # settling

    def settle(self) -> None:
        """Route what was touched, and move up whoever may pass now; all rows of jobs must be written."""
        if self._freed:
            self._freed = False
            self.gates.recount()
        touched, self._touched = self._touched, {}
        lines = self._read(list(touched)) if touched else []
        if not self.is_claim_ahead:  # what a claim has charged may have closed gates of any of them
            lines += [line for name, line in self._known.items() if name not in touched]
        if lines:
            self._route(lines)
        while self._opened or self._pulls or self.gates.opened:
            opened = self._opened | self.gates.opened
            self._opened, self.gates.opened = set(), set()
            self._move_up(opened)
        if not self.is_claim_ahead:
            self._write()
            self.gates.write()

    def _read(self, touched: Sequence[LineKey]) -> list[Line]:
        lines = []
        for index, number, was_key, was_seq, waited_at, key, seq in LINE_STATES.read(
            self._sql, (array(touched),)
        ):
            name = touched[index]
            line = self._known.get(name)
            if line is None:
                was_head = None if number is None else (was_key, was_seq)
                keys = self._specs.gates(name[2])
                stood = was_head if waited_at is None else None
                line = Line(number, name, keys, None, waited_at, was_head, waited_at, stood)
                if waited_at is not None:
                    self._pulled[waited_at, name[0], name[1]] += 1
            line.head = None if seq is None else (key, seq)
            lines.append(line)
        return lines

    def _route(self, lines: Sequence[Line]) -> None:
        """Have each line wait at the first of its gates that is closed, or nowhere."""
        gates, known = self.gates, self._known
        gates.load(key for line in lines for key in line.keys)
        for line in lines:
            known[line.name] = line
            waits_at = None if line.head is None else gates.first_closed(line.keys)
            if waits_at is not None:
                gates.stir(waits_at)
            if line.route(waits_at):
                queue, lane, _ = line.name
                for key in line.keys:
                    if key != waits_at:
                        self._pulls[key, queue, lane] += 1

    def _move_up(self, opened: set[str]) -> None:
        """Move up as many lines as were asked for, and as each gate that has opened lets pass."""
        pulls, self._pulls = self._pulls, Counter()
        keys = opened | {key for key, _, _ in pulls}
        firsts = LINE_PLACES.read(self._sql, (array(keys),))
        gates = self.gates
        gates.load({row[6] for row in firsts})
        by_count: dict[int, list[Row]] = {}
        for row in firsts:
            pull = key, _, _ = row[6], row[1], row[2]
            count = gates.free((key,), UP_LIMIT if key in opened else pulls[pull])
            if count and self._moves >= MOVES_LIMIT:
                gates.look_again(key)
            elif count:
                by_count.setdefault(count + self._pulled[pull], []).append(row)
        for count, rows in by_count.items():
            self._pull(rows, count)

    def _pull(self, firsts: Sequence[Row], count: int) -> None:
        """Move up the first lines that wait at gates, by what the file says.

        Args:
            firsts: the rows of the very first of each gate, queue and lane.
            count: how many of each to read; those that have moved before are among them.
        """
        places = [(key, queue, lane) for _, queue, lane, _, _, _, key in firsts]
        rows = firsts if count == 1 else WAITING_LINES.read(self._sql, (array(places), count))
        lines = [line for row in rows if (line := self.line_of(row)) is not None]
        self._moves += len(lines)
        self._route(lines)
        for line in lines:
            assert line.waited_at is not None, "it was read because it waits"
            pull = line.waited_at, line.name[0], line.name[1]
            self._pulled[pull] += 1
            self.gates.stir(line.waited_at)
            if line.waits_at is None:
                self._risen.append(line)
            elif line.waits_at != line.waited_at:
                # It waits at another gate now: those behind it are next. More than needed do no harm.
                self._pulls[pull] += 2

    def _write(self) -> None:
        """Write the lines that are not as their rows say."""
        new: list[Row] = []
        moved: list[Row] = []
        gone: list[int] = []
        for line in self._known.values():
            if line.head is None:
                if line.number is not None:
                    gone.append(line.number)
            elif line.number is None:
                new.append((*line.name, *line.head, line.waits_at))
            elif line.head != line.was_head or line.waits_at != line.waited_at:
                moved.append((line.number, *line.head, line.waits_at))
            # Not before it is written: what moved up and was claimed in the same turn is no work for others.
            has_waited = line.number is None or line.waited_at is not None
            if has_waited and line.head is not None and line.waits_at is None:
                self._hints.add(Hint.WORK)
        self._known.clear()
        self._pulled.clear()
        ADD_LINE.write(self._sql, new)
        MOVE_LINE.write(self._sql, moved)
        if gone:
            self._sql.execute(DELETE_LINES, (array(gone),))
