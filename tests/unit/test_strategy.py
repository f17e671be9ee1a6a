"""Sort keys: the documented facts of each strategy, at their exact instants."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from betimes.core.durations import instant_us
from betimes.core.priority import Priority
from betimes.core.sort_key import LARGEST_KEY, SMALLEST_KEY
from betimes.core.strategy import (
    AgingPriorityStrategy,
    EarliestDueStrategy,
    PriorityStrategy,
    SchedulingStrategy,
    Sortable,
    check_key,
)
from betimes.errors import ConfigurationError

SECOND = 1_000_000
NOW = instant_us(datetime(2026, 3, 1, tzinfo=UTC), name="now")


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    priority: int = Priority.MEDIUM
    run_at: int = NOW
    submitted_at: int = NOW


def test_priority_alone_decides() -> None:
    strategy = PriorityStrategy()
    ordered = sorted([Waiting(priority=p) for p in (0, 3, -1000, 1000, 1)], key=strategy.key)
    assert [job.priority for job in ordered] == [1000, 3, 1, 0, -1000]
    assert strategy.key(Waiting(submitted_at=0)) == strategy.key(Waiting())
    assert strategy.name == "priority"


def test_a_low_waiting_ten_seconds_equals_a_fresh_medium() -> None:
    key = AgingPriorityStrategy(age_rate=0.1).key
    low = Waiting(priority=Priority.LOW)
    for late, expected in ((-1, False), (0, None), (1, True)):
        arrived = NOW + 10 * SECOND + late
        medium = Waiting(priority=Priority.MEDIUM, submitted_at=arrived, run_at=arrived)
        if expected is None:
            assert key(low) == key(medium)
        else:
            assert (key(low) < key(medium)) is expected


def test_a_low_waiting_twenty_seconds_goes_before_a_fresh_high() -> None:
    key = AgingPriorityStrategy().key
    low = Waiting(priority=Priority.LOW)
    at_twenty = Waiting(priority=Priority.HIGH, submitted_at=NOW + 20 * SECOND)
    after = Waiting(priority=Priority.HIGH, submitted_at=NOW + 20 * SECOND + 1)
    assert key(low) == key(at_twenty)  # The low one has the smaller sequence.
    assert key(low) < key(after)
    assert key(low) > key(Waiting(priority=Priority.HIGH, submitted_at=NOW + 20 * SECOND - 1))


def test_ageing_counts_from_when_a_job_could_start() -> None:
    key = AgingPriorityStrategy().key
    late = NOW + 3_600 * SECOND
    assert (
        key(Waiting(run_at=late))
        == key(Waiting(submitted_at=late, run_at=late))
        == key(Waiting()) + 3_600 * SECOND
    )
    assert key(Waiting(submitted_at=late)) == key(Waiting(submitted_at=late, run_at=late))


@pytest.mark.parametrize("rate", [0.1, 1, 3, 0.7, 1e-6, 123.45678, 1_000])
def test_case_139_a_low_priority_has_a_bound_on_its_wait(rate: float) -> None:
    key = AgingPriorityStrategy(rate).key
    low = Waiting(priority=Priority.LOW)
    bound = NOW + math.floor((Priority.CRITICAL - Priority.LOW) * SECOND / rate)
    assert key(low) < key(Waiting(priority=Priority.CRITICAL, submitted_at=bound + 1))


def test_case_139_without_ageing_a_low_priority_waits_for_ever() -> None:
    key = PriorityStrategy().key
    assert key(Waiting(priority=Priority.LOW)) > key(
        Waiting(priority=Priority.HIGH, submitted_at=NOW + 10**15)
    )


@pytest.mark.parametrize(
    "rate", [0, -0.1, math.nan, math.inf, -math.inf, 1_000.1, 10**400, True, None, "0.1"]
)
def test_an_ageing_rate_is_a_positive_number(rate: float) -> None:
    with pytest.raises(ConfigurationError, match=r"^age_rate must be steps per second, more than 0"):
        AgingPriorityStrategy(rate)


def test_an_ageing_rate_whose_keys_leave_64_bits_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"^age_rate=1e-10 is too small"):
        AgingPriorityStrategy(1e-10)
    with pytest.raises(ConfigurationError, match="too small"):
        AgingPriorityStrategy(5e-324)
    key = AgingPriorityStrategy(1.2e-10).key
    last = instant_us(datetime.max.replace(tzinfo=UTC), name="last")
    assert check_key(key(Waiting(priority=-1000, run_at=last)), strategy="aging") <= LARGEST_KEY
    assert check_key(key(Waiting(priority=1000, run_at=0, submitted_at=0)), strategy="aging") >= SMALLEST_KEY


def test_names_tell_strategies_and_their_parameters_apart() -> None:
    assert AgingPriorityStrategy().name == "aging:0.1"
    assert AgingPriorityStrategy(1).name == AgingPriorityStrategy(1.0).name == "aging:1.0"
    assert EarliestDueStrategy().name == "earliest_due"
    assert repr(AgingPriorityStrategy(2.5)) == "<AgingPriorityStrategy aging:2.5>"


def test_a_strategy_without_a_name_has_that_of_its_class_and_not_of_its_parent() -> None:
    class Reversed(PriorityStrategy):
        def key(self, job: Sortable) -> int:
            return job.priority

    class ByAge(SchedulingStrategy):
        def key(self, job: Sortable) -> int:
            return job.submitted_at

    assert Reversed().name == f"{__name__}.{Reversed.__qualname__}"
    assert ByAge().name == f"{__name__}.{ByAge.__qualname__}"


def test_the_earliest_due_goes_first_and_then_the_highest_priority() -> None:
    jobs = [
        Waiting(run_at=NOW + 1, priority=1000),
        Waiting(run_at=NOW, priority=-1000),
        Waiting(run_at=NOW, priority=1000),
        Waiting(run_at=NOW - 1, priority=-1000),
    ]
    ordered = sorted(jobs, key=EarliestDueStrategy().key)
    assert [(job.run_at - NOW, job.priority) for job in ordered] == [
        (-1, -1000),
        (0, 1000),
        (0, -1000),
        (1, 1000),
    ]


def test_the_earliest_due_stays_within_64_bits_beyond_its_horizon() -> None:
    key = EarliestDueStrategy().key
    horizon = instant_us(datetime(2255, 6, 5, 23, 47, 34, 740_992, tzinfo=UTC), name="horizon")
    assert key(Waiting(run_at=horizon - 2, priority=-1000)) < key(Waiting(run_at=horizon - 1, priority=1000))
    assert (
        key(Waiting(run_at=horizon - 1)) == key(Waiting(run_at=horizon)) == key(Waiting(run_at=10 * horizon))
    )
    assert key(Waiting(run_at=-1)) == key(Waiting(run_at=0)) < key(Waiting(run_at=1))
    assert check_key(key(Waiting(run_at=0, priority=1000)), strategy="due") == SMALLEST_KEY
    assert check_key(key(Waiting(run_at=horizon, priority=-1000)), strategy="due") <= LARGEST_KEY


def test_a_strategy_of_ones_own() -> None:
    class OldestFirst(SchedulingStrategy):
        name = "oldest_first"

        def key(self, job: Sortable) -> int:
            return job.submitted_at

    assert check_key(OldestFirst().key(Waiting()), strategy="oldest_first") == NOW
    assert repr(OldestFirst()) == "<OldestFirst oldest_first>"


def test_a_strategy_must_have_a_key() -> None:
    with pytest.raises(TypeError, match="abstract"):
        SchedulingStrategy()  # type: ignore[abstract]


@pytest.mark.parametrize("key", [SMALLEST_KEY, -1, 0, LARGEST_KEY])
def test_keys_of_64_bits_pass(key: int) -> None:
    assert check_key(key, strategy="mine") == key


@pytest.mark.parametrize(
    "key", [SMALLEST_KEY - 1, LARGEST_KEY + 1, 1.0, True, None, "5", pytest.param(10**5_000, id="long")]
)
def test_other_keys_are_refused_with_the_strategys_name(key: object) -> None:
    with pytest.raises(ConfigurationError, match=r"^the strategy 'mine' gave the sort key .* signed 64-bit"):
        check_key(key, strategy="mine")
