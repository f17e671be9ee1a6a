"""How a child is started: as a fresh interpreter with the paths and flags of this one. Nothing is forked."""

from __future__ import annotations

import os
import subprocess
import sys
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
    # In ASCII: whatever stands in a path, a command line can carry it.
    code = (
        f"import sys; sys.path[:] = {_paths()!a}; "
        f"from betimes.process_child.program import main; main(**{settings!a})"
    )
    return Program(
        argv=[sys.executable, *_flags(), "-c", code],
        stdout=channel.child_stdout,
        stderr=channel.child_stderr,
        pass_fds=files,
    )


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
