"""An operation: one call that waits for its turn in the writer, and where its answer goes."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable, Sequence
from typing import Any

from betimes.core.job import Job
from betimes.stores.relational.turn import Turn


def _as_it_is(value: Any) -> Any:
    return value


class Operation:
    """One call. Mutable, because one is made for each and passed through the writer.

    Attributes:
        run: what to do inside the transaction.
        finish: what makes the answer of what `run` returned, once that is on disk.
        is_guarded: it may refuse after it has begun to write, so it gets a savepoint of its own.
        is_growth: it brings new jobs (or what makes them), and must not use the last room on the disk.
        waits: it may have to wait for what others have locked, so that nothing should wait for it.
        plain: jobs that ask for nothing but to be kept; such calls share a statement. `run` is the long way.
        future: where the answer goes; None when the caller waits in the same thread.
        value, error: the answer, or what to raise.
    """

    __slots__ = ("error", "finish", "future", "is_growth", "is_guarded", "plain", "run", "value", "waits")

    def __init__(
        self,
        run: Callable[[Turn], Any],
        *,
        finish: Callable[[Any], Any] = _as_it_is,
        is_guarded: bool = False,
        is_growth: bool = False,
        waits: bool = False,
        plain: Sequence[Job] | None = None,
    ) -> None:
        self.run = run
        self.finish = finish
        self.is_guarded = is_guarded
        self.is_growth = is_growth
        self.waits = waits
        self.plain = plain
        self.future: Future[Any] | None = None
        self.value: Any = None
        self.error: BaseException | None = None

    def resolve(self) -> None:
        """Hand the answer to whoever still waits for it; on the event loop."""
        future = self.future
        if future is None or future.done():
            return
        if self.error is not None:
            future.set_exception(self.error)
        else:
            future.set_result(self.value)
