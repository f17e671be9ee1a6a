"""`run()` in a real process: signals drain it, a second one ends it, no stuck thread holds up its exit."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic
from typing import IO

import pytest

from betimes import ConfigurationError, Scheduler

SOURCE = Path(__file__).parents[2] / "src"
WAIT_S = 40

PROGRAM = """
import asyncio, os, sys, time
from betimes import Scheduler

store, what = sys.argv[1:3]
scheduler = Scheduler(store, grace=0.2, concurrency=4, watchdog=None)

def say(text):
    os.write(1, f"{text}\\n".encode())  # in one piece, whichever thread it is

@scheduler.task
async def finishes():
    say("begun")
    await asyncio.sleep(0.5)
    say("finished")

@scheduler.task
async def long():
    say("begun")
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        say("told")
        raise

@scheduler.task
def stuck():
    say("begun")
    time.sleep(600)

@scheduler.task
async def stubborn():
    say("begun")
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            say("told")

@scheduler.task
async def blocks():
    say("begun")
    time.sleep(600)

@scheduler.task
async def fails():
    say("begun")
    raise SystemExit(3)

async def submit():
    async with scheduler.client():
        await globals()[what].using(key=what).submit()

def hear(event):
    say(f"{event.after.value}")

scheduler.listen(hear)
asyncio.run(submit())
say("run")
scheduler.run(drain=sys.argv[3])
say("over")
"""

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/status").exists(),
    reason="only /proc tells which signals a process handles by itself",
)


class Child:
    """A program that runs, and what it says."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self._out: IO[str] = process.stdout
        self.said: list[str] = []

    def wait_for(self, text: str) -> None:
        """Read what it says until it says this."""
        for line in self._out:
            self.said.append(line.strip())
            if line.strip() == text:
                return
        raise AssertionError(f"it ended without saying {text!r}: {self.said}, {self.end()}")

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> tuple[int, str]:
        """Wait for its end; return its code and what it said to stderr.

        The loop, in development mode, says of each step that it took long; on a busy machine many do.
        """
        rest, errors = self.process.communicate(timeout=WAIT_S)
        self.said += rest.split()
        lines = [line for line in errors.splitlines() if not line.startswith("Executing <")]
        return self.process.returncode, "\n".join(lines)


