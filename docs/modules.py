"""Writes the map of the source: the layers, and in each its modules with their docstrings' first lines."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "betimes"


def layers() -> list[list[str]]:
    """Read the layers from the import rules, from top to bottom, without those that are not there yet."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    lines: list[str] = next(each for each in contracts if each["containers"] == ["betimes"])["layers"]
    named = [[name.strip(" ()") for name in line.split("|")] for line in lines]
    there = [[name for name in names if files_of(name)] for names in named]
    return [names for names in there if names]


def files_of(name: str) -> list[Path]:
    """Find the modules of a part of the package: one file, or all of a folder."""
    folder = SOURCE / name
    if folder.is_dir():
        return sorted(
            folder.rglob("*.py"), key=lambda path: (path.parent, path.name != "__init__.py", path.name)
        )
    return [path] if (path := folder.with_suffix(".py")).exists() else []


def promise_of(path: Path) -> str:
    """Read the first line of a module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text("utf-8")))
    assert text, f"{path} has no docstring"
    return text.splitlines()[0]


def module_lines() -> list[str]:
    """Write the layers with their modules."""
    lines: list[str] = []
    for names in layers():
        lines += [f"## {' · '.join(names)}", ""]
        for path in (path for name in names for path in files_of(name)):
            short = path.relative_to(SOURCE).as_posix()
            link = f"../../src/betimes/{short}"
            lines.append(f"- [`{short}`]({link}): {promise_of(path)}")
        lines.append("")
    return lines
