"""Carrying out a call of a store that works inline, as one step."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def carried_out(call: Coroutine[Any, Any, T]) -> T:
    """Run a store's method that never has to wait."""
    try:
        call.send(None)
    except StopIteration as answer:
        value: T = answer.value
        return value
    call.close()
    raise AssertionError("a store that works inline has waited")
