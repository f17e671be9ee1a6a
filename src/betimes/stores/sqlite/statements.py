"""The SQL: one statement a file, under `stores/sql/sqlite`, read once."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable


def _folder() -> Traversable:
    return files("betimes.stores") / "sql" / "sqlite"


@cache
def statement(name: str) -> str:
    """Return the statement of this name, without the comment that says what it is for.

    A module asks for its statements when it is imported, so that a missing file shows at once.
    """
    text = (_folder() / f"{name}.sql").read_text("utf-8")
    return "\n".join(line for line in text.splitlines() if not line.startswith("--"))


def migrations() -> list[tuple[int, str]]:
    """Return the steps from an empty file to today's schema, each with the version it leads to."""
    steps = [
        (int(entry.name.partition("_")[0]), entry.read_text("utf-8"))
        for entry in (_folder() / "migrations").iterdir()
        if entry.name.endswith(".sql")
    ]
    return sorted(steps)
