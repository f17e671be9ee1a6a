"""What process jobs print, leave behind and see: nothing is lost, mixed up, inherited or left over."""

from __future__ import annotations

import asyncio
import os
import py_compile
import signal
import subprocess
import sys
import zipapp
from pathlib import Path

import pytest
from tests.system import process_jobs as jobs
from tests.system.process_stage import Stage, is_gone, kill, play, wait_until

from betimes import JobStatus

ROOT = Path(__file__).parents[2]


def test_each_job_gets_what_it_printed_and_no_other() -> None:
    async def scene(stage: Stage) -> None:
        for size in (1, 3, 60):
            sent = [await stage.submit(jobs.say, number) for number in range(size)]
            for number, job in enumerate(sent):
                assert await job.result(timeout=40) == number
            for number, job in enumerate(sent):
                assert await stage.log_of(job, "stderr") == [f"err {number}"]
                assert await stage.log_of(job, "stdout") == [f"out {number}", f"half {number}"]

    play(scene)


def test_a_hundred_megabytes_of_output_neither_block_nor_stay() -> None:
    async def scene(stage: Stage) -> None:
        job = await stage.submit(jobs.flood, 50_000_000)
        assert await job.result(timeout=40) == "done"
        lines = await stage.log_of(job, "stdout")
        assert len(lines) <= 1000
        assert lines[-1] == "the end"
        assert any("left out here" in line for line in lines)
        assert await stage.run(jobs.say, 1) == 1

    play(scene, processes=1)


def test_a_job_sees_itself_and_is_seen() -> None:
    async def scene(stage: Stage) -> None:
        job = await stage.submit(jobs.progress_and_log, timeout=600)
        seen = await job.result(timeout=40)
        info = await job.info()
        assert seen == {
            "job_id": job.id,
            "task": info.task,
            "attempt": 1,
            "fence": seen["fence"],
            "has_deadline": True,
            "scheduled_for": False,
            "cancelled": False,
        }
        assert await stage.log_of(job, "log") == ["from the child"]
        await stage.run(jobs.enormous_progress)

    play(scene)


def test_a_job_has_our_surroundings_and_its_main_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "with a space"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setenv("BETIMES_TEST_FLAG", "ä")

    async def scene(stage: Stage) -> None:
        seen = await stage.run(jobs.surroundings)
        assert seen == {"cwd": str(folder), "flag": "ä", "thread": True, "stdin": ""}

    play(scene)


def test_case_074_a_process_inherits_no_file_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"

    async def scene(stage: Stage) -> None:
        with (tmp_path / "held").open("w") as held:
            os.set_inheritable(held.fileno(), True)
            names = await stage.run(jobs.files)
        assert not any(str(tmp_path) in name for name in names)
        assert not any("socket" in name for name in names)

    play(scene, store=str(path))


def test_case_078_context_variables_do_not_leak_from_job_to_job_in_a_process() -> None:
    async def scene(stage: Stage) -> None:
        jobs.label.set("of whoever submits")
        assert [await stage.run(jobs.set_label) for _ in range(3)] == ["none"] * 3

    play(scene, processes=1)


def test_a_scheduler_cannot_be_opened_in_a_process_and_the_error_says_what_to_do() -> None:
    async def scene(stage: Stage) -> None:
        for fn in (jobs.open_scheduler, jobs.submit_blocking):
            error = await stage.error_of(fn)
            assert "SchedulerClosed" in error
            assert "return what is to be submitted" in error

    play(scene)


def test_what_a_thread_of_an_ended_job_prints_does_not_disturb() -> None:
    async def scene(stage: Stage) -> None:
        await stage.run(jobs.background_noise)
        for number in range(30):
            assert await stage.run(jobs.say, number) == number

    play(scene, processes=1)


PARENT = """
import asyncio, os, sys, time
from pathlib import Path
from betimes import Scheduler

scheduler = Scheduler(processes=2)

sleep = scheduler.command("sleep", ["sh", "-c", "echo $$ > $0 && exec sleep 600", sys.argv[2] + ".command"])

@scheduler.task(executor="process")
def stay(flag: str) -> None:
    import subprocess
    child = subprocess.Popen(["sleep", "600"])
    Path(flag + ".tmp").write_text(f"{os.getpid()} {child.pid}")
    os.rename(flag + ".tmp", flag)
    while True:
        time.sleep(600)

async def main():
    async with scheduler:
        await sleep.submit()
        for flag in sys.argv[2:]:
            await stay.submit(flag)
        while not all(map(os.path.exists, sys.argv[2:])):
            await asyncio.sleep(0.01)
        copy = os.fork() if sys.argv[1] == "with a copy" else os.getpid()
        if copy:
            print(copy, flush=True)
        time.sleep(600)

if __name__ == "__main__":
    asyncio.run(main())
"""


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "src")}


