"""What must hold of retry budgets: in each process, over any window, retries are so many of the starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.simulation.tally import Met, Tally

from betimes.core.job import Micros
from betimes.core.restraints import RetryBudget

SLICES = 50
"""A count may be off by a part of the window; ours allows for more than the sixtieth that it is."""


class Budgets:
    """Follows starts and retries of the tasks that have a budget.

    Args:
        budgets: by task.
        tally, fail: of the run.
    """

    def __init__(self, budgets: Mapping[str, RetryBudget], tally: Tally, fail: Callable[[str], None]) -> None:
        self._budgets = budgets
        self._tally = tally
        self._fail = fail
        self._starts: dict[tuple[str, str], list[Micros]] = {}
        self._retries: dict[tuple[str, str], list[Micros]] = {}
        self._not_before = 0

    def clock_is_set(self, seconds: float, now: Micros) -> None:
        """The clock is about to be set: back, and counts are of no one window any more."""
        if seconds < 0:
            self._starts.clear()
            self._retries.clear()
            longest = max((budget.window_us for budget in self._budgets.values()), default=0)
            self._not_before = now + longest + longest // SLICES

    def started(self, task: str, session: str, at: Micros) -> None:
        """A job was claimed in one session of a process, from its start to its stop."""
        if task in self._budgets:
            self._starts.setdefault((task, session), []).append(at)

    def ended(self, task: str, session: str, at: Micros, *, is_retried: bool, is_denied: bool) -> None:
        """An attempt failed, and is retried or not."""
        budget = self._budgets.get(task)
        if budget is None:
            return
        self._tally[Met.RETRY_DENIED] += is_denied
        if not is_retried:
            return
        retries = self._retries.setdefault((task, session), [])
        retries.append(at)
        if at < self._not_before:
            return
        window = budget.window_us
        since = at - window + window // SLICES
        recent = sum(since < one <= at for one in retries)
        started = sum(
            at - window - window // SLICES < one <= at for one in self._starts.get((task, session), ())
        )
        if recent > max(1, budget.ratio * started):
            self._fail(
                f"{recent} retries of {task} in {session}, after {started} starts: its budget is {budget}"
            )
