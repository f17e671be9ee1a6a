"""A PostgreSQL server goes down under load, or a worker does: nothing is lost, and the checker judges."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from time import sleep

import pytest
from tests.postgres.server import Mode, Server, fresh_schema, start_server
from tests.system.checker import check
from tests.system.evidence import Entry
from tests.system.fault_program import Options
from tests.system.fault_stage import FaultStage, Process
from tests.system.fault_tasks import GRID

LOAD = Options(fatal=-1, jobs=1_000_000, pace_s=0.05, pause_s=0.03, name="s-")
WORKER = Options(fatal=-1, drain="5s")
REST = Options(fatal=-1, jobs=0, for_s=0.2)
KILLS = 3


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server as durable as by default, which these tests may bring down."""
    with start_server(settings={}) as server:
        yield server


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    with fresh_schema(server) as url:
        yield url


def count(entries: list[Entry], what: str, worker: Process | None = None) -> int:
    return sum(e.what == what and (worker is None or e.worker == worker.pid) for e in entries)


def has_more(stage: FaultStage, what: str, more: int, worker: Process | None = None) -> None:
    """Wait until so many more lines of evidence say this."""
    seen = count(stage.entries(), what, worker)
    stage.until(lambda entries: count(entries, what, worker) >= seen + more, f"{more} more {what}")


def end(stage: FaultStage, *processes: Process) -> None:
    """End these in order, have one more worker do what is left, and judge all of it."""
    for process in processes:
        process.signal(signal.SIGTERM)
    for process in processes:
        process.ends()
    with stage.running("all", REST) as last:
        code, words = last.ends()
    assert (code, words.splitlines()[-1]) == (0, "over")
    stage.judge()


@pytest.mark.timeout(90)
@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_p01_p06_p09_p11_p16_p19_p23_the_server_goes_down_twice_under_load(
    tmp_path: Path, server: Server, url: str, mode: Mode
) -> None:
    stage = FaultStage(tmp_path, url=url)
    with ExitStack() as stack:
        submitter = stack.enter_context(stage.running("submit", replace(LOAD, for_s=6.0)))
        submitter.says("begun")
        workers = [stack.enter_context(stage.running("work", WORKER)) for _ in range(2)]
        for worker in workers:
            has_more(stage, "recorded", 3, worker)
        server.restart(mode)
        for worker in workers:
            has_more(stage, "recorded", 5, worker)
        server.shut_down(mode)
        sleep(2.0)
        assert not any(process.is_over for process in (submitter, *workers)), "nobody minds"
        server.start()
        has_more(stage, "kept", 5)
        for worker in workers:
            has_more(stage, "recorded", 5, worker)
        submitter.signal(signal.SIGKILL)
        submitter.ends()
        end(stage, *workers)
    runs = [(entry.job, entry.fence) for entry in stage.entries() if entry.what == "begin"]
    assert len(set(runs)) == len(runs)
    lost = [a for job in stage.final().jobs.values() for a in job.attempts if a.outcome == "lost"]
    assert lost == [], "no worker lost its lease by a short outage"


@pytest.mark.timeout(90)
def test_p01_p06_p07_p11_p19_p24_workers_are_killed_at_random_under_load(tmp_path: Path, url: str) -> None:
    rng = random.Random(20_260_101)
    stage = FaultStage(tmp_path, url=url)
    with ExitStack() as stack:
        submitter = stack.enter_context(stage.running("submit", replace(LOAD, for_s=3.0)))
        submitter.says("begun")
        workers = [stack.enter_context(stage.running("work", WORKER)) for _ in range(2)]
        for kill in range(KILLS):
            worker = workers.pop(rng.randrange(len(workers)))
            has_more(stage, "begin", 1, worker)
            sleep(rng.random() * 0.4)
            worker.signal(signal.SIGKILL)
            worker.ends()
            if kill == KILLS // 2:
                submitter.signal(signal.SIGKILL)
                submitter.ends()
                submitter = stack.enter_context(stage.running("submit", LOAD))
            workers.append(stack.enter_context(stage.running("work", WORKER)))
        has_more(stage, "recorded", 10)
        submitter.signal(signal.SIGKILL)
        submitter.ends()
        end(stage, *workers)
    killed = [job for job in stage.final().jobs.values() if any(a.outcome == "lost" for a in job.attempts)]
    assert all("its process is gone" in str(a.note) for job in killed for a in job.attempts if a.note)


@pytest.mark.timeout(90)
def test_p16_p17_p18_two_workers_fire_at_the_same_instants_while_the_server_crashes(
    tmp_path: Path, server: Server, url: str
) -> None:
    stage = FaultStage(tmp_path, url=url)
    firing = Options(fatal=-1, for_s=6.0)
    with ExitStack() as stack:
        both = [stack.enter_context(stage.running("tick", firing)) for _ in range(2)]
        for worker in both:
            worker.says("begun")
        has_more(stage, "recorded", 5)
        server.restart("immediate")
        has_more(stage, "recorded", 5)
        end(stage, *both)
    final, promised = stage.everything()
    assert check(stage.entries(), final, promised).violations == []
    assert len(final.fires[GRID]) >= 25, "each instant had its fate"


@pytest.mark.timeout(90)
def test_p01_p02_p06_p07_p16_a_process_may_die_at_any_answer_of_the_store(tmp_path: Path, url: str) -> None:
    stage = FaultStage(tmp_path, url=url)
    rng = random.Random(20_260_102)
    for _ in range(6):
        with stage.running("all", Options(for_s=1.0, fatal=rng.randrange(4, 60))) as doomed:
            doomed.ends()
    end(stage)
