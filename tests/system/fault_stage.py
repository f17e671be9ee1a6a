"""Starts the processes of the fault tests, and judges what is left of them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from time import monotonic, sleep
from typing import IO

from tests.system import evidence
from tests.system.checker import Final, Rules, Verdict, check
from tests.system.evidence import Entry
from tests.system.fault_program import Options
from tests.system.fault_tasks import GRID, rules

from betimes import JobInfo, Scheduler

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("fault_program.py")
WAIT_S = 40
BEHIND_US = 1_000_000
"""How far a server's time, as it is known between two of its answers, may be behind on a busy machine."""


class Process:
    """One process of a fault test."""

    def __init__(self, process: subprocess.Popen[str], file: Path) -> None:
        self._process = process
        self._file = file
        self.pid = process.pid
        assert process.stdout is not None
        self._out: IO[str] = process.stdout

    def says(self, text: str) -> None:
        """Wait until it says this."""
        for line in self._out:
            if line.strip() == text:
                return
        raise AssertionError(f"it ended with {self._process.wait(WAIT_S)} and never said {text!r}")

    def signal(self, number: signal.Signals, *, is_deadly: bool = False) -> None:
        """Send it a signal; that goes into the evidence first."""
        is_deadly |= number in {signal.SIGKILL, signal.SIGSTOP}
        what = "cut" if is_deadly else "told"
        if number is not signal.SIGCONT:
            evidence.note(what, worker=self.pid, file=self._file)
        self._process.send_signal(number)

    def ends(self) -> tuple[int, str]:
        """Wait for its end; return its exit code and what it had still to say."""
        words, _ = self._process.communicate(timeout=WAIT_S)
        return self._process.returncode, words

    @property
    def is_over(self) -> bool:
        return self._process.poll() is not None


class FaultStage:
    """A store, the evidence beside it, and processes that work on it.

    Args:
        folder: where the files are.
        is_wal: whether the store's file may use a write-ahead log.
        url: where the store is, if it is no file.
    """

    def __init__(self, folder: Path, *, is_wal: bool = True, url: str | None = None) -> None:
        self.store: Path | str = folder / "jobs.db" if url is None else url
        self.file = folder / "evidence.jsonl"
        if isinstance(self.store, Path) and not is_wal:
            make_application_file(self.store)

    @contextmanager
    def running(self, role: str, options: Options, *, via: str | None = None) -> Iterator[Process]:
        """A process, which may reach the store by another way; killed at the end of the block."""
        store = self.store if via is None else via
        with self.started(PROGRAM, role, store, self.file, json.dumps(asdict(options))) as process:
            yield process

    @contextmanager
    def started(self, program: Path, *words: object) -> Iterator[Process]:
        """A process of any program; killed at the end of the block."""
        with subprocess.Popen(
            [sys.executable, program, *map(str, words)], text=True, stdout=subprocess.PIPE, cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
        ) as process:  # fmt: skip
            try:
                yield Process(process, self.file)
            finally:
                process.kill()

    def entries(self) -> list[Entry]:
        return evidence.read(self.file)

    def until(self, holds: Callable[[list[Entry]], bool], what: str) -> None:
        """Wait until the evidence shows something."""
        until = monotonic() + WAIT_S
        while not holds(self.entries()):
            assert monotonic() < until, f"waited in vain: {what}"
            sleep(0.01)

    async def _rests(self) -> None:
        """See that the store's own numbers say so too: nothing is live, and the dead hold no permits."""
        async with Scheduler(self.store).client() as client:
            metrics = await client.metrics()
            live = (metrics.ready, metrics.delayed, metrics.blocked, metrics.running)
            assert live == (0, 0, 0, 0), live
            held = {limit.name: limit.held for limit in await client.limits() if limit.held}
            assert held == {}, held

    async def _read(self) -> tuple[Final, Rules]:
        jobs: list[JobInfo] = []
        async with Scheduler(self.store).client() as client:
            while page := await client.jobs(limit=1000, before=jobs[-1].version if jobs else None):
                jobs += page
            grid = next(iter(await client.schedules()), None)
            fires = {} if grid is None else {GRID: await client.schedule_history(GRID, limit=1000)}
        found = {job.id: job for job in jobs}
        assert len(found) == len(jobs), "an id has several versions"
        behind_us = 0 if isinstance(self.store, Path) else BEHIND_US
        return Final(jobs=found, fires=fires), replace(rules(grid), behind_us=behind_us)

    def everything(self) -> tuple[Final, Rules]:
        """Read everything there is through the public interface, and what it was promised."""
        return asyncio.run(self._read())

    def final(self) -> Final:
        """Read everything there is."""
        return self.everything()[0]

    def judge(self) -> Verdict:
        """See that nothing was lost, repeated without a cause, too early, or too much; and a file sound."""
        final, promised = self.everything()
        verdict = check(self.entries(), final, promised)
        assert verdict.violations == [], verdict.violations
        asyncio.run(self._rests())
        if isinstance(self.store, Path):
            with closing(sqlite3.connect(f"file:{self.store}?mode=ro", uri=True)) as sql:
                assert sql.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return verdict


def make_application_file(path: Path) -> None:
    """Make a file that holds other tables, so that the store keeps to the rollback journal."""
    with closing(sqlite3.connect(path)) as sql:
        sql.execute("CREATE TABLE of_the_application (x)")
        sql.commit()
