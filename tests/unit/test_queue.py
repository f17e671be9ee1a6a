"""The small scheduler's queue: what is handed out, when, and in which order."""

from __future__ import annotations

import enum
import gc
import math
import weakref
from collections.abc import Callable

import pytest

from betimes.clock import monotonic_s
from betimes.core.queue import DueTask, TaskQueue, TaskState, Wait
from betimes.errors import BetimesError, ConfigurationError, IllegalTransition, UnknownTask


class HandClock:
    """A clock that stands where the test puts it."""

    def __init__(self, now: float = 100.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def work() -> None:
    """A function that is scheduled; the queue must not call it."""
    raise AssertionError("the queue never calls a function itself")


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def queue(clock: HandClock) -> TaskQueue:
    return TaskQueue(clock=clock)


def claim(queue: TaskQueue) -> DueTask:
    """The next task, which must be there."""
    due = queue.next()
    assert isinstance(due, DueTask), due
    return due


def drained(queue: TaskQueue) -> list[object]:
    """The ids in the order in which they are handed out now, each finished before the next."""
    ids = []
    while isinstance(due := queue.next(), DueTask):
        queue.finish(due)
        ids.append(due.task_id)
    return ids


# -------------------------------------------------------------------------------------------- handing out


def test_an_empty_queue_says_none(queue: TaskQueue) -> None:
    assert queue.next() is None
    assert (len(queue), queue.heap_size, queue.active, queue.peak_active) == (0, 0, 0, 0)


def test_a_due_task_carries_what_was_scheduled(queue: TaskQueue) -> None:
    version = queue.schedule("a", run_at=99.5, priority=3, fn=work)
    due = claim(queue)
    assert (due.task_id, due.version, due.run_at, due.priority, due.fn) == ("a", version, 99.5, 3, work)
    assert due.cancel_requested is False
    assert "'a'" in repr(due)
    assert str(version) in repr(due)


def test_it_works_on_the_standard_monotonic_clock() -> None:
    queue = TaskQueue(clock=monotonic_s)
    queue.schedule("a", run_at=0.0, priority=5, fn=work)
    assert claim(queue).task_id == "a"


def test_a_future_task_is_waited_for(queue: TaskQueue, clock: HandClock) -> None:
    queue.schedule("a", run_at=105.0, fn=work)
    assert queue.next() == Wait(seconds=5.0)
    clock.now = 104.0
    assert queue.next() == Wait(seconds=1.0)
    clock.now = 105.0
    assert claim(queue).task_id == "a"


def test_a_future_task_is_never_handed_out_for_its_priority(queue: TaskQueue) -> None:
    queue.schedule("urgent", run_at=100.1, priority=10**9, fn=work)
    queue.schedule("plain", run_at=100.0, priority=-(10**9), fn=work)
    assert drained(queue) == ["plain"]
    assert isinstance(queue.next(), Wait)


def test_an_earlier_task_shortens_the_wait(queue: TaskQueue) -> None:
    queue.schedule("late", run_at=160.0, fn=work)
    assert queue.next() == Wait(seconds=60.0)
    queue.schedule("soon", run_at=101.0, fn=work)
    assert queue.next() == Wait(seconds=1.0)
    queue.cancel("soon")
    assert queue.next() == Wait(seconds=60.0)


def test_order_is_run_at_then_priority_then_sequence(queue: TaskQueue) -> None:
    rows = [("e", 2.0, 9), ("d", 1.0, -1), ("b", 1.0, 5), ("c", 1.0, 5), ("a", 0.5, 0), ("f", 2.0, 8)]
    for task_id, run_at, priority in rows:
        queue.schedule(task_id, run_at=run_at, priority=priority, fn=work)
    assert drained(queue) == ["a", "b", "c", "d", "e", "f"]


def test_equal_keys_go_in_the_order_of_scheduling(queue: TaskQueue) -> None:
    for number in range(200):
        queue.schedule(number, run_at=1.0, priority=7, fn=work)
    assert drained(queue) == list(range(200))


@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 1), (-1, 0), (-(2**70), -(2**70) + 1), (2**200, 2**200 + 1), (-(2**64), 2**64), (0, 2**64)],
)
def test_any_int_is_a_priority(queue: TaskQueue, low: int, high: int) -> None:
    queue.schedule("low", run_at=1.0, priority=low, fn=work)
    queue.schedule("high", run_at=1.0, priority=high, fn=work)
    assert drained(queue) == ["high", "low"]


