"""Settings from `[tool.betimes]` in the nearest pyproject.toml; flags and the environment go before them.

`app` and `url` hold for every command. A command's other options stand in a table of its own, each by its
name. What is unknown, or of the wrong kind, is refused: a setting that is read by nobody helps nobody.

    [tool.betimes]
    app = "shop.jobs:scheduler"

    [tool.betimes.worker]
    concurrency = 20
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

SHARED = ("app", "url")
"""The keys that hold for every command."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What stands in `[tool.betimes]`.

    Attributes:
        values: the table; empty where there is none.
        path: the file it stands in.
    """

    values: dict[str, Any] = field(default_factory=dict)
    path: Path = Path("pyproject.toml")


def read_settings(commands: Collection[str], folder: Path | None = None) -> Settings:
    """Return the settings of this folder, or of the nearest one above that has any.

    Args:
        commands: the names of the commands, each of which may have a table.
        folder: where to begin; None: the working directory.

    Raises:
        Failure: the file is not TOML, a key is unknown, or a value is of the wrong kind.
    """
    here = (folder or Path.cwd()).resolve()
    for each in (here, *here.parents):
        path = each / "pyproject.toml"
        if path.is_file():
            found = _table(path)
            if found is not None:
                _check_shared(found, commands, path)
                return Settings(found, path)
    return Settings()


def _table(path: Path) -> dict[str, Any] | None:
    import tomllib  # noqa: PLC0415 - only where there is a file

    try:
        tool = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _wrong(path, f"cannot be read: {error}") from error
    table = tool.get("betimes") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise _wrong(path, "tool.betimes is no table: write [tool.betimes]")
    return table


def _check_shared(table: dict[str, Any], commands: Collection[str], path: Path) -> None:
    for key, value in table.items():
        if key in SHARED:
            if not isinstance(value, str) or not value.strip():
                raise _wrong(path, f"{key} in [tool.betimes] is {value!r}; it is text")
        elif key not in commands:
            raise _unknown(path, "tool.betimes", key, [*SHARED, *commands])
        elif not isinstance(value, dict):
            raise _wrong(path, f"{key} in [tool.betimes] is no table: write [tool.betimes.{key}]")


def defaults_of(settings: Settings, command: click.Command, *names: str) -> dict[str, Any]:
    """Return what a command's own table says, by its parameters' names, after seeing that it fits.

    Args:
        settings: as read.
        command: the command.
        names: its name; of one within a group, the group's before.

    Raises:
        Failure: a key is unknown, and the text names the nearest; or a value does not fit its option.
    """
    table: Any = settings.values
    for name in names:
        table = table.get(name, {})
    return _defaults(settings.path, table, command, ".".join(("tool.betimes", *names)))


def _defaults(path: Path, table: dict[str, Any], command: click.Command, title: str) -> dict[str, Any]:
    within = dict(command.commands) if isinstance(command, click.Group) else {}
    known = _settable(command)
    found: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if key in within:
            if not isinstance(value, dict):
                raise _wrong(path, f"{key} in [{title}] is no table: write [{title}.{key}]")
            found[key] = _defaults(path, value, within[key], f"{title}.{key}")
        elif name in known:
            found[str(known[name].name)] = _checked(path, title, key, known[name], value)
        else:
            raise _unknown(path, title, key, [*within, *known])
    return found


def _settable(command: click.Command) -> dict[str, click.Parameter]:
    """Name what a command's table may give: its options, by their long names; what is shared stands above."""
    found: dict[str, click.Parameter] = {}
    for param in command.params:
        if isinstance(param, click.Option) and not param.hidden and param.name not in SHARED:
            longest = max((*param.opts, *param.secondary_opts), key=len)
            found[longest.lstrip("-").replace("-", "_")] = param
    return found


def _checked(path: Path, title: str, key: str, param: click.Parameter, value: Any) -> Any:
    def check(one: Any) -> Any:
        wanted = _kind(param)
        if type(one) not in wanted:
            words = " or ".join(_WORDS[kind] for kind in wanted)
            raise _wrong(path, f"{key} in [{title}] is {one!r}; it is {words}")
        try:
            param.type(one, param, click.Context(click.Command(title)))
        except click.BadParameter as error:
            raise _wrong(path, f"{key} in [{title}] is {one!r}: {error.message}") from error
        return one

    if param.multiple:
        return [check(one) for one in (value if isinstance(value, list) else [value])]
    return check(value)


_WORDS: dict[type, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def _kind(param: click.Parameter) -> tuple[type, ...]:
    """Say of what types a value may be, so that none is taken for what it is not."""
    if isinstance(param, click.Option) and param.is_flag:
        return (bool,)
    if isinstance(param.type, click.types.IntParamType):
        return (int,)
    if isinstance(param.type, click.types.FloatParamType):
        return (float, int)
    if isinstance(param.type, click.types.StringParamType | click.Choice | click.Path):
        return (str,)
    return (str, int, float)


def _unknown(path: Path, title: str, key: str, known: Iterable[str]) -> click.ClickException:
    from betimes.core.options import nearest  # noqa: PLC0415 - only then

    near = nearest(key.replace("-", "_"), known)
    advice = f"did you mean {near!r}?" if near else f"its keys are {', '.join(known)}"
    return _wrong(path, f"[{title}] has an unknown key {key!r}; {advice}")


def _wrong(path: Path, text: str) -> click.ClickException:
    from betimes.cli.exits import Exit, Failure  # noqa: PLC0415 - only then

    return Failure(f"{path}: {text}", Exit.SETTINGS)


def shared_setting(name: str) -> Callable[[], str | None]:
    """Return what finds the value that holds for every command, for an option's default.

    It stands before the command (`betimes --app jobs.py submit …`), in the environment, or in the settings,
    in this order. A file that the settings name counts from their folder, wherever the command is typed in.
    """

    def find() -> str | None:
        root = click.get_current_context().find_root()
        text: str | None = root.params.get(name) or os.environ.get(f"BETIMES_{name.upper()}")
        settings = root.obj
        if text or not isinstance(settings, Settings) or name not in settings.values:
            return text or None
        text, folder = str(settings.values[name]), settings.path.parent
        if folder == Path.cwd():
            return text
        return _store_from(folder, text) if name == "url" else _app_from(folder, text)

    return find


def _store_from(folder: Path, url: str) -> str:
    """Return a store's URL as it is meant in a folder: a relative file counts from there."""
    scheme = "sqlite:///" if url.startswith("sqlite:///") else ""
    path = url.removeprefix(scheme)
    return url if "://" in path or url == "memory:" else f"{scheme}{folder / path}"


def _app_from(folder: Path, app: str) -> str:
    """Return an application as it is meant in a folder: a relative file counts from there."""
    place, colon, name = app.partition(":")
    return f"{folder / place}{colon}{name}" if place.endswith(".py") or "/" in place else app
