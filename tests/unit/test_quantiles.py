"""Quantiles in bounded memory: close to the truth, whatever was recorded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.core.quantiles import Histogram, Quantiles


def recorded(*durations: float) -> Histogram:
    histogram = Histogram()
    for duration in durations:
        histogram.record(duration)
    return histogram


def test_nothing_recorded_is_all_zero() -> None:
    assert Histogram().summary() == Quantiles()


def test_small_numbers_are_exact() -> None:
    summary = recorded(*range(1, 11)).summary()
    assert (summary.count, summary.mean, summary.p50, summary.p90) == (10, 5.5e-6, 5e-6, 9e-6)
    assert (summary.p99, summary.max) == (10e-6, 10e-6)


def test_a_clock_that_went_back_counts_as_nothing() -> None:
    summary = recorded(-5, -0.5, 0).summary()
    assert (summary.count, summary.mean, summary.max) == (3, 0.0, 0.0)


def test_durations_beyond_all_buckets_are_kept_in_the_last() -> None:
    summary = recorded(2.0**80, 1).summary()
    assert (summary.count, summary.max, summary.p50) == (2, 2.0**80 / 1e6, 1e-6)
    assert summary.p99 <= summary.max


def test_a_summary_goes_on_from_the_one_before() -> None:
    histogram = recorded(1, 2)
    assert histogram.summary().count == 2
    histogram.record(3)
    assert histogram.summary().count == 3
    assert histogram.summary().max == 3e-6


def test_folding_waits_until_enough_has_gathered() -> None:
    histogram = recorded(1, 2, 3)
    histogram.fold(if_more_than=3)
    assert histogram.count == 0
    histogram.fold(if_more_than=2)
    assert histogram.count == 3


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=200))
def test_quantiles_are_right_to_within_an_eighth(durations: list[int]) -> None:
    summary = recorded(*durations).summary()
    ordered = sorted(durations)
    assert summary.count == len(durations)
    assert summary.mean == pytest.approx(sum(durations) / len(durations) / 1e6)
    assert summary.max == ordered[-1] / 1e6
    for share, found in ((0.5, summary.p50), (0.9, summary.p90), (0.99, summary.p99)):
        wanted = share * len(durations)
        exact = next(value for rank, value in enumerate(ordered, start=1) if rank >= wanted)
        assert exact <= round(found * 1e6) <= exact * 1.125 + 1
