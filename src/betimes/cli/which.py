"""Which jobs a command is about: by status, task, queue and tag."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from betimes.handles import JobInfo
    from betimes.scheduler import Scheduler

STATUSES = (
    "blocked", "delayed", "ready", "running", "completed", "failed", "timed_out", "cancelled",
)  # fmt: skip
"""As `JobStatus`, whose import `--help` does without; a test compares them."""

PAGE = 1000


@dataclass(frozen=True, slots=True)
class Which:
    """Which jobs a command is about, if it names none by id."""

    status: str | None
    task: str | None
    queue: str | None
    tag: str | None

    @property
    def is_all(self) -> bool:
        """Whether nothing was said."""
        return self == Which(None, None, None, None)

    async def page(self, scheduler: Scheduler, limit: int, before: int | None = None) -> list[JobInfo]:
        """Return some of them, newest first."""
        return await scheduler.jobs(
            status=self.status, task=self.task, queue=self.queue, tag=self.tag, limit=limit, before=before
        )

    async def all(self, scheduler: Scheduler) -> list[JobInfo]:
        """Return all of them, newest first."""
        found: list[JobInfo] = []
        before: int | None = None
        while page := await self.page(scheduler, PAGE, before):
            found += page
            before = page[-1].version
        return found


def filters(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that find jobs, which it gets as `which`."""

    @wraps(fn)
    def gather(
        *, status: str | None, task: str | None, queue: str | None, tag: str | None, **rest: Any
    ) -> Any:
        return fn(which=Which(status, task, queue, tag), **rest)

    command: Callable[..., Any] = gather
    for option in (
        click.option("--tag", help="Only jobs that carry this tag."),
        click.option("-q", "--queue", help="Only jobs of this queue."),
        click.option("-t", "--task", help="Only jobs of this task."),
        click.option("-s", "--status", type=click.Choice(STATUSES, case_sensitive=False), help="Only these."),
    ):
        command = option(command)
    return command
