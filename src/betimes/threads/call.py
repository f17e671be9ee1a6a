"""One call of a user's function: with a token or without, whatever it raises, and what is kept of that."""

from __future__ import annotations

import inspect
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from betimes.core.due_task import require_callable
from betimes.errors import ConfigurationError

_PACKED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_RESUMABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class CancelToken:
    """Tells a running function that it has been asked to stop; it is up to the function to look.

    Example:
        >>> token = CancelToken()
        >>> token.cancel()
        >>> token.cancelled, token.wait(timeout_s=60.0)
        (True, True)
    """

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = threading.Event()

    @property
    def cancelled(self) -> bool:
        """Whether somebody has asked the function to stop; once true, always true."""
        return self._event.is_set()

    def cancel(self) -> None:
        """Ask the function to stop."""
        self._event.set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Sleep until `cancelled`, at most `timeout_s` seconds; return `cancelled`."""
        return self._event.wait(timeout_s)


TaskFunction: TypeAlias = Callable[[], object] | Callable[[CancelToken], object]
"""What can be scheduled: it gets a token if its only parameter without a default is a positional one."""


class Call:
    """What the queue holds as the function: the user's own, and its token if it takes one."""

    __slots__ = ("_fn", "token")

    def __init__(self, fn: Callable[..., object]) -> None:
        self._fn = fn
        self.token = CancelToken() if _takes_token(fn) else None

    def __call__(self) -> None:
        """Call the function; a coroutine that it returns, which nobody would run, is an error."""
        result = self._fn() if self.token is None else self._fn(self.token)
        if inspect.iscoroutine(result):
            result.close()
            raise ConfigurationError(
                f"{self._fn!r} returned a coroutine, and no loop runs here: give it to a `Scheduler` instead."
            )


def error_of(call: Callable[..., object]) -> BaseException | None:
    """Make the call and return what it raised, SystemExit too: that may end a process, but not our thread."""
    try:
        call()
    except BaseException as error:  # noqa: BLE001 - it is recorded, and its thread goes on
        return error
    return None


def forget_variables(error: BaseException) -> None:
    """Drop the variables in the tracebacks of an error and of those behind it: they may be large.

    Frames of generators and coroutines are left alone: they may be suspended and go on elsewhere.
    """
    seen: set[int] = set()
    to_do: list[BaseException | None] = [error]
    while to_do:
        current = to_do.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        to_do += [current.__cause__, current.__context__]
        if isinstance(current, BaseExceptionGroup):
            to_do += current.exceptions
        for frame, _ in traceback.walk_tb(current.__traceback__):
            if not frame.f_code.co_flags & _RESUMABLE:
                with suppress(RuntimeError):  # It is still executing.
                    frame.clear()


def _takes_token(fn: Callable[..., object]) -> bool:
    """Whether to call `fn` with a token: it has one parameter without a default, and that is positional."""
    require_callable("fn", fn)
    if inspect.iscoroutinefunction(fn) or inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise ConfigurationError(
            f"fn must be a plain function, not {fn!r}: no loop runs here; give it to a `Scheduler` instead."
        )
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):  # Some built-in functions do not tell.
        return False
    required = [p for p in parameters if p.default is p.empty and p.kind not in _PACKED]
    if len(required) > 1 or any(p.kind is p.KEYWORD_ONLY for p in required):
        raise ConfigurationError(
            f"fn must take no argument, or a CancelToken alone, but {fn!r} needs "
            f"{', '.join(p.name for p in required)}: bind the others, with functools.partial for instance."
        )
    return bool(required)
