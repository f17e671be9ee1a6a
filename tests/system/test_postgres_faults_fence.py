"""A worker that reaches PostgreSQL no more lets go of its jobs before another has them."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from tests.postgres.server import Server
from tests.system import evidence
from tests.system.checker import Rules, check
from tests.system.evidence import Entry
from tests.system.fault_stage import BEHIND_US, FaultStage, Process
from tests.system.fence_settings import KINDS, LEASE_S, cut_off_beside
from tests.system.tcp_proxy import Proxy

from betimes import JobStatus, Scheduler

PROGRAM = Path(__file__).with_name("fence_program.py")
PROMISED = Rules(once=frozenset({"once"}), behind_us=BEHIND_US)


@pytest.fixture
def proxy(postgres: Server) -> Iterator[Proxy]:
    with Proxy(postgres.port) as proxy:
        yield proxy


def submit(stage: FaultStage, *tasks: str) -> dict[str, str]:
    """Submit one job of each task from here; return their ids."""

    async def main() -> dict[str, str]:
        scheduler = Scheduler(stage.store)
        known: dict[str, Any] = {
            "command": scheduler.command("command", [sys.executable, str(PROGRAM), "alive"]),
            "once": scheduler.task(name="once", delivery="at_most_once")(nothing),
            "thread": scheduler.task(name="thread")(nothing_in_thread),
            "process": scheduler.task(name="process", executor="process")(nothing_in_thread),
            "loop": scheduler.task(name="loop")(nothing),
            "brief": scheduler.task(name="brief")(nothing),
        }
        async with scheduler.client():
            return {task: (await known[task].submit()).id for task in tasks}

    ids = asyncio.run(main())
    for task, job in ids.items():
        evidence.note("kept", job=job, task=task, worker=1, file=stage.file)
    return ids


def began(entries: list[Entry], job: str, worker: Process) -> list[Entry]:
    return [e for e in entries if (e.what, e.job, e.worker) == ("begin", job, worker.pid)]


def last_life(entries: list[Entry], job: str, worker: Process) -> int:
    """When the job's code was last known to live under this worker."""
    return max(e.at for e in entries if (e.what, e.job, e.worker) == ("alive", job, worker.pid))


def lost(entries: list[Entry], worker: Process) -> int:
    """How many leases, and reports, the worker says it has lost."""
    said = [e for e in entries if (e.what, e.worker) == ("lost", worker.pid)]
    return said[-1].attempt + said[-1].fence


@pytest.mark.timeout(90)
@pytest.mark.parametrize("directions", [("up", "down"), ("down",)], ids=["all", "answers"])
def test_p06_p12_p23_a_worker_that_is_cut_off_lets_go_before_another_begins(
    tmp_path: Path, postgres_url: str, proxy: Proxy, directions: tuple[str, ...]
) -> None:
    stage = FaultStage(tmp_path, url=postgres_url)
    ids = submit(stage, *KINDS, "once", "brief")
    via = f"{proxy.url(postgres_url)}&connect_timeout=2"
    with stage.started(PROGRAM, via, stage.file) as cut_off:
        stage.until(lambda entries: all(began(entries, job, cut_off) for job in ids.values()), "all run")
        evidence.note("cut", worker=cut_off.pid, file=stage.file)
        proxy.swallow(*directions)
        cut_off_beside(stage.file).touch()
        with stage.started(PROGRAM, stage.store, stage.file) as other:
            again = [job for task, job in ids.items() if task != "once"]
            stage.until(lambda entries: all(began(entries, job, other) for job in again), "all run again")
            entries = stage.entries()
            for kind in KINDS:
                (second,) = began(entries, ids[kind], other)
                assert last_life(entries, ids[kind], cut_off) < second.at, f"{kind} ran twice at once"
            rescued_at = min(began(entries, job, other)[0].at for job in again)
            assert last_life(entries, ids["once"], cut_off) < rescued_at
            ended = [e for e in entries if (e.what, e.job, e.fence) == ("end", ids["brief"], 1)]
            assert len(ended) == 1, "this one had come to its end, unheard"
            proxy.swallow()
            stage.until(lambda entries: lost(entries, cut_off) >= len(ids), "it is refused, and counts it")
        new = submit(stage, "brief")["brief"]
        stage.until(lambda entries: len(began(entries, new, cut_off)) == 1, "it goes on")
        stage.until(
            lambda entries: any(e.what == "recorded" and e.job == new for e in entries), "that is recorded"
        )
    final = stage.final()
    assert check(stage.entries(), final, PROMISED).violations == []
    outcomes = {task: [each.outcome for each in final.jobs[job].attempts] for task, job in ids.items()}
    assert {task: each for task, each in outcomes.items() if task != "once"} == {
        task: ["lost", "completed"] for task in (*KINDS, "brief")
    }
    assert final.jobs[ids["once"]].status is JobStatus.FAILED


@pytest.mark.timeout(90)
def test_p07_p12_p23_what_ended_while_a_lone_worker_was_cut_off_is_recorded_afterwards(
    tmp_path: Path, postgres_url: str, proxy: Proxy
) -> None:
    stage = FaultStage(tmp_path, url=postgres_url)
    ids = submit(stage, *KINDS, "once", "brief")
    via = f"{proxy.url(postgres_url)}&connect_timeout=2"
    with stage.started(PROGRAM, via, stage.file) as worker:
        stage.until(lambda entries: all(began(entries, job, worker) for job in ids.values()), "all run")
        evidence.note("cut", worker=worker.pid, file=stage.file)
        proxy.swallow("up", "down")
        cut_off_beside(stage.file).touch()
        stage.until(
            lambda entries: any((e.what, e.job, e.fence) == ("end", ids["loop"], 1) for e in entries),
            "it lets go",
        )
        proxy.swallow()
        stage.until(
            lambda entries: {e.job for e in entries if e.what == "recorded"} == set(ids.values()),
            "all ends are recorded",
        )
    final = stage.final()
    assert check(stage.entries(), final, PROMISED).violations == []
    assert [each.outcome for each in final.jobs[ids["brief"]].attempts] == ["completed"]
    for kind in KINDS:
        info = final.jobs[ids[kind]]
        assert [each.outcome for each in info.attempts] == ["given_back", "completed"]
        assert (info.attempt, info.crashes) == (1, 0), "no attempt is used up, and nothing has crashed"
    once = final.jobs[ids["once"]]
    assert once.status is JobStatus.FAILED
    assert "the lease could not be prolonged in time" in str(once.error)


@pytest.mark.timeout(90)
def test_p24_a_lone_worker_that_was_asleep_for_longer_than_its_lease_goes_on(
    tmp_path: Path, postgres_url: str
) -> None:
    stage = FaultStage(tmp_path, url=postgres_url)
    ids = submit(stage, "loop", "thread")
    with stage.started(PROGRAM, stage.store, stage.file) as worker:
        stage.until(lambda entries: all(began(entries, job, worker) for job in ids.values()), "both run")
        worker.signal(signal.SIGSTOP)
        sleep(LEASE_S + 1.0)
        woken_at = evidence.now_us()
        worker.signal(signal.SIGCONT)
        later = woken_at + round(LEASE_S / 2 * 1_000_000)
        stage.until(
            lambda entries: all(last_life(entries, job, worker) > later for job in ids.values()),
            "both go on, for nobody has taken them",
        )
        assert lost(stage.entries(), worker) == 0


async def nothing() -> None: ...


def nothing_in_thread() -> None: ...
