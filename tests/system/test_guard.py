"""The guard kills what it was told of, when its pipe ends, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from betimes.executors.guard import VARIABLE, Guard

WAIT_S = 30


@contextmanager
def sleeper(mark: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """A child in a group of its own that sleeps, with this mark."""
    env = os.environ | {VARIABLE: mark}
    with subprocess.Popen(["sleep", "600"], start_new_session=True, env=env) as child:
        try:
            yield child
        finally:
            child.kill()


def test_what_lives_at_the_end_is_killed_and_what_has_ended_is_not() -> None:
    guard = Guard()
    with sleeper() as living, sleeper() as ended, sleeper() as unknown:
        for child in (living, ended):
            guard.add(child.pid, guard.expect())
        guard.discard(ended.pid)
        guard.close()
        assert living.wait(WAIT_S) == -signal.SIGKILL
        assert ended.poll() is unknown.poll() is None


@pytest.mark.skipif(sys.platform != "linux", reason="only there can processes be found by their environment")
def test_a_child_that_was_being_started_is_found_by_its_mark() -> None:
    guard = Guard()
    mark, other = guard.expect(), guard.expect()
    guard.forget(other)
    with sleeper(mark) as begun, sleeper(other) as forgotten, sleeper(f"{mark}0") as alike:
        shell = guard._shell
        assert shell is not None
        assert shell.stdin is not None
        shell.stdin.close()  # as when this process dies: nobody waits for the shell
        assert begun.wait(WAIT_S) == -signal.SIGKILL
        assert shell.wait(WAIT_S) == 0
        assert forgotten.poll() is alike.poll() is None
    guard.close()


def test_it_can_be_used_again_after_its_close_and_closed_twice() -> None:
    guard = Guard()
    for _ in range(2):
        with sleeper() as child:
            guard.add(child.pid, guard.expect())
            guard.close()
            guard.close()
            assert child.wait(WAIT_S) == -signal.SIGKILL
