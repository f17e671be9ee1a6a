"""The main job, the survey of the standard library: a real process, killed and started again."""

from __future__ import annotations

import ast
import asyncio
import hashlib
import os
import re
import signal
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

from betimes import JobInfo, JobStatus, Scheduler

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "stdlib_atlas.py"
BROKEN = "atlas-broken.py"
CRASHING = "atlas-crashing.py"
FEW, MANY = 10, 100
UNCHARGED = {"lost", "given_back"}


def jobs_of(files: int) -> int:
    """How many jobs a survey of so many files has: three for each, the two bad ones too, and the summary."""
    return 3 * (files + 2) + 1


@dataclass(frozen=True)
class Totals:
    files: int
    bytes: int
    lines: int
    functions: int
    classes: int
    digest: str


def computed_one_by_one(limit: int) -> Totals:
    """The same totals by the plainest program there is: no scheduler, and no code of the example's."""
    root = Path(sysconfig.get_path("stdlib"))
    left_out = {"site-packages", "dist-packages", "__pycache__", "test", "tests", "idle_test"}
    names = sorted(path.relative_to(root).as_posix() for path in root.glob("**/*.py"))
    chosen = [name for name in names if not left_out & set(name.split("/"))][:limit]
    contents = [(root / name).read_bytes() for name in chosen]
    nodes = [node for data in contents for node in ast.walk(ast.parse(data))]
    kinds = [type(node).__name__ for node in nodes]
    return Totals(
        files=len(chosen),
        bytes=sum(map(len, contents)),
        lines=sum(len(data.splitlines()) for data in contents),
        functions=kinds.count("FunctionDef") + kinds.count("AsyncFunctionDef"),
        classes=kinds.count("ClassDef"),
        digest=hashlib.sha256(
            "".join(hashlib.sha256(data).hexdigest() for data in contents).encode()
        ).hexdigest(),
    )


def reported(output: str) -> Totals:
    """The totals as the report has them."""
    found = dict(re.findall(r"^  (files|bytes|lines|functions|classes|digest) +(\S+)$", output, re.MULTILINE))
    digest = found.pop("digest")
    return Totals(**{name: int(number.replace(",", "")) for name, number in found.items()}, digest=digest)