def test_an_int_enum_is_a_priority(queue: TaskQueue) -> None:
    level = enum.IntEnum("level", {"LOW": 0, "HIGH": 2})
    queue.schedule("low", run_at=1.0, priority=level(0), fn=work)
    queue.schedule("high", run_at=1.0, priority=level(2), fn=work)
    assert drained(queue) == ["high", "low"]


def test_an_int_is_an_instant_too_and_keeps_its_precision() -> None:
    nanoseconds = HandClock(2**60)
    queue = TaskQueue(clock=nanoseconds)
    queue.schedule("now", run_at=2**60, fn=work)
    queue.schedule("next", run_at=2**60 + 1, fn=work)
    assert drained(queue) == ["now"]
    assert queue.next() == Wait(seconds=1)


def test_ids_and_functions_are_never_compared(queue: TaskQueue) -> None:
    ids = [object() for _ in range(20)]
    for task_id in ids:
        queue.schedule(task_id, run_at=1.0, fn=work)
    assert drained(queue) == ids


# -------------------------------------------------------------------------------------------- clock jumps


def test_a_clock_that_jumps_back_lets_nothing_out_early(queue: TaskQueue, clock: HandClock) -> None:
    queue.schedule("a", run_at=110.0, fn=work)
    queue.schedule("b", run_at=111.0, fn=work)
    clock.now = 120.0
    assert claim(queue).task_id == "a"
    clock.now = 105.0
    assert queue.next() == Wait(seconds=6.0)
    clock.now = 111.0
    assert claim(queue).task_id == "b"


def test_a_clock_that_jumps_back_undoes_a_promotion(clock: HandClock) -> None:
    queue = TaskQueue(clock=clock, order=lambda run_at, priority: -priority)
    for number in range(5):
        queue.schedule(number, run_at=110.0 + number, priority=number, fn=work)
    clock.now = 120.0
    assert claim(queue).task_id == 4
    clock.now = 111.0
    assert drained(queue) == [1, 0]
    assert queue.next() == Wait(seconds=1.0)
    clock.now = 120.0
    assert drained(queue) == [3, 2]


def test_a_clock_that_jumps_ahead_makes_all_due_in_order(queue: TaskQueue, clock: HandClock) -> None:
    for number in (3, 1, 2):
        queue.schedule(number, run_at=100.0 + number, fn=work)
    clock.now = 1e12
    assert drained(queue) == [1, 2, 3]


def test_a_clock_that_says_nonsense_lets_nothing_out(clock: HandClock) -> None:
    for order in (None, lambda run_at, priority: 0):
        clock.now = 100.0
        queue = TaskQueue(clock=clock, order=order)
        queue.schedule("a", run_at=1.0, fn=work)
        queue.schedule("b", run_at=1.0, fn=work)
        assert claim(queue).task_id == "a"
        clock.now = math.nan
        assert isinstance(queue.next(), Wait)
        clock.now = 100.0
        assert claim(queue).task_id == "b"


# -------------------------------------------------------------------------------------------- replacement


def test_versions_only_grow_over_all_ids(queue: TaskQueue) -> None:
    versions = [queue.schedule(task_id, run_at=1.0, fn=work) for task_id in ("a", "b", "a", "c", "b", "a")]
    assert versions == sorted(set(versions))
    assert all(type(version) is int for version in versions)


def test_a_replacement_takes_the_place_of_the_pending_version(queue: TaskQueue, clock: HandClock) -> None:
    queue.schedule("a", run_at=101.0, fn=work)
    new = queue.schedule("a", run_at=105.0, fn=work)
    assert len(queue) == 1
    clock.now = 104.0  # The old entry would surface here.
    assert queue.next() == Wait(seconds=1.0)
    clock.now = 105.0
    assert claim(queue).version == new
    assert queue.next() is None


def test_a_replacement_may_come_before_the_old_entry_surfaces(queue: TaskQueue) -> None:
    queue.schedule("a", run_at=50.0, fn=work)
    queue.schedule("b", run_at=60.0, fn=work)
    new = queue.schedule("a", run_at=40.0, fn=work)
    assert claim(queue).version == new
    assert drained(queue) == ["b"]
    assert queue.next() is None


