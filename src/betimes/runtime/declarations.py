"""The rules of limits, rates and breakers that the code declares: the store has them before a job does."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from betimes.core.job import Job
from betimes.core.limits import GateKind, GateTerms
from betimes.core.task import Registry
from betimes.ports import Store

_log = logging.getLogger("betimes")


class Declarations:
    """Has an open store keep the rules of all tasks that are registered.

    Attributes:
        are_due: whether there are rules that the store may not know; also, from whichever thread, when a
            task has come.
        most_here: the most attempts that run here at once; None: none do.
    """

    def __init__(self, store: Store, tasks: Registry) -> None:
        """Declare the rules of these tasks; the registry may grow."""
        self._store = store
        self._tasks = tasks
        self._pointed_out: set[GateTerms] = set()
        self.most_here: int | None = None
        self.are_due = True

    def begin(self, *, most_here: int | None) -> None:
        """Declare all of them (again), to a store that was just opened."""
        self.most_here = most_here
        self.are_due = True

    async def declare(self) -> None:
        """Have the store keep the rules; it writes only what differs."""
        known = len(self._tasks)
        rules = {terms.rule: terms for task in list(self._tasks.values()) for terms in task.gates}
        if rules:
            await self._store.declare_gates(list(rules.values()))
            self._point_out(rules.values())
        self.are_due = len(self._tasks) != known

    def rules_of(self, jobs: Iterable[Job]) -> list[GateTerms]:
        """Return the rules of these jobs' gates; in any thread, since nothing is noted."""
        tasks = {job.spec.task for job in jobs if job.gates}
        rules = {terms.rule: terms for name in tasks for terms in self._tasks[name].gates}
        return list(rules.values())

    def _point_out(self, rules: Iterable[GateTerms]) -> None:
        """Log, once, which limits can have no effect here, since fewer jobs run at all."""
        most = self.most_here
        if most is None:
            return
        for terms in rules:
            if terms.kind is not GateKind.LIMIT or terms.max_running <= most or terms in self._pointed_out:
                continue
            self._pointed_out.add(terms)
            if self._store.is_durable:
                text = "limit %r of %d binds only together with other processes: concurrency=%d here"
                _log.info(text, terms.name, terms.max_running, most)
            else:
                text = "limit %r of %d never binds: at most concurrency=%d attempts run at once"
                _log.warning(text, terms.name, terms.max_running, most)