def start(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, SCRIPT, *map(str, arguments)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(folder: Path, *arguments: object, exit_code: int = 0) -> str:
    with start(folder, *arguments) as process:
        output, _ = process.communicate()
    assert process.returncode == exit_code, output
    return output


def stop_once_done(folder: Path, share: float, number: signal.Signals, *arguments: object) -> tuple[str, int]:
    """Start it, send it a signal once it says that this share of its jobs is done, and wait for its end."""
    with start(folder, *arguments) as process:
        assert process.stdout is not None
        output = ""
        for line in process.stdout:
            output += line
            progress = re.match(r"([\d,]+) of ([\d,]+) jobs done", line)
            if progress:
                done, total = (int(group.replace(",", "")) for group in progress.groups())
                if done >= share * total:
                    process.send_signal(number)
                    break
        output += process.stdout.read()
    return output, process.returncode


def kill_once_done(folder: Path, share: float, *arguments: object) -> None:
    output, code = stop_once_done(folder, share, signal.SIGKILL, *arguments)
    assert code == -signal.SIGKILL, output


def jobs_in(store: Path) -> dict[str, JobInfo]:
    """All jobs of a survey by id, not those that schedules made; no id may have two versions."""

    async def read() -> list[JobInfo]:
        found: list[JobInfo] = []
        async with Scheduler(store).client() as client:
            while page := await client.jobs(limit=1000, before=found[-1].version if found else None):
                found += page
        return found

    found = [job for job in asyncio.run(read()) if job.schedule is None]
    jobs = {job.id.split("/", 1)[1]: job for job in found}
    assert len(jobs) == len(found)
    return jobs


def outcomes(job: JobInfo) -> list[str]:
    return [attempt.outcome for attempt in job.attempts]


def finished_in(jobs: dict[str, JobInfo]) -> dict[str, JobInfo]:
    return {name: job for name, job in jobs.items() if job.status.is_terminal}


def assert_is_complete(jobs: dict[str, JobInfo], files: int) -> None:
    """Each file was read, measured and entered, each once, but for what a killed process had begun."""
    assert len(jobs) == jobs_of(files)
    errors = {BROKEN: "SyntaxError", CRASHING: "betimes.errors.ProcessDied"}
    for name, error in errors.items():
        bad = jobs.pop(f"measure/{name}")
        assert bad.status is JobStatus.FAILED
        assert [outcome for outcome in outcomes(bad) if outcome not in UNCHARGED] == ["failed"] * 3
        assert bad.error is not None
        assert bad.error.type == error
    assert {job.status for job in jobs.values()} == {JobStatus.COMPLETED}
    for job in jobs.values():
        assert [outcome for outcome in outcomes(job) if outcome not in UNCHARGED] == ["completed"]


@pytest.mark.parametrize("arguments", [(), ("--memory",), ("--concurrency", 1)])
def test_the_totals_are_those_of_a_sequential_computation(
    tmp_path: Path, arguments: tuple[object, ...]
) -> None:
    output = run(tmp_path, "--limit", FEW, *arguments)
    assert reported(output) == computed_one_by_one(FEW)
    assert f"{BROKEN}, after 3 attempts: SyntaxError" in output
    assert (tmp_path / "atlas.db").exists() == ("--memory" not in arguments)
    assert f"{CRASHING}, after 3 attempts: betimes.errors.ProcessDied" in output
    assert not (tmp_path / BROKEN).exists()
    assert not (tmp_path / CRASHING).exists()
    busiest, most = re.findall(r"at most (\d+) calls in one second, of the (\d+) it bears", output)[0]
    assert 0 < int(busiest) <= int(most)


def test_the_bad_files_fail_after_their_retries_and_harm_nobody(tmp_path: Path) -> None:
    output = run(tmp_path, "--limit", FEW)
    assert "Failed: 2\n" in output
    counted = re.search(r"^  attempts +(\d+) +of them to be repeated: 4$", output, re.MULTILINE)
    assert counted is not None
    assert int(counted[1]) >= jobs_of(FEW) + 4  # and the lines that show the progress
    jobs = jobs_in(tmp_path / "atlas.db")
    bad = {f"measure/{name}" for name in (BROKEN, CRASHING)}
    assert all(len(job.attempts) == 1 for name, job in jobs.items() if name not in bad)
    assert_is_complete(jobs, FEW)


def test_a_second_run_reports_again_and_runs_nothing(tmp_path: Path) -> None:
    first = run(tmp_path, "--limit", FEW)
    before = jobs_in(tmp_path / "atlas.db")
    second = run(tmp_path, "--limit", FEW)
    assert second.startswith("This survey is finished")
    assert "Scheduler: nothing was left to run." in second
    assert reported(second) == reported(first)
    assert jobs_in(tmp_path / "atlas.db") == before


def test_the_report_ends_with_the_next_nights_in_their_zone_and_in_utc(tmp_path: Path) -> None:
    output = run(tmp_path, "--limit", FEW)
    nights = re.findall(
        r"^Next: \w{3} ([\d-]+) 02:30:00 (CES?T) = [\d-]+ 0([01]):30:00 UTC", output, re.MULTILINE
    )
    assert len(nights) >= 3  # one of five may be the night without 02:30
    assert sorted({day for day, _, _ in nights}) == [day for day, _, _ in nights]
    assert all((zone == "CEST") == (hour == "0") for _, zone, hour in nights)


def test_a_fresh_run_begins_anew_and_another_limit_is_another_survey(tmp_path: Path) -> None:
    run(tmp_path, "--limit", FEW)
    assert "This survey is finished" not in run(tmp_path, "--limit", FEW, "--fresh")
    assert "This survey is finished" in run(tmp_path, "--limit", FEW)
    assert reported(run(tmp_path, "--limit", FEW + 1)) == computed_one_by_one(FEW + 1)


def test_killed_again_and_again_it_goes_on_where_it_was(tmp_path: Path) -> None:
    finished: dict[str, JobInfo] = {}
    for share in (0.0, 0.5):  # a third crash under the same job would end it, as a poison pill
        kill_once_done(tmp_path, share, "--limit", MANY)
        jobs = jobs_in(tmp_path / "atlas.db")
        assert len(jobs) == jobs_of(MANY), "the graph is there whole, or not at all"
        finished = finished_in(jobs)
        assert share * len(jobs) <= len(finished) < len(jobs)
        assert not jobs["summary"].status.is_terminal

    output = run(tmp_path, "--limit", MANY)
    assert reported(output) == computed_one_by_one(MANY)
    jobs = jobs_in(tmp_path / "atlas.db")
    # What had ended was not touched: its fence, which every claim raises, is the same, as is all the rest.
    assert {name: jobs[name] for name in finished} == finished
    assert_is_complete(jobs, MANY)


def test_interrupted_it_lets_go_of_its_jobs_and_goes_on_later(tmp_path: Path) -> None:
    output, code = stop_once_done(tmp_path, 0.1, signal.SIGINT, "--limit", MANY)
    assert code == 130, output
    assert "Started again, it goes on" in output
    jobs = jobs_in(tmp_path / "atlas.db")
    assert JobStatus.RUNNING not in {job.status for job in jobs.values()}
    finished = finished_in(jobs)
    assert 0 < len(finished) < len(jobs)

    assert reported(run(tmp_path, "--limit", MANY)) == computed_one_by_one(MANY)
    jobs = jobs_in(tmp_path / "atlas.db")
    assert {name: jobs[name] for name in finished} == finished
    assert_is_complete(jobs, MANY)


def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    output = run(tmp_path, "--store", "notes.txt", "--limit", FEW, exit_code=1)
    assert re.fullmatch(r"atlas: .*notes\.txt.*\n", output)
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("number", ["0", "-1", "many"])
def test_a_limit_that_is_no_number_of_files_is_refused(tmp_path: Path, number: str) -> None:
    assert "not a whole number of at least 1" in run(tmp_path, f"--limit={number}", exit_code=2)
