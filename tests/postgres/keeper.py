"""Keeps one PostgreSQL server, for as long as somebody holds the other end of its standard input.

A process of its own, in a session of its own: however a test run ends, also by SIGKILL, the system closes the
pipe, and the keeper stops the server and removes its folder. The server is its child, so that one that was
killed is buried at once, and not taken for one that runs.

A line that it reads is an order, as a list: `["run", program, …]`, `["start", program, …]` (returns when
clients are let in), `["stop", signal]`, `["pid"]` (its own). The answer is a line with an exit code, or the
number asked for, and what was said. An empty list ends the server too: then a fork of the test run may go on
holding the pipe.

It is a script, and knows nothing of the tests: usage: keeper.py '{"folder": …, "uid": …, "gid": …}'
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

PATIENCE_S = 40.0
STEP_S = 0.02


class Keeper:
    """A folder, its server, and whom the server runs as."""

    def __init__(self, folder: Path, uid: int | None, gid: int | None) -> None:
        self.folder = folder
        self.server: subprocess.Popen[bytes] | None = None
        self.account: dict[str, Any] = {}
        if uid is not None:
            self.account = {"user": uid, "group": gid, "extra_groups": []}

    def carry_out(self, order: list[str]) -> tuple[int, str]:
        act, *args = order
        acts: dict[str, Callable[..., tuple[int, str]]]
        acts = {"run": self.run, "start": self.start, "stop": self.stop, "pid": lambda: (os.getpid(), "")}
        return acts[act](*args)

    def run(self, *command: str) -> tuple[int, str]:
        with self._popen(command, subprocess.PIPE) as process:
            said, _ = process.communicate()
        return process.returncode, said.decode(errors="replace")

    def start(self, *command: str) -> tuple[int, str]:
        with (self.folder / "log").open("ab") as log:
            self.server = self._popen(command, log)
        for _ in range(round(PATIENCE_S / STEP_S)):
            if self.server.poll() is not None:
                return self.server.returncode or 1, "it has ended"
            if self._is_ready(self.server.pid):
                return 0, ""
            threading.Event().wait(STEP_S)
        return 1, f"it does not let clients in after {PATIENCE_S} s"

    def stop(self, name: str) -> tuple[int, str]:
        if self.server is not None:
            self.server.send_signal(signal.Signals[name])
            self.server.wait(PATIENCE_S)
        return 0, ""

    def end(self) -> None:
        """Stop the server, whatever it does, and remove the folder."""
        try:
            self.stop("SIGQUIT")
        except subprocess.TimeoutExpired:
            self.stop("SIGKILL")
        shutil.rmtree(self.folder, ignore_errors=True)

    def bury(self, *_: object) -> None:
        if self.server is not None:
            self.server.poll()

    def _is_ready(self, pid: int) -> bool:
        """Whether the server has written so into its file."""
        path = self.folder / "data" / "postmaster.pid"
        lines = path.read_text().split("\n") if path.exists() else []
        return lines[0:1] == [str(pid)] and [each.strip() for each in lines[7:8]] == ["ready"]

    def _popen(self, command: tuple[str, ...], output: Any) -> subprocess.Popen[bytes]:
        """Run a program without the settings for clients that the caller's environment may hold."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return subprocess.Popen(
            command,
            cwd=self.folder,  # the caller's own folder may be closed to the server's user
            env=env | {"LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            **self.account,
        )


def main() -> None:
    if os.fork():
        os._exit(0)  # so it is nobody's child: some tests see that they leave none
    settings = json.loads(sys.argv[1])
    keeper = Keeper(Path(settings["folder"]), settings["uid"], settings["gid"])
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    signal.signal(signal.SIGCHLD, keeper.bury)
    try:
        for line in sys.stdin:
            order = json.loads(line)
            if not order:
                break
            print(json.dumps(keeper.carry_out(order)), flush=True)
    finally:
        keeper.end()


if __name__ == "__main__":
    main()
