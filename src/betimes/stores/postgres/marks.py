"""Marks: where the claims of a moment ago have come to, so that the next need not look from the beginning.

What was claimed leaves an entry in the index, which is taken away when nobody can see it any more. While a
transaction elsewhere stays open for minutes, hundreds of thousands gather before the first job that is left,
and each claim would walk over all of them. So when a look from the beginning takes long because of such
entries, and only then, the next claims go on from where the last one has ended; for at most some ten times as
long as that look took, since what has come in before the mark meanwhile has to wait for so long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from betimes.core.sort_key import SMALLEST_KEY
from betimes.stores.relational.statements import Row

SLOW_S = 0.01
"""A look that takes longer is counted the next time."""
MANY_ENTRIES = 5_000
"""So many entries passed over are worth a mark."""
HOLDS_FOR_TIMES = 10
LONGEST_S = 1.0

Place: TypeAlias = tuple[str, str]
Rank: TypeAlias = tuple[int, int]
BEFORE_ALL: Rank = (SMALLEST_KEY, -1)


class Marks:
    """What one session knows of its claims. Mutable; it belongs to the session's thread.

    Args:
        monotonic: seconds on a clock that never jumps.

    Attributes:
        is_to_count: whether the next look from the beginning is to count the entries that it passes over.
        queues: those that had jobs when there was last a look from the beginning; None: not known.
    """

    __slots__ = ("_began", "_hold_until", "_marks", "_monotonic", "is_to_count", "queues")

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._marks: dict[Place, Rank] = {}
        self._hold_until = 0.0
        self._began = 0.0
        self.is_to_count = False
        self.queues: list[str] | None = None

    @property
    def hold(self) -> bool:
        """Whether claims may begin at the marks."""
        return bool(self._marks) and self._monotonic() < self._hold_until

    def rank(self, place: Place) -> Rank:
        """Return behind which place in the order to begin."""
        return self._marks.get(place, BEFORE_ALL)

    def forget(self) -> None:
        """Look from the beginning the next time."""
        self._marks = {}

    def begin(self) -> None:
        """Note that a look from the beginning begins."""
        self._began = self._monotonic()

    def end(self, rows: Sequence[Row], passed: int | None) -> None:
        """Note what a look from the beginning has found; `passed` entries, if they were counted."""
        took_s = self._monotonic() - self._began
        self._marks = {}
        if passed is None:
            self.is_to_count = took_s > SLOW_S
        elif passed < MANY_ENTRIES:
            self.is_to_count = False
        else:
            self._hold_until = self._monotonic() + min(HOLDS_FOR_TIMES * took_s, LONGEST_S)
            self.move(rows)

    def move(self, rows: Sequence[Row]) -> None:
        """Note what was claimed: whoever stood before it in its queue and lane is taken, or has to wait."""
        for row in rows:
            place = row[3], row[4]
            self._marks[place] = max(self.rank(place), (row[10], row[0]))
