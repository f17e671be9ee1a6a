"""What must hold of the shares of tenants and of queues: while several have work, each gets its own.

Over such a window the starts of two of them, each divided by its weight, differ by no more than one job of
each (P. Goyal, H. Vin, H. Cheng, "Start-time Fair Queuing", SIGCOMM 1996, theorem 1). A window ends where one
has nothing that could start; whoever was passed over for a reason of its own takes part again once all that
waited then has gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from tests.simulation.lives import Life
from tests.simulation.tally import Met, Tally

from betimes.core.queue_shares import QueueShares

LONG = 8
"""From so many starts on a window says something."""
SLACK = 1e-6


@dataclass(slots=True)
class Window:
    """The starts of two parties while both have work.

    Attributes:
        starts: of each, divided by its weight.
        number: how many there were.
    """

    starts: dict[str, float] = field(default_factory=dict)
    number: int = 0


class Windows:
    """The windows of all pairs of parties.

    Args:
        weights: of the parties; 1 for those not named.
        fail: called with each share that is wrong.
    """

    def __init__(self, weights: Mapping[str, float], fail: Callable[[str], None]) -> None:
        self._weights = weights
        self._fail = fail
        self._windows: dict[tuple[str, str], Window] = {}

    def _weight(self, party: str) -> float:
        return self._weights.get(party, 1.0)

    def step(self, busy: set[str], starts: Mapping[str, int]) -> int:
        """Follow some starts, at which these had work all the while; return the longest window's length."""
        pairs = set(combinations(sorted(busy), 2))
        self._windows = {pair: self._windows.get(pair) or Window() for pair in sorted(pairs)}
        for pair, window in self._windows.items():
            for party in pair:
                window.starts[party] = window.starts.get(party, 0.0) + starts.get(party, 0) / self._weight(
                    party
                )
                window.number += starts.get(party, 0)
            self._check(pair, window)
        return max((window.number for window in self._windows.values()), default=0)

    def _check(self, pair: tuple[str, str], window: Window) -> None:
        one, other = pair
        gap = abs(window.starts[one] - window.starts[other])
        if gap > 1 / self._weight(one) + 1 / self._weight(other) + SLACK:
            self._fail(
                f"of {window.number} starts while both had work, {one!r} had {window.starts[one]:.2f} and "
                f"{other!r} {window.starts[other]:.2f} of their shares"
            )

    def end(self, party: str) -> None:
        """End the windows of one."""
        self._windows = {pair: window for pair, window in self._windows.items() if party not in pair}

    def end_all(self) -> None:
        """End all windows."""
        self._windows.clear()


class Tenants:
    """Follows the shares of tenants, over all workers."""

    def __init__(self, weights: Mapping[str, float], tally: Tally, fail: Callable[[str], None]) -> None:
        self._windows = Windows(weights, fail)
        self._tally = tally
        self._passed_over: dict[str, set[int]] = {}
        self._gaps: dict[str, int] = {}
        self._reached = -(1 << 63)

    def start(self, claimed: Life, waiting: list[Life], may_go: Callable[[Life], bool]) -> None:
        """A job is claimed.

        Args:
            claimed: the job.
            waiting: all that are READY, it included, in order.
            may_go: says whether one of them could have been claimed instead.
        """
        heads: dict[str, Life] = {}
        for life in waiting:
            heads.setdefault(life.tenant or "", life)
        self._forgive({life.seq for life in waiting})
        for tenant, head in heads.items():
            if not may_go(head):
                self.passed_over(tenant, waiting)
        busy = set(heads) - set(self._passed_over) - set(self._gaps)
        # What has started before keeps the place that it had then, and takes no new one.
        is_first = not claimed.is_claimed and not claimed.has_old_place
        self._reached = max(self._reached, claimed.sort_key)
        length = self._windows.step(busy, {claimed.tenant or "": 1} if is_first else {})
        self._tally[Met.SHARED_BY_TENANTS] += length >= LONG

    def passed_over(self, tenant: str, waiting: list[Life]) -> None:
        """A tenant's first job could not go: until its work of now is done, it is not judged."""
        self._passed_over.setdefault(tenant, set()).update(
            life.seq for life in waiting if (life.tenant or "") == tenant
        )
        self._windows.end(tenant)

    def gone(self, life: Life, waiting: list[Life]) -> None:
        """A waiting job went away, for which its tenant has paid: it is not judged before that is past."""
        tenant = life.tenant or ""
        self._gaps[tenant] = max(life.sort_key, self._gaps.get(tenant, life.sort_key))
        self.passed_over(tenant, waiting)

    def _forgive(self, waiting: set[int]) -> None:
        self._gaps = {tenant: key for tenant, key in self._gaps.items() if key > self._reached}
        self._passed_over = {
            tenant: left for tenant, seqs in self._passed_over.items() if (left := seqs & waiting)
        }


class Queues:
    """Follows the shares of queues, each worker's by itself."""

    def __init__(self, shares: Mapping[str, int], tally: Tally, fail: Callable[[str], None]) -> None:
        self._shares = shares
        self._tally = tally
        self._fail = fail
        # Kept by who deals: a worker's own shares, which no other has.
        self._windows: dict[int, tuple[QueueShares, Windows]] = {}

    def _of(self, dealer: QueueShares) -> Windows:
        weights = {queue: float(share) for queue, share in self._shares.items()}
        return self._windows.setdefault(id(dealer), (dealer, Windows(weights, self._fail)))[1]

    def start(self, dealer: QueueShares, busy: set[str], starts: Mapping[str, int]) -> None:
        """Some jobs are claimed, while these queues had work all the while."""
        length = self._of(dealer).step(busy, starts)
        self._tally[Met.SHARED_BY_QUEUES] += length >= LONG

    def lost(self, dealer: QueueShares) -> None:
        """Nobody heard of a claim, so it does not count as dealt."""
        self._of(dealer).end_all()
