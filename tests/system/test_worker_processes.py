"""`betimes worker --processes`: several real workers, what ends them, and who starts them anew."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.processes import Program, start
from tests.system.process_stage import is_gone, wait_until

from betimes import JobStatus, Scheduler
from betimes.cli.exits import Exit

APP = """
import asyncio, os, pathlib, signal, time
from betimes import Scheduler

scheduler = Scheduler(os.environ.get("STORE", "jobs.db"), watchdog=None, poll=0.2, concurrency=2)

def say(text):
    with open("said.txt", "a") as file:
        file.write(f"{text}\\n")

if pathlib.Path("broken").exists():
    os.kill(os.getpid(), signal.SIGKILL)

@scheduler.task
async def wait(seconds: float) -> None:
    say(f"begun in {os.getpid()}")
    await asyncio.sleep(seconds)
    say("over")

@scheduler.task
async def hold(seconds: float) -> None:
    say(f"begun in {os.getpid()}")
    time.sleep(seconds)
"""

Start = Callable[..., Program]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith(("BETIMES_", "COV"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.betimes]\n")
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


@pytest.fixture(params=["file", "server"])
def store(request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the program keeps its jobs in."""
    url: str = "jobs.db" if request.param == "file" else request.getfixturevalue("postgres_url")
    monkeypatch.setenv("STORE", url)
    return url


@pytest.fixture
def workers(folder: Path) -> Iterator[Start]:
    """Start `betimes worker app.py --processes …`; nothing of it is left after the test."""
    programs: list[Program] = []

    def begin(*arguments: str) -> Program:
        programs.append(start(folder, ("worker", "app.py", "--processes", *arguments)))
        return programs[-1]

    yield begin
    for program in programs:
        if program.process.poll() is None:  # its second signal kills all that it has started
            program.signal(signal.SIGTERM)
            program.signal(signal.SIGINT)
            program.end()
        program.kill()
        for pid in pids_of(program):
            wait_until(lambda pid=pid: is_gone(pid), f"the end of {pid}")  # type: ignore[misc]


def pids_of(program: Program) -> list[int]:
    """The processes of the workers that have come up, in that order."""
    return [int(pid) for pid in re.findall(r"worker \d+ of \d+ is up: process (\d+)", program.stderr)]


def all_up(program: Program, count: int) -> list[int]:
    program.wait_until(lambda: len(pids_of(program)) >= count, f"{count} workers are up")
    return pids_of(program)


def submit(store: str, name: str, seconds: float, *, times: int = 1) -> None:
    scheduler = Scheduler(store)

    @scheduler.task(name=f"app.{name}")
    async def task(seconds: float) -> None: ...

    async def main() -> None:
        async with scheduler.client():
            await scheduler.submit_many([task.bind(seconds) for _ in range(times)])

    asyncio.run(main())


def statuses(store: str) -> list[JobStatus]:
    scheduler = Scheduler(store)

    async def main() -> list[JobStatus]:
        async with scheduler.client():
            return [each.status for each in await scheduler.jobs()]

    return asyncio.run(main())


def begun(folder: Path) -> list[int]:
    """The processes in which jobs have begun, in that order."""
    path = folder / "said.txt"
    return [int(pid) for pid in re.findall(r"begun in (\d+)", path.read_text() if path.exists() else "")]


def over(folder: Path) -> int:
    return (folder / "said.txt").read_text().count("over")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_p21_workers_share_the_work_and_a_signal_lets_all_of_them_finish(
    folder: Path, store: str, workers: Start, number: signal.Signals
) -> None:
    program = workers("2")
    pids = all_up(program, 2)
    submit(store, "wait", 1.0, times=6)
    program.wait_until(lambda: len(begun(folder)) == 4, "two jobs begin in each worker")
    program.signal(number)
    assert program.end() == 0
    assert set(begun(folder)) == set(pids)
    assert len(begun(folder)) == over(folder) == 4
    assert sorted(statuses(store)) == [JobStatus.COMPLETED] * 4 + [JobStatus.READY] * 2
    assert all(map(is_gone, pids))
    assert f"{number.name}: all workers stop; the next signal ends them at once" in program.stderr
    assert program.stderr.count("has let go of it: stopping within 25 s") == 2


def test_p21_a_second_signal_ends_all_of_them_at_once(folder: Path, store: str, workers: Start) -> None:
    program = workers("2")
    pids = all_up(program, 2)
    submit(store, "wait", 600, times=4)
    program.wait_until(lambda: len(begun(folder)) == 4, "the jobs begin")
    program.signal(signal.SIGTERM)
    program.wait_for("stopping within", 2)
    program.signal(signal.SIGTERM)
    assert program.end() == Exit.INTERRUPTED
    assert all(map(is_gone, pids))
    assert "ended at once" in program.stderr


def test_a_service_manager_may_send_the_signal_to_every_process(folder: Path, workers: Start) -> None:
    program = workers("2")
    pids = all_up(program, 2)
    submit("jobs.db", "wait", 1.0, times=4)
    program.wait_until(lambda: len(begun(folder)) == 4, "the jobs begin")
    for pid in pids:
        os.kill(pid, signal.SIGTERM)
    program.signal(signal.SIGTERM)
    assert program.end() == 0
    assert over(folder) == 4


