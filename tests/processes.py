"""What runs on this machine, as tests look at it: `/proc` where there is one, for `ps` is not everywhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class Seen(NamedTuple):
    """A process: its number, its parent's, its state (Z: dead, and waits to be asked for), its command."""

    pid: int
    parent: int
    state: str
    command: str


def processes() -> list[Seen]:
    """Every process but those that look."""
    if sys.platform != "linux":
        return _asked_of_ps()
    seen = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            _, _, fields = (folder / "stat").read_text("utf-8", "replace").rpartition(")")
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:  # it has ended meanwhile
            continue
        state, parent, *_ = fields.split()
        seen.append(Seen(int(folder.name), int(parent), state, command.strip()))
    return seen


def is_running(pid: int) -> bool:
    """Whether it is there and not dead."""
    return any(each.pid == pid and each.state[:1] != "Z" for each in processes())


def _asked_of_ps() -> list[Seen]:
    with subprocess.Popen(["ps", "-axo", "pid=,ppid=,stat=,args="], stdout=subprocess.PIPE, text=True) as ps:
        assert ps.stdout is not None
        rows = [line.split(None, 3) for line in ps.stdout]
    seen = [Seen(int(row[0]), int(row[1]), row[2], row[3].strip()) for row in rows if len(row) == 4]
    return [each for each in seen if each.pid != ps.pid]
