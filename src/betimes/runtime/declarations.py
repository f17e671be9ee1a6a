"""The rules of limits, rates and breakers that the code declares: the store has them before a job does."""

from __future__ import annotations

from betimes.core.task import Registry
from betimes.ports import Store


class Declarations:
    """Has an open store keep the rules of all tasks that are registered.

    Attributes:
        are_due: whether there are rules that the store may not know.
    """

    def __init__(self, store: Store, tasks: Registry) -> None:
        """Declare the rules of these tasks; the registry may grow."""
        self._store = store
        self._tasks = tasks
        self.are_due = True

    def begin(self) -> None:
        """Declare all of them (again): there are more, or the store may have been changed."""
        self.are_due = True

    async def declare(self) -> None:
        """Have the store keep the rules; it writes only what differs."""
        known = len(self._tasks)
        rules = {terms.rule: terms for task in list(self._tasks.values()) for terms in task.gates}
        if rules:
            await self._store.declare_gates(list(rules.values()))
        self.are_due = len(self._tasks) != known
