"""Which queue is dealt the next dispatch, where a worker serves several by shares.

Start-time fair queueing over queues (as `shares`, over tenants): a queue's pass moves on by its cost with
each dispatch, and the queue with the smallest pass goes next. A queue that was empty meanwhile gets no
credit for it. Within a queue the strategy's order holds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import lcm


class Dealer:
    """Deals dispatches to queues, one by one; made for one claim by `QueueShares.dealer`."""

    __slots__ = ("_costs", "_passes", "_virtual")

    def __init__(self, costs: Mapping[str, int], passes: Mapping[str, int], virtual: int) -> None:
        self._costs = costs
        self._passes = dict(passes)
        self._virtual = virtual

    def next(self, queues: Collection[str]) -> str:
        """Deal one dispatch to one of these queues: those that have a job that can be taken."""
        virtual, passes = self._virtual, self._passes
        queue = min(
            (name for name in self._costs if name in queues), key=lambda name: max(passes[name], virtual)
        )
        start = max(passes[queue], virtual)
        self._virtual = start
        passes[queue] = start + self._costs[queue]
        return queue


class QueueShares:
    """The shares of the queues that a worker serves, and how far each has been dealt (mutable: it deals).

    Args:
        shares: queue → its share, a whole number of at least 1, in the order that decides between equals.

    Example:
        >>> dealer = QueueShares({"default": 3, "low": 1}).dealer()
        >>> [dealer.next({"default", "low"}) for _ in range(4)]
        ['default', 'low', 'default', 'default']
    """

    __slots__ = ("_costs", "_passes", "_virtual")

    def __init__(self, shares: Mapping[str, int]) -> None:
        """Start with all queues even."""
        whole = lcm(*shares.values())
        self._costs = {queue: whole // share for queue, share in shares.items()}
        self._passes = dict.fromkeys(shares, 0)
        self._virtual = 0

    def dealer(self) -> Dealer:
        """Return who deals for one claim; what it deals counts only once it is `dealt`."""
        return Dealer(self._costs, self._passes, self._virtual)

    def dealt(self, queues: Iterable[str]) -> None:
        """Count the dispatches of one claim, each by its queue."""
        begun = self._virtual
        for queue in queues:
            start = max(self._passes[queue], begun)
            self._virtual = max(self._virtual, start)
            self._passes[queue] = start + self._costs[queue]
