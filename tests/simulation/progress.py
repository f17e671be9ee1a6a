"""What must go on once the faults are over: nothing that can run waits, and nothing is held by nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tests.simulation.claims import is_expired
from tests.simulation.clients import Clients
from tests.simulation.lives import Life
from tests.simulation.process import Process
from tests.simulation.witness import Witness

from betimes.core.job import JobStatus
from betimes.core.schedule import ScheduleRecord

PATIENCE_S = 0.5
"""Far longer than calls take in the calm, and shorter than what makes up for a lost wake-up by chance."""

LOOK_EVERY_S = 0.2
LONGER_PATIENCE_S = 2.0
"""For those who wait for an end, and for schedules that are due: several calls lie in between."""


class Progress:
    """Looks now and then, and objects to what has stood still for too long.

    A condition counts only when it has held at each look since: in between, replies are on their way.
    """

    def __init__(
        self, witness: Witness, clients: Clients, schedules: Callable[[], Sequence[ScheduleRecord]]
    ) -> None:
        self._witness = witness
        self._clients = clients
        self._schedules = schedules
        self._since: dict[tuple[object, ...], float] = {}

    def look(self, processes: Iterable[Process], now: float) -> None:
        """Look once."""
        up = [process for process in processes if process.is_up]
        standing: dict[tuple[object, ...], str] = {}
        for life in self._witness.model.lives:
            complaint = self._complaint(life, up)
            if complaint is not None:
                standing[life.seq, life.fence, complaint] = f"{life}: {complaint}"
        for waiter in self._clients.waiters:
            life = self._witness.model.lives[waiter.seq]
            if waiter.process.is_up and life.status.is_terminal:
                standing[waiter.seq, id(waiter)] = f"somebody in {waiter.process.name} still waits for {life}"
        if any(not process.is_client for process in up):
            standing |= self._witness.schedules.complaints(self._schedules())
        self._since = {key: self._since.get(key, now) for key in standing}
        for key, since in self._since.items():
            is_of_a_version = len(key) == 3
            patience_s = PATIENCE_S if is_of_a_version else LONGER_PATIENCE_S
            if now - since > patience_s:
                self._witness.model.fail(f"for {now - since:.2f} s in the calm, {standing[key]}")

    def _complaint(self, life: Life, up: list[Process]) -> str | None:
        witness = self._witness
        now = witness.model.now()
        if life.status is JobStatus.READY and life.parked is None:
            if life.spec.queue in witness.paused or is_expired(life, now):
                return None
            if life.gates and not witness.gates.is_next(life):
                return None
            free = [process.name for process in up if _has_room(process, life)]
            return f"it could start in {free[0]}, and does not" if free else None
        if life.status is JobStatus.READY:
            return None  # parked; the end of the run tells whether it came out again
        if life.status is JobStatus.DELAYED and life.earliest <= now:
            return "its time has come, and it was not promoted"
        if life.status is JobStatus.RUNNING:
            return self._complaint_of_running(life, up)
        return None

    def _complaint_of_running(self, life: Life, up: list[Process]) -> str | None:
        witness = self._witness
        host = witness.hosts.get(life.worker or "")
        holders = [process for process in up if process.name == host]
        attempt = holders[0].worker.state.in_flight.get(life.seq) if holders else None
        if attempt is None or attempt.fence != life.fence:
            return f"{life.worker} holds it, and does not know of it"
        if attempt.has_returned:
            return "its code has returned, and that is not recorded"
        started_at = witness.started_at[life.seq, life.fence]
        if life.spec.lane == "process":
            execution = witness.model.evidence.executions.get((life.seq, life.fence))
            started_at = witness.elapsed_s() if execution is None else execution.begun_at
        if attempt.timeout_s is not None and started_at + attempt.timeout_s < witness.elapsed_s():
            return "its timeout is over, and it is still running"
        return None


def _has_room(process: Process, life: Life) -> bool:
    worker = process.worker
    if worker is None:
        return False
    state = worker.state
    free, lanes = state.room()
    is_held_back = any(attempt.job.id == life.id for attempt in state.zombies.values())
    return free > 0 and lanes.get(life.spec.lane, 0) > 0 and not is_held_back
