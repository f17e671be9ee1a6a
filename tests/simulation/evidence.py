"""What the jobs' own code saw: written by the code as it runs, beside all that the scheduler records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from tests.simulation.tally import Tally

from betimes.runtime.attempt import Attempt
from betimes.runtime.context import Context

RETURNED, DIED = "returned", "its child died"


class Host(Protocol):
    """The process that an execution runs in."""

    name: str
    is_dead: bool
    concurrency: int
    lane_slots: dict[str, int]


@dataclass(slots=True, eq=False)
class Execution:
    """One run of a job's code.

    Attributes:
        number: its result, so that a result tells which execution it is of.
        host, seq, fence, job_id, lane, task: where, and of what.
        nth: the how manieth execution of this version it is, from 0.
        scheduled_for: what the code was told that it runs for; None: no schedule.
        gates: what had to let the job pass.
        begun_at, ended_at, how: when, and how it ended; None while it runs.
    """

    number: int
    host: Host
    seq: int
    fence: int
    job_id: str
    lane: str
    task: str
    nth: int
    begun_at: float
    scheduled_for: datetime | None = None
    gates: tuple[str, ...] = ()
    ended_at: float | None = None
    how: str | None = None

    @property
    def is_running(self) -> bool:
        """Whether its code still runs, in a process that lives."""
        return self.how is None and not self.host.is_dead

    def __str__(self) -> str:
        of_what = f"#{self.seq} ({self.job_id}) under fence {self.fence}"
        return f"execution {self.number} of {of_what} in {self.host.name}"


class Evidence:
    """All executions, and what must hold among them.

    Attributes:
        executions: by (version, fence).
        abandoned: those (version, fence) whose code nobody waits for any more.
        on_begin, on_end: called with each execution that begins or has ended.
    """

    def __init__(self, now: Callable[[], float], tally: Tally, fail: Callable[[str], None]) -> None:
        self._now = now
        self._tally = tally
        self._fail = fail
        self.executions: dict[tuple[int, int], Execution] = {}
        self.abandoned: set[tuple[int, int]] = set()
        self.on_begin: Callable[[Execution], None] = lambda _execution: None
        self.on_end: Callable[[Execution], None] = lambda _execution: None
        self._of_seq: dict[int, list[Execution]] = {}
        self._running: dict[Host, list[Execution]] = {}

    def begin(self, host: Host, context: Context) -> Execution:
        """Write down that a job's code begins."""
        attempt = context._attempt
        assert isinstance(attempt, Attempt)
        job, seq, fence = attempt.job, attempt.seq, context.fence
        before = self._of_seq.setdefault(seq, [])
        execution = Execution(
            number=len(self.executions) + 1,
            host=host,
            seq=seq,
            fence=fence,
            job_id=job.id,
            lane=job.spec.lane,
            task=job.spec.task,
            nth=len(before),
            begun_at=self._now(),
            scheduled_for=context.scheduled_for,
            gates=job.gates,
        )
        if host.is_dead:
            return execution
        if (seq, fence) in self.executions:
            self._fail(f"{execution}: a second one of the same claim")
        self._check_overlap(execution)
        self.executions[seq, fence] = execution
        before.append(execution)
        self._running.setdefault(host, []).append(execution)
        self._check_slots(host)
        self.on_begin(execution)
        return execution

    def end(self, execution: Execution, how: str) -> None:
        """Write down that it has ended."""
        if execution.host.is_dead:
            return
        execution.how = how
        execution.ended_at = self._now()
        self._running[execution.host].remove(execution)
        self.on_end(execution)

    def died(self, execution: Execution) -> None:
        """Write down that the child process died in which it ran."""
        self.end(execution, DIED)

    @property
    def running(self) -> list[Execution]:
        """What runs, in processes that live."""
        return [one for running in self._running.values() for one in running if one.is_running]

    def running_in(self, host: Host) -> list[Execution]:
        """Return what runs in a process."""
        return list(self._running.get(host, ()))

    def of(self, seq: int) -> list[Execution]:
        """Return the executions of a version, in order."""
        return self._of_seq.get(seq, [])

    def _check_overlap(self, execution: Execution) -> None:
        for other in self.running_in(execution.host):
            if other.seq == execution.seq:
                self._fail(f"{execution} began while {other} still ran: earlier code in the same process")
            elif other.job_id == execution.job_id and (other.seq, other.fence) not in self.abandoned:
                self._fail(f"{execution} began while {other} still ran: an older version's code")

    def _check_slots(self, host: Host) -> None:
        running = self.running_in(host)
        if len(running) > host.concurrency:
            self._fail(f"{len(running)} executions at once in {host.name}, concurrency is {host.concurrency}")
        for lane, slots in host.lane_slots.items():
            of_lane = sum(other.lane == lane for other in running)
            if of_lane > slots:
                self._fail(
                    f"{of_lane} executions at once in lane {lane} of {host.name}, which has {slots} slots"
                )
