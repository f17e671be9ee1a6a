"""Signals under load: workers are killed at random, or told to end; then the checker judges."""

from __future__ import annotations

import os
import random
import signal
from contextlib import ExitStack
from pathlib import Path
from time import sleep

import pytest
from tests.system.evidence import Entry
from tests.system.fault_program import Options
from tests.system.fault_stage import FaultStage, Process

KILLS = int(os.environ.get("BETIMES_TEST_KILLS", "4"))
"""How often a worker is killed; more is set for a longer trial."""

FOR_EVER = Options(for_s=4.0, jobs=1_000_000, pace_s=0.05, pause_s=0.03, name="s-")
WORKER = Options(drain="2s")
REST = Options(jobs=0, for_s=0.2)

JOURNALS = pytest.mark.parametrize("is_wal", [True, False], ids=["wal", "rollback-journal"])


def begun(entries: list[Entry], worker: Process, task: str | None = None) -> int:
    """How many runs of this worker have begun."""
    return sum(
        entry.what == "begin" and entry.worker == worker.pid and task in {None, entry.task}
        for entry in entries
    )


def finish(stage: FaultStage) -> None:
    """Have one more worker do what is left, and judge all of it."""
    with stage.running("all", REST) as last:
        code, words = last.ends()
    assert (code, words.splitlines()[-1]) == (0, "over")
    verdict = stage.judge()
    assert sum(entry.what == "kept" for entry in stage.entries()) > 10
    print(f"{len(verdict.duplicates)} runs came to their end and were repeated")


@pytest.mark.timeout(60 + 30 * KILLS)
@JOURNALS
def test_p01_p06_p07_p11_p19_p24_workers_are_killed_at_random_under_load(
    tmp_path: Path, is_wal: bool
) -> None:
    rng = random.Random(20_260_101 + is_wal)
    stage = FaultStage(tmp_path, is_wal=is_wal)
    with ExitStack() as stack:
        submitter = stack.enter_context(stage.running("submit", FOR_EVER))
        submitter.says("begun")
        workers = [stack.enter_context(stage.running("work", WORKER)) for _ in range(2)]
        for kill in range(KILLS):
            worker = workers.pop(rng.randrange(len(workers)))
            stage.until(lambda entries, worker=worker: begun(entries, worker) > 0, "a run")  # type: ignore[misc]
            sleep(rng.random() * 0.4)
            worker.signal(signal.SIGKILL)
            worker.ends()
            if kill == KILLS // 2:
                submitter.signal(signal.SIGKILL)
                submitter.ends()
                submitter = stack.enter_context(stage.running("submit", FOR_EVER))
            workers.append(stack.enter_context(stage.running("work", WORKER)))
        for process in (submitter, *workers):
            process.signal(signal.SIGKILL)
            process.ends()
    finish(stage)


@pytest.mark.timeout(120)
@JOURNALS
def test_p21_a_worker_that_is_told_to_end_under_load_gives_back_what_it_cannot_finish(
    tmp_path: Path, is_wal: bool
) -> None:
    stage = FaultStage(tmp_path, is_wal=is_wal)
    load = Options(for_s=1.0, jobs=48, pause_s=0.2, stubborn=2, name="s-")
    with stage.running("submit", load) as submitter, stage.running("work", WORKER) as worker:
        stage.until(lambda entries: begun(entries, worker, "stubborn") == 2, "the stubborn jobs")
        assert submitter.ends()[0] == 0
        worker.signal(signal.SIGTERM)
        code, words = worker.ends()  # within the drain and five seconds more, however slow the machine
    assert code == 0
    assert words.endswith("over\n")
    jobs = stage.final().jobs.values()
    assert {job.status.value for job in jobs} & {"running"} == set(), "nothing is left to its lease"
    given_back = [job for job in jobs if [each.outcome for each in job.attempts] == ["given_back"]]
    assert sum(job.task == "stubborn" for job in given_back) == 2
    assert all(job.attempt == 0 for job in given_back), "no attempt is used up"
    finish(stage)


@pytest.mark.timeout(120)
def test_p21_a_second_signal_under_load_ends_a_worker_at_once_and_loses_nothing(tmp_path: Path) -> None:
    stage = FaultStage(tmp_path)
    load = Options(for_s=1.0, jobs=24, pause_s=0.2, stubborn=1, name="s-")
    with stage.running("submit", load) as submitter:
        with stage.running("work", Options(drain="600s")) as worker:
            stage.until(lambda entries: begun(entries, worker, "stubborn") == 1, "the stubborn job")
            worker.signal(signal.SIGTERM)
            sleep(0.3)
            assert not worker.is_over, "a job that ignores it is waited for"
            worker.signal(signal.SIGTERM, is_deadly=True)
            assert worker.ends()[0] == -signal.SIGTERM
        assert submitter.ends()[0] == 0
    finish(stage)
