"""What a job's code can see of itself: `Context`, as a parameter or through `current_job()`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, MutableMapping
from contextvars import ContextVar
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from betimes.core.durations import from_us
from betimes.core.job import Micros
from betimes.core.log import INFO
from betimes.core.wording import shown
from betimes.errors import BetimesError, Cancel

if TYPE_CHECKING:
    from betimes.runtime.attempt import Attempt

    _Adapter = logging.LoggerAdapter[logging.Logger]
else:
    _Adapter = logging.LoggerAdapter

current_attempt: ContextVar[Attempt] = ContextVar("betimes_attempt")
"""Set in an attempt's own context, and nowhere else."""

_log = logging.getLogger("betimes.job")
_PLAIN = logging.Formatter("%(message)s")


class Shown(Protocol):
    """What a context shows of an attempt; in a process job's own process something else stands in for it."""

    @property
    def job_id(self) -> str:
        """The job's id."""

    @property
    def task_name(self) -> str:
        """The task's registered name."""

    @property
    def number(self) -> int:
        """The attempt's number, from 1."""

    @property
    def fence(self) -> int:
        """What it was claimed under."""

    @property
    def fire_at(self) -> Micros | None:
        """The instant of the fire that made the job."""

    @property
    def deadline(self) -> Micros | None:
        """When its timeout is over."""

    @property
    def is_told(self) -> bool:
        """Whether it has been told to stop."""

    def progressed(self, done: float, total: float | None) -> None:
        """Note how far the code says it is."""

    def write_log(self, text: str, *, source: str = "log", level: int = INFO) -> None:
        """Add lines to the job's log; from any thread."""


class Context:
    """The running attempt, as its own code sees it; safe to use from the thread it runs in.

    Annotate a parameter with it and the worker fills it in, or call `betimes.current_job()`:

        @scheduler.task
        def resize(path: str, ctx: Context) -> None:
            for done, tile in enumerate(tiles(path)):
                ctx.raise_if_cancelled()
                ctx.progress(done, 100)
    """

    __slots__ = ("_attempt",)

    def __init__(self, attempt: Shown) -> None:
        """Speak of this attempt."""
        self._attempt = attempt

    @property
    def job_id(self) -> str:
        """The job's id; the same for all its attempts, so a good idempotency key."""
        return self._attempt.job_id

    @property
    def task(self) -> str:
        """The task's registered name."""
        return self._attempt.task_name

    @property
    def attempt(self) -> int:
        """The attempt's number, from 1."""
        return self._attempt.number

    @property
    def fence(self) -> int:
        """A number that grows with every claim: send it along with writes that must not come late."""
        return self._attempt.fence

    @property
    def scheduled_for(self) -> datetime | None:
        """The instant of the schedule's fire that made the job; None for a job that no schedule made.

        However late the job starts, after a downtime say, this is what it was planned for (aware, UTC).
        """
        at = self._attempt.fire_at
        return None if at is None else from_us(at)

    @property
    def deadline(self) -> datetime | None:
        """When the attempt's timeout is over (aware, UTC); None if it has none."""
        at = self._attempt.deadline
        return None if at is None else from_us(at)

    @property
    def cancelled(self) -> bool:
        """Whether the code has been told to stop: by a cancel, a timeout, a stopping or a lost worker."""
        return self._attempt.is_told

    def raise_if_cancelled(self) -> None:
        """End the attempt here if it has been told to stop.

        Raises:
            Cancel: it has; let it pass.
        """
        if self._attempt.is_told:
            raise Cancel("told to stop")

    def progress(self, done: float, total: float | None = None) -> None:
        """Say how far the work is, for `JobHandle.progress()`; `done` of `total` units of your choice."""
        self._attempt.progressed(done, total)

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger that also writes into the job's log (`JobHandle.log`).

        There everything is kept from INFO on, however logging is configured, and DEBUG where it is enabled
        for the logger `betimes.job`. That logger gets all of it, too: its records carry `job_id`, `task` and
        `attempt`, and begin with them.
        """
        extra = {"job_id": self.job_id, "task": self.task, "attempt": self.attempt}
        return _JobLog(_log, extra, self._attempt)

    def __repr__(self) -> str:
        return f"<Context {self._attempt!r}>"


class _JobLog(_Adapter):
    """Writes into the job's log, and puts the job in front of what goes to the logger."""

    def __init__(self, logger: logging.Logger, extra: Mapping[str, object], attempt: Shown) -> None:
        super().__init__(logger, extra)
        self._attempt = attempt

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Keep the message, then log it as ever."""
        if level >= logging.INFO or self.isEnabledFor(level):
            self._attempt.write_log(_text(level, msg, args, kwargs.get("exc_info")), level=level)
        # This frame must not be taken for the one that logs.
        kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
        super().log(level, msg, *args, **kwargs)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Name the job, and hand its attributes to the record."""
        extra = self.extra or {}
        return f"{extra['task']} {extra['job_id']} attempt {extra['attempt']}: {msg}", {
            **kwargs,
            "extra": extra,
        }


def _text(level: int, msg: object, args: tuple[Any, ...], exc_info: Any) -> str:
    """Format what is logged as `logging` does, the traceback of an error included."""
    if isinstance(exc_info, BaseException):
        exc_info = (type(exc_info), exc_info, exc_info.__traceback__)
    elif exc_info and not isinstance(exc_info, tuple):
        exc_info = sys.exc_info()
    try:
        return _PLAIN.format(logging.LogRecord(_log.name, level, "", 0, msg, args, exc_info))
    except Exception:  # noqa: BLE001 - the arguments do not fit the message: the logger reports that in its way
        return f"{shown(msg)} with {shown(args)}"


def current_job() -> Context:
    """Return the context of the job whose code this is.

    Raises:
        BetimesError: no job runs here.
    """
    attempt = current_attempt.get(None)
    if attempt is None:
        raise BetimesError("current_job() was called outside a job: only a task's function has one")
    return Context(attempt)
