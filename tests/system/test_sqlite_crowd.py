"""Several processes on one file: each job once and no lock error, whoever reads, locks, stops or dies."""

from __future__ import annotations

import asyncio
import fcntl
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from betimes import JobStatus, Scheduler

SOURCE = Path(__file__).parents[2] / "src"
WAIT_S = 60
PARTS = pytest.mark.parametrize(
    "is_shared", [False, True], ids=["own file, WAL", "shared file, rollback journal"]
)

PRELUDE = """
import asyncio, os, sys, threading
from betimes import Scheduler
from betimes.stores.sqlite import writer

path, ran = sys.argv[1:3]
evidence = os.open(ran, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
queues = ["elsewhere"] if sys.argv[3] == "web" else None
scheduler = Scheduler(path, concurrency=20, lease=sys.argv[4], watchdog=None, queues=queues)

@scheduler.task(name="note")
async def note(number: int) -> int:
    os.write(evidence, b"%d %d\\n" % (number, os.getpid()))
    return number

def say(*words):
    os.write(1, " ".join(map(str, words)).encode() + b"\\n")
"""

WEB = """
def submit(thread):
    for number in range(thread, jobs, threads):
        note.submit_blocking(number)

threads, jobs = 8, int(sys.argv[5])
with scheduler.blocking() as s:
    callers = [threading.Thread(target=submit, args=(thread,)) for thread in range(threads)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    say("errors", s.metrics().store_errors)
"""

WORKER = """
async def main():
    async with scheduler:
        say("ready")
        await asyncio.to_thread(sys.stdin.read)
        metrics = await scheduler.metrics()
        say("errors", metrics.store_errors, "lost", metrics.lost_leases)

asyncio.run(main())
"""

# Every commit is followed by a checkpoint, so that the two meet as often as they can.
CHECKPOINTER = """
writer.WRITES_TO_CHECKPOINT = 1

async def submit(thread):
    for number in range(1_000_000):
        kept = await note.submit(number)
        say(kept.id)

async def main():
    async with scheduler:
        await asyncio.gather(*(submit(thread) for thread in range(8)))

asyncio.run(main())
"""


class Process:
    """One process on the file."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self.out = process.stdout

    def ends(self) -> tuple[str, str]:
        """End it; return what it had still to say, and what it complained of."""
        out, complaints = self.process.communicate(timeout=WAIT_S)
        assert self.process.returncode == 0, complaints
        return out, complaints


class Crowd:
    """A file, the processes on it, and what their jobs have written."""

    def __init__(self, folder: Path, *, is_shared: bool) -> None:
        self.path = folder / "jobs.db"
        self.ran = folder / "ran"
        self.ran.touch()
        if is_shared:
            with closing(sqlite3.connect(self.path)) as sql:
                sql.execute("CREATE TABLE of_the_application (x)")
                sql.commit()

    @contextmanager
    def process(
        self, script: str, role: str = "worker", *words: object, lease: str = "30s"
    ) -> Iterator[Process]:
        """A process; killed at the end of the block."""
        with subprocess.Popen(
            [sys.executable, "-c", PRELUDE + script, self.path, self.ran, role, lease, *map(str, words)],
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(SOURCE)},
        ) as process:  # fmt: skip
            try:
                yield Process(process)
            finally:
                process.kill()

    def lines(self) -> list[list[int]]:
        """Which jobs have run, each with its process's pid."""
        return [[int(word) for word in line.split()] for line in self.ran.read_text().splitlines()]

    def until_ran(self, jobs: int) -> None:
        until = time.monotonic() + WAIT_S
        while len(self.lines()) < jobs:
            assert time.monotonic() < until, f"{len(self.lines())} of {jobs} have run"
            time.sleep(0.05)

    def is_sound(self) -> bool:
        with closing(sqlite3.connect(self.path)) as sql:  # it may have to roll a dead writer's work back
            return sql.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def outside_lock(path: Path, kind: str, for_s: float) -> None:
    with closing(sqlite3.connect(path, isolation_level=None, timeout=WAIT_S)) as sql:
        sql.execute(f"BEGIN {kind}")
        time.sleep(for_s)
        sql.execute("ROLLBACK")


