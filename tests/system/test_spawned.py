"""A child process of ours: started, told, killed with its group, and nothing of it left."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from betimes.executors.spawned import Exit, Program, Spawned

WAIT_S = 30
GRANDCHILD = "import subprocess, sys; print(subprocess.Popen(['sleep', '600']).pid, flush=True)"


class Child:
    """A child that writes to a pipe, and the future of its end."""

    def __init__(self, *argv: str, **options: str) -> None:
        self.output, end = os.pipe()
        self._end: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        self.ends: list[Exit] = []
        self.spawned = Spawned(Program(argv=argv, stdout=end, **options), self._exited)  # type: ignore[arg-type]

    def _exited(self, how: Exit) -> None:
        self.ends.append(how)
        self._end.set_result(how)

    async def end(self) -> Exit:
        async with asyncio.timeout(WAIT_S):
            how = await self._end
        await asyncio.sleep(0)
        assert self.ends == [how]
        assert self.spawned.is_over
        os.close(self.output)
        return how

    async def says(self) -> str:
        said = b""
        while not said.endswith(b"\n"):
            said += await asyncio.to_thread(os.read, self.output, 1000)
        return said.decode().strip()


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-c", code)


def is_gone(pid: int) -> bool:
    """Whether a process that is not our child has ended (whoever has to reap it may not have yet)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


def wait_until_gone(pid: int) -> None:
    until = monotonic() + WAIT_S
    while not is_gone(pid):
        assert monotonic() < until, f"process {pid} lives on"
        sleep(0.005)


def open_files() -> set[str]:
    return {each.name for each in Path("/proc/self/fd").iterdir()}


def play(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    before = open_files()
    asyncio.run(scene())
    for thread in threading.enumerate():
        if thread.name == "betimes-child":
            thread.join(WAIT_S)
            assert not thread.is_alive()
    assert open_files() == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_the_exit_code_is_told() -> None:
    async def scene() -> None:
        assert await Child(*python("raise SystemExit(7)")).end() == Exit(code=7)

    play(scene)


def test_a_signal_that_killed_it_is_told() -> None:
    async def scene() -> None:
        child = Child(*python("import os; os.kill(os.getpid(), 11)"))
        assert await child.end() == Exit(code=-signal.SIGSEGV)

    play(scene)


@pytest.mark.parametrize(
    ("argv", "options", "error"),
    [
        (("/no/such/program",), {}, FileNotFoundError),
        (("/etc/passwd",), {}, PermissionError),
        (("sleep", "1"), {"cwd": "/no/such/folder"}, FileNotFoundError),
        (("sleep", "x" * 10_000_000), {}, OSError),
        (("sleep", "a\0b"), {}, ValueError),
    ],
)
def test_what_cannot_be_started_is_told_as_a_value(
    argv: tuple[str, ...], options: dict[str, str], error: type[Exception]
) -> None:
    async def scene() -> None:
        how = await Child(*argv, **options).end()
        assert isinstance(how.error, error)
        assert (how.code, how.error.__traceback__) == (None, None)

    play(scene)


def test_the_whole_group_is_told_and_after_the_grace_killed() -> None:
    code = f"import signal; signal.signal(15, signal.SIG_IGN); {GRANDCHILD}; import time; time.sleep(600)"

    async def scene() -> None:
        child = Child(*python(code))
        grandchild = int(await child.says())
        child.spawned.terminate(0.1)
        child.spawned.terminate(600)
        assert await child.end() == Exit(code=-signal.SIGKILL)
        wait_until_gone(grandchild)

    play(scene)


def test_a_child_that_ends_when_told_is_not_killed() -> None:
    code = (
        "import signal, time, sys; signal.signal(15, lambda *_: sys.exit(5)); "
        "print(1, flush=True); time.sleep(600)"
    )

    async def scene() -> None:
        child = Child(*python(code))
        await child.says()
        child.spawned.terminate(600)
        assert await child.end() == Exit(code=5)

    play(scene)


def test_what_a_child_has_started_dies_with_it_however_it_ends() -> None:
    async def scene() -> None:
        child = Child(*python(GRANDCHILD))
        grandchild = int(await child.says())
        assert await child.end() == Exit(code=0)
        wait_until_gone(grandchild)

    play(scene)


def test_what_is_told_before_it_is_started_never_is_or_ends_at_once() -> None:
    async def scene() -> None:
        children = [Child("sleep", "600") for _ in range(10)]
        for child in children:
            child.spawned.terminate(600)
        for child in children:
            assert await child.end() == Exit(code=-signal.SIGTERM)
            assert child.spawned.pid is None
            child.spawned.kill()
            child.spawned.terminate(0)

    play(scene)


def test_it_leads_a_group_and_a_session_of_its_own() -> None:
    async def scene() -> None:
        child = Child(*python("import os; print(os.getpgid(0), os.getsid(0), os.getpid())"))
        group, session, pid = (await child.says()).split()
        assert group == session == pid != str(os.getpid())
        await child.end()

    play(scene)


def test_when_the_loop_is_gone_the_child_is_still_reaped() -> None:
    spawned: list[Spawned] = []

    async def scene() -> None:
        spawned.append(Spawned(Program(argv=["sleep", "600"]), lambda how: None))
        while spawned[0].pid is None:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.001)

    asyncio.run(scene())
    spawned[0].kill()
    play(_nothing)


async def _nothing() -> None:
    pass
