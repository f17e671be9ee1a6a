"""Has the groups of children killed when this process dies, however it dies.

A process that is killed with SIGKILL takes leave of nobody, and its children live on. So one small shell runs
beside it, in a session of its own, and reads from a pipe whose other end only this process holds. It is told
of each group as it begins and ends; when the pipe ends, this process is dead, and the shell kills what is
left. It costs a child once (about a millisecond), and a line in a pipe for each command.

A child that was being started just then has no number yet that anybody knows. It is announced by a mark,
which it has in its environment, and looked for by that where the system shows it (`/proc`, on Linux).
Elsewhere a child may be left behind that began within the last millisecond.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress
from itertools import count

from betimes.executors.held import hold, let_go

VARIABLE = "BETIMES_RUN"
"""The variable with a child's mark."""

_SCRIPT = """\
live=' '
begun=' '
while read -r what name; do
  case $what in
    '?') begun="$begun$name " ;;
    '!') begun="${begun%% $name *} ${begun#* $name }" ;;
    +) live="$live$name " ;;
    -) live="${live%% $name *} ${live#* $name }" ;;
  esac
done
for group in $live; do kill -KILL "-$group"; done
[ "$begun" = ' ' ] || exec "$@" $begun
"""

_SEARCH = f"""\
import os, select, sys
marks = [b"{VARIABLE}=" + mark.encode() for mark in sys.argv[1:]]
for _ in range(100):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/" + pid + "/environ", "rb") as environ:
                if not set(marks).isdisjoint(environ.read().split(b"\\0")):
                    os.kill(int(pid), 9)
        except OSError:
            pass
    select.select([], [], [], 0.02)
"""
"""Kills whoever has one of these marks; for two seconds, since what is being started may take a moment."""

_SEARCHER = (sys.executable, "-I", "-S", "-c", _SEARCH) if sys.platform == "linux" else ("true",)

_ENDS_WITHIN_S = 2.0


class Guard:
    """Knows the groups that run; used from the children's threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._live: set[int] = set()
        self._begun: set[str] = set()
        self._number = count(1)
        self._shell: subprocess.Popen[bytes] | None = None

    def expect(self) -> str:
        """Return a mark for a child that is about to be started, to be put into its environment.

        Raises:
            OSError: the shell does not run, and cannot be started.
        """
        with self._lock:
            if self._shell is None:
                self._start()
            mark = f"{os.getpid()}.{id(self)}.{next(self._number)}"
            self._begun.add(mark)
            self._tell(f"? {mark}\n")
            return mark

    def add(self, pid: int, mark: str) -> None:
        """Have this group killed at the end: the child with this mark has been started."""
        with self._lock:
            self._live.add(pid)
            self._tell(f"+ {pid}\n")
        self.forget(mark)

    def forget(self, mark: str) -> None:
        """Expect the child with this mark no more."""
        with self._lock:
            if mark in self._begun:
                self._begun.discard(mark)
                self._tell(f"! {mark}\n")

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
            self._begun.clear()
        if shell is not None:
            _end(shell)

    def _start(self) -> None:
        self._shell = subprocess.Popen(  # noqa: S603 - our own script
            ["/bin/sh", "-c", _SCRIPT, "betimes-guard", *_SEARCHER],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            start_new_session=True,
            bufsize=0,
        )
        assert self._shell.stdin is not None
        hold(self._shell.stdin.fileno())
        for pid in self._live:
            self._write(f"+ {pid}\n")
        for mark in self._begun:
            self._write(f"? {mark}\n")

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
    if not shell.stdin.closed:
        let_go(shell.stdin.fileno())
    shell.stdin.close()
    try:
        shell.wait(_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        shell.kill()
        shell.wait()
