"""Start-time fair queueing: the bound of its paper, for any weights, arrivals and windows."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import accumulate, pairwise

from hypothesis import given
from hypothesis import strategies as st

from betimes.core.job import Job, JobSpec, Tenant
from betimes.core.queue_shares import QueueShares
from betimes.core.shares import COST, UNTAGGED, Shares

FINE = 1 << 10  # the part of a tag for which a sort key has no room
weights = st.lists(st.floats(0.01, 100), min_size=2, max_size=4)


class Queue:
    """Jobs of tenants that become ready and are claimed, all in one line."""

    def __init__(self, costs: list[int]) -> None:
        self.shares = Shares()
        self.tenants = [Tenant(str(place), cost) for place, cost in enumerate(costs)]
        self.heap: list[tuple[int, int, int]] = []
        self.jobs: list[Job] = []

    def arrive(self, place: int, *, priority: int = 1) -> None:
        job = Job("x", JobSpec(task="t", priority=priority), sort_key=UNTAGGED)
        job.tenant = self.tenants[place]
        self.shares.tag([job])
        heappush(self.heap, (job.sort_key, len(self.jobs), place))
        self.jobs.append(job)

    def claim(self) -> int:
        _, seq, place = heappop(self.heap)
        self.shares.claimed([self.jobs[seq]])
        return place

    def waiting(self, place: int) -> int:
        return sum(entry[2] == place for entry in self.heap)


@given(weights, st.lists(st.integers(0, 1), max_size=30))
def test_over_any_busy_window_shares_are_within_one_job_of_their_weights(
    given_weights: list[float], before: list[int]
) -> None:
    costs = [round(COST / weight) for weight in given_weights]
    queue = Queue(costs)
    for place in before:  # some were busy while the others were not
        queue.arrive(place)
    while queue.heap:
        queue.claim()
    for place in range(len(costs)):
        for _ in range(60):
            queue.arrive(place)
    got: list[int] = []
    while all(queue.waiting(place) for place in range(len(costs))):
        got.append(queue.claim())
    for one in range(len(costs)):
        for other in range(one):
            apart = widest(got, {one: costs[one], other: -costs[other]})
            assert apart <= costs[one] + costs[other] + 2 * FINE


def widest(got: list[int], worth: dict[int, int]) -> int:
    """The largest sum, of either sign, over any window."""
    sums = list(accumulate((worth.get(place, 0) for place in got), initial=0))
    return max(sums) - min(sums)


@given(st.lists(st.integers(0, 3), max_size=80), st.integers(1, 4))
def test_a_flood_delays_nobody_by_more_than_a_round(course: list[int], claims_between: int) -> None:
    queue = Queue([COST] * 5)
    for place in course:
        queue.arrive(place)
    for _ in range(min(claims_between, len(queue.heap))):
        queue.claim()
    queue.arrive(4)
    ahead = 0
    while queue.claim() != 4:
        ahead += 1
    assert ahead <= 2 * 4, "what has its turn in this round, and what was in it already"


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=120))
def test_tags_of_a_tenant_grow_and_none_lies_before_the_virtual_time(course: list[tuple[int, bool]]) -> None:
    queue = Queue([COST, COST // 3, COST * 2])
    last: dict[int, int] = {}
    for place, claims in course:
        if claims and queue.heap:
            before = queue.shares.virtual
            queue.claim()
            assert queue.shares.virtual >= before
            continue
        queue.arrive(place)
        key = queue.jobs[-1].sort_key
        assert key > last.get(place, -(2**63))
        last[place] = key


@given(st.dictionaries(st.sampled_from("abcd"), st.integers(1, 12), min_size=2), st.lists(st.integers(1, 9)))
def test_queues_are_dealt_their_shares_within_one_dispatch_whatever_is_claimed_at_once(
    shares: dict[str, int], sizes: list[int]
) -> None:
    subject = QueueShares(shares)
    together: list[str] = []
    for size in sizes:
        dealer = subject.dealer()
        claimed = [dealer.next(shares) for _ in range(size)]
        subject.dealt(claimed)
        together += claimed
    alone = QueueShares(shares)
    for queue in together:
        assert alone.dealer().next(shares) == queue
        alone.dealt([queue])
    for one, other in pairwise(shares):
        apart = abs(together.count(one) / shares[one] - together.count(other) / shares[other])
        assert apart <= 1 / shares[one] + 1 / shares[other] + 1e-9
