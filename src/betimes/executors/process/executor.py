"""Runs plain functions in processes of their own, which can be killed: the lane `process`."""

from __future__ import annotations

from collections.abc import Callable

from betimes.core.outcome import Outcome
from betimes.core.recycle import Recycle
from betimes.executors.process.pool import Pool
from betimes.ports import Executor, Run


class ProcessExecutor(Executor):
    """The lane `process`.

    Children are started when first needed, up to `slots`, as fresh interpreters; kept for the next runs; and
    replaced when they die, which costs the run that was in them and no other. A run that is told to stop gets
    SIGTERM, and its child is killed after the grace, with all that it has started in its group.

    Args:
        slots: the most runs at once.
        grace_s: how long a child that is told to stop may take before it is killed, in seconds.
        new_token: makes a text that nobody prints by accident, another each time.
        recycle: when a child is replaced.
    """

    lane = "process"
    tells_begun = True
    leaves_nothing = True

    def __init__(
        self, slots: int, *, grace_s: float, new_token: Callable[[], str], recycle: Recycle | None = None
    ) -> None:
        self.slots = slots
        self._grace_s = grace_s
        self._new_token = new_token
        self._recycle = Recycle() if recycle is None else recycle
        self._pool: Pool | None = None

    @property
    def ahead(self) -> int:
        """How many runs it takes beyond its slots: some for each child, while runs are short."""
        return 0 if self._pool is None else self._pool.ahead

    def open(self, ended: Callable[[Run, Outcome], None], begun: Callable[[Run], None]) -> None:
        """Use the running loop; nothing is started yet."""
        self._pool = Pool(
            self.slots, self._grace_s, self._recycle, new_token=self._new_token, ended=ended, begun=begun
        )

    def start(self, run: Run) -> None:
        """Have the run's function called in a child."""
        assert self._pool is not None, "the executor is not open"
        self._pool.start(run)

    def cancel(self, run: Run) -> None:
        """Tell the child that runs it, and kill it after the grace; a run that has not begun never does."""
        pool = run.handle if isinstance(run.handle, Pool) else self._pool
        if pool is not None:
            pool.cancel(run)

    async def close(self) -> None:
        """End all children, and wait for their end; none is left behind."""
        if self._pool is not None:
            pool, self._pool = self._pool, None
            await pool.close()
