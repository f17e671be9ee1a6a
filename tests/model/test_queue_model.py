"""The task queue against a plain dictionary that is searched anew for each answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop
from typing import Any
from unittest import mock

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from betimes.core.queue import DueTask, ReadyOrder, TaskQueue, TaskState, Wait
from betimes.errors import IllegalTransition, UnknownTask

IDS = st.sampled_from("abcdefgh")
INSTANTS = st.integers(-4, 12).map(float)
PRIORITIES = st.integers(-2, 2)
ERRORS = st.sampled_from([None, ValueError("broken"), KeyboardInterrupt()])


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """What the model knows of a pending version."""

    task_id: str
    version: int
    run_at: float
    priority: int
    fn: Callable[[], object]


class QueueAgainstModel(RuleBasedStateMachine):
    """Every call is made on the queue and on the model; all answers and all states agree."""

    order: ReadyOrder | None = None

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.queue = TaskQueue(clock=lambda: self.now, order=self.order)
        self.pending: dict[str, Version] = {}
        self.running: dict[str, DueTask] = {}
        self.asked_to_stop: set[str] = set()
        self.ended: dict[str, tuple[TaskState, BaseException | None]] = {}
        self.old: list[DueTask] = []
        self.last_version = 0
        self.peak = 0
        self.started: set[int] = set()
        self.never_start: set[int] = set()
        # The entries stay in this list, so that no later one can get the identity of an earlier one.
        self.popped: list[Any] = []
        self.patch = mock.patch("betimes.core.heap.heappop", self.counting_pop)
        self.patch.start()

    def teardown(self) -> None:
        self.patch.stop()

    def counting_pop(self, entries: list[Any]) -> Any:
        entry = heappop(entries)
        self.popped.append(entry)
        return entry

    # ------------------------------------------------------------------------------------ the model

    def key(self, task: Version) -> tuple[float, ...]:
        if self.order is not None:
            return (self.order(task.run_at, task.priority), task.version)
        return (task.run_at, -task.priority, task.version)

    def free(self) -> list[Version]:
        """Pending, and not behind a running version of the same id."""
        return [task for task in self.pending.values() if task.task_id not in self.running]

    def expected(self) -> Version | Wait | None:
        due = [task for task in self.free() if task.run_at <= self.now]
        if due:
            return min(due, key=self.key)
        if not self.pending:
            return None
        return Wait(seconds=min((task.run_at - self.now for task in self.free()), default=math.inf))

    # ------------------------------------------------------------------------------------ the calls

    @rule(task_id=IDS, run_at=INSTANTS, priority=PRIORITIES)
    def schedule(self, task_id: str, run_at: float, priority: int) -> None:
        def fn() -> None: ...

        version = self.queue.schedule(task_id, run_at=run_at, priority=priority, fn=fn)
        assert version > self.last_version
        self.last_version = version
        if task_id in self.pending:
            self.never_start.add(self.pending[task_id].version)
        self.pending[task_id] = Version(
            task_id=task_id, version=version, run_at=run_at, priority=priority, fn=fn
        )

    @rule(task_id=IDS, times=st.integers(20, 90), run_at=INSTANTS, priority=PRIORITIES)
    def schedule_over_and_over(self, task_id: str, times: int, run_at: float, priority: int) -> None:
        for time in range(times):
            self.schedule(task_id, run_at + time % 3, priority)
            self.counts_agree()

    @rule(task_id=IDS)
    def cancel(self, task_id: str) -> None:
        task = self.pending.pop(task_id, None)
        if task is not None:
            self.never_start.add(task.version)
            self.ended[task_id] = (TaskState.CANCELLED, None)
        if task_id in self.running:
            self.asked_to_stop.add(task_id)
        assert self.queue.cancel(task_id) is (task is not None)

    @rule(step=st.integers(-6, 6))
    def move_the_clock(self, step: int) -> None:
        self.now += step

    @rule()
    def next(self) -> None:
        expected = self.expected()
        due = self.queue.next()
        if not isinstance(expected, Version):
            assert due == expected
            return
        assert isinstance(due, DueTask)
        assert (due.task_id, due.version, due.run_at, due.priority, due.fn) == (
            expected.task_id,
            expected.version,
            expected.run_at,
            expected.priority,
            expected.fn,
        )
        assert due.version not in self.never_start
        assert due.version not in self.started
        self.started.add(due.version)
        del self.pending[expected.task_id]
        self.running[expected.task_id] = due
        self.peak = max(self.peak, len(self.running))

    @precondition(lambda self: isinstance(self.expected(), Version))
    @rule()
    def cancel_immediately_before_the_claim(self) -> None:
        first = self.expected()
        assert isinstance(first, Version)
        self.cancel(first.task_id)
        self.next()

    @precondition(lambda self: isinstance(self.expected(), Version))
    @rule()
    def cancel_immediately_after_the_claim(self) -> None:
        first = self.expected()
        assert isinstance(first, Version)
        self.next()
        self.cancel(first.task_id)
        assert self.running[first.task_id].cancel_requested

    @precondition(lambda self: self.running)
    @rule(data=st.data(), error=ERRORS, started=st.booleans())
    def finish(self, data: st.DataObject, error: BaseException | None, started: bool) -> None:
        task_id = data.draw(st.sampled_from(sorted(self.running)))
        due = self.running.pop(task_id)
        self.asked_to_stop.discard(task_id)
        if not started:
            self.queue.withdraw(due)
            self.ended[task_id] = (TaskState.CANCELLED, None)
        else:
            self.queue.finish(due, error)
            self.ended[task_id] = (TaskState.COMPLETED if error is None else TaskState.FAILED, error)
        self.old.append(due)

    @precondition(lambda self: self.old)
    @rule(data=st.data())
    def finish_again(self, data: st.DataObject) -> None:
        with pytest.raises(IllegalTransition):
            self.queue.finish(data.draw(st.sampled_from(self.old)))

    @rule()
    def discard_pending(self) -> None:
        assert self.queue.discard_pending() == len(self.pending)
        for task in self.pending.values():
            self.never_start.add(task.version)
            self.ended[task.task_id] = (TaskState.CANCELLED, None)
        self.pending.clear()

    # ------------------------------------------------------------------------------------ what always holds

    @invariant()
    def counts_agree(self) -> None:
        assert len(self.queue) == len(self.pending)
        assert self.queue.active == len(self.running)
        assert self.queue.peak_active == self.peak
        assert self.queue.heap_size <= 64 + 4 * len(self.queue)

    @invariant()
    def each_entry_is_popped_at_most_once(self) -> None:
        assert len({id(entry) for entry in self.popped}) == len(self.popped)

    @invariant()
    def states_agree(self) -> None:
        for task_id in "abcdefgh":
            if task_id in self.pending:
                assert self.queue.state(task_id) is TaskState.PENDING
            elif task_id in self.running:
                assert self.queue.state(task_id) is TaskState.RUNNING
            elif task_id in self.ended:
                assert self.queue.state(task_id) is self.ended[task_id][0]
            else:
                with pytest.raises(UnknownTask):
                    self.queue.state(task_id)
            if task_id in self.ended:
                assert self.queue.error(task_id) is self.ended[task_id][1]
            assert self.queue.cancel_requested(task_id) is (task_id in self.asked_to_stop)


class QueueByPriorityAgainstModel(QueueAgainstModel):
    """The same with another order among what is due, so with both heaps."""

    @staticmethod
    def order(run_at: float, priority: int) -> int:
        return -priority


TestQueueAgainstModel = QueueAgainstModel.TestCase
TestQueueByPriorityAgainstModel = QueueByPriorityAgainstModel.TestCase
