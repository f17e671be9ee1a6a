"""Several processes on one file: each job runs once, each key is one job, each schedule goes on."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.system.checker import check
from tests.system.evidence import Entry, micros
from tests.system.fault_program import Options
from tests.system.fault_stage import ROOT, WAIT_S, FaultStage, Process
from tests.system.fault_tasks import GRID, Tasks, i_am, rules

from betimes import JobStatus, Scheduler
from betimes.clock import SystemClock
from betimes.core.events import Succeeded
from betimes.core.job import Job, JobSpec
from betimes.ports import ClaimRequest, Report, WorkerInfo
from betimes.stores.sqlite import SqliteStore

WORKER = Options(lease="5s")


def submit(stage: FaultStage, kind: str, pause_s: float, **options: object) -> str:
    """Submit one job from here, and return its id."""

    async def main() -> str:
        scheduler = Scheduler(stage.store)
        tasks = Tasks(scheduler)
        async with scheduler.client():
            return await tasks.submit(kind, "only", pause_s, **options)

    i_am(1, stage.file)
    return asyncio.run(main())


def begun(entries: list[Entry], worker: Process | None = None) -> list[Entry]:
    return [e for e in entries if e.what == "begin" and (worker is None or e.worker == worker.pid)]


def judge_and_end(stage: FaultStage, *workers: Process) -> None:
    """End the workers, and see that nothing is wrong."""
    for worker in workers:
        worker.signal(signal.SIGTERM)
    for worker in workers:
        assert worker.ends()[0] == 0
    stage.judge()


@pytest.mark.parametrize("is_alone", [False, True], ids=["another-lives", "it-is-started-again"])
def test_p11_p24_case_088_the_job_of_a_killed_worker_runs_again(tmp_path: Path, is_alone: bool) -> None:
    stage = FaultStage(tmp_path)
    job = submit(stage, "loop", 2.0)
    with ExitStack() as stack:
        first = stack.enter_context(stage.running("work", WORKER))
        stage.until(lambda entries: len(begun(entries, first)) == 1, "it runs")
        if is_alone:
            first.signal(signal.SIGKILL)
        second = stack.enter_context(stage.running("work", WORKER))
        second.says("begun")
        if not is_alone:
            first.signal(signal.SIGKILL)
        stage.until(lambda entries: len(begun(entries, second)) == 1, "it runs again")
        stage.until(lambda entries: any(e.what == "recorded" for e in entries), "its end is recorded")
        judge_and_end(stage, second)
    info = stage.final().jobs[job]
    assert info.status is JobStatus.COMPLETED
    assert [attempt.outcome for attempt in info.attempts] == ["lost", "completed"]
    assert (info.attempt, info.crashes) == (1, 1), "a crash uses no attempt"
    assert f"(pid {first.pid} on " in str(info.attempts[0].note)
    assert "its process is gone" in str(info.attempts[0].note)


def test_p14_case_090_a_job_that_is_due_in_ten_leases_runs_once_among_four_workers(tmp_path: Path) -> None:
    stage = FaultStage(tmp_path)
    due = datetime.now(UTC) + timedelta(seconds=10)
    job = submit(stage, "loop", 0.01, run_at=due)
    with ExitStack() as stack:
        workers = [stack.enter_context(stage.running("work", Options(lease="1s"))) for _ in range(4)]
        stage.until(lambda entries: any(e.what == "recorded" for e in entries), "its end is recorded")
        judge_and_end(stage, *workers)
    (run,) = begun(stage.entries())
    assert run.at >= micros(due)
    assert stage.final().jobs[job].fence == 1, "it was claimed once"


def test_p18_case_043_runs_of_two_processes_never_overlap(tmp_path: Path) -> None:
    stage = FaultStage(tmp_path)
    options = Options(for_s=4.0, jobs=0, overlap="skip", tick_s=0.5)
    with ExitStack() as stack:
        both = [stack.enter_context(stage.running("all", options)) for _ in range(2)]
        assert [process.ends()[0] for process in both] == [0, 0]
    final, promised = stage.everything()
    alone = replace(promised, limits={"tick": 1})
    assert check(stage.entries(), final, alone).violations == []
    fates = {fire.outcome.value for fire in final.fires[GRID]}
    assert {"fired", "overlap"} <= fates, "some had to be skipped"


@pytest.mark.timeout(120)
def test_p18_case_102_the_next_occurrence_comes_whoever_is_killed_at_the_last(tmp_path: Path) -> None:
    stage = FaultStage(tmp_path)
    options = Options(for_s=3600.0, tick_s=0.3, after="finish")
    with ExitStack() as stack:
        workers = [stack.enter_context(stage.running("tick", options)) for _ in range(3)]
        for moment in ("begin", "end", "begin", "recorded"):
            seen = len(stage.entries())
            stage.until(
                lambda entries, seen=seen, moment=moment: any(e.what == moment for e in entries[seen:]),  # type: ignore[misc]
                "the next occurrence",
            )
            pid = next(e.worker for e in stage.entries()[seen:] if e.what == moment)
            (killed,) = (worker for worker in workers if worker.pid == pid)
            killed.signal(signal.SIGKILL)
            killed.ends()
            workers.remove(killed)
            workers.append(stack.enter_context(stage.running("tick", options)))
        seen = len(begun(stage.entries()))
        stage.until(lambda entries: len(begun(entries)) >= seen + 3, "it goes on")
    verdict = check(stage.entries(), stage.final(), rules(None))
    assert [text for text in verdict.violations if "in the end" not in text] == []


RACERS = """
import asyncio, sys
from concurrent.futures import ThreadPoolExecutor
from betimes import Scheduler

