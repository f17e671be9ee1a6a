"""Picking among plain jobs and lines: whoever comes first in the order and finds a slot and open gates.

Lines give the places of their jobs first; the jobs themselves are read together, once they are picked.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush, heapreplace

from betimes.core.queue_shares import Dealer
from betimes.core.sort_key import LARGEST_KEY, SMALLEST_KEY
from betimes.stores.relational.lines import Line, LineKey, Rank
from betimes.stores.relational.rows import array
from betimes.stores.relational.statements import Records, Row
from betimes.stores.relational.turn import LIVE_BY_SEQ, Turn

READY_LINES = Records("ready_lines")
CLAIMABLE_IN_LINES = Records("claimable_in_lines")
NEXT_IN_LINES = Records("next_in_lines")

LINES_AT_FIRST = 16
LINES_AT_ONCE = 100
"""How many lines are looked at together: twice as many with each look, since often the first are enough."""
ASIDE_LIMIT = 500
"""The most lines that one claim finds at a closed gate; the next goes on."""

NOBODY = array(())
BEFORE_ALL: Rank = (SMALLEST_KEY, -1)
BEHIND_ALL: Rank = (LARGEST_KEY, LARGEST_KEY)


class Place:
    """One queue and lane as a claim reads it: its plain jobs, and its lines as they are come to.

    Mutable, since it is read from; `head` must be asked before each `take`.
    """

    __slots__ = (
        "_hold", "_index", "_is_selective", "_lines", "_lines_at_once", "_plain", "_read_to", "_room",
        "_to_read", "_turn", "is_cut", "lane", "queue",
    )  # fmt: skip

    def __init__(
        self,
        turn: Turn,
        where: tuple[str, str],
        plain: Sequence[Row],
        *,
        room: int,
        hold: str,
        has_lines: bool,
        has_expired: bool,
    ) -> None:
        self.queue, self.lane = where
        self.is_cut = False
        self._turn = turn
        self._plain = plain
        self._index = 0
        self._room = room
        self._hold = hold
        # Where others write, too, the first of a line may be gone since the line was looked at.
        self._is_selective = has_expired or hold != NOBODY or not turn.sql.is_alone
        # Each entry: its next job's place in the order (no two are equal), itself, and the places behind that
        # one, last first.
        self._lines: list[tuple[Rank, Line, list[Rank]]] = []
        self._lines_at_once = LINES_AT_FIRST
        # How many jobs of a line to look at next; 0: there are no more.
        self._to_read: dict[LineKey, int] = {}
        self._read_to = BEFORE_ALL if has_lines else BEHIND_ALL

    def head(self, left: list[int]) -> Rank | None:
        """Return where the next job stands that may be taken; None: there is none.

        Args:
            left: how many more lines may be set aside; counted down in place.
        """
        plain = self._plain_head()
        while not self.is_cut:
            line = self._lines[0][0] if self._lines else None
            bound = min(plain or BEHIND_ALL, line or BEHIND_ALL)
            if bound > self._read_to:
                self._read_lines(left)
            elif line is None or (plain is not None and plain < line):
                return plain
            elif self._is_open(self._lines[0][1]):
                return line
            else:
                self._set_aside(heappop(self._lines)[1], left)
        return None

    def take(self) -> Row | int:
        """Take what `head` has found: a row of a plain job, or the number of one whose gates are charged."""
        plain = self._plain_head()
        if plain is not None and (not self._lines or plain < self._lines[0][0]):
            self._index += 1
            return self._plain[self._index - 1]
        rank, line, behind = self._lines[0]
        lines = self._turn.lines
        lines.gates.charge(line.keys)
        if not behind and self._to_read[line.name]:
            behind = self._read_jobs([line], behind=rank)[0]
        head = behind.pop() if behind else None
        if head is None:
            heappop(self._lines)
        else:
            heapreplace(self._lines, (head, line, behind))
        lines.claim_from(line, head)
        if self._is_selective:  # whoever is left out may be its first
            lines.touch_line(line.name)
        return rank[1]

    def _is_open(self, line: Line) -> bool:
        return self._turn.lines.gates.first_closed(line.keys) is None

    def _set_aside(self, line: Line, left: list[int]) -> None:
        """Have a line wait at the gate that is closed to it; if these become too many, go no further."""
        if line.is_claimed_from:
            return
        lines = self._turn.lines
        lines.set_aside(line)
        if len(line.keys) > 1:  # at its other gates the next one is as good
            self._add(lines.rise())
        left[0] -= 1
        self.is_cut = left[0] <= 0

    def _plain_head(self) -> Rank | None:
        if self._index >= len(self._plain):
            return None
        row = self._plain[self._index]
        return row[10], row[0]

    def _read_lines(self, left: list[int]) -> None:
        """Look at the next lines, and set those aside whose gates are closed."""
        lines = self._turn.lines
        found = lines.ready(self.queue, self.lane) if self._read_to == BEFORE_ALL else []
        limit = min(self._room, self._lines_at_once)
        self._lines_at_once = min(2 * limit, LINES_AT_ONCE)
        rows = READY_LINES.read(self._turn.sql, (self.queue, self.lane, *self._read_to, limit))
        self._read_to = (rows[-1][4], rows[-1][5]) if len(rows) == limit else BEHIND_ALL
        found += [line for row in rows if (line := lines.line_of(row)) is not None]
        lines.gates.load(key for line in found for key in line.keys)
        open_ones = []
        for line in found:
            if self._is_open(line):
                open_ones.append(line)
            else:
                self._set_aside(line, left)
        self._add(open_ones)

    def _add(self, lines: Sequence[Line]) -> None:
        """Add lines that wait nowhere to those picked from."""
        while lines:
            is_passed_over = False
            for line, ranks in zip(lines, self._read_jobs(lines), strict=True):
                if self._is_selective and (not ranks or ranks[-1] != line.head):
                    self._turn.lines.pass_over(line)  # its first is held back, or has expired
                    is_passed_over = True
                if ranks:
                    heappush(self._lines, (ranks.pop(), line, ranks))
            lines = self._turn.lines.rise() if is_passed_over else ()

    def _read_jobs(self, lines: Sequence[Line], *, behind: Rank = BEFORE_ALL) -> list[list[Rank]]:
        """Read the places of the next jobs of lines, last first.

        Of a line alone all that may be taken, and the one after; of each of several, first two, then more.
        """
        turn = self._turn
        most = 2
        if len(lines) == 1:
            may_pass = 1 + turn.lines.gates.free(lines[0].keys, self._room)
            most = min(may_pass, self._to_read.get(lines[0].name, may_pass))
        texts = array([line.name[2] for line in lines])
        values = (self.queue, self.lane, texts, *behind, most)
        if self._is_selective:
            rows = CLAIMABLE_IN_LINES.read(turn.sql, (*values, turn.now, self._hold))
        else:
            rows = NEXT_IN_LINES.read(turn.sql, values)
        found: list[list[Rank]] = []
        for line, row in zip(lines, rows, strict=True):
            ranks = [(sort_key, seq) for sort_key, seq in row]
            ranks.sort(reverse=True)
            found.append(ranks)
            self._to_read[line.name] = 0 if len(ranks) < most else 4 * most
        return found


class Picking:
    """One claim's choice: full lanes are left out, and with shares a dealer says which queue is next.

    Args:
        places: where to pick from.
        free: the free slots of each lane; what is picked is counted off in place.
        dealer: who deals between the queues; None: the order alone decides.

    Attributes:
        is_cut: whether there may be more, which the next claim will find.
    """

    __slots__ = ("_dealer", "_free", "_heaps", "_left", "is_cut")

    def __init__(self, places: Sequence[Place], free: dict[str, int], dealer: Dealer | None) -> None:
        self.is_cut = False
        self._left = [ASIDE_LIMIT]
        self._free = free
        self._dealer = dealer
        self._heaps: dict[str, list[tuple[Rank, int, Place]]] = {}
        for number, place in enumerate(places):
            group = "" if dealer is None else place.queue
            self._heaps.setdefault(group, []).append((BEFORE_ALL, number, place))
        for heap in self._heaps.values():
            heapify(heap)

    def pick(self, turn: Turn, limit: int) -> list[Row]:
        """Take the first jobs, at most so many; their gates are charged."""
        rows: list[Row] = []
        numbers: list[int] = []
        while len(rows) + len(numbers) < limit:
            groups = [group for group in list(self._heaps) if self._settle(group)]
            if not groups:
                break
            group = groups[0] if self._dealer is None else self._dealer.next(groups)
            place = self._heaps[group][0][2]
            self._free[place.lane] -= 1
            taken = place.take()
            if isinstance(taken, int):
                numbers.append(taken)
            else:
                rows.append(taken)
        if numbers:
            rows += LIVE_BY_SEQ.read(turn.sql, (array(numbers),))
        return rows

    def _settle(self, group: str) -> bool:
        """Bring the place to the top that comes first in its group; False: the group has none left."""
        heap = self._heaps[group]
        while heap:
            _, number, place = heap[0]
            head = place.head(self._left) if self._free[place.lane] > 0 else None
            if head is None:
                self.is_cut = self.is_cut or place.is_cut
                heappop(heap)
            elif all(head <= other for other, _, _ in heap[1:3]):
                heap[0] = (
                    head,
                    number,
                    place,
                )  # what stands there of others may be too early, never too late
                return True
            else:
                heapreplace(heap, (head, number, place))
        del self._heaps[group]
        return False