@pytest.mark.parametrize("kind", ["alone", "with a copy"])
def test_no_process_is_left_when_the_parent_is_killed(tmp_path: Path, kind: str) -> None:
    script = tmp_path / "a parent.py"
    script.write_text(PARENT)
    flags = [tmp_path / "one", tmp_path / "two"]
    program = [sys.executable, str(script), kind, *map(str, flags)]
    with subprocess.Popen(program, env=environment(), stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        copy = int(parent.stdout.readline())
        command = Path(f"{flags[0]}.command")
        wait_until(lambda: command.exists() and command.read_text() != "", "the command runs")
        pids = [int(pid) for file in (*flags, command) for pid in file.read_text().split()]
        assert not any(map(is_gone, pids))
        parent.send_signal(signal.SIGKILL)
        for pid in pids:
            wait_until(lambda pid=pid: is_gone(pid), f"{pid} is dead")  # type: ignore[misc]
        if kind == "with a copy":
            assert not is_gone(copy)
            kill(copy)


PROGRAM = """
import asyncio
from dataclasses import dataclass
from betimes import RetryPolicy, Scheduler

scheduler = Scheduler(processes=2)

class Own(Exception):
    pass

@dataclass
class Point:
    x: int

@scheduler.task(executor="process")
def double(point: Point) -> Point:
    return Point(point.x * 2)

@scheduler.task(executor="process", retry=RetryPolicy(2, base_delay=0.01, retry_on=(Own,)))
def fail() -> None:
    raise Own("boom")

async def main():
    async with scheduler:
        print(await (await double.submit(Point(21))).result(timeout=40))
        job = await fail.submit()
        await job.wait(timeout=40)
        info = await job.info()
        print(double.name, info.attempt, info.error)

if __name__ == "__main__":
    asyncio.run(main())
"""


MANY = [f"--file={number:0300}" for number in range(600)]


@pytest.mark.parametrize(
    "what",
    [
        ["package/__main__.py"],
        ["package"],
        ["-m", "package"],
        ["archive.pyz"],
        ["compiled.pyc"],
        ["package/__main__.py", *MANY],
    ],
    ids=lambda what: " ".join(what[:2])[:40],
)
def test_functions_of_the_main_program_run_in_processes(tmp_path: Path, what: list[str]) -> None:
    folder = tmp_path / "a folder" / "package"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "__main__.py").write_text(PROGRAM)
    zipapp.create_archive(folder, folder.parent / "archive.pyz")
    py_compile.compile(str(folder / "__main__.py"), cfile=str(folder.parent / "compiled.pyc"))
    done = subprocess.run(
        [sys.executable, *what],
        env=environment(),
        cwd=folder.parent,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    stem = "compiled" if what == ["compiled.pyc"] else "__main__"
    assert (done.stderr, done.stdout) == (
        "",
        f"Point(x=42)\n{stem}.double 2 __main__.Own: boom\n",
    )


def test_case_068_a_script_that_is_read_from_stdin_is_refused_at_once() -> None:
    done = subprocess.run(
        [sys.executable],
        input=PROGRAM,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert "ConfigurationError" in done.stderr
    assert "no file to import it from" in done.stderr


def test_a_script_that_starts_itself_when_imported_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "unguarded.py"
    script.write_text(PROGRAM.replace('if __name__ == "__main__":', "if True:"))
    done = subprocess.run(
        [sys.executable, str(script)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert "where no scheduler is open" in done.stderr
    assert "if __name__ ==" in done.stderr


def test_case_068_what_no_process_can_find_is_refused_when_it_is_registered() -> None:
    program = """
from functools import partial
from betimes import ConfigurationError, Scheduler
scheduler = Scheduler()
class C:
    def method(self): pass
    def __call__(self): pass
def outer():
    def inner(): pass
    return inner
async def coroutine(): pass
def generator(): yield
def top(): pass
for fn in (lambda: 1, outer(), C().method, C(), partial(lambda: 1), partial(top), coroutine, generator, top):
    try:
        scheduler.task(name="t", executor="process")(fn)
    except ConfigurationError as error:
        name = getattr(fn, "__name__", type(fn).__name__)
        print("refused", name, name in str(error))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        f"refused {name} True"
        for name in (
            "<lambda>",
            "inner",
            "method",
            "C",
            "partial",
            "partial",
            "coroutine",
            "generator",
            "top",
        )
    ]


def test_a_loop_in_another_thread_runs_process_jobs() -> None:
    async def scene(stage: Stage) -> None:
        assert await stage.run(jobs.pid)

    async def outer(stage: Stage) -> None:
        del stage
        await asyncio.to_thread(play, scene)

    play(outer)


def test_a_crash_of_a_job_shows_where_it_was() -> None:
    async def scene(stage: Stage) -> None:
        job = await stage.submit(jobs.crash)
        assert await stage.end_of(job) is JobStatus.FAILED
        lines = await stage.log_of(job, "stderr")
        assert any("Segmentation fault" in line for line in lines)
        assert any("in crash" in line for line in lines)

    play(scene)