@contextmanager
def program(tmp_path: Path, text: str, *arguments: str) -> Iterator[Child]:
    """Run a program in a process of its own."""
    path = tmp_path / "program.py"
    path.write_text(text)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    process = subprocess.Popen(
        [sys.executable, "-X", "dev", str(path), *arguments],
        env=environment | {"PYTHONPATH": str(SOURCE), "PYTHONWARNINGS": "error"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Child(process)
    finally:
        process.kill()
        process.communicate(timeout=WAIT_S)


def statuses(path: Path) -> list[str]:
    """The statuses of the jobs in a file."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        tables = {name for (name,) in connection.execute("select name from sqlite_master")}
        assert tables
    scheduler = Scheduler(path, watchdog=None)

    async def look() -> list[str]:
        async with scheduler.client():
            return [job.status.value for job in await scheduler.jobs()]

    return asyncio.run(look())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_p21_case_060_a_signal_drains_and_what_finishes_meanwhile_is_recorded_once(
    tmp_path: Path, number: signal.Signals
) -> None:
    file = tmp_path / "jobs.db"
    with program(tmp_path, PROGRAM, str(file), "finishes", "20s") as child:
        child.wait_for("begun")
        child.signal(number)
        code, errors = child.end()
    assert (code, errors) == (0, "")
    assert child.said.count("finished") == 1
    assert child.said[-2:] == ["completed", "over"]
    assert statuses(file) == ["completed"]
    # A new worker, which has another job to do, does not run it again.
    with program(tmp_path, PROGRAM, str(file), "long", "100ms") as child:
        child.wait_for("begun")
        child.signal(signal.SIGTERM)
        assert child.end() == (0, "")
    assert "finished" not in child.said
    assert statuses(file) == ["ready", "completed"]


def test_what_does_not_finish_within_the_drain_is_given_back(tmp_path: Path) -> None:
    file = tmp_path / "jobs.db"
    with program(tmp_path, PROGRAM, str(file), "long", "200ms") as child:
        child.wait_for("begun")
        child.signal(signal.SIGTERM)
        assert child.end() == (0, "")
    assert "told" in child.said
    assert statuses(file) == ["ready"]


@needs_proc
def test_p21_a_second_signal_ends_at_once_and_the_job_survives(tmp_path: Path) -> None:
    file = tmp_path / "jobs.db"
    with program(tmp_path, PROGRAM, str(file), "long", "600s") as child:
        child.wait_for("begun")
        child.signal(signal.SIGTERM)
        # Two signals of one kind may arrive as one: the second is of the other kind.
        wait_until_ignored(child.process.pid)
        child.signal(signal.SIGINT)
        code, _ = child.end()
    assert code in {-signal.SIGINT, -signal.SIGTERM}
    assert statuses(file) == ["running"]  # until its lease is over


def wait_until_ignored(pid: int) -> None:
    """Wait until the process has put back the default effect of SIGTERM."""
    deadline = monotonic() + WAIT_S
    while monotonic() < deadline:
        caught = next(
            line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt")
        )
        if not int(caught.split()[1], 16) & 1 << (signal.SIGTERM - 1):
            return
    raise AssertionError("the first signal was not taken")


@pytest.mark.parametrize("store", ["memory:", "jobs.db"])
def test_case_058_a_stuck_thread_holds_up_neither_the_stop_nor_the_exit(tmp_path: Path, store: str) -> None:
    name = store if store == "memory:" else str(tmp_path / store)
    with program(tmp_path, PROGRAM, name, "stuck", "100ms") as child:
        child.wait_for("begun")
        child.signal(signal.SIGTERM)
        code, errors = child.end()
    assert code == 0
    assert "over" in child.said
    assert errors.count("did not stop; it is left running") == 1
    if store != "memory:":
        assert statuses(tmp_path / store) == ["ready"]


def test_case_052_code_that_swallows_its_cancellation_does_not_hold_up_the_exit(tmp_path: Path) -> None:
    file = tmp_path / "jobs.db"
    with program(tmp_path, PROGRAM, str(file), "stubborn", "100ms") as child:
        child.wait_for("begun")
        child.signal(signal.SIGTERM)
        code, errors = child.end()
    assert code == 0
    assert "over" in child.said
    assert errors.count("did not stop; it is left running") == 1
    assert statuses(file) == ["ready"]


@needs_proc
def test_p21_a_second_signal_ends_at_once_also_while_code_blocks_the_loop(tmp_path: Path) -> None:
    file = tmp_path / "jobs.db"
    with program(tmp_path, PROGRAM, str(file), "blocks", "600s") as child:
        child.wait_for("begun")
        child.signal(signal.SIGTERM)
        wait_until_ignored(child.process.pid)
        child.signal(signal.SIGINT)
        code, _ = child.end()
    assert code in {-signal.SIGINT, -signal.SIGTERM}
    assert statuses(file) == ["running"]  # until its lease is over


STUBBORN_IN_BLOCKING = """
import asyncio
from betimes import Scheduler

scheduler = Scheduler(grace=0.1, watchdog=None)

@scheduler.task
async def stubborn():
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            pass

with scheduler.blocking() as blocking:
    job = stubborn.submit_blocking()
    while job.status() != "running":
        pass
    blocking.stop(timeout=0.1)
print("over", flush=True)
"""


def test_case_052_it_does_not_hold_up_the_end_of_blocking_either(tmp_path: Path) -> None:
    with program(tmp_path, STUBBORN_IN_BLOCKING) as child:
        assert child.end()[0] == 0
    assert child.said == ["over"]


def test_a_job_that_exits_does_not_take_the_process_down(tmp_path: Path) -> None:
    with program(tmp_path, PROGRAM, "memory:", "fails", "5s") as child:
        child.wait_for("failed")
        child.signal(signal.SIGTERM)
        assert child.end() == (0, "")


STUCK_IN_MAIN = """
import asyncio, sys, time
from betimes import Scheduler

scheduler = Scheduler(grace=0.1, watchdog=None)
begun = asyncio.Event()

@scheduler.task
def stuck():
    loop.call_soon_threadsafe(begun.set)
    time.sleep(600)

async def main():
    global loop
    loop = asyncio.get_running_loop()
    await scheduler.start()
    await stuck.submit()
    await begun.wait()
    if sys.argv[1] == "stop":
        await scheduler.stop(timeout=0.1)
    elif sys.argv[1] == "raise":
        raise KeyError("main")

asyncio.run(main())
print("over", flush=True)
"""


@pytest.mark.parametrize(("way", "code"), [("stop", 0), ("forget", 0), ("raise", 1)])
def test_pool_threads_never_hold_up_the_interpreters_exit(tmp_path: Path, way: str, code: int) -> None:
    with program(tmp_path, STUCK_IN_MAIN, way) as child:
        assert child.end()[0] == code
    assert ("over" in child.said) is (code == 0)


RANDOM_STOPS = """
import asyncio, random, sys
from betimes import Scheduler, SchedulerClosed

rng = random.Random(int(sys.argv[1]))
scheduler = Scheduler(concurrency=3, grace=0.5, watchdog=None)
ran = []

@scheduler.task
async def on_loop(number: int):
    await asyncio.sleep(rng.choice([0, 0.002]))
    ran.append(number)

@scheduler.task
def in_thread(number: int):
    ran.append(number)

async def main():
    handles = []

    async def submitter():
        while True:
            task = rng.choice([on_loop, in_thread])
            handles.append(await task.submit(len(handles)))
            await asyncio.sleep(0.001)

    for _ in range(40):
        await scheduler.start()
        submitting = asyncio.create_task(submitter())
        await asyncio.sleep(rng.random() / 50)
        await scheduler.stop(**rng.choice([{}, {"timeout": 0}, {"timeout": 0.001}]))
        try:
            await submitting
        except SchedulerClosed:
            pass
    async with scheduler:
        await scheduler.drain(timeout=20)
    assert set(ran) == set(range(len(handles))), "a job was lost"
    print(f"{len(handles) > 40}", flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_case_056_stops_at_random_moments_lose_nothing_and_say_nothing(tmp_path: Path, seed: str) -> None:
    with program(tmp_path, RANDOM_STOPS, seed) as child:
        assert child.end() == (0, "")
    assert child.said == ["True"]


def test_run_is_for_the_main_thread() -> None:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            Scheduler(watchdog=None).run()
        except ConfigurationError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(WAIT_S)
    assert len(errors) == 1
    assert "main thread" in str(errors[0])


def test_run_is_not_for_where_a_loop_runs() -> None:
    async def main() -> None:
        with pytest.raises(ConfigurationError, match="one runs here already"):
            Scheduler(watchdog=None).run()

    asyncio.run(main())


def test_run_refuses_a_drain_that_is_no_duration() -> None:
    with pytest.raises(ConfigurationError, match="drain='soon' is no duration"):
        Scheduler(watchdog=None).run(drain="soon")
