"""From names to functions: a job's function is imported from its module, as any other program would."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder, SourceFileLoader, SourcelessFileLoader
from types import CodeType, ModuleType
from typing import Any

from betimes.core.payload import Signature
from betimes.errors import ConfigurationError
from betimes.runtime.context import Context
from betimes.tasks import Task

MAIN, MAIN_HERE = "__main__", "__mp_main__"
"""The script's module: its name where it is the program, and its name here, as in `multiprocessing`."""

Found = tuple[Callable[..., Any], Signature]


class Functions:
    """Finds the functions of calls, and remembers them with their signatures.

    Args:
        main_name: the name of the program's main module, if it was started by name (`python -m`).
        main_path: the file of the program's main module, if it has one.
    """

    def __init__(self, main_name: str | None, main_path: str | None) -> None:
        self._main_name = main_name
        self._main_path = main_path
        self._found: dict[tuple[str, str], Found] = {}

    def find(self, module: str, qualname: str) -> Found:
        """Return a function and its signature; imports its module when it is asked for first.

        Raises:
            ConfigurationError: there is no such function in the module.
            Exception: whatever the import of the module raises.
        """
        known = self._found.get((module, qualname))
        if known is None:
            fn = self._function(module, qualname)
            known = self._found[module, qualname] = fn, Signature(fn, Context)
        return known

    def _function(self, module: str, qualname: str) -> Callable[..., Any]:
        found: Any = self._main() if module == MAIN else importlib.import_module(module)
        for name in qualname.split("."):
            found = getattr(found, name, None)
        fn = found.fn if isinstance(found, Task) else found
        if not callable(fn):
            raise ConfigurationError(
                f"a process job's function is imported by its name, and module {module!r} has no function "
                f"{qualname!r}: define it at the top of that module, under its own name"
            )
        return fn

    def _main(self) -> ModuleType:
        """Import the program's main module; what it guards with its name does not run."""
        known = sys.modules.get(MAIN_HERE)
        if known is not None:
            return known
        module, code = self._main_code()
        before = sys.modules[MAIN]
        # Under both names: what it defines says `__mp_main__`, and what looks it up may say `__main__`.
        sys.modules[MAIN_HERE] = sys.modules[MAIN] = module
        try:
            exec(code, module.__dict__)  # noqa: S102 - it is the program itself
        except BaseException:
            del sys.modules[MAIN_HERE]
            sys.modules[MAIN] = before
            raise
        return module

    def _main_code(self) -> tuple[ModuleType, CodeType]:
        module = ModuleType(MAIN_HERE)
        code: CodeType | None = None
        spec = None if self._main_name is None else importlib.util.find_spec(self._main_name)
        if spec is not None and spec.loader is not None:
            module.__spec__, module.__file__, module.__package__ = spec, spec.origin, spec.parent
            code = spec.loader.get_code(spec.name)  # type: ignore[attr-defined]
        elif self._main_path is not None:
            module.__file__ = self._main_path
            code = _code_at(self._main_path)
        if code is None:
            raise ConfigurationError(
                "the program's main module has no file from which a process job could import it: define the "
                "function in a module of its own"
            )
        return module, code


def _code_at(path: str) -> CodeType | None:
    """Return the code of a file that Python runs: source, compiled, or within an archive (`zipapp`)."""
    folder = os.path.dirname(path)  # noqa: PTH120 - as `sys.path` has it
    if os.path.isfile(folder):  # noqa: PTH113
        spec = PathFinder.find_spec(MAIN, [folder])
        assert spec is not None, f"{folder} has a main program, since it was run"
        archived: CodeType | None = spec.loader.get_code(MAIN)  # type: ignore[union-attr]
        return archived
    loader = SourcelessFileLoader if path.endswith(".pyc") else SourceFileLoader
    return loader(MAIN_HERE, path).get_code(MAIN_HERE)