def test_p24_a_worker_that_dies_is_started_anew_and_its_jobs_run(
    folder: Path, store: str, workers: Start
) -> None:
    program = workers("2")
    pids = all_up(program, 2)
    submit(store, "wait", 1.5, times=2)
    program.wait_until(lambda: len(begun(folder)) == 2, "the jobs begin")
    os.kill(begun(folder)[0], signal.SIGKILL)
    all_up(program, 3)
    program.wait_until(lambda: over(folder) == 2, "the jobs end")
    assert len(begun(folder)) >= 3
    assert is_gone(begun(folder)[0])
    assert re.search(r"worker [12] has ended \(SIGKILL\): it starts anew in 0.5 s", program.stderr)
    assert len(set(pids_of(program)) - set(pids)) == 1
    program.signal(signal.SIGTERM)
    assert program.end() == 0
    assert statuses(store) == [JobStatus.COMPLETED] * 2


def test_a_worker_that_dies_at_once_is_started_more_and_more_rarely(folder: Path, workers: Start) -> None:
    (folder / "broken").touch()
    program = workers("3")
    program.wait_for("starts anew in 2 s")
    pauses = re.findall(r"worker 1 has ended \(SIGKILL\): it starts anew in ([0-9.]+) s", program.stderr)
    assert pauses == ["0.5", "1", "2"]
    assert "worker 2" not in program.stderr, "the others wait until one has come up"
    (folder / "broken").unlink()
    all_up(program, 3)
    program.signal(signal.SIGTERM)
    assert program.end() == 0


def test_a_signal_ends_the_wait_for_a_worker_that_dies_at_once(folder: Path, workers: Start) -> None:
    (folder / "broken").touch()
    program = workers("2")
    program.wait_for("starts anew in 1 s")
    program.signal(signal.SIGTERM)
    assert program.end() == 0


def test_p24_without_the_process_that_started_them_workers_finish_and_end(
    folder: Path, store: str, workers: Start
) -> None:
    program = workers("2")
    pids = all_up(program, 2)
    submit(store, "wait", 1.0, times=2)
    program.wait_until(lambda: len(begun(folder)) == 2, "the jobs begin")
    program.process.kill()
    for pid in pids:
        wait_until(lambda pid=pid: is_gone(pid), f"the end of {pid}")  # type: ignore[misc]
    assert over(folder) == 2
    assert statuses(store) == [JobStatus.COMPLETED] * 2


def test_a_worker_that_cannot_finish_is_not_left_behind(folder: Path, workers: Start) -> None:
    program = workers("1", "--drain", "0.1")
    (pid,) = all_up(program, 1)
    submit("jobs.db", "hold", 600)
    program.wait_until(lambda: len(begun(folder)) == 1, "the job begins, and blocks its worker")
    program.process.kill()
    wait_until(lambda: is_gone(pid), "the end of the worker")


def test_a_worker_that_cannot_finish_is_killed_and_the_exit_code_says_so(
    folder: Path, workers: Start
) -> None:
    program = workers("1", "--drain", "0.1")
    (pid,) = all_up(program, 1)
    submit("jobs.db", "hold", 600)
    program.wait_until(lambda: len(begun(folder)) == 1, "the job begins, and blocks its worker")
    program.signal(signal.SIGTERM)
    assert program.end() == Exit.NO
    assert is_gone(pid)
    assert "a worker has ended badly" in program.stderr


def test_a_burst_of_several_ends_when_nothing_is_left(folder: Path, store: str, workers: Start) -> None:
    submit(store, "wait", 0.2, times=10)
    program = workers("2", "--burst")
    assert program.end() == 0
    assert statuses(store) == [JobStatus.COMPLETED] * 10
    assert len(pids_of(program)) == 2


def test_jobs_in_memory_are_refused_once_and_with_the_reason(
    folder: Path, workers: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORE", "memory:")
    program = workers("3")
    assert program.end() == Exit.SETTINGS
    assert program.stderr.count("in memory, which each process has for itself") == 1


def test_a_program_that_cannot_be_imported_ends_all_of_it_once(folder: Path, workers: Start) -> None:
    (folder / "app.py").write_text("nonsense(")
    program = workers("3")
    assert program.end() == Exit.SETTINGS
    assert program.stderr.count("app.py cannot be imported") == 1


def test_workers_go_by_what_their_supervisor_was_told(
    folder: Path, workers: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BETIMES_WORKER_PROCESSES", "2")
    (folder / "pyproject.toml").write_text('[tool.betimes.worker]\nqueue = ["other"]\nprocesses = 3\n')
    program = workers("1", "--queue", "mine", "--queue", "yours", "--concurrency", "7")
    all_up(program, 1)
    program.wait_for("serving the queues mine and yours")
    assert "at most 7 jobs at once" in program.stderr
    program.signal(signal.SIGTERM)
    assert program.end() == 0
    assert len(pids_of(program)) == 1


def test_a_worker_whose_program_exits_by_itself_has_ended_badly(folder: Path, workers: Start) -> None:
    text = "\n@scheduler.task\ndef leave(seconds: float) -> None:\n    os._exit(77)\n"
    (folder / "app.py").write_text(APP + text)
    submit("jobs.db", "leave", 1)
    program = workers("1", "--burst")
    assert program.end() == Exit.NO
    assert len(pids_of(program)) == 1
