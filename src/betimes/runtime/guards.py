"""From an attempt's end to the event that is reported: with its back-off, within budget, seen by breakers."""

from __future__ import annotations

import logging
from random import Random

from betimes.core.events import DeadlinePassed, Errored, Event
from betimes.core.guard import Guard
from betimes.core.limits import GateKind, gate_key
from betimes.core.outcome import Outcome, Raised, event_of
from betimes.core.task import TaskDefinition
from betimes.ports import Store
from betimes.runtime.attempt import Attempt
from betimes.runtime.metrics import Counters

_log = logging.getLogger("betimes")

SPENT = "not retried: the retry budget of task {task} is spent ({ratio:g} of its starts in {window_s:g} s)"


class Guards:
    """Judges how attempts end, and counts for the tasks that have a retry budget or a breaker.

    Args:
        store: where circuits are opened.
        counters: what was refused and opened is counted here.
        rng: for jitter.

    Attributes:
        has_trips: whether a circuit is to be opened that the store does not know of yet.
    """

    def __init__(self, store: Store, counters: Counters, rng: Random) -> None:
        """Start with nothing counted."""
        self._rng = rng
        self._store = store
        self._counters = counters
        self._guards: dict[str, Guard] = {}
        self._trips: list[TaskDefinition] = []
        self.has_trips = False

    def started(self, attempts: list[Attempt]) -> None:
        """Count attempts that start."""
        for attempt in attempts:
            if attempt.task.budget is not None:
                self._guard(attempt.task).started(attempt.claimed_at or 0)

    def event_of(self, attempt: Attempt, outcome: Outcome) -> Event:
        """Return the event to report of an attempt that has returned."""
        now = self._store.now()
        if not isinstance(outcome, Raised):
            return event_of(outcome, at=now, retry_in_us=None)
        event = event_of(outcome, at=now, retry_in_us=self._back_off_us(attempt, outcome))
        return (
            self._judged(attempt, event, is_hopeless=outcome.is_hopeless)
            if attempt.task.is_guarded
            else event
        )

    def late(self, attempt: Attempt) -> Event:
        """Return the event to report of an attempt whose timeout is over."""
        event = attempt.late(self._store.now(), self._rng)
        return self._judged(attempt, event) if attempt.task.is_guarded else event

    def _back_off_us(self, attempt: Attempt, outcome: Raised) -> int | None:
        return attempt.back_off_us(self._rng) if outcome.may_retry else None

    def _judged(self, attempt: Attempt, event: Event, *, is_hopeless: bool = False) -> Event:
        """Count how an attempt ended; answer the same event, without a retry if the budget is spent.

        What ended because it was told to stop, or would fail again in any case, opens no circuit.
        """
        if not isinstance(event, Errored | DeadlinePassed):
            return event
        task, now = attempt.task, event.at
        guard = self._guard(task)
        if not attempt.is_told and not is_hopeless and guard.failed(now, attempt.claimed_at or 0):
            self._trips.append(task)
            self.has_trips = True
        if event.retry_in_us is None or guard.may_retry(now):
            return event
        assert task.budget is not None
        self._counters.retries_denied += 1
        window_s = task.budget.window_us / 1_000_000
        spent = SPENT.format(task=task.name, ratio=task.budget.ratio, window_s=window_s)
        return type(event)(event.at, event.error, None, spent)

    def _guard(self, task: TaskDefinition) -> Guard:
        guard = self._guards.get(task.name)
        if guard is None:
            guard = self._guards[task.name] = Guard(task.budget, task.breaker)
        return guard

    async def tell(self) -> None:
        """Open the circuits in the store, before anything more is claimed.

        One that is open already stays as it is: it is probes that have failed, or another process was first.
        """
        while self._trips:
            task = self._trips[0]
            key = gate_key(GateKind.BREAKER, task.name)
            views = await self._store.gates([key], most=0)
            if not any(view.gate.is_tripped for view in views):
                await self._store.trip(key, is_open=True)
                self._tripped(task)
            self._trips.pop(0)
        self.has_trips = False

    def _tripped(self, task: TaskDefinition) -> None:
        breaker = task.breaker
        assert breaker is not None, "only breakers trip"
        self._counters.circuits_opened += 1
        _log.warning(
            "the circuit of task %s is open: %d attempts failed within %g s; nothing of it starts for %g s",
            task.name,
            breaker.failures,
            breaker.window_us / 1_000_000,
            breaker.open_for_us / 1_000_000,
        )
