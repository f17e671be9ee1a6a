"""`betimes worker` as a real process: what it says, when it ends, and how signals end it."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from tests.cli.processes import Program

from betimes.cli.exits import Exit

Run = Callable[..., Result]
Start = Callable[..., Program]


def statuses(run: Run) -> dict[str, str]:
    """The statuses of the jobs in the file, by id."""
    jobs = json.loads(run("job", "list", "--url", "jobs.db", "--json").stdout)
    return {each["id"]: each["status"] for each in jobs}


def said(folder: Path) -> list[str]:
    path = folder / "said.txt"
    return path.read_text().splitlines() if path.exists() else []


def submit(run: Run, *arguments: str) -> str:
    result = run("submit", *arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout.strip()


def test_a_burst_runs_what_there_is_with_its_retries_and_ends(app: Path, run: Run, started: Start) -> None:
    app.write_text(app.read_text().replace("task\nasync def fail", "task(retry=2)\nasync def fail"))
    done, failed = submit(run, "app.add", "1"), submit(run, "app.fail")
    soon, later = submit(run, "app.add", "2", "--delay", "1s"), submit(run, "app.add", "3", "--delay", "1h")
    blocked = submit(run, "app.add", "4", "--depends-on", later)
    worker = started("worker", "app:scheduler", "--burst")
    assert worker.end() == 0
    assert statuses(run) == {
        done: "completed",
        failed: "failed",
        soon: "completed",
        later: "delayed",
        blocked: "blocked",
    }
    assert said(app.parent).count("fail") == 2
    for text in (
        "started: process ",
        "serving every queue",
        "knowing 4 tasks: app.add, app.fail, app.greet and app.wait",
        "running what there is",
        "nothing is left to do",
        "finished: 2 completed, 1 failed, 0 timed out, 0 cancelled",
    ):
        assert text in worker.stderr
    assert worker.stdout == ""


def test_a_burst_without_anything_to_do_ends(app: Path, started: Start) -> None:
    assert started("worker", "app.py", "--burst").end() == 0


def test_a_burst_does_not_wait_for_what_time_alone_does_not_bring(
    app: Path, run: Run, started: Start
) -> None:
    other, paused = submit(run, "app.add", "1", "--queue", "other"), submit(run, "app.add", "1", "-q", "held")
    assert run("queue", "pause", "held", "--url", "jobs.db").exit_code == 0
    mine = submit(run, "app.add", "1", "--queue", "mine")
    worker = started("worker", "app.py", "--burst", "-q", "mine", "-q", "held", "--concurrency", "1")
    assert worker.end() == 0
    assert statuses(run) == {other: "ready", paused: "ready", mine: "completed"}
    assert "serving the queues mine and held" in worker.stderr
    assert "at most 1 job at once" in worker.stderr


def test_a_burst_waits_for_what_is_due_soon_as_long_as_it_is_told(
    app: Path, run: Run, started: Start
) -> None:
    later = submit(run, "app.add", "1", "--delay", "5s")
    assert started("worker", "app.py", "--burst", "--soon", "0").end() == 0
    assert statuses(run) == {later: "delayed"}


def test_a_burst_fires_the_schedules_that_are_due(app: Path, run: Run, started: Start) -> None:
    text = (
        app.read_text()
        + '\n@scheduler.task(schedule=every("50ms"))\nasync def tick() -> None:\n    say("tick")\n'
    )
    app.write_text(text)
    # Once so that the schedule is kept; when the second run starts, a fire is due.
    assert started("worker", "app.py", "--burst", "--soon", "0").end() == 0
    before = said(app.parent).count("tick")
    assert started("worker", "app.py", "--burst", "--soon", "0").end() == 0
    assert said(app.parent).count("tick") > before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_p21_a_signal_lets_what_runs_finish_and_the_code_is_0(
    app: Path, run: Run, started: Start, number: signal.Signals
) -> None:
    job = submit(run, "app.wait", "0.5")
    worker = started("worker", "app.py")
    worker.wait_until(lambda: "begun" in said(app.parent), "the job begins")
    worker.signal(number)
    assert worker.end() == 0
    assert said(app.parent) == ["begun", "over"]
    assert statuses(run) == {job: "completed"}
    assert f"{number.name}: stopping within 25 s; the next signal ends at once" in worker.stderr
    assert "finished: 1 completed" in worker.stderr


def test_p21_what_does_not_finish_within_the_drain_is_given_back(app: Path, run: Run, started: Start) -> None:
    job = submit(run, "app.wait", "600")
    worker = started("worker", "app.py", "--drain", "100ms")
    worker.wait_until(lambda: "begun" in said(app.parent), "the job begins")
    worker.signal(signal.SIGTERM)
    assert worker.end() == 0
    assert statuses(run) == {job: "ready"}


def test_p21_a_second_signal_ends_at_once(app: Path, run: Run, started: Start) -> None:
    job = submit(run, "app.wait", "600")
    worker = started("worker", "app.py", "--drain", "600s")
    worker.wait_until(lambda: "begun" in said(app.parent), "the job begins")
    worker.signal(signal.SIGTERM)
    worker.wait_for("the next signal ends at once")
    worker.signal(signal.SIGINT)  # two of one kind may arrive as one
    assert worker.end() == -signal.SIGINT
    assert statuses(run) == {job: "running"}  # until its lease is over


def test_a_burst_takes_over_what_a_killed_one_has_left(app: Path, run: Run, started: Start) -> None:
    job = submit(run, "app.wait", "600")
    worker = started("worker", "app.py", "--burst")
    worker.wait_until(lambda: "begun" in said(app.parent), "the job begins")
    worker.kill()
    app.write_text(app.read_text().replace("asyncio.sleep(seconds)", "asyncio.sleep(0)"))
    assert started("worker", "app.py", "--burst").end() == 0
    assert statuses(run) == {job: "completed"}


def test_a_worker_that_ends_by_itself_is_no_success(app: Path, run: Run, started: Start) -> None:
    app.write_text(
        app.read_text()
        + "\n@scheduler.task\nasync def harm() -> None:\n"
        + "    [each.cancel() for each in asyncio.all_tasks() if each.get_name() == 'betimes-worker']\n"
    )
    submit(run, "app.harm")
    for arguments in ((), ("--burst",)):
        worker = started("worker", "app.py", *arguments)
        assert worker.end() == Exit.NO
        assert "the worker has ended by itself" in worker.stderr
        submit(run, "app.harm")


def test_a_program_with_its_own_logging_keeps_it(app: Path, started: Start) -> None:
    app.write_text(
        "import logging\nlogging.basicConfig(format='MINE %(message)s', level=20)\n" + app.read_text()
    )
    worker = started("worker", "app.py", "--burst")
    assert worker.end() == 0
    assert all(line.startswith("MINE ") for line in worker.stderr.splitlines())


def test_less_is_logged_on_request(app: Path, started: Start) -> None:
    worker = started("worker", "app.py", "--burst", "--log-level", "warning")
    assert worker.end() == 0
    assert worker.stderr == ""


def test_jobs_in_memory_are_remarked_on(app: Path, started: Start) -> None:
    app.write_text(app.read_text().replace('"jobs.db"', '"memory:"'))
    worker = started("worker", "app.py", "--burst")
    assert worker.end() == 0
    assert "its jobs are in the memory of this process" in worker.stderr


def test_shares_hold_on_among_the_queues_that_are_served(app: Path, run: Run, started: Start) -> None:
    app.write_text(app.read_text().replace('"jobs.db",', '"jobs.db", queues={"a": 9, "b": 1, "c": 1},'))
    ids = [submit(run, "app.add", "1", "--queue", name) for name in "abcd"]
    worker = started("worker", "app.py", "--burst", "-q", "a", "-q", "b")
    assert worker.end() == 0
    assert [statuses(run)[each] for each in ids] == ["completed", "completed", "ready", "ready"]
    worker = started("worker", "app.py", "--burst", "-q", "d", "-q", "c")
    assert worker.end() == 0
    assert set(statuses(run).values()) == {"completed"}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), Exit.USAGE, "which application?"),
        (("nowhere:scheduler",), Exit.SETTINGS, "there is no module 'nowhere'"),
        (("app:nothing",), Exit.SETTINGS, "app has no 'nothing'"),
        (("app:say",), Exit.SETTINGS, "and not a Scheduler"),
        (("broken.py",), Exit.SETTINGS, "broken.py cannot be imported: SyntaxError"),
        (("raising.py",), Exit.SETTINGS, "raising.py cannot be imported: KeyError: 'x' ("),
        (("app", "--concurrency", "0"), Exit.USAGE, "0 is not in the range"),
        (("app", "--drain", "soon"), Exit.USAGE, "is no duration"),
        (("app", "--brust"), Exit.USAGE, "--burst"),
        (("app", "-q", ""), Exit.USAGE, "--queue must be text"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(
    app: Path, run: Run, arguments: tuple[str, ...], code: Exit, message: str
) -> None:
    (app.parent / "broken.py").write_text("def (")
    (app.parent / "raising.py").write_text("{}['x']")
    result = run("worker", *arguments)
    assert result.exit_code == code, result.stderr
    assert message in result.stderr
    assert not (app.parent / "jobs.db").exists()


def test_a_signal_before_anything_is_open_ends_at_once(app: Path, started: Start) -> None:
    app.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n" + app.read_text())
    assert started("worker", "app.py").end() == -signal.SIGTERM
