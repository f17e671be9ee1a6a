"""Quantiles of durations in bounded memory: counts in buckets whose width grows with the value."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import accumulate, islice

_SUB_BITS = 3
_SUB = 1 << _SUB_BITS
_BUCKETS = 64 * _SUB


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """A summary of durations, in seconds. Quantiles are right to within an eighth of their value.

    Attributes:
        count: how many were recorded.
        mean: their mean; 0.0 if there are none.
        p50, p90, p99: the values that 50, 90 and 99 % of them do not exceed.
        max: the largest.
    """

    count: int = 0
    mean: float = 0.0
    p50: float = 0.0
    p90: float = 0.0
    p99: float = 0.0
    max: float = 0.0


class Histogram:
    """Records durations in microseconds, in constant memory.

    Mutable, and recording is a bare `list.append`, because it is on the path of every job: `fold` sorts what
    has gathered into the buckets, and is to be called now and then.
    """

    __slots__ = ("_counts", "_max", "_sum", "_waiting", "count", "record")

    def __init__(self) -> None:
        """Start empty."""
        self._counts = [0] * _BUCKETS
        self._sum = 0.0
        self._max = 0.0
        self.count = 0
        self._waiting: list[float] = []
        self.record = self._waiting.append
        """Count one duration, in microseconds; a negative one counts as 0."""

    def fold(self, *, if_more_than: int = 0) -> None:
        """Count what has gathered, if it is more than so many."""
        if len(self._waiting) <= if_more_than:
            return
        waiting, counts = self._waiting, self._counts
        waiting.sort()
        # What lies below zero, after a clock went back, counts as zero.
        self._sum += sum(islice(waiting, bisect_left(waiting, 0), None))
        self._max = max(self._max, waiting[-1])
        self.count += len(waiting)
        done, index = 0, 0
        while done < len(waiting):
            # The bucket of the first one left, and all that fall into it: one look for many.
            index = min(bisect_right(_ENDS, waiting[done], index), _BUCKETS - 1)
            end = len(waiting) if index == _BUCKETS - 1 else bisect_left(waiting, _ENDS[index], done)
            counts[index] += end - done
            done = end
        waiting.clear()

    def summary(self) -> Quantiles:
        """Summarise what was recorded so far."""
        self.fold()
        if not self.count:
            return Quantiles()
        return Quantiles(
            count=self.count,
            mean=self._sum / self.count / 1e6,
            p50=self._at(0.50),
            p90=self._at(0.90),
            p99=self._at(0.99),
            max=self._max / 1e6,
        )

    def _at(self, share: float) -> float:
        index = bisect_left(list(accumulate(self._counts)), share * self.count)
        return min(_upper(index), self._max) / 1e6


def _upper(index: int) -> int:
    """Return the largest duration that falls into a bucket."""
    if index < 2 * _SUB:
        return index
    shift = index // _SUB - 1
    return ((index % _SUB + _SUB + 1) << shift) - 1


_ENDS = [_upper(index) + 1 for index in range(_BUCKETS)]
"""The first duration beyond each bucket."""
