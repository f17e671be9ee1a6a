"""What a figure depends on: versions, machine, disk, and what else the machine was doing."""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from tests.postgres.server import NoServer, all_programs

from bench.harness import ROOT
from bench.schedules import VENV_4

PEERS = (
    "huey", "taskiq", "APScheduler", "SQLAlchemy", "dramatiq", "cronsim", "croniter", "pebble", "pgqueuer",
    "asyncpg", "procrastinate", "saq", "psycopg",
)  # fmt: skip
WRITES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The circumstances of one run.

    Attributes:
        date: when it began, UTC.
        betimes: version and commit.
        python, sqlite, postgres, system: versions.
        cpu, cores, memory_gib: the machine.
        filesystem: of the folder in which the files were made.
        fsync_us: how long one fsync there took, median of 200 after writes of 4 KiB, before the run.
        peers: versions of the libraries, by name; what is missing is not installed.
        load_before, load_after: how many processes wanted a processor, over the last minute.
        minutes: how long it all took.
    """

    date: str
    betimes: str
    python: str
    sqlite: str
    postgres: str
    system: str
    cpu: str
    cores: int
    memory_gib: int
    filesystem: str
    fsync_us: int
    peers: dict[str, str]
    load_before: float
    load_after: float = 0.0
    minutes: float = 0.0

    def after(self, began: float) -> Conditions:
        """Return them with what is known at the end of a run that began at an instant of `time.monotonic`."""
        minutes = (time.monotonic() - began) / 60
        return replace(self, load_after=round(os.getloadavg()[0], 1), minutes=round(minutes, 1))

    def as_dict(self) -> dict[str, object]:
        """Return them as plain values."""
        return asdict(self)


def look(folder: Path) -> Conditions:
    """Look at the machine, and time the disk under a folder."""
    return Conditions(
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        betimes=f"{metadata_version('betimes') or 'from its source'} ({_commit()})",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        sqlite=sqlite3.sqlite_version,
        postgres=_postgres(),
        system=f"{platform.system()} {platform.release()}",
        cpu=_cpu(),
        cores=os.cpu_count() or 0,
        memory_gib=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        filesystem=_filesystem(folder),
        fsync_us=_fsync_us(folder),
        peers=_peers(),
        load_before=round(os.getloadavg()[0], 1),
    )


def _peers() -> dict[str, str]:
    found = {name: version for name in PEERS if (version := metadata_version(name))}
    python = ROOT / VENV_4 / "bin" / "python"
    if python.exists():
        ask = "from importlib.metadata import version; print(version('APScheduler'))"
        done = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False, timeout=60)
        found |= {"APScheduler 4": done.stdout.strip()} if done.returncode == 0 else {}
    return found


def _postgres() -> str:
    """Return the version of the server that `bench.server` starts."""
    try:
        programs = all_programs()[0]
        command = [programs / "postgres", "--version"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (NoServer, OSError, subprocess.SubprocessError):
        return "none"
    return done.stdout.split()[2]


def metadata_version(name: str) -> str | None:
    """Return an installed package's version; None if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _commit() -> str:
    # `--no-optional-locks`: a look must not get in the way of somebody's commit.
    command = ["git", "--no-optional-locks", "describe", "--always", "--dirty", "--abbrev=9"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return "no commit"
    return done.stdout.strip()


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _filesystem(folder: Path) -> str:
    command = ["df", "--output=fstype", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.split()[-1]


def _fsync_us(folder: Path) -> int:
    taken = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(WRITES):
            file.write(b"x" * 4096)
            began = time.perf_counter()
            os.fsync(file.fileno())
            taken.append(time.perf_counter() - began)
    return round(statistics.median(taken) * 1e6)
