"""A disk that is full to the last byte: new jobs are refused, and what is there goes on (P27, case 118).

Each scene runs in a process with a small file system of its own, which goes away with it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from tests.system.full_disk_scenes import SCENES

SIZE = "6m"
MOUNT = f'mount -t tmpfs -o size={SIZE} tmpfs "$0" && exec "$@"'


def command(folder: Path, *words: str) -> list[str]:
    """What runs a command with a small disk mounted on the folder, for itself alone."""
    own = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    return [*own, "sh", "-c", MOUNT, str(folder), *words]


@cache
def why_no_disk(folder: Path) -> str | None:
    """Why this system gives us no small disk; None: it does."""
    try:
        tried = subprocess.run(command(folder, "true"), capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return None if tried.returncode == 0 else tried.stderr.strip()


@pytest.mark.timeout(180)
@pytest.mark.parametrize("scene", SCENES)
def test_p27_case_118_on_a_full_disk(tmp_path: Path, scene: str) -> None:
    reason = why_no_disk(tmp_path)
    if reason is not None:
        pytest.skip(f"a small disk needs the right to mount one: {reason}")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = command(tmp_path, sys.executable, "-m", "tests.system.full_disk_scenes", scene, str(tmp_path))
    played = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert played.returncode == 0, played.stderr
