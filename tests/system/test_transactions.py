"""Jobs submitted in an application's own transactions, over real processes and real kills."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import IO

import pytest

from betimes import JobStatus, Scheduler, UnknownJob
from betimes.clock import new_rng

WAIT_S = 60

PRELUDE = """
import asyncio, os, sqlite3, sys
from contextlib import closing
from betimes import Scheduler

path, first = sys.argv[1], int(sys.argv[2])
scheduler = Scheduler(f"sqlite:///{path}?journal=delete")

@scheduler.task(name="enter")
async def enter(number: int) -> None: ...

def say(*words):
    os.write(1, " ".join(map(str, words)).encode() + b"\\n")

async def main():
    async with scheduler.client():
        with closing(sqlite3.connect(path, timeout=60)) as conn:
            await write(conn)
"""

WRITE_FOR_EVER = """
async def write(conn):
    say("ready")
    sys.stdin.readline()
    number = first
    while True:
        number += 1
        if number % 2:
            conn.execute("INSERT INTO entry VALUES (?)", (number,))
        await enter.using(conn=conn, key=f"entry-{number}").submit(number)
        if not number % 2:
            conn.execute("INSERT INTO entry VALUES (?)", (number,))
        if number % 5:
            conn.commit()
        else:
            conn.rollback()

asyncio.run(main())
"""

WRITE_WHEN_TOLD = """
async def write(conn):
    conn.execute("INSERT INTO entry VALUES (?)", (first,))
    job = await enter.using(conn=conn, key=f"entry-{first}", job_id="job").submit(first)
    say("inserted", job.id)
    sys.stdin.readline()
    conn.commit()
    say("committed")

asyncio.run(main())
"""


@contextmanager
def running(script: str, path: Path, first: int) -> Iterator[subprocess.Popen[str]]:
    """A process that runs the script on this file; killed at the end of the block."""
    command = [sys.executable, "-c", PRELUDE + script, str(path), str(first)]
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


async def line_of(process: subprocess.Popen[str]) -> str:
    """The next line that a process says, while the scheduler here goes on."""
    return await asyncio.wait_for(asyncio.to_thread(lines_of(process).readline), WAIT_S)


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go on\n")
    process.stdin.flush()


class Worker:
    """A scheduler in this process that runs the others' jobs, in the application's file."""

    def __init__(self, path: Path) -> None:
        with closing(sqlite3.connect(path)) as sql:
            sql.execute("CREATE TABLE entry (number INTEGER)")
            sql.commit()
        self.ran: list[int] = []
        self.scheduler = Scheduler(f"sqlite:///{path}?journal=delete", watchdog=None)

        @self.scheduler.task(name="enter")
        async def enter(number: int) -> None:
            self.ran.append(number)

        self.enter = enter


def entries(path: Path) -> list[int]:
    with closing(sqlite3.connect(path, timeout=WAIT_S)) as sql:
        return [number for (number,) in sql.execute("SELECT number FROM entry")]


def test_p04_a_process_killed_before_its_commit_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    worker = Worker(path)

    async def main() -> None:
        async with worker.scheduler:
            with running(WRITE_WHEN_TOLD, path, 1) as process:
                assert await line_of(process) == "inserted job\n"
                with pytest.raises(UnknownJob):
                    await worker.scheduler.job("job")
                process.kill()
                process.wait(WAIT_S)
            with pytest.raises(UnknownJob):
                await worker.scheduler.job("job")
            # Its id and its key are free, for other arguments, too.
            job = await worker.enter.using(key="entry-1", job_id="job").submit(2)
            await job.result(timeout=WAIT_S)
            assert (await job.info()).version == 1
        assert (worker.ran, entries(path)) == ([2], [])

    asyncio.run(main())


def test_p04_a_worker_of_another_process_sees_the_job_after_the_commit_only(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    worker = Worker(path)

    async def main() -> None:
        async with worker.scheduler:
            with running(WRITE_WHEN_TOLD, path, 7) as process:
                assert await line_of(process) == "inserted job\n"
                await asyncio.sleep(0.5)
                assert await worker.scheduler.jobs() == []
                assert worker.ran == []
                tell(process)
                assert await line_of(process) == "committed\n"
                job = await worker.scheduler.job("job")
                await job.result(timeout=WAIT_S)
                assert process.wait(WAIT_S) == 0
        assert (worker.ran, entries(path)) == ([7], [7])

    asyncio.run(main())


@pytest.mark.timeout(300)
def test_p04_killed_at_random_the_application_s_rows_and_its_jobs_are_the_same_ones(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    worker = Worker(path)
    rng = new_rng(4)
    made: Counter[str | None] = Counter()

    async def main() -> None:
        async with worker.scheduler as scheduler:
            for sweep in range(10):
                with ExitStack() as stack:
                    three = [
                        stack.enter_context(running(WRITE_FOR_EVER, path, (sweep * 3 + one) * 100_000))
                        for one in range(3)
                    ]
                    for process in three:
                        assert await line_of(process) == "ready\n"
                    for process in three:
                        tell(process)
                    for process in three:
                        await asyncio.sleep(rng.uniform(0, 0.1))
                        process.kill()
            await scheduler.drain(timeout=WAIT_S)
            before: int | None = None
            while page := await scheduler.jobs(limit=1000, before=before):
                assert {info.status for info in page} == {JobStatus.COMPLETED}
                made.update(info.key for info in page)
                before = page[-1].version

    asyncio.run(main())
    rows = Counter(entries(path))
    assert made == Counter(f"entry-{number}" for number in rows)
    assert Counter(worker.ran) == rows
    assert set(rows.values()) == {1}
    assert not [number for number in rows if number % 5 == 0], "they were rolled back"
    with closing(sqlite3.connect(path)) as sql:
        assert sql.execute("PRAGMA integrity_check").fetchone() == ("ok",)
