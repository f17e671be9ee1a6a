"""The SQLite store across real processes: kills, forks, two workers, and code that blocks the loop."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from betimes.clock import SystemClock, is_gone
from betimes.core.job import Job, JobSpec, JobStatus
from betimes.ports import ClaimRequest, WorkerInfo
from betimes.stores.sqlite import SqliteStore

needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system has no /proc")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

CLOCK = SystemClock()
SPEC = JobSpec(task="work")

PRELUDE = """
import asyncio, os, sys
from betimes.clock import SystemClock, process_identity
from betimes.core.events import Succeeded
from betimes.core.job import Job, JobSpec
from betimes.errors import ConfigurationError
from betimes.ports import ClaimRequest, Report, WorkerInfo
from betimes.stores.sqlite import SqliteStore

clock = SystemClock()
path = sys.argv[1]

def job(job_id, payload=b"{}"):
    return Job(job_id, JobSpec(task="work"), payload, submitted_at=clock.now(), run_at=clock.now())

def say(*words):
    os.write(1, " ".join(map(str, words)).encode() + b"\\n")
"""

SUBMIT_FOR_EVER = """
async def caller(store, name):
    number = 0
    while True:
        await store.submit([job(f"{name}-{number}", b'"%d"' % number)])
        say(f"{name}-{number}", number)
        number += 1

async def main():
    store = SqliteStore(path, clock=clock)
    await store.open(strategy="priority")
    await asyncio.gather(*(caller(store, name) for name in "abcdefgh"))

asyncio.run(main())
"""

HOLD_A_JOB = """
async def main():
    store = SqliteStore(path, clock=clock)
    await store.open(strategy="priority")
    me = process_identity()
    await store.register(
        WorkerInfo(
            id="doomed", lease_us=3600 * 1_000_000, host=me.host, pid=me.pid, pid_namespace=me.pid_namespace,
            process_started=me.started or 0, boot_id=me.boot_id,
        )
    )
    await store.submit([job("held")])
    turn = await store.exchange([], ClaimRequest(worker="doomed", limit=1, lanes={"loop": 1}))
    say(turn.claimed[0].id)
    sys.stdin.read()

asyncio.run(main())
"""

WORK = """
async def main():
    store = SqliteStore(path, clock=clock)
    await store.open(strategy="priority")
    worker = f"worker-{os.getpid()}"
    await store.register(WorkerInfo(id=worker, lease_us=3600 * 1_000_000))
    request = ClaimRequest(worker=worker, limit=7, lanes={"loop": 7})
    turn = await store.exchange([], request)
    while turn.claimed:
        for each in turn.claimed:
            say(each.id)
        reports = [Report(each, each.fence, Succeeded(clock.now(), b"null")) for each in turn.claimed]
        turn = await store.exchange(reports, request)
    await store.close()

asyncio.run(main())
"""

FORK = """
async def main():
    store = SqliteStore(path, clock=clock)
    await store.open(strategy="priority")
    await store.submit([job("before")])
    child = os.fork()
    if child == 0:
        try:
            await store.submit([job("in-child")])
        except ConfigurationError as error:
            say("refused:", error)
        await store.close()
        say("closed")
        os._exit(0)
    os.waitpid(child, 0)
    await store.submit([job("after")])
    say(*[await store.find(job_id) is not None for job_id in ("before", "in-child", "after")])
    await store.close()

asyncio.run(main())
"""

FORK_AND_OPEN = """
def in_child(what):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            asyncio.events._set_running_loop(None)
            asyncio.run(what())
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]

async def submit_in_child():
    store = SqliteStore(path, clock=clock)
    try:
        await store.open(strategy="priority")
    except ConfigurationError as error:
        say("refused:", error)
        say("surveyed:", (await SqliteStore(path, clock=clock).vitals()).problem)
        return
    await store.submit([job("in-child")])
    await store.close()

async def main():
    store = SqliteStore(path, clock=clock)
    await store.open(strategy="priority")
    await store.submit([job("before")])
    say(in_child(submit_in_child))
    await store.close()
    say(in_child(submit_in_child))
    await store.open(strategy="priority")
    say(await store.find("in-child") is not None)
    await store.close()

