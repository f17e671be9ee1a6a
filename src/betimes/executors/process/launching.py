"""How a child is started: as a fresh interpreter with the paths and flags of this one. Nothing is forked."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from betimes.core.recycle import Recycle
from betimes.executors.process.channel import Channel
from betimes.executors.spawned import Program


def program_of(channel: Channel, token: str, recycle: Recycle) -> Program:
    """Return the program of a child at the other end of a channel.

    Args:
        channel: its ends for the child are the program's from now on.
        token: what begins the marks in its output.
        recycle: when it is replaced.

    Raises:
        OSError: there are too many open files, or this process's directory is gone.
    """
    files = (
        channel.child_requests,
        channel.child_tickets,
        channel.child_answers,
        channel.child_lifeline,
        channel.child_page,
    )
    settings: dict[str, Any] = {
        "files": files,
        "token": token,
        "argv": [str(each) for each in sys.argv],
        "memory_limit": recycle.memory,
        **_main_module(),
    }
    code = _file_of(
        f"import sys; sys.path[:] = {_paths()!a}; "
        f"from betimes.process_child.program import main; main(**{settings!a})"
    )
    start = f"import os; file = os.fdopen({code}, encoding='ascii'); it = file.read(); file.close(); exec(it)"
    return Program(
        argv=[sys.executable, *_flags(), "-c", start, "betimes-child"],  # so that `ps` says what it is
        stdout=channel.child_stdout,
        stderr=channel.child_stderr,
        pass_fds=(*files, code),
    )


def _file_of(code: str) -> int:
    """Return the descriptor of a file without a name that has this code, in ASCII, for a child to run.

    One argument of a command line takes 128 KiB at most on Linux, and this program's arguments may be longer;
    nor does everybody who lists processes need to see a child's settings.
    """
    if sys.platform == "linux":
        fd = os.memfd_create("betimes", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    try:
        with os.fdopen(fd, "wb", closefd=False) as file:
            file.write(code.encode("ascii"))
        os.lseek(fd, 0, os.SEEK_SET)
    except OSError:
        os.close(fd)
        raise
    return fd


def _paths() -> list[str]:
    """Return what is searched for modules; an empty entry is the directory at this moment."""
    return [each or str(Path.cwd()) for each in sys.path if isinstance(each, str)]


def _flags() -> list[str]:
    """Return the interpreter's options (`-O`, `-X dev`, …), as `multiprocessing` hands them on."""
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001
    return flags


def _main_module() -> dict[str, str | None]:
    """Say how the program's main module can be imported: by its name (`python -m`), or from its file."""
    main = sys.modules.get("__main__")
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    name = None if spec is None or spec.name == "__main__" else spec.name  # a directory or an archive
    return {"main_name": name, "main_path": None if file is None else os.path.abspath(file)}  # noqa: PTH100
