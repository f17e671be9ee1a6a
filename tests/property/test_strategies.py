"""Static keys order jobs as the strategies say, for all priorities, instants and rates."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from hypothesis import assume, example, given
from hypothesis import strategies as st

from betimes.core.strategy import AgingPriorityStrategy, EarliestDueStrategy, PriorityStrategy, check_key

LAST = 253_402_300_799_999_999  # the last microsecond of the year 9999
HORIZON = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    priority: int
    run_at: int
    submitted_at: int

    @property
    def waits_from(self) -> int:
        return max(self.run_at, self.submitted_at)


instants = st.integers(0, LAST)
jobs = st.builds(Waiting, priority=st.integers(-1000, 1000), run_at=instants, submitted_at=instants)
rates = st.sampled_from([0.1, 1.0, 0.5, 3.0, 1e-6, 1e3]) | st.floats(1.2e-10, 1e3)


@given(rates, jobs, st.integers(-1000, 1000), st.integers(1, 10**9))
@example(0.1, Waiting(priority=0, run_at=0, submitted_at=0), 3, 1)
@example(3.0, Waiting(priority=-1, run_at=0, submitted_at=0), 0, 1)
def test_nothing_after_the_bound_passes_a_waiting_job(
    rate: float, job: Waiting, highest: int, later: int
) -> None:
    assume(highest >= job.priority)
    key = AgingPriorityStrategy(rate).key
    bound = job.waits_from + (highest - job.priority) * 1_000_000 / Fraction(repr(rate))
    after = int(bound) + later
    assert after > bound
    assert key(job) < key(Waiting(priority=highest, run_at=after, submitted_at=0))
    assert key(job) < key(Waiting(priority=highest, run_at=0, submitted_at=after))


@given(rates, jobs, jobs, st.integers(0, 10**18))
def test_ageing_orders_by_effective_priority_at_any_later_time(
    rate: float, one: Waiting, other: Waiting, wait: int
) -> None:
    exact = Fraction(repr(rate)) / 1_000_000
    now = max(one.waits_from, other.waits_from) + wait

    def effective(job: Waiting) -> Fraction:
        return job.priority + exact * (now - job.waits_from)

    # Steps are whole microseconds: for each of them between two priorities, one microsecond is undecided.
    steps = abs(one.priority - other.priority)
    key = AgingPriorityStrategy(rate).key
    if effective(one) - effective(other) > exact * steps:
        assert key(one) < key(other)


@given(st.sampled_from([0.001, 0.1, 0.2, 0.25, 1.0, 2.0, 8.0, 1_000.0]), jobs, jobs)
def test_where_a_step_is_whole_microseconds_ageing_is_exact(
    rate: float, one: Waiting, other: Waiting
) -> None:
    key = AgingPriorityStrategy(rate).key
    lead_us = (one.priority - other.priority) / Fraction(repr(rate)) * 1_000_000
    assert key(one) - key(other) == one.waits_from - other.waits_from - lead_us


@given(rates, jobs)
def test_every_key_fits_into_64_bits(rate: float, job: Waiting) -> None:
    for strategy in (PriorityStrategy(), AgingPriorityStrategy(rate), EarliestDueStrategy()):
        assert check_key(strategy.key(job), strategy=strategy.name) == strategy.key(job)


@given(jobs, jobs)
def test_the_earliest_due_orders_by_run_at_then_priority(one: Waiting, other: Waiting) -> None:
    assume(one.run_at < HORIZON and other.run_at < HORIZON)
    key = EarliestDueStrategy().key
    assert (key(one) < key(other)) == ((one.run_at, -one.priority) < (other.run_at, -other.priority))


@given(jobs, jobs)
def test_priority_orders_by_priority_alone(one: Waiting, other: Waiting) -> None:
    key = PriorityStrategy().key
    assert (key(one) < key(other)) == (one.priority > other.priority)
