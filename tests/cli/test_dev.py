"""`betimes dev` as a real process: begun anew after changes, patient with errors, and ended as a whole."""

from __future__ import annotations

import os
import re
import signal
import statistics
import threading
from collections.abc import Callable
from pathlib import Path

import click
from click.testing import Result
from tests.cli.processes import WAIT_S, Program

from betimes.cli.exits import Exit
from betimes.cli.watching import MOST_FILES, changed, places_of, stamps_of
from betimes.clock import monotonic_s

Run = Callable[..., Result]
Start = Callable[..., Program]

RUNS = "running until SIGINT or SIGTERM"


def worker_pids(program: Program) -> list[int]:
    return [int(pid) for pid in re.findall(r"started: process (\d+)", program.stderr)]


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_until_gone(pid: int) -> None:
    """Wait until a process is no more: it closes its outputs somewhat earlier."""
    until, pause = monotonic_s() + WAIT_S, threading.Event()
    while not is_gone(pid):
        assert monotonic_s() < until, f"process {pid} goes on"
        pause.wait(0.01)


def test_a_change_begins_the_worker_anew_with_the_new_code(app: Path, run: Run, started: Start) -> None:
    dev = started("dev", "app.py")
    dev.wait_for(RUNS)
    app.write_text(app.read_text().replace('say(f"add {a} {b}")', 'say("anew")'))
    dev.wait_for(RUNS, times=2)
    assert "changed: app.py; starting the worker anew" in dev.stderr
    assert run("submit", "app.add", "1").exit_code == 0
    said = app.parent / "said.txt"
    dev.wait_until(lambda: said.exists() and said.read_text() == "anew\n", "the job runs")
    dev.signal(signal.SIGINT)
    assert dev.end() == 0
    first, second = worker_pids(dev)
    assert first != second
    wait_until_gone(first)
    wait_until_gone(second)


def test_a_program_that_cannot_be_imported_is_tried_again_after_the_next_change(
    app: Path, started: Start
) -> None:
    good = app.read_text()
    app.write_text(good + "\ndef (\n")
    dev = started("dev", "app:scheduler", "--concurrency", "3", "-q", "default")
    dev.wait_for("waiting for a change")
    assert "cannot be imported: SyntaxError" in dev.stderr
    app.write_text(good)
    dev.wait_for(RUNS)
    assert "at most 3 jobs at once" in dev.stderr
    assert "serving the queues default" in dev.stderr
    dev.signal(signal.SIGTERM)
    assert dev.end() == 0


def test_a_new_file_that_is_watched_counts_too(folder: Path, app: Path, started: Start) -> None:
    place = folder / "proj"
    elsewhere = folder / "elsewhere"
    place.mkdir()
    elsewhere.mkdir()
    app.rename(place / "app.py")
    dev = started("dev", "proj/app.py", "--watch", "elsewhere")
    dev.wait_for(RUNS)
    (elsewhere / "new.py").touch()
    dev.wait_for(RUNS, times=2)
    assert "changed: new.py" in dev.stderr
    dev.signal(signal.SIGTERM)
    assert dev.end() == 0


def test_a_second_signal_ends_both_at_once(app: Path, run: Run, started: Start) -> None:
    assert run("submit", "app.wait", "600").exit_code == 0
    dev = started("dev", "app.py", "--drain", "600s")
    dev.wait_until((app.parent / "said.txt").exists, "the job begins")
    dev.signal(signal.SIGINT)
    dev.wait_for("the next signal ends at once")
    dev.signal(signal.SIGINT)
    assert dev.end() == Exit.INTERRUPTED
    wait_until_gone(worker_pids(dev)[0])


def test_the_worker_does_not_outlive_it(app: Path, started: Start) -> None:
    dev = started("dev", "app.py")
    dev.wait_for(RUNS)
    (pid,) = worker_pids(dev)
    dev.process.kill()
    dev.process.wait()
    # Its outputs are those of the worker, too: they end with it.
    assert dev.end() == -signal.SIGKILL
    wait_until_gone(pid)


def test_without_an_application_there_is_nothing_to_watch(run: Run) -> None:
    result = run("dev")
    assert result.exit_code == Exit.USAGE
    assert "which application?" in result.stderr


def test_python_files_are_watched_but_not_those_of_others(folder: Path) -> None:
    for name in (
        "a.py",
        "b.txt",
        "in/c.py",
        ".git/d.py",
        "node_modules/e.py",
        "env/f.py",
        "x/__pycache__/g.py",
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (folder / "env" / "pyvenv.cfg").touch()
    assert {path.name for path in stamps_of([folder])} == {"a.py", "c.py"}
    assert {path.name for path in stamps_of([folder / "b.txt", folder / "in"])} == {"b.txt", "c.py"}
    assert stamps_of([folder / "nowhere"]) == {}
    assert MOST_FILES > 1000


def test_what_has_come_gone_or_changed(folder: Path) -> None:
    one, two, three = (folder / name for name in ("one.py", "two.py", "three.py"))
    one.touch()
    two.touch()
    before = stamps_of([folder])
    assert changed(before, stamps_of([folder])) == []
    one.unlink()
    two.write_text("x = 1")
    three.touch()
    assert changed(before, stamps_of([folder])) == [one, three, two]


def test_a_program_is_watched_where_it_is_imported_from(folder: Path) -> None:
    assert places_of("sub/jobs.py:scheduler") == [folder / "sub"]
    assert places_of("nowhere:scheduler") == [folder]
    assert places_of("click") == [folder, Path(click.__file__).parent]
    assert places_of("this") == [folder, Path(statistics.__file__).parent / "this.py"]
