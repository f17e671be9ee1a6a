"""Runs crontabs: has a scheduler keep a task and a schedule for each entry, and follows the files.

What must hold:

1. *What has not changed is not touched*: its schedule keeps its grid and its history.
2. *What is gone starts no more*: its schedule is removed, and its jobs that wait are cancelled. A run that is
   going on ends by itself, and is not tried again.
3. *A file that is being written is not read*: it counts once two glances, a second apart, see the same.
4. *`@reboot` runs once in each boot of the machine*: when a crontab is started for the first time in it, for
   the entries that it has then. The number of that boot is kept beside the store, after the jobs are in it.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from betimes.blocking import run_on_own_loop
from betimes.cli.crontab_files import CrontabFiles, Look
from betimes.cli.crontab_log import CrontabLog, LogHandler
from betimes.cli.crontab_tasks import QUEUE, Line, keep_schedule, register, task_of
from betimes.core.job import JobStatus
from betimes.errors import StoreUnavailable
from betimes.handles import JobInfo
from betimes.runtime.lookout import wait_for
from betimes.scheduler import Scheduler
from betimes.signals import run_until_signal

LOOK_EVERY_S = 1.0
"""How often the files are glanced at."""

_PAGE = 1000
_FOR_EVER = "36500d"
_WAITING = (JobStatus.READY, JobStatus.DELAYED, JobStatus.BLOCKED)


class CrontabRunner:
    """Keeps a scheduler to what the files say.

    Args:
        scheduler: for this alone; not open yet.
        files: what to follow.
        log: is told what happens.
        boot_mark: the file with the number of the boot whose `@reboot` entries have been started.
        boot_id: of the boot that the machine is in.
    """

    def __init__(
        self, scheduler: Scheduler, files: CrontabFiles, log: CrontabLog, *, boot_mark: Path, boot_id: str
    ) -> None:
        self._scheduler = scheduler
        self._files = files
        self._log = log
        self._boot_mark = boot_mark
        self._boot_id = boot_id
        self._lines: dict[str, Line] = {}
        self._seen: Look = ()
        self._glanced: Look = ()
        self._gone: set[str] = set()  # their schedules may still be in the store
        self._has_leftovers = False
        self._is_behind = False
        self._is_asked = False
        self.hurry = asyncio.Event()

    async def begin(self) -> None:
        """Bring the store in line with the files, while nothing runs yet."""
        async with self._scheduler.client():
            self._seen = self._glanced = self._files.look()
            await self._read()
            await self._remove_strangers()
            await self._start_of_boot()

    async def follow(self) -> None:
        """Follow the files, for ever; the scheduler is open and runs."""
        while True:
            await wait_for(self.hurry, LOOK_EVERY_S)
            is_asked, self._is_asked = self._is_asked, False
            self.hurry.clear()
            look = self._files.look()
            is_quiet, self._glanced = look == self._glanced, look
            try:
                if is_asked or self._is_behind or (is_quiet and look != self._seen):
                    self._seen = look
                    await self._read()
                if self._has_leftovers:
                    await self._cancel_leftovers()
            except StoreUnavailable as error:
                self._is_behind = True
                self._log.say(f"the store cannot be reached, it is tried again: {error}")

    def ask(self) -> None:
        """Have the files read now, whether or not they have changed."""
        self._is_asked = True
        self.hurry.set()

    async def _read(self) -> None:
        """Take over what the files say now."""
        found = self._files.read()
        for problem in found.problems:
            self._log.say(f"problem: {problem}")
        self._is_behind = False
        await self._take_over({line.id: line for line in found.lines})
        count = len(self._lines)
        problems = len(found.problems)
        self._log.say(
            f"{count} {'entry runs' if count == 1 else 'entries run'}"
            + (f", {problems} {'problem' if problems == 1 else 'problems'}" if problems else "")
        )

    async def _take_over(self, lines: dict[str, Line]) -> None:
        scheduler = self._scheduler
        standing, known = self._lines, set(self._lines)
        gone = [standing[each] for each in standing if each not in lines]
        fresh = [
            line
            for each, line in lines.items()
            if each not in standing or not line.does_the_same_as(standing[each])
        ]
        # All that is to change goes first: names and limits of the old lines are not in the way of the new.
        for line in (*gone, *fresh):
            if line.id in standing:
                scheduler._withdraw(line.id)  # noqa: SLF001 - the command line is part of the package
                del standing[line.id]
        for line in lines.values():
            if line.id in standing:  # the same, perhaps in another place
                standing[line.id] = line
                self._log.name(line.entry)
        self._gone |= {line.id for line in gone}
        self._has_leftovers = self._has_leftovers or bool(gone)
        for each in sorted(self._gone - set(lines)):
            self._log.say("removed", about=self._log.name_of(each))
            await self._remove_schedule(each)
        self._gone.clear()
        for line in fresh:
            await self._add(line, "runs" if line.id not in known else "changed")

    async def _add(self, line: Line, how: str) -> None:
        entry = line.entry
        self._log.name(entry)
        register(self._scheduler, line)
        try:
            if entry.trigger is None:
                await self._remove_schedule(entry.id)  # it may have had one, under this name
            else:
                await keep_schedule(self._scheduler, line)
        except BaseException:
            self._scheduler._withdraw(line.id)  # noqa: SLF001 - it is not taken over: it is tried again
            raise
        self._lines[line.id] = line
        self._log.say(f"{how}: {entry.schedule} ({entry.tz})", about=self._log.name_of(line.id))

    async def _remove_schedule(self, schedule_id: str) -> None:
        # The engine's own: a schedule that is not there is fine.
        await self._scheduler._store.remove_schedule(schedule_id)  # noqa: SLF001 - as above

    async def _remove_strangers(self) -> None:
        """Remove the schedules of entries that are gone since the last run."""
        after: str | None = None
        while page := await self._scheduler.schedules(limit=_PAGE, after=after):
            for info in page:
                line = self._lines.get(info.id)
                if info.queue == QUEUE and (line is None or line.entry.trigger is None):
                    await self._remove_schedule(info.id)
            after = page[-1].id
        await self._cancel_leftovers()

    async def _cancel_leftovers(self) -> None:
        """Cancel waiting jobs of entries that are gone; those that run may leave some when they fail."""
        for status in _WAITING:
            for job in await self._jobs(status):
                if job.task not in self._lines:
                    await self._scheduler.cancel(job.id)
        running = await self._jobs(JobStatus.RUNNING)
        self._has_leftovers = any(job.task not in self._lines for job in running)

    async def _jobs(self, status: JobStatus) -> list[JobInfo]:
        return await self._scheduler.jobs(status=status, queue=QUEUE, limit=_PAGE)

    async def _start_of_boot(self) -> None:
        """Submit what runs once in each boot, unless this has been done in this boot."""
        if _read_mark(self._boot_mark) == self._boot_id:
            return
        for line in self._lines.values():
            if line.entry.trigger is None:
                task = task_of(self._scheduler, line)
                # The key: were this process killed before the mark is written, it would be submitted again.
                await task.using(key=f"{line.id}@{self._boot_id}", key_for=_FOR_EVER).submit()
        new = self._boot_mark.with_name(f"{self._boot_mark.name}.new")
        try:
            new.write_text(self._boot_id, encoding="utf-8")
            new.replace(self._boot_mark)
        except OSError as error:  # a full disk: the keys keep this from running twice, for the same entries
            self._log.say(f"it cannot be noted that this boot's @reboot entries have run: {error}")


def run_crontab(runner: CrontabRunner, scheduler: Scheduler, log: CrontabLog, *, drain_s: float) -> None:
    """Run crontabs until SIGINT or SIGTERM; SIGHUP has the files read at once."""

    async def follow() -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, runner.ask)
        log.say("running until SIGINT or SIGTERM; SIGHUP has the files read at once")
        try:
            await runner.follow()
        finally:
            loop.remove_signal_handler(signal.SIGHUP)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)  # its default would end the process while it drains

    scheduler.listen(log.hear)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the files are about to be read anyway
    with _library_log(log):
        run_on_own_loop(runner.begin())
        run_until_signal(scheduler, drain_s, follow)
    log.say("stopped")


@contextmanager
def _library_log(log: CrontabLog) -> Iterator[None]:
    """Write what the library logs to the same log."""
    logger, handler = logging.getLogger("betimes"), LogHandler(log)
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.level, logger.propagate = before


def _read_mark(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
