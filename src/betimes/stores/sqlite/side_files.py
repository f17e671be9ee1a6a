"""Files of ours beside the database: whoever may write to the database must be able to write to them.

So a side file gets the database's owner, group and permissions, as SQLite does it with its log. Otherwise an
administrator who looks at a store once would leave files that lock its own workers out.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def open_side_file(path: Path, *, database: Path) -> int:
    """Open a side file for reading and writing, made if it is not there; return its descriptor.

    Raises:
        OSError: it cannot be made or opened, or the database is not there.
    """
    like = database.stat()
    mode = like.st_mode & 0o666
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    except FileExistsError:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
    with suppress(OSError):  # a group that this user is not in
        os.fchown(file, like.st_uid if os.geteuid() == 0 else -1, like.st_gid)
    with suppress(OSError):
        os.fchmod(file, mode)  # what the process's umask has taken away
    return file
