"""What both type checkers must infer of `betimes.testing`. Nothing here runs: `./run check` reads it."""

from __future__ import annotations

from typing import assert_type

from betimes import Scheduler
from betimes.blocking_scheduler import BlockingJob
from betimes.testing import Jobs, SubmittedCall, inline_mode

scheduler = Scheduler()


@scheduler.task
async def fetch(url: str, *, attempts: int = 1) -> int:
    return len(url) * attempts


async def count() -> int:
    return 1


def jobs_keep_the_types(jobs: Jobs) -> None:
    job = jobs.submit(fetch, "a", attempts=2)
    assert_type(job, BlockingJob[int])
    assert_type(job.result(), int)
    assert_type(jobs.submit(fetch.using(delay="1h"), "a").result(), int)
    assert_type(jobs.run(count()), int)
    assert_type(jobs.submitted(fetch), list[SubmittedCall])


def a_wrong_argument_is_found(jobs: Jobs) -> None:
    jobs.submit(fetch, 1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    jobs.submit(fetch)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


async def inline_mode_is_both() -> None:
    async with inline_mode(scheduler) as jobs:
        assert_type(jobs, inline_mode)
        jobs.assert_submitted(fetch, "a")
    with inline_mode(scheduler) as jobs:
        assert_type(jobs, inline_mode)
