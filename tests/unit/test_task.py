"""A task's definition: what its jobs take from it, and what they may have of their own."""

from __future__ import annotations

from betimes.core.job import JobSpec
from betimes.core.payload import Signature
from betimes.core.retry import RetryPolicy
from betimes.core.task import TaskDefinition


class Context:
    """Marks the parameter that the worker fills in."""


def plain(number: int) -> int:
    return number


def with_context(context: Context, number: int) -> int:
    return number


def definition(fn: object = plain, timeout_s: float | None = 30.0) -> TaskDefinition:
    assert callable(fn)
    return TaskDefinition(
        fn=fn,
        signature=Signature(fn, Context),
        spec=JobSpec(task="work"),
        policy=RetryPolicy(3, retry_on=(OSError,)),
        timeout_s=timeout_s,
    )


def test_it_is_known_by_its_specs_name_and_knows_whether_it_takes_a_context() -> None:
    assert definition().name == "work"
    assert not definition().takes_context
    assert definition(with_context).takes_context


def test_a_jobs_own_policy_takes_the_tasks_classes() -> None:
    task = definition()
    assert task.policy_of(JobSpec(task="work")) is task.policy
    stored = RetryPolicy(7, base_delay=2, retry_on=(OSError,)).override_of(task.policy)
    own = task.policy_of(JobSpec(task="work", retry=dict(stored)))
    assert (own.max_attempts, own.base_delay, own.retry_on) == (7, 2.0, (OSError,))


def test_a_jobs_own_timeout_may_also_be_none_at_all() -> None:
    task = definition()
    assert task.timeout_of(JobSpec(task="work")) == 30.0
    assert task.timeout_of(JobSpec(task="work", timeout_s=5.0)) == 5.0
    assert task.timeout_of(JobSpec(task="work", timeout_s=0.0)) is None
    assert definition(timeout_s=None).timeout_of(JobSpec(task="work")) is None
