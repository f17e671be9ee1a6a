"""The repository holds nothing that is true on one machine only."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# The patterns are written so that they do not match this file.
REGISTRY = re.compile(r"index[-_]url|find[-_]links|https?://[^\s)>\"']*/simple\b|pypi\.\w+/", re.IGNORECASE)
MACHINE_PATH = re.compile(r"(?<![\w.~$}*-])/(home|root|Users|work|opt|srv|mnt)/|file:/{3}")


def tracked_files() -> list[Path]:
    """What git tracks; in a folder without git, all that is there but hidden and generated folders."""
    try:
        answer = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        paths = [path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file()]
        hidden = re.compile(r"(^|/)(\.(?!ci|editorconfig|git(?:ignore|attributes)$)|__pycache__|build|dist)")
        return [ROOT / path for path in paths if not hidden.search(path.as_posix())]
    names = answer.stdout.decode().split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def lines_that_match(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in tracked_files()
        for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), start=1)
        if pattern.search(line)
    ]


def test_there_are_files_to_look_at() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in tracked_files()}
    assert {"pyproject.toml", "run", ".ci/run", "requirements/run.txt", "src/betimes/errors.py"} <= names


def test_no_file_names_a_package_registry() -> None:
    assert lines_that_match(REGISTRY) == []


def test_no_file_names_a_path_of_one_machine() -> None:
    assert lines_that_match(MACHINE_PATH) == []


def test_every_pinned_requirement_carries_a_hash() -> None:
    pins = 0
    for path in sorted((ROOT / "requirements").glob("*.txt")):
        for entry in re.split(r"\n(?=[\w])", path.read_text("utf-8")):
            if "==" in entry:
                pins += 1
                assert "--hash=sha256:" in entry, f"{path.name}: {entry.splitlines()[0]}"
    assert pins > 0


@pytest.mark.parametrize(
    "line",
    ["--extra-index" + "-url x", "https://pkgs.example.org" + "/simple/", "https://pypi" + ".org/project/x"],
)
def test_a_registry_is_recognised(line: str) -> None:
    assert REGISTRY.search(line)


@pytest.mark.parametrize("line", ["cd /ho" + "me/me/x", "'/ro" + "ot/.venv'", "url = file://" + "/tmp/x"])
def test_a_path_of_one_machine_is_recognised(line: str) -> None:
    assert MACHINE_PATH.search(line)


@pytest.mark.parametrize(
    "line", ["src/work/x", "sqlite:///jobs.db", "/tmp/jobs.db", "~/opt/x", "docs/root/x"]
)
def test_a_harmless_path_is_let_through(line: str) -> None:
    assert not MACHINE_PATH.search(line)
