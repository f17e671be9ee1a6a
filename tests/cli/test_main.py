"""The command line as a whole: its table of commands, help, completion, exit codes, and `bench`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import Result
from tests.cli.processes import SOURCE

from betimes import errors
from betimes.cli.exits import Exit, failure
from betimes.cli.main import COMMANDS, betimes

Run = Callable[..., Result]


def commands(command: click.Command = betimes, *names: str) -> Iterator[tuple[str, click.Command]]:
    """All commands there are, each with its name."""
    yield " ".join(names), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, *names, name)


ALL = dict(commands())


def test_the_names_in_the_api_are_there() -> None:
    assert {"dev", "worker", "crontab", "submit", "explain", "doctor", "bench"} <= set(COMMANDS)
    assert {"job", "queue", "schedule", "workers", "db"} <= set(COMMANDS)


@pytest.mark.parametrize("name", ALL)
def test_every_command_and_option_says_what_it_is_for(name: str, run: Run) -> None:
    result = run(*name.split(), "--help")
    assert result.exit_code == 0
    assert ALL[name].help
    for param in ALL[name].params:
        if isinstance(param, click.Option) and not param.hidden:
            assert param.help, f"{name} {param.opts}"


@pytest.mark.parametrize("name", [name for name in ALL if name])
def test_the_table_says_of_a_command_what_the_command_says(name: str, run: Run) -> None:
    if " " not in name:
        assert COMMANDS[name][1].endswith(".")
        assert f"{name}  " in run("--help").stdout or f"{name} " in run("--help").stdout


HEAVY = {"betimes.scheduler", "asyncio", "sqlite3", "msgspec", "rich"}


HELP = """
import sys
from betimes.cli.main import betimes
betimes.main([*sys.argv[1:], "--help"], prog_name="betimes", standalone_mode=False)
print("IMPORTED", *sys.modules)
"""


@pytest.mark.parametrize("name", [name for name in ALL if " " not in name])
def test_help_imports_nothing_heavy(folder: Path, name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HELP, *name.split()],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(done.stdout.rpartition("IMPORTED ")[2].split()) & HEAVY == set()


def test_an_unknown_command_names_the_nearest(run: Run) -> None:
    result = run("wroker")
    assert result.exit_code == Exit.USAGE
    assert "Did you mean 'worker'?" in result.stderr
    assert "Did you mean" not in run("zzz").stderr


def test_python_m_betimes_is_the_same(folder: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, "-m", "betimes", "--version"],
        cwd=folder, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("betimes ")


CODES = {
    errors.ConfigurationError: Exit.SETTINGS,
    errors.InvalidTrigger: Exit.SETTINGS,
    errors.UnknownJob: Exit.UNKNOWN,
    errors.UnknownTask: Exit.UNKNOWN,
    errors.UnknownSchedule: Exit.UNKNOWN,
    errors.StoreUnavailable: Exit.UNAVAILABLE,
    errors.SchemaMismatch: Exit.SCHEMA,
    errors.IllegalTransition: Exit.REFUSED,
    errors.DuplicateJob: Exit.REFUSED,
    errors.PayloadError: Exit.USAGE,
    errors.BetimesError: Exit.NO,
}


@pytest.mark.parametrize("kind", CODES)
def test_each_kind_of_error_has_its_exit_code(kind: type[errors.BetimesError]) -> None:
    shown = failure(kind("what is wrong"))
    assert (shown.exit_code, shown.message) == (CODES[kind], "what is wrong")


def test_ctrl_c_is_a_code_and_no_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_args: object, **_more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("betimes.cli.measuring.measure_all", interrupted)
    result = run("bench")
    assert (result.exit_code, result.stderr) == (Exit.INTERRUPTED, "Error: interrupted\n")


# --- completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(run: Run, shell: str) -> None:
    for result in (run("completion", shell), run("completion", env={"SHELL": f"/bin/{shell}"})):
        assert result.exit_code == 0
        assert "_BETIMES_COMPLETE" in result.stdout


def test_an_unknown_shell_is_asked_for(run: Run) -> None:
    assert "which shell? Name it: bash, zsh, fish" in run("completion", env={"SHELL": "/bin/csh"}).stderr


def completed(folder: Path, words: str) -> list[str]:
    """What a press of the tab key offers behind these words."""
    done = subprocess.run(
        [sys.executable, "-m", "betimes"],
        cwd=folder,
        env=os.environ
        | {
            "PYTHONPATH": str(SOURCE),
            "_BETIMES_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split(" ")) - 1),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.split()]


def test_commands_options_and_tasks_are_completed(app: Path) -> None:
    folder = app.parent
    assert completed(folder, "betimes wor") == ["worker", "workers"]
    assert completed(folder, "betimes worker --bu") == ["--burst"]
    assert completed(folder, "betimes submit --app app.py a") == [
        "app.add",
        "app.fail",
        "app.greet",
        "app.wait",
        "add",
    ]
    assert completed(folder, "betimes submit a") == []
    (folder / "pyproject.toml").write_text("[tool.betimes]\napp = 'app.py'")
    assert completed(folder, "betimes submit gr") == ["greet"]
    (folder / "pyproject.toml").write_text("[tool.betimes]\napp = 'nowhere'")
    assert completed(folder, "betimes submit gr") == []
    (folder / "pyproject.toml").write_text("[tool.betimes]\nzzz = 'nowhere'")
    assert completed(folder, "betimes wor") == ["worker", "workers"]
    assert completed(folder, "betimes submit gr") == []


# --- bench


def test_bench_measures_both_stores_and_leaves_nothing(folder: Path, run: Run) -> None:
    result = run("bench", "--seconds", "0.01", "--folder", ".", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert [each["store"] for each in found["measures"]] == ["memory"] * 4 + ["file"] * 4
    # In so short a time no job may have ended, but some were submitted.
    assert all(
        each["jobs"] > 0 and each["per_second"] > 0 for each in found["measures"] if each["what"] != "run"
    )
    assert [each["median_ms"] is not None for each in found["measures"]] == [True, False, False, False] * 2
    assert found["machine"]["journal_mode"]
    assert found["machine"]["file"].startswith(str(folder))
    assert [path.name for path in folder.iterdir()] == ["pyproject.toml"]


def test_bench_shows_a_table(run: Run) -> None:
    lines = run("bench", "--seconds", "0.01").stdout.splitlines()
    assert lines[0].startswith("Python ")
    assert lines[1].startswith("file: ")
    assert lines[3].split()[:2] == ["STORE", "WHAT"]
    assert len(lines) == 4 + 8


def test_bench_says_where_no_file_can_be_made(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_more: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr("tempfile.TemporaryDirectory", refuse)
    result = run("bench")
    assert result.exit_code == Exit.SETTINGS
    assert "the file cannot be made: no room" in result.stderr
