"""A heap with static keys and lazy deletion: the queue structure of every store that sorts in memory.

The rules, and why:

1. *An entry never changes.* It is a plain tuple `(key, seq, item)`. A different key is a different entry:
   mark the old one stale and push a new one.
2. *What comes in order is not sorted again.* It is appended and later taken from the front, both in O(1),
   in one of two ways. *The run* takes an entry that goes behind all that is in it: equal keys, as with jobs
   of one priority, or ever later ones, as with ageing and delays. *A row* takes the entries of one key, as
   they come: where there are several priorities, or the tags of fair shares. Any other goes into a list for
   `heapq`. First is the smallest of three: the run's first, the list's, and that of the row with the
   smallest key. Small heaps have no rows, nor have those whose keys do not come again.
3. *Items are never compared.* `seq` is the item's number here, so a comparison ends there at the latest.
4. *Deleting is lazy.* `discard` only notes the number; the entry is dropped when it reaches the top or at the
   next rebuild, so each stale entry is popped at most once. Notes exist for stale entries only, so while
   nothing is cancelled a pop looks nothing up. (At 100,000 entries in random order, to note the stale ones
   kept 0.67 of the speed of bare `heapq`, a map of the live ones 0.51, asking a callable about each 0.42.)
5. *Garbage is bounded.* Always `size <= slack + 4 * live`. A rebuild costs O(size) and happens only when more
   than three quarters of the entries beyond the slack are stale: O(1) for each discarded entry, amortised.
6. *An item may come back* while a stale entry of it is still inside, as when a cancelled job is retried. Then
   the tuple's identity tells them apart: the one pushed last is noted, and all others of that number are
   stale. (Tuples compare one and the same item by its identity, so rule 3 holds.)
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from itertools import chain, filterfalse
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

STALE_FACTOR = 4
_LOOKED_AT = 63
"""A key is looked at, whether it deserves a row, where the length of the list has these bits: one in 64. So
small heaps have no rows, and what looking costs is spread over many entries."""
_MOST_ROWS = 256


class Ordered(Protocol):
    """A key: any totally ordered, hashable value, such as an int or a tuple of numbers."""

    def __lt__(self, other: Any, /) -> bool:
        """Say whether this key goes first."""

    def __le__(self, other: Any, /) -> bool:
        """Say whether this key does not go later."""


K = TypeVar("K", bound=Ordered)
T = TypeVar("T")
Entry: TypeAlias = tuple[K, int, T]


class _Rows(Generic[K, T]):
    """The entries of common keys: a row for each such key, in the order in which they came; none is empty.

    Attributes:
        by_key: the rows.
        first: the one with the smallest key.
        size: how many entries lie in them; whoever takes or adds one counts it.
    """

    # A mutable slots class, as the heap itself.
    __slots__ = ("_keys", "by_key", "first", "size")

    def __init__(self, entry: Entry[K, T]) -> None:
        self.first = deque((entry,))
        self.by_key = {entry[0]: self.first}
        self.size = 1
        self._keys = [entry[0]]  # sorted

    def begin(self, entry: Entry[K, T]) -> bool:
        """Begin a row with an entry; False: its key has one, or there are too many."""
        key = entry[0]
        if key in self.by_key or len(self._keys) >= _MOST_ROWS:
            return False
        self.by_key[key] = deque((entry,))
        self.size += 1
        insort(self._keys, key)
        self.first = self.by_key[self._keys[0]]
        return True

    def end(self) -> bool:
        """Forget the first row, from which all has been taken; False: it was the last one."""
        del self.by_key[self._keys.pop(0)]
        if self._keys:
            self.first = self.by_key[self._keys[0]]
        return bool(self._keys)

    def all(self) -> Iterator[Entry[K, T]]:
        """Iterate over the entries, row by row."""
        return chain.from_iterable(self.by_key.values())


class LazyHeap(Generic[K, T]):
    """Hands out the live entry with the smallest (key, seq); deletes in O(1), pushes and pops in O(log n).

    The caller knows which numbers are in the heap: a `seq` always means the same item, is pushed only while
    it has no live entry, and discarded only while its entry is inside. All costs are amortised.

    Attributes:
        dropped: how many stale entries have left the heap so far, each counted once.
        rebuilds: how often the list was rebuilt from its live entries.

    Example:
        >>> heap: LazyHeap[int, str] = LazyHeap()
        >>> for seq, (key, item) in enumerate([(20, "b"), (10, "a"), (10, "c")]):
        ...     heap.push(key, seq, item)
        >>> heap.discard(1)
        True
        >>> heap.pop(), heap.live
        ((10, 2, 'c'), 1)
    """

    # A mutable slots class, not a frozen value: it is on the path of every job.
    __slots__ = (
        "_again",
        "_entries",
        "_rows",
        "_run",
        "_seen",
        "_slack",
        "_stale",
        "_stale_size",
        "dropped",
        "rebuilds",
    )

    def __init__(self, *, slack: int = 64) -> None:
        """Start empty; `slack` is how many entries the heap may hold beyond four times the live ones."""
        self._entries: list[Entry[K, T]] = []
        self._run: deque[Entry[K, T]] = deque()
        self._rows: _Rows[K, T] | None = None
        self._seen: set[K] | None = None  # Keys that were looked at lately, a bounded number.
        self._stale: dict[int, int] = {}  # How many stale entries of a number are inside.
        self._stale_size = 0  # The sum of these.
        self._again: dict[int, Entry[K, T]] = {}  # The last entry of a number that has stale ones too.
        self._slack = slack
        self.dropped = 0
        self.rebuilds = 0

    @property
    def live(self) -> int:
        """How many entries can still be popped."""
        return self.size - self._stale_size

    @property
    def size(self) -> int:
        """How many entries it holds, stale ones included; at most `slack + 4 * live`."""
        rows = self._rows
        return len(self._run) + len(self._entries) + (0 if rows is None else rows.size)

    def push(self, key: K, seq: int, item: T) -> None:
        """Add an entry in O(log n); `seq`, the item's number, breaks ties and has no live entry here."""
        entry = (key, seq, item)
        if self._stale and seq in self._stale:
            self._again[seq] = entry
        run = self._run
        if not run or run[-1] < entry:
            run.append(entry)
            return
        rows, entries = self._rows, self._entries
        if rows is not None and (row := rows.by_key.get(key)) is not None and row[-1] < entry:
            row.append(entry)
            rows.size += 1
        elif len(entries) & _LOOKED_AT != _LOOKED_AT or not self._begin_row(entry):
            heappush(entries, entry)

    def discard(self, seq: int) -> bool:
        """Mark the entry `seq`, which is in the heap, as stale: it will never come out.

        Returns:
            True the first time, False if it was stale already.
        """
        stale = self._stale
        if seq not in stale:
            stale[seq] = 1
        elif self._again.pop(seq, None) is not None:
            stale[seq] += 1
        else:
            return False
        self._stale_size += 1
        self._rebuild_if_mostly_stale()
        return True

    def peek(self) -> Entry[K, T] | None:
        """The live entry with the smallest (key, seq), left in place; None when there is none."""
        first = self._first()
        while self._stale and first is not None and self._is_stale(first):
            self._take_first()
            self._drop(first[1])
            first = self._first()
        return first

    def pop(self) -> Entry[K, T] | None:
        """Take out the live entry with the smallest (key, seq); None when there is none."""
        if not self._stale:
            if self._rows is not None:
                return self._take_first()
            run, entries = self._run, self._entries  # as `_take_first`, without its call
            if run and (not entries or run[0] < entries[0]):
                return run.popleft()
            return heappop(entries) if entries else None
        self.peek()
        entry = self._take_first()
        self._rebuild_if_mostly_stale()
        return entry

    def pop_due(self, limit: K) -> Entry[K, T] | None:
        """Take out the first live entry if its key is at most `limit`; None when there is no such entry."""
        first = self.peek() if self._stale else self._first()
        if first is None or not first[0] <= limit:
            return None
        return self.pop() if self._stale else self._take_first()

    def pop_items(self, most: int) -> list[T]:
        """Take out the items of the first live entries, at most so many, in order."""
        run = self._run
        items: list[T] = []
        if not (self._stale or self._entries or self._rows):
            items = [run.popleft()[2] for _ in range(min(most, len(run)))]
        while len(items) < most and (entry := self.pop()) is not None:
            items.append(entry[2])
            if self._rows is not None and not self._stale:
                items += self._pop_row(most - len(items))
        return items

    def in_order(self) -> list[Entry[K, T]]:
        """A sorted copy of the live entries, for inspection: O(n log n), and the heap is left as it is."""
        rows: Iterable[Entry[K, T]] = () if self._rows is None else self._rows.all()
        return sorted(filterfalse(self._is_stale, chain(self._run, self._entries, rows)))

    def _first(self) -> Entry[K, T] | None:
        run, entries, rows = self._run, self._entries, self._rows
        first = entries[0] if entries else None
        if run and (first is None or run[0] < first):
            first = run[0]
        if rows is not None and (first is None or rows.first[0] < first):
            first = rows.first[0]
        return first

    def _take_first(self) -> Entry[K, T] | None:
        """Take out the first entry, stale or not: the one that `_first` shows."""
        run, entries, rows = self._run, self._entries, self._rows
        row = None if rows is None else rows.first
        if run and (not entries or run[0] < entries[0]):
            if row is None or not row[0] < run[0]:
                return run.popleft()
        elif entries and (row is None or not row[0] < entries[0]):
            return heappop(entries)
        if rows is None or row is None:
            return None
        entry = row.popleft()
        rows.size -= 1
        if not row and not rows.end():
            self._rows = None
        return entry

    def _begin_row(self, entry: Entry[K, T]) -> bool:
        """Begin a row with an entry whose key has come before; False: it has not, or has a row."""
        seen = self._seen
        if seen is None or len(seen) >= _MOST_ROWS:
            seen = self._seen = set()
        if entry[0] not in seen:
            seen.add(entry[0])
            return False
        if self._rows is not None:
            return self._rows.begin(entry)
        self._rows = _Rows(entry)
        return True

    def _pop_row(self, most: int) -> list[T]:
        """Take out the first row's items, at most so many, if all of it goes before what is elsewhere."""
        run, entries, rows = self._run, self._entries, self._rows
        assert rows is not None
        row = rows.first
        if (run and run[0] < row[-1]) or (entries and entries[0] < row[-1]):
            return []
        items = [row.popleft()[2] for _ in range(min(most, len(row)))]
        rows.size -= len(items)
        if not row and not rows.end():
            self._rows = None
        return items

    def _is_stale(self, entry: Entry[K, T]) -> bool:
        return entry[1] in self._stale and self._again.get(entry[1]) is not entry

    def _drop(self, seq: int) -> None:
        """Note that a stale entry of this number has left."""
        left = self._stale[seq] - 1
        if left:
            self._stale[seq] = left
        else:
            del self._stale[seq]
            self._again.pop(seq, None)
        self._stale_size -= 1
        self.dropped += 1

    def _rebuild_if_mostly_stale(self) -> None:
        """Keep the bound: rebuild the list from its live entries when it holds too many stale ones."""
        size = self.size
        if size <= self._slack + STALE_FACTOR * (size - self._stale_size):
            return
        rows: Iterable[Entry[K, T]] = () if self._rows is None else self._rows.all()
        self._entries[:] = filterfalse(self._is_stale, chain(self._entries, rows))
        heapify(self._entries)
        self._run = deque(filterfalse(self._is_stale, self._run))
        self._rows = None
        self.dropped += self._stale_size
        self.rebuilds += 1
        self._stale_size = 0
        self._stale.clear()
        self._again.clear()
