"""Back-off, which errors are worth another attempt, and what of a policy can be stored."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest

from betimes.core.durations import MAX_DURATION_S
from betimes.core.retry import RetryPolicy
from betimes.errors import ConfigurationError, JobTimedOut, NonRetryableError, PayloadError


class Scripted:
    """Answers with a fixed share of what it is asked for, and remembers the question."""

    def __init__(self, share: float) -> None:
        self.share = share
        self.asked: list[tuple[float, float]] = []

    def uniform(self, a: float, b: float, /) -> float:
        self.asked.append((a, b))
        return a + (b - a) * self.share


def test_case_079_without_a_base_the_delays_double_from_one_second_up_to_the_cap() -> None:
    policy = RetryPolicy(10, jitter=False)
    assert [policy.delay(attempt, None) for attempt in range(1, 9)] == [1, 2, 4, 8, 16, 32, 60, 60]


def test_jitter_is_full() -> None:
    rng = Scripted(0.5)
    assert RetryPolicy(5, base_delay=2.0, max_delay=5.0).delay(2, rng) == 2.0
    assert RetryPolicy(5, base_delay=2.0, max_delay=5.0).delay(4, rng) == 2.5
    assert rng.asked == [(0, 4.0), (0, 5.0)]


def test_jitter_needs_its_rng() -> None:
    with pytest.raises(ConfigurationError, match="needs an rng"):
        RetryPolicy(3).delay(1, None)


@pytest.mark.parametrize("attempt", [1_025, 10_000, 10**30])
@pytest.mark.parametrize(("max_delay", "cap"), [(60.0, 60.0), ("1h", 3_600.0), (None, MAX_DURATION_S)])
def test_case_081_a_large_attempt_number_waits_for_the_cap(attempt: int, max_delay: Any, cap: float) -> None:
    assert RetryPolicy(2, max_delay=max_delay, jitter=False).delay(attempt, None) == cap
    assert RetryPolicy(2, max_delay=max_delay).delay(attempt, Scripted(1.0)) == cap


def test_zero_means_at_once() -> None:
    assert RetryPolicy(3, base_delay=0).delay(10_000, Scripted(1.0)) == 0
    assert RetryPolicy(3, max_delay=0, jitter=False).delay(1, None) == 0


@pytest.mark.parametrize("attempt", [0, -1])
def test_case_083_attempts_count_from_one(attempt: int) -> None:
    with pytest.raises(ConfigurationError, match=r"^attempts count from 1"):
        RetryPolicy(3).delay(attempt, Scripted(0.5))


def test_delays_are_durations() -> None:
    policy = RetryPolicy(3, "500ms", timedelta(minutes=2), False)
    assert policy == RetryPolicy(3, base_delay=0.5, max_delay=120.0, jitter=False)
    assert (policy.base_delay, policy.max_delay) == (0.5, 120.0)


@pytest.mark.parametrize("value", [0, -1, True, 1.0, "3", None])
def test_case_160_max_attempts_is_a_whole_number_of_at_least_one(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^max_attempts must be a whole number of at least 1"):
        RetryPolicy(value)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"base_delay": -1}, "base_delay"),
        ({"base_delay": "soon"}, "base_delay"),
        ({"base_delay": None}, "base_delay"),
        ({"max_delay": float("inf")}, "max_delay"),
        ({"max_delay": "200000d"}, "max_delay"),
        ({"jitter": 1}, "jitter"),
        ({"retry_on": ("ValueError",)}, "retry_on"),
        ({"retry_on": "ValueError"}, "retry_on"),
        ({"retry_on": int}, "retry_on"),
        ({"retry_on": 5}, "retry_on"),
        ({"never": (ValueError())}, "never"),
        ({"never": (KeyError, int)}, "never"),
    ],
)
def test_a_wrong_argument_is_named(options: dict[str, Any], name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{name}"):
        RetryPolicy(3, **options)


def test_errors_and_timeouts_are_retried_until_the_last_attempt() -> None:
    policy = RetryPolicy(3)
    for error in (ValueError(), TimeoutError(), ConnectionError(), JobTimedOut("late")):
        assert [policy.should_retry(error, attempt) for attempt in (1, 2, 3, 4)] == [True, True, False, False]


def test_one_attempt_is_never_retried() -> None:
    assert not RetryPolicy(1).should_retry(ValueError(), 1)


def test_what_would_fail_again_is_not_retried() -> None:
    class BadInput(NonRetryableError):
        pass

    policy = RetryPolicy(5, retry_on=(BaseException,))
    for error in (NonRetryableError("no"), BadInput("no"), PayloadError("no")):
        assert not policy.should_retry(error, 1)


def test_only_exceptions_are_retried_unless_more_is_asked_for() -> None:
    assert not RetryPolicy(5).should_retry(KeyboardInterrupt(), 1)
    assert not RetryPolicy(5).should_retry(asyncio.CancelledError(), 1)
    assert RetryPolicy(5, retry_on=(BaseException,)).should_retry(KeyboardInterrupt(), 1)


def test_retry_on_and_never_choose_by_class_and_never_wins() -> None:
    policy = RetryPolicy(5, retry_on=OSError, never=[ConnectionRefusedError])
    assert policy.should_retry(ConnectionError(), 1)
    assert not policy.should_retry(ValueError(), 1)
    assert not policy.should_retry(ConnectionRefusedError(), 1)
    assert policy.should_retry(JobTimedOut("late"), 1), "a timeout is retried whatever retry_on says"
    assert not RetryPolicy(5, never=(JobTimedOut,)).should_retry(JobTimedOut("late"), 1)


def test_case_087_an_error_with_odd_contents_is_judged_by_its_class_alone() -> None:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

        def __reduce__(self) -> str:
            raise RuntimeError("no pickle")

    raised = Unprintable(object())
    assert RetryPolicy(2).should_retry(raised, 1)
    assert not RetryPolicy(2, never=Unprintable).should_retry(raised, 1)


def test_the_retry_option_is_a_number_a_policy_or_nothing() -> None:
    policy = RetryPolicy(4, retry_on=OSError)
    assert RetryPolicy.of(policy) is policy
    assert RetryPolicy.of(5) == RetryPolicy(max_attempts=5)
    assert RetryPolicy.of(None) == RetryPolicy(max_attempts=1)


def test_a_bare_number_keeps_the_rest_of_the_tasks_policy() -> None:
    task_policy = RetryPolicy(3, base_delay=7, retry_on=OSError, never=ConnectionRefusedError)
    override = RetryPolicy.of(9, like=task_policy)
    assert override == RetryPolicy(9, base_delay=7, retry_on=OSError, never=ConnectionRefusedError)
    assert RetryPolicy.of(None, like=task_policy) is task_policy


@pytest.mark.parametrize("value", [True, False, 1.5, "3", [3]])
def test_anything_else_is_no_retry_option(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^retry must be a number of attempts or a RetryPolicy"):
        RetryPolicy.of(value)


def test_case_160_zero_attempts_are_refused_in_short_too() -> None:
    with pytest.raises(ConfigurationError, match=r"^retry must be a whole number of at least 1"):
        RetryPolicy.of(0)


def test_an_override_comes_back_from_json_with_the_tasks_classes() -> None:
    task_policy = RetryPolicy(3, retry_on=(OSError, KeyError), never=ConnectionRefusedError)
    override = RetryPolicy(
        8, "250ms", "5m", False, (KeyError, OSError), never=(ConnectionRefusedError,)
    )  # fmt: skip
    stored = json.loads(json.dumps(override.override_of(task_policy)))
    assert stored == {"max_attempts": 8, "base_delay": 0.25, "max_delay": 300.0, "jitter": False}
    restored = RetryPolicy.from_stored(stored, task_policy)
    assert restored.to_stored() == override.to_stored()
    assert (restored.retry_on, restored.never) == ((OSError, KeyError), (ConnectionRefusedError,))


def test_an_override_that_would_lose_its_classes_is_refused() -> None:
    task_policy = RetryPolicy(3, retry_on=OSError)
    with pytest.raises(ConfigurationError, match=r"cannot change retry_on .* pass retry_on=\(OSError,\)"):
        RetryPolicy(5).override_of(task_policy)
    with pytest.raises(ConfigurationError, match=r"cannot change never .* pass never=\(\)"):
        RetryPolicy(5, retry_on=OSError, never=(KeyError, TypeError)).override_of(task_policy)
    assert RetryPolicy.of(5, like=task_policy).override_of(task_policy)["max_attempts"] == 5


@pytest.mark.parametrize(
    ("stored", "reason"),
    [
        ({}, "max_attempts"),
        ({"max_attempts": 3, "base_delay": 1.0, "max_delay": 60.0}, "jitter"),
        (
            {
                "max_attempts": 3,
                "base_delay": 1.0,
                "max_delay": 60.0,
                "jitter": True,
                "retry_on": "os.system",
            },
            "retry_on",
        ),
        ({"max_attempts": 0, "base_delay": 1.0, "max_delay": 60.0, "jitter": True}, "max_attempts"),
        ({"max_attempts": 3, "base_delay": -1.0, "max_delay": 60.0, "jitter": True}, "base_delay"),
    ],
)
def test_a_damaged_stored_policy_is_refused(stored: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        RetryPolicy.from_stored(stored, RetryPolicy(1))


def test_a_policy_is_a_value() -> None:
    policy = RetryPolicy(3)
    assert policy == RetryPolicy(3)
    assert hash(policy) == hash(RetryPolicy(3))
    with pytest.raises(AttributeError):
        policy.max_attempts = 5  # type: ignore[misc]


def test_every_value_may_be_given_by_position() -> None:
    policy = RetryPolicy(4, 2.0, 30.0, False, (OSError,), (TimeoutError,))
    assert (policy.max_attempts, policy.base_delay, policy.max_delay, policy.jitter) == (4, 2.0, 30.0, False)
    assert (policy.retry_on, policy.never) == ((OSError,), (TimeoutError,))
