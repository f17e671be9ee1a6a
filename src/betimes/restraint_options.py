"""What a task's options say of what holds it back: `limit`, `rate`, `retry_budget`, `breaker`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from betimes.core.limits import GateTerms
from betimes.core.restraints import CircuitBreaker, Limit, Rate, RetryBudget
from betimes.core.task import TaskDefinition
from betimes.core.wording import shown
from betimes.errors import ConfigurationError

T = TypeVar("T")

MOST_GATES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Restraints:
    """A task's restraints, checked.

    Attributes:
        gates: the rules of its limits, its rates and its breaker.
        budget, breaker: as given.
    """

    gates: tuple[GateTerms, ...]
    budget: RetryBudget | None
    breaker: CircuitBreaker | None

    @classmethod
    def of(cls, options: Mapping[str, Any], task: str) -> Restraints:
        """Read them off a decorator's options.

        Raises:
            ConfigurationError: one is of another kind, or named twice; the text names it.
        """
        limits = _several(options.get("limit"), Limit, "limit", 'Limit("payments", max_running=5)')
        rates = _several(options.get("rate"), Rate, "rate", 'Rate("10/s")')
        budget = _one(options.get("retry_budget"), RetryBudget, "retry_budget", "RetryBudget(ratio=0.1)")
        breaker = _one(options.get("breaker"), CircuitBreaker, "breaker", "CircuitBreaker(failures=5)")
        gates = [limit.terms for limit in limits] + [rate.terms(task) for rate in rates]
        if breaker is not None:
            gates.append(breaker.terms(task))
        names = [terms.rule for terms in gates]
        for terms in gates:
            if names.count(terms.rule) > 1:
                raise ConfigurationError(
                    f"{task} has two {terms.kind}s named {terms.name!r}: name one of them otherwise"
                )
        if len(gates) > MOST_GATES:
            raise ConfigurationError(
                f"{task} has {len(gates)} limits and rates; at most {MOST_GATES} are possible"
            )
        return cls(gates=tuple(gates), budget=budget, breaker=breaker)


def check_alike(new: TaskDefinition, known: Iterable[TaskDefinition]) -> None:
    """See that tasks that share a limit or a rate say the same of it.

    Raises:
        ConfigurationError: they do not.
    """
    standing = {terms.rule: (terms, task) for task in known for terms in task.gates}
    for terms in new.gates:
        other, task = standing.get(terms.rule, (terms, new))
        if other != terms:
            raise ConfigurationError(
                f"{new.name} and {task.name} share the {terms.kind} {terms.name!r}, and say different things "
                "of it: give both the same object, or one of them another name"
            )


def _several(given: object, kind: type[T], name: str, example: str) -> tuple[T, ...]:
    if given is None:
        return ()
    if isinstance(given, kind):
        return (given,)
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping):
        several = tuple(given)
        if all(isinstance(each, kind) for each in several):
            return several
    raise ConfigurationError(f"{name} is {shown(given)}; write {name}={example}, or a list of several")


def _one(given: object, kind: type[T], name: str, example: str) -> T | None:
    if given is None or isinstance(given, kind):
        return given
    raise ConfigurationError(f"{name} is {shown(given)}; write {name}={example}")
