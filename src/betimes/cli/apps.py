"""APP: a program's own scheduler, found by `module:name`, by a module alone, or by a file."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from betimes.errors import ConfigurationError
from betimes.scheduler import Scheduler

FORMS = "write module:name, a module, or a file such as jobs.py"


def load_app(app: str) -> Scheduler:
    """Import the program and return its scheduler; nothing is opened.

    A file is imported under its stem, with its folder at the head of `sys.path`, as when it is run as a
    script: so its tasks have the names that they have there. For a module, the working directory stands
    there.

    Args:
        app: `"shop.jobs:scheduler"`; without a name, the module must have one scheduler; `"jobs.py"` or
            `"jobs.py:scheduler"`.

    Raises:
        ConfigurationError: there is no such module, file or name, it raises when imported, or it is no
            scheduler; the text says which.
    """
    place, _, name = app.strip().partition(":")
    if "://" in app:  # which may hold a password, and so is not quoted
        raise ConfigurationError("APP names a program, and this is a URL: a store is named by --url")
    if not place:
        raise ConfigurationError(f"APP is {app!r}, which names no module: {FORMS}")
    module = _import_file(Path(place)) if _is_file(place) else _import_module(place, app)
    return _named(module, name, app) if name else _only_one(module, app)


def _is_file(place: str) -> bool:
    return place.endswith(".py") or "/" in place


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ConfigurationError(f"there is no file {path}")
    name = path.stem
    lead_with(str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"{path} is no Python file: {FORMS}")
    if name in sys.modules and getattr(sys.modules[name], "__file__", None) != str(path.resolve()):
        raise ConfigurationError(f"{path} has the name of the module {name!r}: give the file another name")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, Exception):
            raise
        raise ConfigurationError(_raised(str(path), error)) from error
    return module


def _import_module(place: str, app: str) -> ModuleType:
    lead_with(str(Path.cwd()))
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is not None and (place == error.name or place.startswith(f"{error.name}.")):
            raise ConfigurationError(
                f"there is no module {error.name!r} (APP is {app!r}): {FORMS}; modules are looked for in "
                f"{Path.cwd()} first"
            ) from None
        raise ConfigurationError(_raised(place, error)) from error
    except Exception as error:
        raise ConfigurationError(_raised(place, error)) from error


def _raised(what: str, error: Exception) -> str:
    """Say that a program could not be imported, and on which of its lines."""
    last = None if isinstance(error, SyntaxError) else error.__traceback__  # that one says it by itself
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    where = "" if last is None else f" ({last.tb_frame.f_code.co_filename}, line {last.tb_lineno})"
    return f"{what} cannot be imported: {type(error).__name__}: {error}{where}"


def lead_with(folder: str) -> None:
    """Have modules looked for in this folder before all others."""
    if folder not in sys.path:
        sys.path.insert(0, folder)


def _named(module: ModuleType, name: str, app: str) -> Scheduler:
    found: object = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise ConfigurationError(f"{module.__name__} has no {name!r} (APP is {app!r})") from None
    if not isinstance(found, Scheduler):
        raise ConfigurationError(f"{app} is a {type(found).__name__}, and not a Scheduler")
    return found


def _only_one(module: ModuleType, app: str) -> Scheduler:
    found = {id(value): name for name, value in vars(module).items() if isinstance(value, Scheduler)}
    if len(found) == 1:
        return _named(module, next(iter(found.values())), app)
    names = ", ".join(f"{app}:{name}" for name in found.values())
    raise ConfigurationError(
        f"{app} has several schedulers: write one of {names}" if found else f"{app} has no Scheduler: {FORMS}"
    )
