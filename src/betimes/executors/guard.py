"""Has the groups of children killed when this process dies, however it dies.

A process that is killed with SIGKILL takes leave of nobody, and its children live on. So one small shell runs
beside it, in a session of its own, and reads from a pipe whose other end only this process holds. It is told
of each group as it begins and ends; when the pipe ends, this process is dead, and the shell kills what is
left. It costs a child once (about a millisecond), and a line in a pipe for each command.

What is not covered is the half millisecond from a child's start to the line that names it.
"""

from __future__ import annotations

import os
import subprocess
import threading
from contextlib import suppress

_SCRIPT = """\
live=' '
while read -r what pid; do
  case $what in
    +) live="$live$pid " ;;
    -) live="${live%% $pid *} ${live#* $pid }" ;;
  esac
done
for pid in $live; do kill -KILL "-$pid"; done
"""

_ENDS_WITHIN_S = 2.0


class Guard:
    """Knows the groups that run; used from the children's threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._live: set[int] = set()
        self._shell: subprocess.Popen[bytes] | None = None

    def ready(self) -> None:
        """Start the shell, if it does not run.

        Raises:
            OSError: it cannot be started.
        """
        with self._lock:
            if self._shell is None:
                self._start()

    def add(self, pid: int) -> None:
        """Have this group killed at the end."""
        with self._lock:
            self._live.add(pid)
            self._tell(f"+ {pid}\n")

    def discard(self, pid: int) -> None:
        """Leave this group alone from now on: its number will be another's."""
        with self._lock:
            if pid in self._live:
                self._live.discard(pid)
                self._tell(f"- {pid}\n")

    def close(self) -> None:
        """End the shell, which kills what is left; it can be started again."""
        with self._lock:
            shell, self._shell = self._shell, None
            self._live.clear()
        if shell is not None:
            _end(shell)

    def _start(self) -> None:
        self._shell = subprocess.Popen(  # noqa: S603 - our own script
            ["/bin/sh", "-c", _SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            start_new_session=True,
            bufsize=0,
        )
        for pid in self._live:
            self._write(f"+ {pid}\n")

    def _tell(self, line: str) -> None:
        if self._shell is None:
            return
        try:
            self._write(line)
        except OSError:  # somebody has killed it: another one takes its place, and hears of all that live
            shell, self._shell = self._shell, None
            _end(shell)
            with suppress(OSError):  # or else before the next child
                self._start()

    def _write(self, line: str) -> None:
        assert self._shell is not None
        assert self._shell.stdin is not None
        os.write(self._shell.stdin.fileno(), line.encode())


def _end(shell: subprocess.Popen[bytes]) -> None:
    assert shell.stdin is not None
    shell.stdin.close()
    try:
        shell.wait(_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        shell.kill()
        shell.wait()