def test_a_replacement_is_the_newest_among_equals(queue: TaskQueue) -> None:
    for task_id in ("a", "b", "a"):
        queue.schedule(task_id, run_at=1.0, fn=work)
    assert drained(queue) == ["b", "a"]


def test_a_new_version_waits_until_the_running_one_has_finished(queue: TaskQueue) -> None:
    queue.schedule("a", run_at=1.0, fn=work)
    old = claim(queue)
    new = queue.schedule("a", run_at=2.0, fn=work)
    assert (queue.state("a"), len(queue), queue.active) == (TaskState.PENDING, 1, 1)
    assert queue.next() == Wait(seconds=math.inf)
    queue.finish(old)
    assert queue.state("a") is TaskState.PENDING
    assert claim(queue).version == new
    assert queue.state("a") is TaskState.RUNNING


def test_others_do_not_wait_for_a_running_id(queue: TaskQueue) -> None:
    queue.schedule("a", run_at=1.0, fn=work)
    old = claim(queue)
    queue.schedule("a", run_at=2.0, fn=work)
    queue.schedule("b", run_at=3.0, fn=work)
    queue.schedule("c", run_at=107.0, fn=work)
    assert claim(queue).task_id == "b"
    assert queue.next() == Wait(seconds=7.0)
    queue.finish(old)
    assert claim(queue).task_id == "a"


def test_a_version_behind_a_running_one_can_be_replaced(queue: TaskQueue) -> None:
    queue.schedule("a", run_at=1.0, fn=work)
    old = claim(queue)
    queue.schedule("a", run_at=2.0, fn=work)
    newest = queue.schedule("a", run_at=3.0, fn=work)
    assert len(queue) == 1
    queue.finish(old)
    assert claim(queue).version == newest
    assert queue.next() is None


def test_a_new_version_after_the_end_starts_anew(queue: TaskQueue) -> None:
    queue.schedule("a", run_at=1.0, fn=work)
    queue.finish(claim(queue))
    queue.schedule("a", run_at=1.0, fn=work)
    assert queue.state("a") is TaskState.PENDING
    assert drained(queue) == ["a"]


# -------------------------------------------------------------------------------------------- cancelling


def test_a_cancelled_task_never_starts(queue: TaskQueue) -> None:
    queue.schedule("a", run_at=1.0, fn=work)
    assert queue.cancel("a") is True
    assert (queue.state("a"), len(queue)) == (TaskState.CANCELLED, 0)
    assert queue.next() is None


def test_cancelling_what_is_not_there_says_no(queue: TaskQueue) -> None:
    assert queue.cancel("a") is False
    queue.schedule("a", run_at=1.0, fn=work)
    queue.cancel("a")
    assert queue.cancel("a") is False
    queue.schedule("b", run_at=1.0, fn=work)
    queue.finish(claim(queue))
    assert queue.cancel("b") is False
    assert queue.state("b") is TaskState.COMPLETED


def test_cancel_immediately_before_the_claim(queue: TaskQueue) -> None:
    queue.schedule("a", run_at=100.0, fn=work)
    queue.schedule("b", run_at=100.0, fn=work)
    assert queue.cancel("a") is True
    assert claim(queue).task_id == "b"
    assert queue.next() is None


def test_cancel_immediately_after_the_claim(queue: TaskQueue) -> None:
    queue.schedule("a", run_at=100.0, fn=work)
    due = claim(queue)
    assert queue.cancel("a") is False
    assert (queue.state("a"), due.cancel_requested, queue.cancel_requested("a")) == (
        TaskState.RUNNING,
        True,
        True,
    )
    queue.finish(due)
    assert queue.state("a") is TaskState.COMPLETED
    assert queue.cancel_requested("a") is False


def test_cancelling_an_id_with_a_running_and_a_pending_version_stops_both(queue: TaskQueue) -> None:
    queue.schedule("a", run_at=1.0, fn=work)
    old = claim(queue)
    queue.schedule("a", run_at=2.0, fn=work)
    assert queue.cancel_requested("a") is False
    assert queue.cancel("a") is True
    assert (queue.state("a"), len(queue), old.cancel_requested) == (TaskState.RUNNING, 0, True)
    assert queue.cancel("a") is False
    queue.finish(old)
    assert queue.state("a") is TaskState.COMPLETED
    assert queue.next() is None


