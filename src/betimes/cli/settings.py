"""Settings from `[tool.betimes]` in the nearest pyproject.toml; flags and the environment go before them.

`app` and `url` hold for every command. A command's other options stand in a table of its own, each by its
name with `_` for `-`:

    [tool.betimes]
    app = "shop.jobs:scheduler"

    [tool.betimes.worker]
    concurrency = 20
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


def read_settings(folder: Path | None = None) -> dict[str, Any]:
    """Return the settings of this folder, or of the nearest one above that has any.

    Raises:
        click.UsageError: the file is not TOML, or the table is none.
    """
    here = (folder or Path.cwd()).resolve()
    for each in (here, *here.parents):
        path = each / "pyproject.toml"
        if path.is_file():
            found = _table(path)
            if found is not None:
                return found
    return {}


def _table(path: Path) -> dict[str, Any] | None:
    import tomllib  # noqa: PLC0415 - only where there is a file

    try:
        tool = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise click.UsageError(f"{path} cannot be read: {error}") from error
    table = tool.get("betimes") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise click.UsageError(f"{path}: [tool.betimes] is a table")
    return table


def shared_setting(name: str) -> Callable[[], Any]:
    """Return what finds the value of a key that holds for every command, for an option's default."""

    def find() -> Any:
        settings = click.get_current_context().find_root().obj
        return settings.get(name) if isinstance(settings, dict) else None

    return find
