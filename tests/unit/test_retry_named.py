"""Retries of errors of another process, of which only the classes' names are here."""

from __future__ import annotations

import pytest

from betimes.core.retry import RetryPolicy, class_name
from betimes.errors import JobTimedOut, NonRetryableError, PayloadError

ERRORS: list[type[BaseException]] = [
    ValueError, KeyError, LookupError, NonRetryableError, PayloadError, JobTimedOut, KeyboardInterrupt,
]  # fmt: skip
POLICIES = [
    RetryPolicy(max_attempts=2),
    RetryPolicy(max_attempts=2, retry_on=(LookupError,)),
    RetryPolicy(max_attempts=2, never=(LookupError,)),
    RetryPolicy(max_attempts=2, retry_on=(ValueError,), never=(Exception,)),
]


@pytest.mark.parametrize("attempt", [1, 2])
@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_names_say_the_same_as_the_error_itself(
    policy: RetryPolicy, kind: type[BaseException], attempt: int
) -> None:
    error = kind.__new__(kind)
    names = tuple(class_name(each) for each in kind.__mro__)
    assert policy.should_retry_named(names, attempt) == policy.should_retry(error, attempt)
