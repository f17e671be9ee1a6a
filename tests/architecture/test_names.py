"""A module is named after what it holds, and no check is switched off to let something in."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))

NAMES_THAT_SAY_NOTHING = re.compile(r"_?(utils?|common|helpers?|base|managers?|misc|lib)")
# Time and chance outside clock.py, and every measure of complexity.
FORBIDDEN_NOQA = re.compile(r"noqa(?!: )|noqa:.*\b(TID251|C901|PLR09\d\d)\b")
ONE_TURN = "asyncio.sleep(0)"  # lets the loop turn once: it takes no time and reads no clock


def test_no_module_has_a_name_that_says_nothing() -> None:
    names = {part for path in SOURCES for part in (path.stem, path.parent.name)}
    assert "errors" in names, "there is nothing to look at"
    assert {name for name in names if NAMES_THAT_SAY_NOTHING.fullmatch(name)} == set()


def test_only_the_clock_reads_time_and_chance() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    ignored = settings["tool"]["ruff"]["lint"]["per-file-ignores"]
    exempt = [files for files, rules in ignored.items() if "TID251" in rules and files.startswith("src/")]
    assert exempt == ["src/betimes/clock.py"]


def test_no_line_of_the_source_is_exempt_from_the_clock_or_from_the_limits_on_complexity() -> None:
    exempt = [
        f"{path.name}:{number}"
        for path in SOURCES
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if FORBIDDEN_NOQA.search(line) and ONE_TURN not in line
    ]
    assert exempt == []
