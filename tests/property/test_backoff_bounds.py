"""Back-off stays within its bounds for every policy, attempt and draw."""

from __future__ import annotations

import math
import random

from hypothesis import example, given
from hypothesis import strategies as st

from betimes.core.durations import MAX_DURATION_S
from betimes.core.retry import RetryPolicy

delays = st.floats(0, MAX_DURATION_S)
attempts = st.integers(1, 60) | st.integers(1, 10**6)


@given(delays, delays, attempts, st.randoms(use_true_random=False))
@example(1.0, 60.0, 10_000, random.Random(0))
@example(5e-324, MAX_DURATION_S, 1_100, random.Random(0))
def test_case_081_a_delay_is_finite_and_between_zero_and_its_cap(
    base: float, most: float, attempt: int, rng: random.Random
) -> None:
    cap = RetryPolicy(2, base, most, False).delay(attempt, None)
    assert math.isfinite(cap)
    assert 0 <= cap <= most
    assert 0 <= RetryPolicy(2, base, most).delay(attempt, rng) <= cap


@given(delays, delays, st.integers(1, 900))
def test_the_cap_is_the_documented_formula(base: float, most: float, attempt: int) -> None:
    assert RetryPolicy(2, base, most, False).delay(attempt, None) == min(most, base * 2 ** (attempt - 1))


@given(delays, delays, st.integers(1, 2_000))
def test_the_cap_never_shrinks_from_attempt_to_attempt(base: float, most: float, attempt: int) -> None:
    policy = RetryPolicy(2, base, most, False)
    assert policy.delay(attempt, None) <= policy.delay(attempt + 1, None)


@given(delays, delays, st.integers(1, 10**9), st.booleans())
def test_a_policys_numbers_survive_storage(
    base: float, most: float, most_attempts: int, jitter: bool
) -> None:
    policy = RetryPolicy(most_attempts, base, most, jitter)
    assert RetryPolicy.from_stored(policy.override_of(RetryPolicy(1)), RetryPolicy(1)) == policy
