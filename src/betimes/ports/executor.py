"""The contract of every executor, and what an executor sees of an attempt."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from contextvars import Context

    from betimes.core.job import Job
    from betimes.core.outcome import Outcome
    from betimes.core.remote import Answer, Call


class Run(Protocol):
    """One attempt, as an executor sees it.

    Attributes:
        job: what it is an attempt of.
        context: the attempt's own context; its code runs in it, and nothing else does.
        handle: the executor's own, to find its task, thread or process again.
    """

    job: Job
    context: Context
    handle: object

    def invoke(self) -> Any:
        """Decode the arguments and call the task's function; raises what decoding or the function raises."""

    def returned(self, value: object) -> Outcome:
        """Turn a return value into an outcome (one that cannot be stored is a failure); from any thread."""

    def raised(self, error: BaseException) -> Outcome:
        """Turn an exception into an outcome that keeps nothing of it alive; from any thread."""

    def call(self) -> Call:
        """Return what another process needs to run the code."""

    def answered(self, answer: Answer) -> Outcome:
        """Turn what another process says of the end of the code into an outcome."""

    def progressed(self, done: float, total: float | None) -> None:
        """Note how far the code says it is."""

    def write_log(self, text: str, *, source: str = "log", level: int = 20) -> None:
        """Add lines to the job's log: what the code logs, or prints; from any thread."""


class Executor(ABC):
    """Runs attempts of one lane; decides nothing about their jobs.

    Obligations: for each started run, `ended(run, outcome)` is called exactly once, on the event loop, and
    not before its code has returned (or its process is dead). Neither `start` nor `cancel` blocks, or
    raises for what the code does. The slots are the caller's to count: it starts no more than `slots` and
    `ahead` runs that have not ended. `cancel` may come at any time after `start`, and more than once; a run
    that has not begun by then never does, and ends at once.
    """

    lane: str
    """The kind of work it runs (`loop`, `thread`, …)."""

    slots: int
    """The most runs at once."""

    tells_begun = False
    """Whether runs may have to wait after `start`: then `begun` is called for each as its code begins (and
    once more if it has to begin elsewhere, before it really did: the first call counts)."""

    leaves_nothing = False
    """Whether no code of its runs is left running after `close`: it can be killed."""

    @property
    def ahead(self) -> int:
        """How many runs it takes beyond its slots at present; none unless they will not wait for long."""
        return 0

    @abstractmethod
    def open(self, ended: Callable[[Run, Outcome], None], begun: Callable[[Run], None]) -> None:
        """Make ready, on the event loop that is running.

        Args:
            ended: is told of the end of each run.
            begun: is told when the code of a run begins, if `tells_begun`.
        """

    @abstractmethod
    def start(self, run: Run) -> None:
        """Have the run's code run soon."""

    @abstractmethod
    def cancel(self, run: Run) -> None:
        """Tell the run's code to stop, by the means this lane has."""

    @abstractmethod
    async def close(self) -> None:
        """End what the executor itself holds.

        Code that has not returned, and cannot be killed, is left alone, and not waited for.
        """
