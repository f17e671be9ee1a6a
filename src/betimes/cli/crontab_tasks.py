"""From an entry of a crontab to a task and a schedule of a scheduler."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from betimes.core.command import CommandResult
from betimes.core.crontab import CrontabEntry
from betimes.core.retry import RetryPolicy
from betimes.errors import BetimesError
from betimes.executors.accounts import Account
from betimes.scheduler import Scheduler
from betimes.tasks import Task

QUEUE = "crontab"
"""The queue of all jobs that crontabs make, and the mark of their schedules."""

PATH = "/usr/bin:/bin"
SHELL = "/bin/sh"

_LONGEST_BACK_OFF_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An entry with the user that it runs as."""

    entry: CrontabEntry
    account: Account

    @property
    def id(self) -> str:
        """What its task and its schedule are called."""
        return self.entry.id

    def does_the_same_as(self, other: Line) -> bool:
        """Whether both run the same in the same way, wherever they stand."""
        return _meaning(self) == _meaning(other)

    def environment(self) -> dict[str, str]:
        """Return what the command gets: what cron gives to it, and what the file sets above the entry."""
        account = self.account
        own = {
            "HOME": account.home,
            "LOGNAME": account.name,
            "USER": account.name,
            "SHELL": SHELL,
            "PATH": PATH,
        }
        return own | dict(self.entry.settings)


def _meaning(line: Line) -> tuple[CrontabEntry, Account]:
    return replace(line.entry, file="", line=0, text="", remarks=()), line.account


def register(scheduler: Scheduler, line: Line) -> None:
    """Register the task of an entry.

    Raises:
        ConfigurationError: something in it cannot be: a name that is taken, a program that cannot be named.
    """
    entry, options = line.entry, line.entry.options
    environment = line.environment()
    scheduler.command(
        entry.id,
        [environment["SHELL"] or SHELL, "-c", entry.command],
        env=environment,
        cwd=environment["HOME"] or "/",
        stdin=entry.stdin,
        ok_codes=options.ok_codes,
        user=None if line.account.is_own else line.account.name,
        inherit_env=False,
        grace=options.grace_s,
        queue=QUEUE,
        priority=options.priority,
        retry=_policy(line),
        timeout=options.timeout_s,
        keep=options.keep_s,
        delivery="at_most_once" if options.at_most_once else "at_least_once",
        limit=options.limit,
    )


def why_unfit(lines: Iterable[Line]) -> dict[str, str]:
    """Return why some entries cannot be registered, by their ids; most can."""
    trial = Scheduler()
    found: dict[str, str] = {}
    for line in lines:
        try:
            register(trial, line)
        except BetimesError as error:
            found[line.id] = str(error)
    return found


def _policy(line: Line) -> RetryPolicy | None:
    options = line.entry.options
    if options.retry == 1:
        return None
    base = 1.0 if options.retry_delay_s is None else options.retry_delay_s
    return RetryPolicy(options.retry, base_delay=base, max_delay=max(base, _LONGEST_BACK_OFF_S))


def task_of(scheduler: Scheduler, line: Line) -> Task[[], CommandResult]:
    """Return the task of a registered entry."""
    return Task(scheduler, scheduler._definitions[line.id])  # noqa: SLF001 - the command line is of the package


async def keep_schedule(scheduler: Scheduler, line: Line) -> None:
    """Have the store keep the schedule of an entry that is not `@reboot`; the same again changes nothing."""
    entry, options = line.entry, line.entry.options
    assert entry.trigger is not None, "what runs at a boot has no schedule"
    terms: dict[str, Any] = {"max_catchup": options.max_catchup, "jitter": options.jitter_s}
    await scheduler.add_schedule(
        entry.id,
        task_of(scheduler, line).bind(),
        entry.trigger,
        overlap=options.overlap,
        missed=options.missed,
        **terms,
    )