def test_a_request_to_stop_is_seen_through_a_version_that_waits(queue: TaskQueue) -> None:
    queue.schedule("a", run_at=1.0, fn=work)
    old = claim(queue)
    queue.cancel("a")
    queue.schedule("a", run_at=2.0, fn=work)
    assert queue.cancel_requested("a") is True
    queue.finish(old)
    assert queue.cancel_requested("a") is False


def test_nobody_is_asked_to_stop_unless_running(queue: TaskQueue) -> None:
    queue.schedule("a", run_at=1.0, fn=work)
    assert queue.cancel_requested("a") is False
    assert queue.cancel_requested("b") is False


def test_discarding_cancels_what_is_pending_and_nothing_else(queue: TaskQueue) -> None:
    queue.schedule("running", run_at=1.0, fn=work)
    running = claim(queue)
    queue.schedule("running", run_at=2.0, fn=work)
    queue.schedule("due", run_at=3.0, fn=work)
    queue.schedule("later", run_at=1000.0, fn=work)
    assert queue.discard_pending() == 3
    assert (len(queue), queue.next(), running.cancel_requested) == (0, None, False)
    assert queue.state("due") is queue.state("later") is TaskState.CANCELLED
    assert queue.state("running") is TaskState.RUNNING
    assert queue.discard_pending() == 0


# -------------------------------------------------------------------------------------------- ends


def test_each_end_is_recorded(queue: TaskQueue) -> None:
    for task_id in ("completed", "failed", "withdrawn"):
        queue.schedule(task_id, run_at=1.0, fn=work)
    error = SystemExit(3)
    queue.finish(claim(queue))
    queue.finish(claim(queue), error=error)
    queue.withdraw(claim(queue))
    ends = {task_id: queue.state(task_id) for task_id in ("completed", "failed", "withdrawn")}
    assert ends == {
        "completed": TaskState.COMPLETED,
        "failed": TaskState.FAILED,
        "withdrawn": TaskState.CANCELLED,
    }
    assert queue.error("failed") is error
    assert queue.error("completed") is None


def test_an_error_is_that_of_the_version_which_ended_last(queue: TaskQueue) -> None:
    queue.schedule("a", run_at=1.0, fn=work)
    assert queue.error("a") is None
    error = ValueError("once")
    queue.finish(claim(queue), error)
    queue.schedule("a", run_at=1.0, fn=work)
    assert queue.error("a") is error
    queue.finish(claim(queue))
    assert queue.error("a") is None


def test_a_withdrawn_claim_lets_the_newer_version_go(queue: TaskQueue) -> None:
    queue.schedule("a", run_at=1.0, fn=work)
    old = claim(queue)
    new = queue.schedule("a", run_at=1.0, fn=work)
    queue.withdraw(old)
    assert claim(queue).version == new


def test_finishing_twice_is_refused(queue: TaskQueue) -> None:
    queue.schedule("a", run_at=1.0, fn=work)
    due = claim(queue)
    queue.finish(due)
    with pytest.raises(IllegalTransition, match="exactly once") as caught:
        queue.finish(due, ValueError("too late"))
    assert (caught.value.status, caught.value.event) == ("completed", "failed")
    assert queue.state("a") is TaskState.COMPLETED
    assert (queue.active, queue.error("a")) == (0, None)


def test_finishing_a_stale_version_is_refused(queue: TaskQueue) -> None:
    queue.schedule("a", run_at=1.0, fn=work)
    old = claim(queue)
    queue.finish(old)
    queue.schedule("a", run_at=1.0, fn=work)
    with pytest.raises(IllegalTransition) as caught:
        queue.withdraw(old)
    assert (caught.value.status, caught.value.event) == ("pending", "cancelled")
    new = claim(queue)
    with pytest.raises(IllegalTransition):
        queue.finish(old)
    assert (queue.state("a"), queue.active) == (TaskState.RUNNING, 1)
    queue.finish(new)


def test_finishing_what_another_queue_handed_out_is_refused(queue: TaskQueue, clock: HandClock) -> None:
    other = TaskQueue(clock=clock)
    other.schedule("a", run_at=1.0, fn=work)
    foreign = claim(other)
    with pytest.raises(IllegalTransition) as caught:
        queue.finish(foreign)
    assert caught.value.status == ""
    queue.schedule("a", run_at=1.0, fn=work)
    mine = claim(queue)
    with pytest.raises(IllegalTransition):
        queue.finish(foreign)
    queue.finish(mine)


