"""A task's definition: the registered function with what its jobs take from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from betimes.core.job import JobSpec
from betimes.core.limits import GateTerms
from betimes.core.payload import Signature
from betimes.core.restraints import CircuitBreaker, RetryBudget
from betimes.core.retry import RetryPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDefinition:
    """What a worker needs to run a job of a task, and a submit to make one.

    Attributes:
        fn: the function itself.
        signature: checks and stores its calls and results.
        spec: what its jobs have in common unless they are submitted with other options.
        policy: its retry policy; one attempt where none was given.
        timeout_s: its timeout in seconds; None: none.
        takes_context: whether the worker fills in one of its parameters.
        expires_us: how long its jobs may wait for their first start; None: for ever.
        gates: the rules of its limits, rates and breaker, in the order in which a job waits at them.
        budget: what share of its starts may be retries; None: its policy alone decides.
        breaker: when its circuit opens; None: never.
        is_guarded: whether its attempts are to be counted, for the one or the other.
    """

    fn: Callable[..., Any]
    signature: Signature
    spec: JobSpec
    policy: RetryPolicy
    timeout_s: float | None = None
    expires_us: int | None = None
    gates: tuple[GateTerms, ...] = ()
    budget: RetryBudget | None = None
    breaker: CircuitBreaker | None = None
    takes_context: bool = field(init=False)
    is_guarded: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "takes_context", self.signature.context_parameter is not None)
        object.__setattr__(self, "is_guarded", self.budget is not None or self.breaker is not None)

    @property
    def name(self) -> str:
        """The registered name, stored with the jobs."""
        return self.spec.task

    def policy_of(self, spec: JobSpec) -> RetryPolicy:
        """Return the policy that holds for jobs of this spec: their own, or the task's."""
        return self.policy if spec.retry is None else RetryPolicy.from_stored(spec.retry, self.policy)

    def timeout_of(self, spec: JobSpec) -> float | None:
        """Return the timeout, in seconds, that holds for jobs of this spec; None: none."""
        if spec.timeout_s is None:
            return self.timeout_s
        return spec.timeout_s or None


Registry = Mapping[str, TaskDefinition]
"""The tasks a worker knows, by name."""
