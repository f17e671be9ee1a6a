"""What a job has of its own by its arguments: which gates it must pass, and whose it is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import msgspec

from betimes.core.codec import encode_json
from betimes.core.limits import key_under, value_name
from betimes.core.payload import Signature
from betimes.core.task import TaskDefinition
from betimes.errors import ConfigurationError

VALUES_KEPT = 10_000
"""For how many values of its only gate a task's traits keep the keys at hand."""

_LEAST, _MOST = -(2**63), 2**63


class Argument:
    """Reads one argument of a task's jobs off their payload, as text.

    Text is taken as it is, other values as JSON; an argument that was left out has the function's default.
    """

    __slots__ = ("_decode", "_default")

    def __init__(self, key: str, default: str) -> None:
        field: Any = msgspec.field(default=msgspec.UNSET, name=key)
        # A decoder for this field alone makes nothing of the others.
        one = msgspec.defstruct("One", [("value", Any, field)], gc=False)
        self._decode = msgspec.json.Decoder(one).decode
        self._default = default

    @classmethod
    def of(cls, fn: Callable[..., Any], signature: Signature, name: str) -> Argument | None:
        """Return who reads this argument; None: the function has none of this name."""
        key = signature.key_of(name)
        if key is None:
            return None
        default = inspect.signature(fn).parameters[name].default
        return cls(key, "" if default is inspect.Parameter.empty else _default_text(default))

    def read(self, payload: bytes) -> str:
        """Return the argument's value in a stored call."""
        value = self._decode(payload).value  # type: ignore[attr-defined]
        if type(value) is int and _LEAST < value < _MOST:
            return str(value)  # as `_text`, without its calls
        return self._default if value is msgspec.UNSET else _text(value)


def _default_text(value: object) -> str:
    try:
        return _text(msgspec.to_builtins(value))
    except (TypeError, ValueError):
        return ""


def _text(value: object) -> str:
    if isinstance(value, str):
        text = value
    else:
        text = str(value) if type(value) is int else encode_json(value).decode()
    return value_name(text)


class Traits:
    """The gates and the tenant of one task's jobs.

    Attributes:
        tenant: returns the name of the tenant of a job with these arguments; None: they do not say.

    Args:
        task: the task.
        tenants_by: the name of the argument that tells tenants apart; None: the strategy has no shares.

    Raises:
        ConfigurationError: a limit or rate is by an argument that the function does not have.
    """

    __slots__ = ("_alone", "_gates", "_kept", "_static", "tenant")

    def __init__(self, task: TaskDefinition, tenants_by: str | None = None) -> None:
        self._gates: list[tuple[str, Argument | None]] = []
        for terms in task.gates:
            argument = None if terms.by is None else Argument.of(task.fn, task.signature, terms.by)
            if terms.by is not None and argument is None:
                raise ConfigurationError(
                    f"the {terms.kind} {terms.name!r} is by {terms.by!r}, and {task.name} has no argument of "
                    "that name"
                )
            self._gates.append((terms.rule, argument))
        has_values = any(argument is not None for _, argument in self._gates)
        self._static = None if has_values else tuple(rule for rule, _ in self._gates)
        # Most tasks have one gate: jobs of equal values then share one tuple, of which a million can wait.
        self._alone = self._gates[0] if has_values and len(self._gates) == 1 else None
        self._kept: dict[str, tuple[str, ...]] = {}
        tenant = None if tenants_by is None else Argument.of(task.fn, task.signature, tenants_by)
        self.tenant: Callable[[bytes], str | None] = _nobody if tenant is None else tenant.read

    def gates(self, payload: bytes) -> tuple[str, ...]:
        """Return the keys of the gates that a job with these arguments must pass, in the task's order."""
        if self._static is not None:
            return self._static
        if self._alone is not None:
            return self._of_value(*self._alone, payload)
        return tuple(
            rule if argument is None else key_under(rule, argument.read(payload))
            for rule, argument in self._gates
        )

    def _of_value(self, rule: str, argument: Argument | None, payload: bytes) -> tuple[str, ...]:
        assert argument is not None
        text = argument.read(payload)
        keys = self._kept.get(text)
        if keys is None:
            if len(self._kept) >= VALUES_KEPT:
                self._kept.clear()
            keys = self._kept[text] = (key_under(rule, text),)
        return keys


def _nobody(payload: bytes) -> None:
    """Return the tenant of a job whose arguments do not say: nobody."""
    del payload
