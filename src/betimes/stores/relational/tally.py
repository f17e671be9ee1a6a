"""How many live jobs each queue has in each status: kept as numbers, so that nobody has to count rows."""

from __future__ import annotations

from betimes.core.job import TERMINAL, JobStatus
from betimes.stores.relational.statements import ManyRows, Sql

ADD_TO_TALLY = ManyRows("add_to_tally")


class Tally:
    """Gathers the moves of a turn; `write` adds them to the numbers kept.

    A hundred jobs of a turn mostly make the same move, so a run of equal moves is counted as one.
    """

    __slots__ = ("_after", "_before", "_counts", "_queue", "_run")

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}
        self._queue = ""
        self._before: JobStatus | None = None
        self._after: JobStatus | None = None
        self._run = 0

    def move(self, queue: str, before: JobStatus | None, after: JobStatus) -> None:
        """Count one job of a queue out of one status (None: it is new) and into another."""
        if queue is not self._queue or before is not self._before or after is not self._after:
            self._end_run()
            self._queue, self._before, self._after = queue, before, after
        self._run += 1

    def write(self, sql: Sql) -> None:
        """Add what was gathered to the numbers kept."""
        self._end_run()
        rows = [(queue, status, jobs) for (queue, status), jobs in self._counts.items() if jobs]
        self._counts.clear()
        if rows and sql.is_alone:  # many who write would wait for each other here; so there, who asks counts
            ADD_TO_TALLY.write(sql, rows)

    def _end_run(self) -> None:
        run, self._run = self._run, 0
        if run:
            self._add(self._before, -run)
            self._add(self._after, run)

    def _add(self, status: JobStatus | None, jobs: int) -> None:
        if status is not None and status not in TERMINAL:
            where = (self._queue, status.value)
            self._counts[where] = self._counts.get(where, 0) + jobs
