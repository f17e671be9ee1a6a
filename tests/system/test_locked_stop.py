"""Stopping while another program keeps the file locked: it ends soon after its limit, and nothing is lost."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from betimes import JobStatus, Scheduler
from betimes.clock import monotonic_s
from betimes.tasks import Task


def make(path: Path, runs: list[str], started: asyncio.Event) -> tuple[Scheduler, Task[[str], None]]:
    scheduler = Scheduler(path, lease="2s", grace="2s", watchdog=None)

    @scheduler.task(name="work")
    async def work(name: str) -> None:
        runs.append(name)
        started.set()
        if len(runs) == 1:
            await asyncio.Event().wait()

    return scheduler, work


async def stop_while_locked(path: Path, runs: list[str]) -> tuple[str, float]:
    started = asyncio.Event()
    scheduler, work = make(path, runs, started)
    await scheduler.start()
    handle = await work.submit("a")
    await started.wait()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    before = monotonic_s()
    await scheduler.stop(timeout=0.1)
    took_s = monotonic_s() - before
    other.execute("ROLLBACK")
    other.close()
    return handle.id, took_s


async def start_again(path: Path, runs: list[str], job_id: str) -> JobStatus:
    scheduler, _ = make(path, runs, asyncio.Event())
    async with scheduler:
        return await (await scheduler.job(job_id)).wait(timeout=60)


def test_case_062_a_stop_ends_although_another_program_keeps_the_file_locked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, runs = tmp_path / "jobs.db", list[str]()
    job_id, took_s = asyncio.run(stop_while_locked(path, runs))
    assert took_s < 9, "one of its calls alone would wait ten seconds for the lock"
    assert "could not be saved" in caplog.text
    # It was told to stop, and its lease has run out: the next start runs it again.
    assert asyncio.run(start_again(path, runs, job_id)) is JobStatus.COMPLETED
    assert runs == ["a", "a"]