def test_finishing_with_something_else_than_an_error_is_refused(queue: TaskQueue) -> None:
    queue.schedule("a", run_at=1.0, fn=work)
    due = claim(queue)
    with pytest.raises(ConfigurationError, match="exception"):
        queue.finish(due, "it broke")  # type: ignore[arg-type]
    assert queue.state("a") is TaskState.RUNNING
    queue.finish(due)


def test_the_peak_of_running_tasks_is_kept(queue: TaskQueue) -> None:
    for number in range(5):
        queue.schedule(number, run_at=1.0, fn=work)
    first, second = claim(queue), claim(queue)
    queue.finish(first)
    third = claim(queue)
    assert (queue.active, queue.peak_active) == (2, 2)
    queue.finish(third)
    queue.finish(second)
    assert (queue.active, queue.peak_active) == (0, 2)


# -------------------------------------------------------------------------------------------- bounds


def test_an_unknown_id_is_named(queue: TaskQueue) -> None:
    for ask in (queue.state, queue.error):
        with pytest.raises(UnknownTask, match="'nobody'") as caught:
            ask("nobody")
        assert caught.value.task == "nobody"


@pytest.mark.parametrize("history", [1, 2, 3, 10, 11])
def test_only_so_many_ends_are_remembered(clock: HandClock, history: int) -> None:
    queue = TaskQueue(clock=clock, history=history)
    for number in range(4 * history):
        queue.schedule(number, run_at=1.0, fn=work)
        queue.finish(claim(queue))
        remembered = [task_id for task_id in range(number + 1) if is_known(queue, task_id)]
        newest_half = list(range(max(0, number + 1 - history // 2), number + 1))
        assert len(remembered) <= history
        assert set(newest_half) <= set(remembered)
        assert number in remembered


def is_known(queue: TaskQueue, task_id: object) -> bool:
    try:
        return queue.state(task_id) is TaskState.COMPLETED
    except UnknownTask:
        return False


def test_an_id_that_ends_often_takes_one_place_in_the_history(clock: HandClock) -> None:
    queue = TaskQueue(clock=clock, history=4)
    queue.schedule("once", run_at=1.0, fn=work)
    queue.finish(claim(queue))
    for _ in range(50):
        queue.schedule("often", run_at=1.0, fn=work)
        queue.finish(claim(queue))
    assert queue.state("often") is TaskState.COMPLETED


def test_what_has_ended_is_no_longer_held(queue: TaskQueue) -> None:
    def schedule(task_id: str) -> weakref.ref[Callable[[], None]]:
        def fn() -> None: ...

        queue.schedule(task_id, run_at=1.0, fn=fn)
        return weakref.ref(fn)

    gc.collect()
    gc.disable()
    try:
        finished = schedule("finished")
        queue.finish(claim(queue))
        cancelled = schedule("cancelled")
        queue.cancel("cancelled")
        assert queue.next() is None  # The stale entry has gone by.
        assert (finished(), cancelled()) == (None, None)
    finally:
        gc.enable()


@pytest.mark.parametrize("with_order", [False, True])
def test_the_heaps_are_bounded_by_what_is_pending(clock: HandClock, with_order: bool) -> None:
    queue = TaskQueue(clock=clock, order=(lambda run_at, priority: -priority) if with_order else None)
    for number in range(2_000):
        queue.schedule(number, run_at=float(number % 200), priority=number % 7, fn=work)
    running = claim(queue)
    assert queue.heap_size >= len(queue) == 1_999
    for number in range(2_000):
        queue.cancel(number)
        assert queue.heap_size <= 64 + 4 * len(queue)
    queue.finish(running)
    for _ in range(1_000):
        queue.schedule("one", run_at=1e9, fn=work)
        assert queue.heap_size <= 64 + 4 * len(queue)
    assert len(queue) == 1


# -------------------------------------------------------------------------------------------- other orders


def test_another_order_holds_among_what_is_due(clock: HandClock) -> None:
    queue = TaskQueue(clock=clock, order=lambda run_at, priority: -priority)
    rows = [("a", 1.0, 1), ("b", 2.0, 3), ("c", 3.0, 3), ("d", 200.0, 9), ("e", 0.0, 2)]
    for task_id, run_at, priority in rows:
        queue.schedule(task_id, run_at=run_at, priority=priority, fn=work)
    assert claim(queue).task_id == "b"
    assert queue.cancel("c") is True  # It lies in the ready heap by now.
    queue.schedule("a", run_at=1.0, priority=0, fn=work)
    assert len(queue) == 3
    clock.now = 200.0
    assert drained(queue) == ["d", "e", "a"]
    assert queue.next() is None


def test_ageing_is_an_order_that_never_changes(clock: HandClock) -> None:
    queue = TaskQueue(clock=clock, order=lambda run_at, priority: round(1e6 * (run_at - 10 * priority)))
    queue.schedule("low", run_at=100.0, priority=0, fn=work)
    queue.schedule("medium in time", run_at=109.0, priority=1, fn=work)
    queue.schedule("medium too late", run_at=111.0, priority=1, fn=work)
    clock.now = 111.0
    assert drained(queue) == ["medium in time", "low", "medium too late"]


def test_the_order_is_asked_once_and_its_error_refuses_the_task(clock: HandClock) -> None:
    asked: list[tuple[float, int]] = []

    def order(run_at: float, priority: int) -> int:
        asked.append((run_at, priority))
        return priority // (priority - 13)

    queue = TaskQueue(clock=clock, order=order)
    queue.schedule("a", run_at=1.0, priority=1, fn=work)
    with pytest.raises(ZeroDivisionError):
        queue.schedule("a", run_at=2.0, priority=13, fn=work)
    assert queue.schedule("b", run_at=5.0, priority=1, fn=work) == 2
    assert claim(queue).run_at == 1.0
    assert asked == [(1.0, 1), (2.0, 13), (5.0, 1)]


# -------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "run_at", [math.nan, math.inf, -math.inf, 10**400, -(10**400), True, "5", None, 1j, []]
)
def test_an_instant_that_is_none_is_refused(queue: TaskQueue, run_at: object) -> None:
    refused(queue, "run_at", run_at=run_at)


@pytest.mark.parametrize("priority", [1.0, "1", None, True, math.nan])
def test_a_priority_that_is_none_is_refused(queue: TaskQueue, priority: object) -> None:
    refused(queue, "priority", priority=priority)


@pytest.mark.parametrize("fn", [None, 1, "work"])
def test_a_function_that_is_none_is_refused(queue: TaskQueue, fn: object) -> None:
    refused(queue, "fn", fn=fn)


@pytest.mark.parametrize("task_id", [[], {}, ([],)])
def test_an_id_that_is_none_is_refused(queue: TaskQueue, task_id: object) -> None:
    refused(queue, "task_id", task_id=task_id)


def refused(queue: TaskQueue, name: str, **wrong: object) -> None:
    """The call is refused, its error names the argument, and nothing has changed."""
    queue.schedule("a", run_at=1.0, priority=1, fn=work)
    arguments: dict[str, object] = {"task_id": "a", "run_at": 0.0, "priority": 0, "fn": work, **wrong}
    with pytest.raises(ConfigurationError, match=name) as caught:
        queue.schedule(**arguments)  # type: ignore[arg-type]
    assert isinstance(caught.value, BetimesError)
    assert (len(queue), queue.heap_size) == (1, 1)
    first = claim(queue)
    assert first.priority == 1
    assert queue.schedule("b", run_at=1.0, fn=work) == first.version + 1


@pytest.mark.parametrize(
    "settings",
    [
        {"clock": None},
        {"clock": 12.5},
        {"order": "priority"},
        {"history": 0},
        {"history": -1},
        {"history": 1.5},
        {"history": True},
        {"history": None},
    ],
)
def test_a_wrong_setting_is_refused_by_name(clock: HandClock, settings: dict[str, object]) -> None:
    (name,) = settings
    with pytest.raises(ConfigurationError, match=name):
        TaskQueue(**{"clock": clock, **settings})  # type: ignore[arg-type]


def test_an_order_that_returns_no_int_is_refused(clock: HandClock) -> None:
    queue = TaskQueue(clock=clock, order=lambda run_at, priority: run_at)  # type: ignore[arg-type, return-value]
    with pytest.raises(ConfigurationError, match="order"):
        queue.schedule("a", run_at=1.0, fn=work)
    assert (len(queue), queue.next()) == (0, None)
