"""Who waits for which job's end, in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from betimes.core.job import ErrorInfo, Job, JobStatus
from betimes.errors import SchedulerClosed

_STOPPED = "the scheduler was stopped before the job ended; start it (again) to have it run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a job ended.

    Attributes:
        status: its terminal status.
        result: the return value as JSON, when COMPLETED.
        error: of the last failed attempt.
        reason: why it was cancelled, or failed without an error.
    """

    status: JobStatus
    result: bytes | None = None
    error: ErrorInfo | None = None
    reason: str | None = None

    @classmethod
    def of(cls, job: Job) -> Ending:
        """Read it off a finished job's record."""
        return cls(status=job.status, result=job.result, error=job.error, reason=job.reason)


class Endings:
    """Futures of those who wait, by the job's version. Nothing is kept for a job nobody waits for.

    Attributes:
        waiting: `seq` → the job, and who waits for it.
        is_open: whether somebody will be told; set between the engine's `open` and its end.
    """

    def __init__(self) -> None:
        """Start with nobody waiting."""
        self.waiting: dict[int, tuple[Job, list[asyncio.Future[Ending]]]] = {}
        self.is_open = False

    def __len__(self) -> int:
        return len(self.waiting)

    def jobs(self) -> list[Job]:
        """Return the jobs somebody waits for."""
        return [job for job, _ in self.waiting.values()]

    @contextmanager
    def waiter(self, job: Job) -> Iterator[asyncio.Future[Ending]]:
        """Enter somebody who waits for the job's end: `settle` brings it, `close` says that none comes.

        Raises:
            SchedulerClosed: nobody is told any more.
        """
        if not self.is_open:
            raise SchedulerClosed(_STOPPED)
        future: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        _, futures = self.waiting.setdefault(job.seq, (job, []))
        futures.append(future)
        try:
            yield future
        finally:
            if future.done() and not future.cancelled():
                # Taken note of, also by whoever saw the end elsewhere and did not wait for this.
                future.exception()
            if future in futures:
                futures.remove(future)
            if not futures and job.seq in self.waiting and self.waiting[job.seq][1] is futures:
                del self.waiting[job.seq]

    def open(self) -> None:
        """Let jobs be waited for."""
        self.is_open = True

    def settle(self, seq: int, ending: Ending) -> None:
        """Let those who wait for this version know how it ended."""
        waiting = self.waiting.pop(seq, None)
        for future in waiting[1] if waiting else ():
            if not future.done():
                future.set_result(ending)

    def close(self) -> None:
        """Let those who wait, and whoever comes later, know that nothing more will end here."""
        self.is_open = False
        waiting, self.waiting = self.waiting, {}
        for _, futures in waiting.values():
            for future in futures:
                if not future.done():
                    future.set_exception(SchedulerClosed(_STOPPED))
