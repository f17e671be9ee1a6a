"""When a run is killed, one line of the log says whose it was, which process, by what, and why."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.system import process_jobs as jobs
from tests.system.process_stage import Stage, play

from betimes import JobStatus

WHOSE = r"job {id} \({task}\), attempt 1, worker (\S+): "
ONE_LINE = WHOSE + r"(.*)the process that ran the job (\(pid \d+\)) (.*)"


def line_of(caplog: pytest.LogCaptureFixture, job_id: str, pattern: str, task: str) -> tuple[str | Any, ...]:
    """What a pattern finds in the only line of the log that speaks of a job."""
    (message,) = [record.getMessage() for record in caplog.records if job_id in record.getMessage()]
    found = re.fullmatch(pattern.format(id=job_id, task=task), message)
    assert found is not None, message
    return found.groups()


@pytest.mark.parametrize(
    ("fn", "number", "how"),
    [
        (
            jobs.kill_self,
            9,
            "died: it was killed by SIGKILL: by somebody, or by the system for want of memory",
        ),
        (jobs.kill_self, 11, "died: it was killed by SIGSEGV: a crash in native code"),
        (jobs.leave, 3, "died: it ended itself with exit code 3"),
    ],
    ids=["killed", "crashed", "ended"],
)
def test_case_149_a_process_that_dies_is_named_with_its_job_and_how_it_ended(
    caplog: pytest.LogCaptureFixture, fn: Callable[[int], None], number: int, how: str
) -> None:
    async def scene(stage: Stage) -> None:
        job = await stage.submit(fn, number)
        assert await stage.end_of(job) is JobStatus.FAILED
        info = await job.info()
        worker, reason, pid, end = line_of(caplog, job.id, ONE_LINE, info.task)
        assert (bool(worker), reason) == (True, "")
        assert end.startswith(how)
        assert f"{pid} {end}" in str(info.error), "the history says the same"

    with caplog.at_level(logging.WARNING, "betimes"):
        play(scene)


def test_case_149_a_command_that_is_killed_is_named_with_its_job_and_its_signal(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scene(stage: Stage) -> None:
        task = stage.scheduler.command("doomed", "echo out; echo err >&2; kill -9 $$")
        job = await task.submit()
        assert await stage.end_of(job) is JobStatus.FAILED
        pattern = WHOSE + r"(doomed was killed by SIGKILL \(pid \d+\))"
        _, end = line_of(caplog, job.id, pattern, "doomed")
        assert end in str((await job.info()).error), "the history says the same"

    with caplog.at_level(logging.WARNING, "betimes"):
        play(scene)


def test_case_149_a_process_that_is_killed_at_its_timeout_is_named_with_the_reason(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    async def scene(stage: Stage) -> None:
        job = await stage.submit(jobs.stubborn, str(tmp_path / "flag"), timeout=2.0)
        assert await stage.end_of(job) is JobStatus.TIMED_OUT
        info = await job.info()
        await stage.scheduler.stop()
        _, reason, _, end = line_of(caplog, job.id, ONE_LINE, info.task)
        assert reason == "the attempt passed its timeout of 2 s; "
        assert end == "was told to stop, and it was killed by SIGKILL when its grace was over"
        assert "timeout of 2 s" in str(info.error)

    with caplog.at_level(logging.WARNING, "betimes"):
        play(scene, grace=0.1)
