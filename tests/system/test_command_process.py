"""Commands of a real program: whatever happens to it, none of them is left running."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.processes import processes

SOURCE = Path(__file__).parents[2] / "src"
WAIT_S = 40

PROGRAM = """
import asyncio, os, sys, time
from betimes import Scheduler

mark, what = sys.argv[1:3]
scheduler = Scheduler(grace=0.3, concurrency=6, watchdog=None)
tree = scheduler.command(
    "tree", f"trap '' TERM; (sh -c 'sleep {mark}; :' & wait) & echo begun; sleep {mark}; :"
)
brief = scheduler.command("brief", ["sleep", mark], timeout=0.004)

async def begun(job):
    while not await job.log():
        await asyncio.sleep(0.02)

async def hold():
    async with scheduler:
        jobs = [await tree.submit() for _ in range(4)]
        for job in jobs:
            await begun(job)
        print("ready", flush=True)
        if what == "exit":
            os._exit(3)
        try:
            if what == "raise":
                raise KeyError("the program's own error")
            await asyncio.sleep(600)
        finally:
            await scheduler.stop(cancel_running=True)

async def churn():
    async with scheduler:
        print("ready", flush=True)
        while True:
            for job in [await brief.submit() for _ in range(3)]:
                await job.wait()

asyncio.run(churn() if what == "churn" else hold())
"""


def running(mark: str) -> list[str]:
    """The processes whose command line has this mark, but for the program itself."""
    return [
        f"{each.pid} {each.command}"
        for each in processes()
        if mark in each.command and "program.py" not in each.command
    ]


def gone(mark: str) -> None:
    """Wait until no process has this mark: what was killed may take a moment to be dead."""
    ends = time.monotonic() + WAIT_S
    while left := running(mark):
        assert time.monotonic() < ends, f"these still run: {left}"
        time.sleep(0.02)


@pytest.fixture
def mark() -> str:
    """A number of seconds that no other test sleeps."""
    return str(8_000_000 + random.SystemRandom().randrange(900_000))


@contextmanager
def program(folder: Path, mark: str, what: str) -> Iterator[subprocess.Popen[str]]:
    """Run the program until its commands run, and have it gone afterwards."""
    path = folder / "program.py"
    path.write_text(PROGRAM)
    with subprocess.Popen(
        [sys.executable, str(path), mark, what],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def test_nothing_is_left_when_the_scheduler_is_killed(tmp_path: Path, mark: str) -> None:
    with program(tmp_path, mark, "hold") as process:
        assert len(running(mark)) >= 8
        process.kill()
        process.wait(WAIT_S)
    gone(mark)


@pytest.mark.parametrize("what", ["raise", "exit"])
def test_nothing_is_left_when_the_program_ends_by_itself(tmp_path: Path, mark: str, what: str) -> None:
    with program(tmp_path, mark, what) as process:
        process.wait(WAIT_S)
    gone(mark)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupt_ends_commands_within_the_grace(
    tmp_path: Path, mark: str, number: signal.Signals
) -> None:
    with program(tmp_path, mark, "hold") as process:
        process.send_signal(number)
        process.wait(WAIT_S)
    gone(mark)


def test_a_kill_while_commands_start_and_end_leaves_nothing(tmp_path: Path, mark: str) -> None:
    for after_s in (0.05, 0.06, 0.08, 0.11, 0.15):
        with program(tmp_path, mark, "churn") as process:
            time.sleep(after_s)
            process.kill()
            process.wait(WAIT_S)
        gone(mark)


def test_a_stopped_program_that_is_killed_leaves_nothing(tmp_path: Path, mark: str) -> None:
    with program(tmp_path, mark, "hold") as process:
        process.send_signal(signal.SIGSTOP)
        process.kill()
        process.wait(WAIT_S)
    gone(mark)
