"""What a function must be so that another process can find it: known by a name in a module."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from betimes.errors import ConfigurationError

_TOP = "define it with 'def' at the top of a module"


def check_for_process(fn: Callable[..., Any]) -> None:
    """See that a process can import the function by its module and name, and call it.

    Raises:
        ConfigurationError: it cannot; the text names the function, and says what to do.
    """
    inner = fn
    while isinstance(inner, partial):
        inner = inner.func
    if inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(getattr(inner, "__call__", None)):  # noqa: B004
        raise _refusal(
            inner,
            "is a coroutine function, which needs an event loop",
            "leave executor out, or make it a plain 'def'",
        )
    if isinstance(fn, partial):
        raise _refusal(
            fn,
            "is a partial, which has no name in a module",
            "define a function that makes the call, with 'def'",
        )
    if inspect.ismethod(fn):
        raise _refusal(
            fn,
            "is a bound method, and the object it is bound to stays in this process",
            f"{_TOP}, and pass what it needs",
        )
    module, qualname = getattr(fn, "__module__", None), getattr(fn, "__qualname__", None)
    if not (isinstance(module, str) and isinstance(qualname, str)):
        raise _refusal(fn, "is an object without a name in a module", f"{_TOP}, and have it call the object")
    if "<lambda>" in qualname:
        raise _refusal(fn, "is a lambda, which has no name", _TOP)
    if "<locals>" in qualname:
        raise _refusal(fn, "is defined inside another function, where no import finds it", _TOP)
    if module == "__main__" and not _main_has_file():
        raise _refusal(
            fn,
            "is defined in a session (a notebook, a prompt, 'python -c', a script from stdin) that has no "
            "file to import it from",
            "write it into a module, and import it",
        )


def _main_has_file() -> bool:
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return file is not None and not file.startswith("<")  # as in "<stdin>"


def _refusal(fn: object, why: str, remedy: str) -> ConfigurationError:
    return ConfigurationError(
        f"{fn!r} cannot run with executor='process', where another process imports it by its name: it {why}; "
        f"{remedy} (or use executor='thread')"
    )
