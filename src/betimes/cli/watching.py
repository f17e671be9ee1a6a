"""Which files make up a program, and whether they have changed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

from betimes.cli.apps import lead_with

MOST_FILES = 10_000
"""More are not watched: looking at them would take longer than the time between two looks."""

_NOT_OURS = {"__pycache__", "node_modules", "site-packages"}

Stamps: TypeAlias = Mapping[Path, tuple[int, int]]
"""Each file's last change, in nanoseconds, and its size."""


def places_of(app: str) -> list[Path]:
    """Return where a program is imported from: a file's folder, or the working directory for a module.

    A package or module that is elsewhere stands there, too. Nothing of the program is imported.
    """
    place = app.strip().partition(":")[0]
    if place.endswith(".py") or "/" in place:
        return [Path(place).resolve().parent]
    places = [Path.cwd()]
    found = _place_of(place.partition(".")[0])
    if found is not None and not found.is_relative_to(places[0]):
        places.append(found)
    return places


def _place_of(module: str) -> Path | None:
    """Return the folder of a package at the top, or the file of a module."""
    lead_with(str(Path.cwd()))
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.has_location or spec.origin is None:
        return None
    return Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)


def stamps_of(places: Sequence[Path]) -> Stamps:
    """Return the present state of all Python files below these folders, and of files that are named."""
    found: dict[Path, tuple[int, int]] = {}
    for place in places:
        for path in [place] if place.is_file() else _files_below(place):
            if len(found) >= MOST_FILES:
                return found
            try:
                stat = path.stat()
            except OSError:  # just removed
                continue
            found[path] = stat.st_mtime_ns, stat.st_size
    return found


def _files_below(folder: Path) -> Iterator[Path]:
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if _is_ours(Path(where) / name))
        for name in sorted(names):
            if name.endswith(".py"):
                yield Path(where) / name


def _is_ours(folder: Path) -> bool:
    name = folder.name
    return not (name.startswith(".") or name in _NOT_OURS or (folder / "pyvenv.cfg").exists())


def changed(before: Stamps, now: Stamps) -> list[Path]:
    """Return the files that have come, gone, or changed."""
    return sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))
