"""One readable log of all that a crontab runs: when a run begins, what it writes, and how it ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from betimes.core.command import CommandResult
from betimes.core.crontab import CrontabEntry
from betimes.core.job import Job, JobEvent, JobStatus, Micros
from betimes.core.log import INFO, lines_of
from betimes.core.outcome import Outcome
from betimes.core.remote import Answer, Call
from betimes.core.triggers.zones import zone_of
from betimes.core.wording import span
from betimes.errors import CommandFailed
from betimes.executors.command import CommandExecutor, end_in_words
from betimes.ports import Run


class CrontabLog:
    """Writes lines: the time, what they are about, and the text.

    Args:
        now: the wall clock.
        tz: the zone in which times are shown.
        write: takes each line, without its end.
    """

    def __init__(self, now: Callable[[], Micros], tz: str, write: Callable[[str], None]) -> None:
        self._now = now
        self._zone = zone_of(tz)
        self._write = write
        self._names: dict[str, str] = {}

    def say(self, text: str, *, about: str = "crontab") -> None:
        """Write a line."""
        with suppress(OSError):  # whoever read the log is gone, or its disk is full: the jobs go on
            self._write(f"{self._zone.local(self._now()):%Y-%m-%d %H:%M:%S} {about} {text}")

    def name(self, entry: CrontabEntry) -> None:
        """Have the runs of an entry called by its name and its line."""
        self._names[entry.id] = f"{entry.id}:{entry.line}"

    def name_of(self, task: str) -> str:
        """Return what the runs of a task are called here."""
        return self._names.get(task, task)

    async def hear(self, event: JobEvent) -> None:
        """Write of what becomes of a run beyond its program's end; for `scheduler.listen`."""
        name = self.name_of(event.task)
        if event.after is JobStatus.TIMED_OUT:
            self.say(f"timed out: {event.error}", about=name)
        elif event.after is JobStatus.CANCELLED:
            self.say(f"cancelled: {event.error}", about=name)
        elif event.after is JobStatus.FAILED and event.attempt > 1:
            self.say(f"failed for good, after {event.attempt} attempts", about=name)
        elif event.before is JobStatus.RUNNING and event.after is JobStatus.READY:
            self.say("given back, since its worker stops or is gone: it runs again", about=name)
        elif event.before is JobStatus.RUNNING and event.after is JobStatus.DELAYED:
            self.say(f"attempt {event.attempt} failed; it is tried again", about=name)


class LogHandler(logging.Handler):
    """Has what the library itself logs written to the same log."""

    def __init__(self, log: CrontabLog) -> None:
        super().__init__(logging.INFO)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        level = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        for text in lines_of(self.format(record)):
            self._log.say(f"{level}{text}", about="betimes")


class ToldCommandExecutor(CommandExecutor):
    """Runs commands, and writes of each run as it goes on."""

    def __init__(self, slots: int, *, grace_s: float, log: CrontabLog) -> None:
        """As its parent; `log` is told."""
        super().__init__(slots, grace_s=grace_s)
        self._log = log

    def open(self, ended: Callable[[Run, Outcome], None], begun: Callable[[Run], None]) -> None:
        """Use the running loop."""

        def pass_on(told: Run, outcome: Outcome) -> None:
            assert isinstance(told, _Told)
            told.run.handle = None
            ended(told.run, outcome)

        super().open(pass_on, begun)

    def start(self, run: Run) -> None:
        """Have the program started in the loop's next turn."""
        told = _Told(run, self._log)
        run.handle = told
        super().start(told)

    def cancel(self, run: Run) -> None:
        """Stop it as its parent does."""
        if isinstance(run.handle, _Told):
            super().cancel(run.handle)


class _Told(Run):
    """A run that is told of (mutable, as runs are: the executor keeps its handle there)."""

    def __init__(self, run: Run, log: CrontabLog) -> None:
        self.run = run
        self.job: Job = run.job
        self.context = run.context
        self.handle: object = None
        self._log = log
        self._name = log.name_of(run.job.spec.task)
        self._clock = asyncio.get_running_loop().time
        self._begun = self._clock()
        call = run.call()
        attempt = f", attempt {call.attempt}" if call.attempt > 1 else ""
        self._say(f"started: job {call.job_id}{attempt}")

    def _say(self, text: str) -> None:
        self._log.say(text, about=self._name)

    def _took(self) -> str:
        return span(round((self._clock() - self._begun) * 1_000) * 1_000)

    def invoke(self) -> Any:
        return self.run.invoke()

    def returned(self, value: object) -> Outcome:
        if isinstance(value, CommandResult):
            self._say(f"ended: {end_in_words(value.exit_code)} after {self._took()}")
        return self.run.returned(value)

    def raised(self, error: BaseException) -> Outcome:
        code = error.exit_code if isinstance(error, CommandFailed) else None
        if isinstance(error, asyncio.CancelledError):
            self._say("ended: it was told to stop before it began")
        elif code is None:
            self._say(f"ended: {error}")
        else:
            self._say(f"ended: {end_in_words(code)} after {self._took()}")
        return self.run.raised(error)

    def call(self) -> Call:
        return self.run.call()

    def answered(self, answer: Answer) -> Outcome:
        return self.run.answered(answer)

    def progressed(self, done: float, total: float | None) -> None:
        self.run.progressed(done, total)

    def write_log(self, text: str, *, source: str = "log", level: int = INFO) -> None:
        mark = "!" if source == "stderr" else "|"
        for line in lines_of(text):
            self._say(f"{mark} {line}")
        self.run.write_log(text, source=source, level=level)
