"""Importing Betimes costs little: what one feature needs is imported when that feature is used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
LATER = {"click", "sqlite3", "multiprocessing", "psycopg"}


def modules_after(statement: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after this statement."""
    script = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    answer = subprocess.run(
        [sys.executable, "-c", script],
        env=environment | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        check=True,
        timeout=50,
    )
    return {name.partition(".")[0] for name in json.loads(answer.stdout)}


def test_importing_the_package_imports_no_adapters_and_no_command_line() -> None:
    loaded = modules_after("import betimes")
    assert "betimes" in loaded
    assert loaded & LATER == set()


def test_a_module_that_is_imported_is_seen() -> None:
    assert "sqlite3" in modules_after("import sqlite3")
