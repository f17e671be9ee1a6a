"""Picking among plain jobs and lines: whoever comes first in the order and finds a slot and open gates.

Lines give the places of their jobs first; the jobs themselves are read together, once they are picked.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush, heapreplace
from typing import TypeAlias

from betimes.core.queue_shares import Dealer
from betimes.core.sort_key import LARGEST_KEY, SMALLEST_KEY
from betimes.stores.sqlite.rows import array
from betimes.stores.sqlite.statements import Records, Row
from betimes.stores.sqlite.turn import LIVE_BY_SEQ, Turn

READY_LINES = Records("ready_lines")
CLAIMABLE_IN_LINES = Records("claimable_in_lines")

LINES_AT_ONCE = 100
"""How many lines are looked at together."""
ASIDE_LIMIT = 500
"""The most lines that one claim finds at a closed gate; the next goes on."""

Rank: TypeAlias = tuple[int, int]
BEFORE_ALL: Rank = (SMALLEST_KEY, -1)
BEHIND_ALL: Rank = (LARGEST_KEY, LARGEST_KEY)


class Place:
    """One queue and lane as a claim reads it: its plain jobs, and its lines as they are come to.

    Mutable, since it is read from; `head` must be asked before each `take`.
    """

    __slots__ = (
        "_hold",
        "_index",
        "_lines",
        "_plain",
        "_read_to",
        "_room",
        "_turn",
        "is_cut",
        "lane",
        "queue",
    )

    def __init__(
        self,
        turn: Turn,
        where: tuple[str, str],
        plain: Sequence[Row],
        *,
        room: int,
        hold: str,
        has_lines: bool,
    ) -> None:
        self.queue, self.lane = where
        self.is_cut = False
        self._turn = turn
        self._plain = plain
        self._index = 0
        self._room = room
        self._hold = hold
        # Each entry: its next job's place in the order, its gates, the places behind that one, last first.
        self._lines: list[tuple[Rank, str, list[Rank]]] = []
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
        rank, text, behind = self._lines[0]
        self._turn.lines.gates.charge(self._turn.specs.gates(text))
        self._turn.lines.touch_line(self.queue, self.lane, text)
        if behind:
            heapreplace(self._lines, (behind.pop(), text, behind))
        else:
            heappop(self._lines)
            if self._is_open(text):
                self._read_jobs([text], behind=rank)
        return rank[1]

    def _is_open(self, text: str) -> bool:
        return self._turn.lines.gates.first_closed(self._turn.specs.gates(text)) is None

    def _set_aside(self, text: str, left: list[int]) -> None:
        """Have a line wait at the gate that is closed to it; if these become too many, go no further."""
        self._turn.lines.touch_line(self.queue, self.lane, text)
        left[0] -= 1
        self.is_cut = left[0] <= 0

    def _plain_head(self) -> Rank | None:
        if self._index >= len(self._plain):
            return None
        row = self._plain[self._index]
        return row[10], row[0]

    def _read_lines(self, left: list[int]) -> None:
        """Look at the next lines, and set those aside whose gates are closed."""
        limit = min(self._room, LINES_AT_ONCE)
        rows = READY_LINES.read(self._turn.sql, (self.queue, self.lane, *self._read_to, limit))
        self._read_to = (rows[-1][0], rows[-1][1]) if len(rows) == limit else BEHIND_ALL
        gates = self._turn.specs.gates
        self._turn.lines.gates.load(key for _, _, text in rows for key in gates(text))
        lines = []
        for _, _, text in rows:
            if self._is_open(text):
                lines.append(text)
            else:
                self._set_aside(text, left)
        if lines:
            self._read_jobs(lines)

    def _read_jobs(self, lines: list[str], *, behind: Rank = BEFORE_ALL) -> None:
        """Read the places of the next jobs of lines, so many as may well be taken."""
        turn = self._turn
        keys = [turn.specs.gates(text) for text in lines]
        free = max(turn.lines.gates.free(each, self._room) for each in keys)
        most = min(free, max(1, 4 * self._room // len(lines)))
        values = (self.queue, self.lane, array(lines), turn.now, self._hold, *behind, most)
        found: dict[int, list[Rank]] = {}
        for index, sort_key, seq in CLAIMABLE_IN_LINES.read(turn.sql, values):
            found.setdefault(index, []).append((sort_key, seq))
        for index, ranks in found.items():
            ranks.sort(reverse=True)
            heappush(self._lines, (ranks.pop(), lines[index], ranks))
        if behind == BEFORE_ALL:
            for index in range(len(lines)):
                if index not in found:  # all who are in it are held back, or have expired
                    turn.lines.pass_over(self.queue, self.lane, lines[index])


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
            rank, number, place = heap[0]
            head = place.head(self._left) if self._free[place.lane] > 0 else None
            if head is None:
                self.is_cut = self.is_cut or place.is_cut
                heappop(heap)
            elif head == rank:
                return True
            else:
                heapreplace(heap, (head, number, place))
        del self._heaps[group]
        return False
