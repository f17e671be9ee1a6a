"""What one process counts of a task's attempts: the retry budget's share, and what trips a breaker."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.lives import NOW, SECOND

from betimes.core.guard import SLICES, Guard, Sliding
from betimes.core.restraints import CircuitBreaker, RetryBudget

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


def budgeted(ratio: float, window: str = "1m") -> Guard:
    return Guard(RetryBudget(ratio, window), None)


def breaking(failures: int, window: str = "1m") -> Guard:
    return Guard(None, CircuitBreaker(failures=failures, window=window))


def starts(guard: Guard, number: int, *, at: int = NOW) -> None:
    for _ in range(number):
        guard.started(at)


def retries(guard: Guard, number: int, *, at: int = NOW) -> int:
    """How many of so many wanted retries are let through."""
    return sum(guard.may_retry(at) for _ in range(number))


# counting


def test_what_lies_within_the_window_is_counted_and_nothing_older() -> None:
    counts = Sliding(MINUTE)
    for second in range(0, 120, 10):
        counts.add(NOW + second * SECOND)
        assert counts.total(NOW + second * SECOND) == min(second // 10 + 1, 6)
    assert counts.total(NOW + 300 * SECOND) == 0


@given(
    st.lists(st.integers(0, 3 * SLICES), max_size=40).map(sorted),
    st.integers(SLICES, 100 * SLICES),
    st.integers(0, 3 * SLICES),
)
def test_a_total_is_right_to_within_one_slice(when: list[int], window: int, later: int) -> None:
    counts, slice_us = Sliding(window), -(-window // SLICES)
    for instant in when:
        counts.add(NOW + instant)
    now = (when[-1] if when else 0) + later
    total = counts.total(NOW + now)
    ages = [now - instant for instant in when]
    assert sum(age < window - slice_us for age in ages) <= total
    assert total <= sum(age < SLICES * slice_us for age in ages)


def test_counts_can_be_forgotten() -> None:
    counts = Sliding(MINUTE)
    counts.add(NOW)
    counts.clear()
    assert counts.total(NOW) == 0
    counts.add(NOW)
    assert counts.total(NOW) == 1


@pytest.mark.parametrize("window", [1, 59, 60, 61])
def test_the_shortest_windows_count_too(window: int) -> None:
    counts = Sliding(window)
    counts.add(NOW)
    assert counts.total(NOW) == 1
    assert counts.total(NOW + 2 * SLICES) == 0


@pytest.mark.parametrize("back", [SECOND, 30 * SECOND, MINUTE, HOUR, 30 * 365 * 24 * HOUR])
def test_a_clock_that_is_set_back_ages_nothing_and_lengthens_no_window(back: int) -> None:
    counts = Sliding(MINUTE)
    counts.add(NOW)
    counts.add(NOW + 10 * SECOND)
    then = NOW + 10 * SECOND - back
    assert counts.total(then) == 2
    counts.add(then)
    assert counts.total(then + 20 * SECOND) == 3
    assert counts.total(then + 55 * SECOND) == 2  # the first of them is older than a minute
    assert counts.total(then + 61 * SECOND) == 0


@pytest.mark.parametrize("ahead", [MINUTE, HOUR, 30 * 365 * 24 * HOUR])
def test_a_clock_that_is_set_forward_forgets(ahead: int) -> None:
    counts = Sliding(MINUTE)
    counts.add(NOW)
    assert counts.total(NOW + ahead) == 0
    counts.add(NOW + ahead)
    assert counts.total(NOW + ahead) == 1


# the retry budget


def test_without_a_budget_every_retry_is_let_through() -> None:
    guard = Guard(None, None)
    guard.started(NOW)
    assert retries(guard, 1000) == 1000
    assert guard.denied == 0


def test_a_budget_lets_its_share_of_the_starts_through() -> None:
    guard = budgeted(0.1)
    starts(guard, 1000)
    assert retries(guard, 1000) == 100
    assert guard.denied == 900


def test_one_retry_a_window_is_always_there() -> None:
    guard = budgeted(0.1)
    starts(guard, 1)
    assert retries(guard, 3) == 1
    assert retries(guard, 3, at=NOW + 2 * MINUTE) == 1
    assert retries(budgeted(0.001), 3) == 1


@given(st.integers(1, 1000).map(lambda n: n / 1000), st.integers(0, 500))
def test_the_share_is_exact_as_it_was_written(ratio: float, number: int) -> None:
    guard = budgeted(ratio)
    starts(guard, number)
    share = Fraction(repr(ratio)) * number
    assert retries(guard, number + 2) == max(1, share.__floor__())


def test_a_share_that_floats_get_wrong_is_right() -> None:
    guard = budgeted(0.29)
    starts(guard, 100)
    assert 0.29 * 100 < 29
    assert retries(guard, 100) == 29


def test_a_retry_s_own_start_counts_as_a_start() -> None:
    guard = budgeted(0.5)
    starts(guard, 2)
    assert guard.may_retry(NOW)
    starts(guard, 1)
    assert not guard.may_retry(NOW)
    starts(guard, 1)
    assert guard.may_retry(NOW)


def test_the_budget_slides() -> None:
    guard = budgeted(0.1)
    for second in range(600):
        now = NOW + second * SECOND
        starts(guard, 10, at=now)
        retries(guard, 10, at=now)
    assert guard.denied == 6000 - 600, "one for each ten starts, in the long run"


def test_over_any_time_retries_stay_within_their_share() -> None:
    guard = budgeted(0.2)
    passed: list[int] = []
    for tenth in range(3000):
        now = NOW + tenth * SECOND // 10
        guard.started(now)
        passed += [tenth] if guard.may_retry(now) else []
    for begin in range(0, 2400, 60):
        within = [tenth for tenth in passed if begin <= tenth < begin + 590]
        assert len(within) <= 0.2 * 600


def test_a_refused_retry_uses_nothing_up() -> None:
    guard = budgeted(0.5)
    starts(guard, 4)
    assert retries(guard, 10) == 2
    starts(guard, 2)
    assert retries(guard, 10) == 1


# the breaker


def failed(guard: Guard, at: int) -> bool:
    """Whether a failure trips it of an attempt that was claimed just then."""
    return guard.failed(at, at)


def outcomes(guard: Guard, instants: Iterable[int]) -> list[bool]:
    return [failed(guard, NOW + each * SECOND) for each in instants]


def test_without_a_breaker_nothing_opens() -> None:
    assert not any(outcomes(Guard(None, None), range(100)))


def test_so_many_failures_within_the_window_open_the_circuit() -> None:
    assert outcomes(breaking(3), [0, 10, 20]) == [False, False, True]
    assert outcomes(breaking(1), [0, 1]) == [True, True]


def test_failures_that_lie_too_far_apart_do_not() -> None:
    assert not any(outcomes(breaking(3), range(0, 600, 31)))


def test_what_has_opened_it_is_not_counted_twice() -> None:
    assert outcomes(breaking(3), [0, 1, 2, 3, 4, 5]) == [False, False, True, False, False, True]


def test_a_clock_set_back_by_an_hour_does_not_gather_an_hour_of_failures() -> None:
    guard = breaking(3)
    assert not failed(guard, NOW)
    back = [failed(guard, NOW - HOUR + minutes * 2 * MINUTE) for minutes in range(30)]
    assert not any(back)


def test_what_was_claimed_before_a_trip_does_not_trip_again() -> None:
    guard = breaking(3)
    assert [guard.failed(NOW + 5 * SECOND, NOW) for _ in range(20)].count(True) == 1
    assert not guard.failed(NOW + 6 * SECOND, NOW + 5 * SECOND), "nor what was claimed at its very instant"
    assert outcomes(guard, [7, 8, 9]) == [False, False, True]


def test_after_a_trip_a_clock_set_back_keeps_no_failure_from_being_counted() -> None:
    guard = breaking(2)
    assert outcomes(guard, [0, 1]) == [False, True]
    assert outcomes(guard, [-3600, -3599, -3598]) == [False, False, True]