def long_read(path: Path, until: threading.Event, for_s: float) -> None:
    """Keep a SELECT open."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=WAIT_S)) as sql:
        rows = sql.execute("SELECT number FROM (SELECT 1 AS number UNION ALL SELECT seq FROM betimes_job)")
        rows.fetchone()
        sql.execute("BEGIN")
        sql.execute("SELECT count(*) FROM betimes_job").fetchone()
        until.wait(for_s)


@PARTS
def test_p20_case_108_threads_processes_readers_and_locks_on_one_file_only_delay(
    tmp_path: Path, is_shared: bool
) -> None:
    crowd = Crowd(tmp_path, is_shared=is_shared)
    is_over = threading.Event()
    # With a rollback journal each commit takes several times as long, and none ends while somebody reads.
    kind, read_s, jobs = ("EXCLUSIVE", 3, 2_000) if is_shared else ("IMMEDIATE", WAIT_S, 5_000)
    with crowd.process(WORKER) as one, crowd.process(WORKER) as two:
        assert [one.out.readline(), two.out.readline()] == ["ready\n", "ready\n"]
        with crowd.process(WEB, "web", jobs) as web:
            crowd.until_ran(200)
            reader = threading.Thread(target=long_read, args=(crowd.path, is_over, read_s))
            reader.start()
            crowd.until_ran(300)
            outside_lock(crowd.path, kind, 3)
            said, complaints = web.ends()
            assert (said, complaints) == ("errors 0\n", "")
        crowd.until_ran(jobs)
        is_over.set()
        reader.join(WAIT_S)
        for worker in (one, two):
            assert worker.ends() == ("errors 0 lost 0\n", "")
    ran = Counter(number for number, _ in crowd.lines())
    assert ran == dict.fromkeys(range(jobs), 1)
    assert len({pid for _, pid in crowd.lines()}) == 2, "both workers had their share"
    assert crowd.is_sound()


def test_workers_that_have_nothing_to_do_do_not_keep_each_other_awake(tmp_path: Path) -> None:
    crowd = Crowd(tmp_path, is_shared=False)
    with ExitStack() as stack:
        workers = [stack.enter_context(crowd.process(WORKER)) for _ in range(2)]
        assert [worker.out.readline() for worker in workers] == ["ready\n"] * 2
        with crowd.process(WEB, "web", 8) as web:
            assert web.ends() == ("errors 0\n", "")
        crowd.until_ran(8)
        with closing(sqlite3.connect(crowd.path)) as sql:
            versions = []
            for _ in range(150):
                versions.append(sql.execute("PRAGMA data_version").fetchone())
                time.sleep(0.02)
        # The last jobs are recorded, and perhaps a lease is prolonged; it was fifty commits a second once.
        assert len(set(versions)) < 15
        for worker in workers:
            worker.ends()


@contextmanager
def outside_commits(path: Path) -> Iterator[None]:
    """Keep everybody outside their commits: whoever is stopped within one keeps the file to itself."""
    lock = os.open(f"{path}-betimes-lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(lock)


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="this system cannot stop a process")
def test_case_106_a_worker_that_stands_still_keeps_no_share(tmp_path: Path) -> None:
    crowd = Crowd(tmp_path, is_shared=False)
    with ExitStack() as stack:
        workers = [stack.enter_context(crowd.process(WORKER, lease="3s")) for _ in range(3)]
        assert [worker.out.readline() for worker in workers] == ["ready\n"] * 3
        with outside_commits(crowd.path):
            workers[0].process.send_signal(signal.SIGSTOP)

        async def calls() -> list[int]:
            scheduler = Scheduler(crowd.path)
            note = scheduler.task(name="note")(noted)
            async with scheduler.client():
                handles = [await note.submit(number) for number in range(30)]
                return [await handle.result(timeout=WAIT_S) for handle in handles]

        assert asyncio.run(calls()) == list(range(30))
        assert workers[0].process.pid not in {pid for _, pid in crowd.lines()}
        workers[0].process.send_signal(signal.SIGCONT)
        for worker in workers:
            worker.ends()


async def noted(number: int) -> int:
    raise AssertionError("it runs elsewhere")


@PARTS
def test_p01_kills_between_commits_and_checkpoints_of_several_processes_lose_nothing(
    tmp_path: Path, is_shared: bool
) -> None:
    crowd = Crowd(tmp_path, is_shared=is_shared)
    rng = random.Random(20_408 + is_shared)
    acknowledged: set[str] = set()
    for _ in range(4):
        with ExitStack() as stack:
            processes = [stack.enter_context(crowd.process(CHECKPOINTER)) for _ in range(3)]
            for process in processes:
                acknowledged.add(process.out.readline().strip())
            for process in rng.sample(processes, len(processes)):
                for _ in range(rng.randrange(20)):
                    acknowledged.add(process.out.readline().strip())
                process.process.kill()
            for process in processes:
                lines = process.out.read().splitlines(keepends=True)
                acknowledged.update(line.strip() for line in lines if line.endswith("\n"))
        assert crowd.is_sound()
    assert "" not in acknowledged
    assert missing(crowd.path, acknowledged) == set()


def missing(path: Path, acknowledged: set[str]) -> set[str]:
    """Open the file as usual, and see which jobs are not there."""

    async def look() -> set[str]:
        found: set[str] = set()
        async with Scheduler(path).client() as client:
            version = None
            while page := await client.jobs(limit=1000, before=version):
                found.update(job.id for job in page)
                version = page[-1].version
                assert all(job.status in JobStatus for job in page)
        return acknowledged - found

    return asyncio.run(look())
