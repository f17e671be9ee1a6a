"""An application in a folder of its own, and the command line: in this process, and in real ones."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.cli.processes import Program, start

from betimes.cli.main import betimes

APP = """
import asyncio
import os
from betimes import Scheduler, every

scheduler = Scheduler("jobs.db", watchdog=None, poll=0.1)

def say(text):
    with open("said.txt", "a") as file:
        file.write(f"{text}\\n")

@scheduler.task
async def add(a: int, b: int = 1) -> int:
    say(f"add {a} {b}")
    return a + b

@scheduler.task
async def greet(name: str, *, loud: bool = False) -> str:
    say(f"greet {name}")
    return name.upper() if loud else name

@scheduler.task
async def fail(times: int = 100) -> None:
    say("fail")
    raise ValueError("no luck")

@scheduler.task
async def wait(seconds: float) -> None:
    say("begun")
    await asyncio.sleep(seconds)
    say("over")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory: empty, without settings from elsewhere; what is imported there is forgotten."""
    for name in [name for name in os.environ if name.startswith(("BETIMES_", "COV"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    # The nearest pyproject.toml with our table ends the search for settings.
    (tmp_path / "pyproject.toml").write_text("[tool.betimes]\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two texts of one length within a second
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        where = getattr(sys.modules[name], "__file__", None)
        if where is not None and Path(where).is_relative_to(tmp_path):
            del sys.modules[name]


@pytest.fixture
def app(folder: Path) -> Path:
    """A file `app.py` with a `scheduler` on `jobs.db`, both in the working directory."""
    path = folder / "app.py"
    path.write_text(APP)
    return path


@pytest.fixture
def run(folder: Path) -> Callable[..., Result]:
    """Run a command in this process: `run("job", "list", "--json")`; `exit_code`, `stdout`, `stderr`."""

    def invoke(*arguments: str, stdin: str | None = None, env: dict[str, str] | None = None) -> Result:
        result = CliRunner().invoke(
            betimes, arguments, input=stdin, env=env, prog_name="betimes", catch_exceptions=True
        )
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


@pytest.fixture
def started(folder: Path) -> Iterator[Callable[..., Program]]:
    """Start `python -m betimes …` as a process of its own; it is ended with the test."""
    programs: list[Program] = []

    def begin(*arguments: str, stdin: str | None = None) -> Program:
        programs.append(start(folder, arguments, stdin=stdin))
        return programs[-1]

    yield begin
    for each in programs:
        each.kill()
