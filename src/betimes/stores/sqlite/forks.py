"""Files that were open in a process when it forked: its child must not open them again.

SQLite keeps in memory, for each file, which locks its process holds. A forked child inherits that, but not
the locks. What the child then takes for locked is not: whoever closes next may delete the log that the child
writes to, and with it what the child has acknowledged; or the child finds the file locked for ever, if the
fork came within a transaction. SQLite offers no way to forget, so the file is refused there.
"""

from __future__ import annotations

import os
import sqlite3
import weakref
from pathlib import Path
from typing import Any

from betimes.errors import ConfigurationError

_open: weakref.WeakSet[OurConnection] = weakref.WeakSet()
_inherited: set[tuple[int, int]] = set()


class OurConnection(sqlite3.Connection):
    """A connection that is known to be open until it is closed.

    Attributes:
        file: the device and the number of its file; None: not known.
    """

    file: tuple[int, int] | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        _open.add(self)

    def close(self) -> None:
        """As any connection's; a child that is forked afterwards may open the file."""
        super().close()
        _open.discard(self)


def identity(path: Path) -> tuple[int, int] | None:
    """Return which file it is that lies at a path; None: there is none, or it cannot be seen."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def refuse_inherited(path: Path) -> None:
    """Refuse a file that the process which this one was forked from had open then.

    Raises:
        ConfigurationError: it had.
    """
    if identity(path) in _inherited:
        raise ConfigurationError(
            f"{path} was open when this process was forked, and SQLite's locks on it do not hold here: open "
            "it after the fork only, or start this process afresh (with multiprocessing, by 'spawn')"
        )


def _inherit() -> None:
    _inherited.update(connection.file for connection in _open if connection.file is not None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_inherit)
