"""What really happened, written by those who did it: one line at a time, in a file beside the store.

A line is written by one `write` on a file opened with O_APPEND, so lines of several processes never mix, and
what was written stays when its writer is killed. A kill in the middle of a write can leave a part of a line
(at the end of a page, as can reading meanwhile): each line begins with a line break of its own, so that the
next is whole, and the part counts as not written, as its writer went no further. Run as a script, this is a
command job's program.

Nothing of Betimes is imported: a command starts quickly, and the evidence owes nothing to what it speaks of.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

FILE, WORKER = "EVIDENCE_FILE", "EVIDENCE_WORKER"
"""Names in the environment: of the file, and of the process that holds the lease; children have them, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line.

    Attributes:
        what: `kept` (a submit returned), `begin` and `end` (of a run's code), `recorded` (a worker heard that
            the job's end was committed), `cut` (a process is killed or stopped), `told` (it was told to end).
        at: when, in microseconds since the epoch.
        worker: the pid of the process that holds the lease; of `cut` and `told`, whose end it was.
        job, task, attempt, fence: of which run; `attempt` and `fence` are 0 where they are not known.
        key: the key that a job was submitted under.
        due: of `kept`: when it may start at the earliest.
        scheduled_for: of `begin`: the instant of the schedule that made the job.
        status: of `recorded`: how the job ended.
    """

    what: str
    at: int
    worker: int
    job: str = ""
    task: str = ""
    attempt: int = 0
    fence: int = 0
    key: str = ""
    due: int | None = None
    scheduled_for: int | None = None
    status: str = ""


def now_us() -> int:
    return time.time_ns() // 1000


def micros(at: datetime) -> int:
    """Return an instant as the evidence has it; exact, since an instant has whole microseconds."""
    return round(at.timestamp() * 1_000_000)


def note(
    what: str,
    *,
    job: str = "",
    task: str = "",
    attempt: int = 0,
    fence: int = 0,
    key: str = "",
    due: int | None = None,
    scheduled_for: int | None = None,
    status: str = "",
    at: int | None = None,
    worker: int | None = None,
    file: Path | None = None,
) -> None:
    """Add a line; the file and the worker are those of the environment, unless they are given."""
    entry = Entry(
        what=what,
        at=now_us() if at is None else at,
        worker=int(os.environ[WORKER]) if worker is None else worker,
        job=job,
        task=task,
        attempt=attempt,
        fence=fence,
        key=key,
        due=due,
        scheduled_for=scheduled_for,
        status=status,
    )
    line = b"\n" + json.dumps(asdict(entry)).encode() + b"\n"
    descriptor = os.open(file or os.environ[FILE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        assert os.write(descriptor, line) == len(line)
    finally:
        os.close(descriptor)


def read(file: Path) -> list[Entry]:
    """Return the lines in the order in which they were written."""
    if not file.exists():
        return []
    lines = file.read_bytes().splitlines()
    return [Entry(**json.loads(line)) for line in lines if line.endswith(b"}")]


def main() -> None:
    """Be a command job: begin, take a while, and end."""
    job, attempt, fence = (os.environ[f"BETIMES_{name}"] for name in ("JOB_ID", "ATTEMPT", "FENCE"))
    note("begin", job=job, task="command", attempt=int(attempt), fence=int(fence))
    time.sleep(float(sys.argv[1]))
    note("end", job=job, task="command", attempt=int(attempt), fence=int(fence))


if __name__ == "__main__":
    main()
