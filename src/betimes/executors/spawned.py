"""One child process with a process group of its own, from its start to its end; nothing of it is left behind.

What must hold:

1. *The loop never waits.* A thread for each child starts it, waits for its end and takes leave of it. No
   watcher of asyncio's, and no handler of SIGCHLD: so it works on any loop, in any thread.
2. *No signal hits a stranger.* A process id is the child's until the child is reaped. So the thread waits for
   the end without reaping, kills what is left of the group while the dead leader still holds the number, and
   only then reaps; every signal is sent under the same lock, and none after that.
3. *The group dies with its leader*, however that ends: what the child has started in its group goes with it.
   Who leaves the group (`setsid`) has left on purpose, and lives on.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from betimes.executors.accounts import Account
from betimes.executors.guard import VARIABLE, Guard


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is to be started.

    Attributes:
        argv: the program and its arguments.
        env: its whole environment; None: this process's.
        cwd: its working directory; None: this process's.
        stdin, stdout, stderr: file descriptors, or `subprocess.DEVNULL`.
        pass_fds: more file descriptors that it gets, under the same numbers.
        account: the user that it runs as; None: this process's own.

    All descriptors given here are for the child alone: `Spawned` closes them in this process as soon as the
    child has them, or cannot be started.
    """

    argv: Sequence[str]
    env: Mapping[str, str] | None = None
    cwd: str | None = None
    stdin: int = subprocess.DEVNULL
    stdout: int = subprocess.DEVNULL
    stderr: int = subprocess.DEVNULL
    pass_fds: tuple[int, ...] = ()
    account: Account | None = None

    def close(self) -> None:
        """Close the descriptors that are meant for the child, in this process."""
        for fd in {self.stdin, self.stdout, self.stderr, *self.pass_fds}:
            if fd >= 0:
                os.close(fd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a child ended.

    Attributes:
        code: its exit code; minus the signal's number if a signal killed it; None: not known, since it was
            never started, or since somebody else in this process has reaped it.
        error: why it could not be started (no such program, too many open files, …); None: it was.
        pid: which process it was, which says nothing of how it ended; None: it was never started.
    """

    code: int | None = None
    error: Exception | None = None
    pid: int | None = field(default=None, compare=False)


class Spawned:
    """A child that is being started, runs, or has ended.

    Args:
        program: what to start.
        exited: is called once, on the loop that is running now, when the child and all that was left of its
            group are dead, or when it could not be started.
        guard: kills the group if this process dies first; None: whoever is started sees to that itself.

    Made, and used, on the loop.
    """

    def __init__(
        self, program: Program, exited: Callable[[Exit], None], *, guard: Guard | None = None
    ) -> None:
        self._program = program
        self._guard = guard
        self._exited = exited
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._early: signal.Signals | None = None
        self._is_reaped = False
        self._is_over = False
        self._last_call: asyncio.TimerHandle | None = None
        try:
            threading.Thread(target=self._live, name="betimes-child", daemon=True).start()
        except RuntimeError as error:  # the system has no more threads for us
            program.close()
            self._loop.call_soon(self._end, Exit(error=error.with_traceback(None)))

    @property
    def pid(self) -> int | None:
        """The number of the child and of its group; None before it is started and after its end."""
        child = self._child
        return None if child is None or self._is_reaped else child.pid

    @property
    def is_over(self) -> bool:
        """Whether `exited` has been called."""
        return self._is_over

    def terminate(self, grace_s: float) -> None:
        """Send SIGTERM to the whole group, and, if the child is not dead after the grace, SIGKILL.

        A child that is not started yet never is, or is told as soon as it is. More than once is fine: the
        first call counts.
        """
        if self._is_over or self._last_call is not None:
            return
        self._last_call = self._loop.call_later(grace_s, self.kill)
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL to the whole group."""
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        with self._lock:
            if self._child is None:
                self._early = number
            elif not self._is_reaped:
                _kill_group(self._child.pid, number)

    # --- in the child's thread

    def _live(self) -> None:
        how = self._start_and_wait()
        with suppress(RuntimeError):  # the loop has been closed: nobody wants to know any more
            self._loop.call_soon_threadsafe(self._end, how)

    def _start_and_wait(self) -> Exit:
        program, guard = self._program, self._guard
        env, mark = program.env, ""
        try:
            if self._early is not None:
                return Exit(code=-self._early)
            if guard is not None:
                mark = guard.expect()
                env = {**(os.environ if env is None else env), VARIABLE: mark}
            child = subprocess.Popen(  # noqa: S603 - what users register is what is run
                program.argv,
                env=env,
                cwd=program.cwd,
                stdin=program.stdin,
                stdout=program.stdout,
                stderr=program.stderr,
                pass_fds=program.pass_fds,
                start_new_session=True,
                **_as_user(program.account),
            )
        except Exception as error:  # noqa: BLE001 - whatever keeps it from being started is told as a value
            if guard is not None:
                guard.forget(mark)
            return Exit(error=error.with_traceback(None))
        finally:
            program.close()
        if guard is not None:
            guard.add(child.pid, mark)
        with self._lock:
            self._child = child
            if self._early is not None:
                _kill_group(child.pid, self._early)
        return self._wait(child)

    def _wait(self, child: subprocess.Popen[bytes]) -> Exit:
        is_ours = _await_end(child.pid)
        with self._lock:
            if is_ours:
                _kill_group(child.pid, signal.SIGKILL)
            if self._guard is not None:
                self._guard.discard(child.pid)
            self._is_reaped = True
            code = child.wait()
        return Exit(code=code if is_ours else None, pid=child.pid)

    # --- on the loop

    def _end(self, how: Exit) -> None:
        self._is_over = True
        if self._last_call is not None:
            self._last_call.cancel()
        self._exited(how)


def _as_user(account: Account | None) -> dict[str, Any]:
    """What has a child run as another user; nothing for this process's own, which only root could change."""
    if account is None or account.is_own:
        return {}
    return {"user": account.uid, "group": account.gid, "extra_groups": account.groups}


def _await_end(pid: int) -> bool:
    """Wait until a child is dead, and leave it to be reaped; False if somebody else has reaped it."""
    if sys.platform == "darwin":
        # Before Python 3.13 there is no `waitid` on macOS. A kqueue tells of the end, too, and does not reap.
        queue = select.kqueue()
        end = select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT)
        with suppress(ProcessLookupError):  # it is dead already
            queue.control([end], 1)
        queue.close()
        return True
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _kill_group(pid: int, number: signal.Signals) -> None:
    # EPERM is what macOS says of a group in which only the dead are left, and Linux of one in which all have
    # changed their user: there is nothing more that this process may do.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
