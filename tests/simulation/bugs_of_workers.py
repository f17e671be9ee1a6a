"""Planted bugs: slots, wake-ups and timeouts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from tests.simulation.bugs import bug, change_exchange

from betimes.core.events import Event
from betimes.core.outcome import Outcome
from betimes.core.worker_state import Phase, WorkerState
from betimes.runtime.attempt import Attempt
from betimes.runtime.endings import Endings
from betimes.runtime.guards import Guards
from betimes.runtime.worker import Worker


@bug("executions at once")
def slot_is_released_twice(patch: pytest.MonkeyPatch) -> None:
    """A slot is free when the outcome is recorded, and once more when the code returns."""

    def release(self: WorkerState[Any], attempt: Any) -> None:
        self.in_flight.pop(attempt.seq, None)
        self._free[attempt.lane] += 1

    def on_recorded(self: WorkerState[Any], attempts: Iterable[Any]) -> None:
        for attempt in attempts:
            attempt.is_recorded = True
            release(self, attempt)

    def on_returned(self: WorkerState[Any], attempt: Any) -> bool:
        attempt.has_returned = True
        self.zombies.pop(attempt.seq, None)
        if attempt.is_recorded:
            release(self, attempt)
        return bool(attempt.is_recorded)

    patch.setattr(WorkerState, "on_recorded", on_recorded)
    patch.setattr(WorkerState, "on_returned", on_returned)


@bug("it could start in .*, and does not|that is not recorded")
def wake_up_is_lost(patch: pytest.MonkeyPatch) -> None:
    """The pump clears its wake-up after the look instead of before: what was set meanwhile is gone."""

    async def run(self: Worker) -> None:
        while self.state.phase is not Phase.STOPPED or self.outbox.reports:
            await self._wake.wait()
            if self.state.phase is Phase.STOPPED or not self._pauses.is_on(self._time()):
                try:
                    await self._turn()
                except Exception as error:  # noqa: BLE001 - as the real one
                    self._recover_from(error)
                else:
                    self._pauses.end()
                    self._arm()
            self.progress.set()
            self._wake.clear()
            self.is_awake = False

    patch.setattr(Worker, "_run", run)


@bug("somebody in .* still waits")
def waiter_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Whoever waits for a job is not told when it ends here."""
    patch.setattr(Endings, "settle", lambda self, seq, ending: None)


@bug("it was to be held back", "memory", "sqlite")
def retry_does_not_wait_for_old_code(patch: pytest.MonkeyPatch) -> None:
    """The next attempt of a job is claimed where the code of the earlier one has not returned."""
    change_exchange(patch, claim=lambda claim: replace(claim, hold=()))


@bug("its timeout is over, and it is still running")
def timeout_waits_for_the_code(patch: pytest.MonkeyPatch) -> None:
    """The code is told that its time is over, and the timeout is recorded when it has returned."""
    late: set[Attempt] = set()
    event_of = Guards.event_of

    def tell(self: Worker, attempt: Attempt) -> None:
        late.add(attempt)
        self.stop_code(attempt)

    def timed_out(self: Guards, attempt: Attempt, outcome: Outcome) -> Event:
        return self.late(attempt) if attempt in late else event_of(self, attempt, outcome)

    patch.setattr(Worker, "_late", tell)
    patch.setattr(Guards, "event_of", timed_out)