asyncio.run(main())
"""


@contextmanager
def running(script: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that runs the script on this file; killed at the end of the block."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PRELUDE + script, str(path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def lines_of(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout is not None
    return process.stdout


def job(job_id: str) -> Job:
    return Job(job_id, SPEC, submitted_at=CLOCK.now(), run_at=CLOCK.now())


@pytest.mark.parametrize("acknowledged", [1, 100, 3000])
def test_p01_what_was_acknowledged_survives_a_kill_at_any_moment(tmp_path: Path, acknowledged: int) -> None:
    path = tmp_path / "jobs.db"
    with running(SUBMIT_FOR_EVER, path) as process:
        output = lines_of(process)
        said = [output.readline().split() for _ in range(acknowledged)]
        process.send_signal(signal.SIGKILL)
        said += [line.split() for line in output if line.endswith("\n")]

    async def main() -> None:
        store = SqliteStore(path, clock=CLOCK)
        await store.open(strategy="priority")
        for job_id, number in said:
            found = await store.find(job_id)
            assert found is not None, job_id
            assert found.status is JobStatus.READY
            assert found.payload == f'"{number}"'.encode()
        await store.close()

    asyncio.run(main())


@needs_proc
def test_p24_the_jobs_of_a_killed_process_are_rescued_at_once(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"

    async def main() -> None:
        store = SqliteStore(path, clock=CLOCK, is_gone=is_gone)
        await store.open(strategy="priority")
        with running(HOLD_A_JOB, path) as process:
            assert lines_of(process).readline() == "held\n"
            assert await store.rescue({"work"}) == [], "it lives, and its lease holds"
            process.send_signal(signal.SIGKILL)
            process.wait()
            (event,) = await store.rescue({"work"})
        assert (event.job_id, event.before, event.after) == ("held", JobStatus.RUNNING, JobStatus.READY)
        held = await store.find("held")
        assert held is not None
        assert (held.attempt, held.crashes, held.fence) == (0, 1, 2)
        assert await store.workers() == []
        await store.close()

    asyncio.run(main())


def test_p20_two_processes_on_one_file_run_each_job_once(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    jobs = 2000

    async def fill() -> None:
        store = SqliteStore(path, clock=CLOCK)
        await store.open(strategy="priority")
        await store.submit([job(f"job-{number}") for number in range(jobs)])
        await store.close()

    asyncio.run(fill())
    with running(WORK, path) as one, running(WORK, path) as two:
        said = [*lines_of(one), *lines_of(two)]
        assert (one.wait(), two.wait()) == (0, 0)
    assert len(said) == jobs
    assert len(set(said)) == jobs

    async def check() -> None:
        store = SqliteStore(path, clock=CLOCK)
        await store.open(strategy="priority")  # looks for damage
        assert await store.counts() == {}
        await store.close()

    asyncio.run(check())


@needs_fork
def test_case_074_a_forked_child_is_refused_and_harms_nothing(tmp_path: Path) -> None:
    with running(FORK, tmp_path / "jobs.db") as process:
        refused, closed, found = lines_of(process)
        assert process.wait() == 0
    assert refused.startswith("refused:")
    assert "forked" in refused
    assert closed == "closed\n"
    assert found == "True False True\n"


@needs_fork
def test_p01_case_074_a_file_that_is_open_at_a_fork_is_not_opened_in_the_child(tmp_path: Path) -> None:
    """The child would hold none of the locks that SQLite believes it to hold, and lose what it writes."""
    with running(FORK_AND_OPEN, tmp_path / "jobs.db") as process:
        refused, surveyed, code, code_after_close, found = lines_of(process)
        assert process.wait() == 0
    assert refused.startswith("refused:")
    assert "was open when this process was forked" in refused
    assert "was open when this process was forked" in surveyed
    assert (code, code_after_close) == ("0\n", "0\n")
    assert found == "True\n", "what was closed before the fork may be opened in the child"


def block_the_loop() -> None:
    time.sleep(1.5)  # five terms of the lease


@pytest.mark.parametrize(("max_stall_us", "holds"), [(60_000_000, True), (100_000, False)])
def test_p25_code_that_blocks_the_loop_loses_no_lease_before_max_stall(
    tmp_path: Path, max_stall_us: int, holds: bool
) -> None:
    async def main() -> None:
        store = SqliteStore(tmp_path / "jobs.db", clock=CLOCK, max_stall_us=max_stall_us)
        await store.open(strategy="priority")
        await store.register(WorkerInfo(id="w", lease_us=300_000))
        await store.submit([job("a")])
        block_the_loop()
        ((_, left_us),) = await store.workers()
        assert (left_us > 0) is holds
        turn = await store.exchange([], ClaimRequest(worker="w", limit=1, lanes={"loop": 1}))
        assert len(turn.claimed) == holds
        await store.close()

    asyncio.run(main())