scheduler = Scheduler(sys.argv[1])

@scheduler.task(name="t")
async def t(x: int) -> None: ...

async def main():
    async with scheduler.client():
        print("open", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        bound = t.using(key="k").bind(1)
        with ThreadPoolExecutor(50) as pool:
            loop = asyncio.get_running_loop()
            submit = lambda: scheduler.submit_threadsafe(bound).result().id
            ids = await asyncio.gather(*[loop.run_in_executor(pool, submit) for _ in range(50)])
            print(*set(ids), flush=True)

asyncio.run(main())
"""


def test_p03_case_124_threads_of_several_processes_submit_one_key_and_make_one_job(
    tmp_path: Path,
) -> None:
    stage = FaultStage(tmp_path)
    with ExitStack() as stack:
        command = [sys.executable, "-c", RACERS, str(stage.store)]
        racers = [
            stack.enter_context(
                subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT / "src"
                )
            )
            for _ in range(4)
        ]
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "open\n"
        ids = {word for racer in racers for word in racer.communicate("go\n", timeout=WAIT_S)[0].split()}
        assert [racer.returncode for racer in racers] == [0] * 4
    assert ids == set(stage.final().jobs)
    assert len(ids) == 1


def test_p08_case_098_of_a_rescue_and_an_end_over_two_connections_one_counts(tmp_path: Path) -> None:
    clock = SystemClock()

    async def round_of(number: int, mine: SqliteStore, others: SqliteStore) -> bool:
        """One job whose lease is over ends while it is rescued; return whether the end counted."""
        new = Job(f"job-{number}", JobSpec(task="t"), submitted_at=clock.now(), run_at=clock.now())
        worker = f"w-{number}"
        await mine.register(WorkerInfo(id=worker, lease_us=3600 * 1_000_000))
        await mine.submit([new])
        (job,) = (await mine.exchange([], ClaimRequest(worker=worker, limit=1, lanes={"loop": 1}))).claimed
        gone.add(worker)
        report = Report(job, job.fence, Succeeded(clock.now(), b"1"))
        first = asyncio.create_task(others.rescue({"t"})) if number % 2 else None
        ending = asyncio.create_task(mine.exchange([report], None))
        rescued = await (first or others.rescue({"t"}))
        exchange = await ending
        kept = await mine.find(new.id)
        assert kept is not None
        has_ended = exchange.steps != [None]
        assert has_ended is (kept.status is JobStatus.COMPLETED)
        assert has_ended is not bool(rescued), "the one or the other"
        if not has_ended:
            await mine.cancel(kept, reason="over")
        return has_ended

    gone: set[str] = set()

    async def main() -> list[bool]:
        mine, others = (
            SqliteStore(tmp_path / "jobs.db", clock=clock, is_gone=lambda info: info.id in gone)
            for _ in range(2)
        )
        await mine.open(strategy="priority")
        await others.open(strategy="priority")
        counted = [await round_of(number, mine, others) for number in range(60)]
        await others.close()
        await mine.close()
        return counted

    assert len(asyncio.run(main())) == 60
