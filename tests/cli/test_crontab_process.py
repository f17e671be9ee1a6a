"""`betimes crontab` as a real process: it runs, follows its file, and ends when it is told to."""

from __future__ import annotations

import signal
import stat
from collections.abc import Callable
from pathlib import Path

from click.testing import Result
from tests.cli.processes import Program


def test_a_real_crontab_is_run_followed_and_stopped(
    folder: Path, started: Callable[..., Program], run: Callable[..., Result]
) -> None:
    (folder / "mine").write_text(
        "# betimes: name=first\n@reboot echo hello from $LOGNAME; exit 4\n0 0 1 1 * true\n"
    )
    program = started("crontab", "mine", "--store", "state/jobs.db")
    program.wait_until(lambda: "first:2 ended: exited with code 4" in program.stdout, "the run's end")
    assert "first:2 | hello from " in program.stdout
    assert "2 entries run" in program.stdout

    (folder / "new").write_text(
        "# betimes: name=first\n@reboot echo hello\nwrong\n# betimes: name=second\n@daily true\n"
    )
    (folder / "new").replace(folder / "mine")
    program.wait_until(lambda: "2 entries run, 1 problem" in program.stdout, "the changed file")
    assert "problem: mine:3: " in program.stdout
    assert "second:5 runs: @daily" in program.stdout
    again = run("crontab", "mine", "--store", "state/jobs.db")
    assert again.exit_code == 5
    assert "another betimes crontab runs on state/jobs.db" in again.stderr
    before = program.stdout.count("entries run")
    program.signal(signal.SIGHUP)
    program.wait_until(lambda: program.stdout.count("entries run") > before, "the file read again")

    program.signal(signal.SIGTERM)
    assert program.end() == 0
    assert "SIGTERM: stopping" in program.stdout
    assert program.stdout.endswith("stopped\n")
    assert program.stdout.count("started: job") == 1
    assert stat.S_IMODE((folder / "state" / "jobs.db").stat().st_mode) == 0o600

    listed = run("job", "list", "--url", "state/jobs.db")
    assert "first" in listed.stdout
    assert "failed" in listed.stdout
    schedules = run("schedule", "list", "--url", "state/jobs.db")
    assert "second" in schedules.stdout


def test_a_second_start_in_the_same_boot_does_not_run_reboot_again(
    folder: Path, started: Callable[..., Program]
) -> None:
    (folder / "mine").write_text("# betimes: name=first\n@reboot echo hello\n")

    def start(until: str) -> str:
        program = started("crontab", "mine", "--store", "jobs.db")
        program.wait_until(lambda: until in program.stdout, until)
        program.signal(signal.SIGINT)
        assert program.end() == 0
        return program.stdout

    start("ended: exited with code 0")
    assert "started: job" not in start("running until SIGINT")


def test_a_run_that_dies_with_its_crontab_is_run_again(folder: Path, started: Callable[..., Program]) -> None:
    (folder / "mine").write_text(
        f"# betimes: name=first\n@reboot echo up; until [ -e {folder}/go ]; do sleep 0.05; done; echo over\n"
    )
    program = started("crontab", "mine", "--store", "jobs.db")
    program.wait_until(lambda: "first:2 | up" in program.stdout, "the run's start")
    program.signal(signal.SIGKILL)
    program.end()
    (folder / "go").touch()
    again = started("crontab", "mine", "--store", "jobs.db")
    again.wait_until(lambda: "first:2 ended: exited with code 0" in again.stdout, "the run's end")
    assert again.stdout.count("first:2 | over") == 1
    again.signal(signal.SIGTERM)
    assert again.end() == 0


def test_one_store_by_two_names_has_one_crontab_running(
    folder: Path, started: Callable[..., Program], run: Callable[..., Result]
) -> None:
    (folder / "mine").write_text("0 0 1 1 * echo hello\n")
    (folder / "link.db").symlink_to("jobs.db")
    program = started("crontab", "mine", "--store", "jobs.db")
    program.wait_until(lambda: "running until SIGINT" in program.stdout, "its start")
    second = run("crontab", "mine", "--store", "link.db")
    assert second.exit_code == 5
    assert "another betimes crontab runs" in second.stderr
    program.signal(signal.SIGTERM)
    assert program.end() == 0


def test_a_store_is_a_file_and_no_url(folder: Path, run: Callable[..., Result]) -> None:
    (folder / "mine").write_text("0 0 1 1 * echo hello\n")
    said = run("crontab", "mine", "--store", "sqlite:///jobs.db")
    assert said.exit_code == 2
    assert "not a URL" in said.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["mine", "pyproject.toml"]
