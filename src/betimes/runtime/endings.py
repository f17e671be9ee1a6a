"""Who waits for which job's end, in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from betimes.core.job import ErrorInfo, Job, JobStatus
from betimes.errors import SchedulerClosed


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
    """

    def __init__(self) -> None:
        """Start with nobody waiting."""
        self.waiting: dict[int, tuple[Job, list[asyncio.Future[Ending]]]] = {}

    def __len__(self) -> int:
        return len(self.waiting)

    def jobs(self) -> list[Job]:
        """Return the jobs somebody waits for."""
        return [job for job, _ in self.waiting.values()]

    async def wait(self, job: Job) -> Ending:
        """Wait until `settle` is called for the job.

        Raises:
            SchedulerClosed: `give_up` was called instead.
        """
        future: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        _, futures = self.waiting.setdefault(job.seq, (job, []))
        futures.append(future)
        try:
            return await future
        finally:
            if future in futures:
                futures.remove(future)
            if not futures and job.seq in self.waiting and self.waiting[job.seq][1] is futures:
                del self.waiting[job.seq]

    def settle(self, seq: int, ending: Ending) -> None:
        """Let those who wait for this version know how it ended."""
        waiting = self.waiting.pop(seq, None)
        for future in waiting[1] if waiting else ():
            if not future.done():
                future.set_result(ending)

    def give_up(self, seqs: Iterable[int], message: str) -> None:
        """Let those who wait know that these jobs will not end here."""
        for seq in list(seqs):
            waiting = self.waiting.pop(seq, None)
            for future in waiting[1] if waiting else ():
                if not future.done():
                    future.set_exception(SchedulerClosed(message))
