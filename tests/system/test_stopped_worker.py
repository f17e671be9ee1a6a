"""A worker that is stopped (SIGSTOP) for longer than its lease: others take over, and it spoils nothing."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from time import monotonic, sleep

import pytest
from tests.system.checker import check
from tests.system.evidence import Entry
from tests.system.fault_stage import FaultStage, Process
from tests.system.stale_settings import JOBS, SLEEP_S

from betimes import JobStatus, Scheduler

PROGRAM = Path(__file__).with_name("stale_program.py")

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="this system cannot stop a process")


def count(entries: list[Entry], what: str, worker: Process, *, job: str | None = None) -> int:
    found = [entry for entry in entries if (entry.what, entry.worker) == (what, worker.pid)]
    return sum(job in {None, entry.job} for entry in found)


def refused(entries: list[Entry], worker: Process) -> int:
    """How many reports and leases the worker says it has lost so far."""
    return max((e.attempt for e in entries if (e.what, e.worker) == ("refused", worker.pid)), default=0)


async def logs_and_results(store: Path | str) -> tuple[set[str], set[object]]:
    async with Scheduler(store).client() as client:
        handles = [await client.job(info.id) for info in await client.jobs()]
        lines = {str(line) for handle in handles for line in await handle.log()}
        return lines, {await handle.result() for handle in handles}


async def submit_afterwards(store: Path | str) -> str:
    scheduler = Scheduler(store)

    @scheduler.task(name="afterwards")
    async def afterwards() -> str:
        return "never here"

    async with scheduler.client():
        return (await afterwards.submit()).id


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_p07_p24_case_092_a_worker_that_was_stopped_past_its_lease_is_refused_and_goes_on(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else None
    stage, go = FaultStage(tmp_path, url=url), tmp_path / "go"
    words = stage.store, stage.file, go
    with stage.started(PROGRAM, "A", *words) as a:
        stage.until(lambda entries: count(entries, "begin", a) == JOBS, "all jobs run at A")
        a.signal(signal.SIGSTOP)
        stopped_at = monotonic()
        with stage.started(PROGRAM, "B", *words) as b:
            stage.until(lambda entries: count(entries, "begin", b) == JOBS, "all jobs run at B")
            sleep(max(0.0, stopped_at + SLEEP_S + 0.5 - monotonic()))  # what sleeps at A wakes up late
            a.signal(signal.SIGCONT)
            stage.until(lambda entries: refused(entries, a) >= JOBS, "A is refused, and counts it")
            stage.until(lambda entries: count(entries, "stopped", a) == 2, "A's code is told to stop")
            assert count(stage.entries(), "end", b) == 0, "B has it all, and is still running"
            go.touch()
            stage.until(lambda entries: count(entries, "recorded", b) == JOBS, "B's ends are recorded")
        lines, results = asyncio.run(logs_and_results(stage.store))
        assert (lines, results) == (set(), {"B"}), "nothing of A's is left"
        new = asyncio.run(submit_afterwards(stage.store))
        stage.until(lambda entries: count(entries, "recorded", a, job=new) == 1, "A goes on")
    entries = stage.entries()
    assert refused(entries, a) == JOBS, "each was counted once"
    for job in {entry.job for entry in entries if entry.what == "kept"}:
        runs = [(e.worker, e.fence) for e in entries if (e.what, e.job) == ("begin", job)]
        assert runs == [(a.pid, 1), (b.pid, 3)]
    final = stage.final()
    assert {job.status for job in final.jobs.values()} == {JobStatus.COMPLETED}
    assert check(entries, final, stage.everything()[1]).violations == []
    notes = {job.attempts[0].note for job in final.jobs.values() if len(job.attempts) == 2}
    assert len(notes) == 1
    assert f"(pid {a.pid} on " in str(notes)
    assert "it did not prolong its lease in time" in str(notes)
