"""The queue of one node: a task is handed out once it is due, in a fixed order, unless it was cancelled.

The rules, and why:

1. *One valid version per id.* Every `schedule` makes a new version; versions only grow, over all ids.
   Scheduling a pending id again replaces it: the old version never starts. A new version of a running id
   waits until the old one has finished, so that no id ever runs twice at once.
2. *Due means now.* A task is handed out if and only if `run_at <= clock()` in that very call. Nothing is
   settled ahead, so a clock that jumps back lets nothing out early, and a priority pulls nothing forward.
3. *The order is static*: (run_at, -priority, version). Ids and functions are never compared. A strict order
   can starve: a task waits for as long as earlier or more urgent ones keep coming. Fairness is a choice, made
   with an `order` of one's own.
4. *The delayed heap* holds what waits for its time, and its head goes next by the standard order. With
   another `order`, what is due moves on to *the ready heap*, which is sorted by it.
5. *Deleting is lazy* (see `heap`): cancelling and replacing are O(1), scheduling and handing out O(log n),
   all amortised, and the heaps never hold more than `64 + 4 * len(queue)` entries.
6. *The legal ways* are PENDING to RUNNING to COMPLETED or FAILED, PENDING to CANCELLED, and RUNNING to
   CANCELLED for a claim withdrawn before its function was called. Everything else is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from math import inf
from typing import Any

from betimes.core.due_task import (
    DueTask,
    ReadyOrder,
    TaskEnd,
    TaskState,
    Wait,
    check_task,
    is_int,
    require_callable,
)
from betimes.core.heap import LazyHeap
from betimes.errors import ConfigurationError, IllegalTransition, UnknownTask

__all__ = ["DueTask", "ReadyOrder", "TaskQueue", "TaskState", "Wait"]

HEAP_SLACK = 64
HISTORY = 10_000

# Priority and version make one number that sorts by both: no queue lives to see 2**64 versions.
PRIORITY_STEP = 1 << 64

_COMPLETED = TaskEnd(state=TaskState.COMPLETED)
_CANCELLED = TaskEnd(state=TaskState.CANCELLED)


class _Task(DueTask):
    """The record with what only the queue needs to know of it."""

    __slots__ = ("order_key", "place")

    order_key: int
    """Its key in the ready heap; set only if the queue has an order of its own."""

    place: LazyHeap[Any, _Task] | _Task | None
    """The heap that holds it, the running version of its id that it waits for, or None: it runs, or did."""


class TaskQueue:
    """Hands out each version at most once: by earliest run_at, then highest priority, then first scheduled.

    It has no threads, does no I/O and takes no lock: calls from several threads need one around them, as they
    have in `ThreadScheduler`. A call that raises has changed nothing.

    Args:
        clock: returns seconds that run evenly, such as `time.monotonic`. Every `run_at` is on its scale.
        order: the order among tasks that are due, if it is to be another one: maps (run_at, priority) to an
            int, smaller first. Ageing, for instance, where ten seconds of waiting make up for one priority:
            `lambda run_at, priority: round(1e6 * (run_at - 10 * priority))`.
        history: how many ids' ends are remembered at most; the newest half of them always are.

    Raises:
        ConfigurationError: an argument cannot be used.

    Example:
        >>> now = 100.0
        >>> queue = TaskQueue(clock=lambda: now)
        >>> queue.schedule("later", run_at=105.0, fn=print), queue.schedule("a", run_at=99.0, fn=print)
        (1, 2)
        >>> due = queue.next()
        >>> due, queue.state("a"), len(queue)
        (<DueTask 'a' version 2, run_at 99.0>, <TaskState.RUNNING: 'running'>, 1)
        >>> queue.finish(due)
        >>> queue.state("a"), queue.next()
        (<TaskState.COMPLETED: 'completed'>, Wait(seconds=5.0))
        >>> queue.cancel("later"), queue.next()
        (True, None)
    """

    def __init__(
        self, clock: Callable[[], float], *, order: ReadyOrder | None = None, history: int = HISTORY
    ) -> None:
        require_callable("clock", clock)
        if order is not None:
            require_callable("order", order)
        if not is_int(history) or history < 1:
            raise ConfigurationError(f"history must be an int of 1 or more, not {history!r}.")
        self._clock = clock
        self._order = order
        self._history = history
        self._generation = (history + 1) // 2
        # The newest version of each id that is pending or running.
        self._tasks: dict[Hashable, _Task] = {}
        # How the others ended, in two generations: to forget the older one as a whole needs no search.
        self._ended: dict[Hashable, TaskEnd] = {}
        self._ended_before: dict[Hashable, TaskEnd] = {}
        # Each heap keeps within its slack and four times its own live entries, so both keep within the bound.
        self._delayed: LazyHeap[float, _Task] = LazyHeap(slack=HEAP_SLACK // 2)
        self._ready: LazyHeap[int, _Task] = LazyHeap(slack=HEAP_SLACK // 2)
        self._version = 0
        self._waiting_for_older = 0
        self._active = 0
        self._peak_active = 0

    def schedule(
        self, task_id: Hashable, *, run_at: float, priority: int = 0, fn: Callable[..., object]
    ) -> int:
        """Make a new version of the id pending; a pending one is replaced, a running one is waited for.

        Args:
            task_id: any hashable value, such as a str.
            run_at: when it is due at the earliest, in seconds on the queue's clock; finite.
            priority: among tasks of the same `run_at` the larger goes first; any int.
            fn: what `next()` hands out with it; the queue itself never calls it.

        Returns:
            The version: larger than every version before, of this and of any other id.

        Raises:
            ConfigurationError: an argument cannot be used.
        """
        # What nearly everybody passes is tested here: a call would cost a good part of the heap's work.
        if not (type(run_at) is float and -inf < run_at < inf and type(priority) is int and callable(fn)):
            check_task(run_at, priority, fn)
        try:
            older = self._tasks.get(task_id)
        except TypeError:
            raise ConfigurationError(f"task_id must be hashable, such as a str, not {task_id!r}.") from None
        task = _Task(task_id, self._version + 1, fn, run_at, priority)
        if self._order is not None:
            task.order_key = _order_key(self._order, run_at, priority)
        running = None if older is None else self._take_out(older)
        self._version = task.version
        self._tasks[task_id] = task
        if running is None:  # As `_delay` does it, without its call.
            task.place = self._delayed
            self._delayed.push(run_at, task.version - priority * PRIORITY_STEP, task)
        else:
            task.place = running
            self._waiting_for_older += 1
        return task.version

    def cancel(self, task_id: Hashable) -> bool:
        """Cancel the id in O(1), amortised: what is pending never starts, what is running is asked to stop.

        Returns:
            True if a version was pending: it is CANCELLED. False if none was; a running version goes on, but
            its `cancel_requested` is now true, and it is over only when `finish` says so.
        """
        task = self._tasks.get(task_id)
        if task is None:
            return False
        running = self._take_out(task)
        if running is not None:
            running.cancel_requested = True
        if running is task:
            return False
        self._drop(task, running)
        return True

    def next(self) -> DueTask | Wait | None:
        """Hand out the first task that is due now, or say how long to wait; None when nothing is pending."""
        now = self._clock()
        entry: tuple[float, int, _Task] | None
        if self._order is None:
            entry = self._delayed.pop_due(now)
        else:
            self._promote(now)
            entry = self._ready.pop()
        if entry is None:
            return self._wait(now)
        task = entry[2]
        task.place = None
        self._active = active = self._active + 1
        if active > self._peak_active:  # Not `max`, which would be a call.
            self._peak_active = active
        return task

    def finish(self, due: DueTask, error: BaseException | None = None) -> None:
        """Record that the function has returned (COMPLETED), or has raised `error` (FAILED).

        Raises:
            IllegalTransition: this version is not running: it has finished, or was not handed out here.
            ConfigurationError: `error` is not an exception.
        """
        if error is None:
            self._end(due, _COMPLETED)
        elif isinstance(error, BaseException):
            self._end(due, TaskEnd(state=TaskState.FAILED, error=error))
        else:
            raise ConfigurationError(f"error must be the exception that was raised, or None, not {error!r}.")

    def withdraw(self, due: DueTask) -> None:
        """Record that the function was not called and will not be: the claim ends CANCELLED.

        Raises:
            IllegalTransition: as for `finish`.
        """
        self._end(due, _CANCELLED)

    def discard_pending(self) -> int:
        """Cancel all that is pending, and say how many tasks that were; what is running is left alone."""
        pending = [task for task in self._tasks.values() if task.place is not None]
        for task in pending:
            self._drop(task, self._take_out(task))
        return len(pending)

    def state(self, task_id: Hashable) -> TaskState:
        """PENDING if a version waits, else RUNNING if one runs, else how the one that ended last did end.

        Raises:
            UnknownTask: it was never scheduled, or its end has been forgotten.
        """
        task = self._tasks.get(task_id)
        if task is not None:
            return TaskState.RUNNING if task.place is None else TaskState.PENDING
        end = self._last_end(task_id)
        if end is None:
            raise self._unknown(task_id)
        return end.state

    def error(self, task_id: Hashable) -> BaseException | None:
        """The error of the version that ended last; None if it did not fail, or if none has ended.

        Raises:
            UnknownTask: as for `state`.
        """
        end = self._last_end(task_id)
        if end is not None:
            return end.error
        if task_id not in self._tasks:
            raise self._unknown(task_id)
        return None

    def cancel_requested(self, task_id: Hashable) -> bool:
        """Whether a version of the id is running and `cancel` has asked it to stop."""
        task = self._tasks.get(task_id)
        running = task.place if task is not None and isinstance(task.place, _Task) else task
        return running is not None and running.cancel_requested

    def __len__(self) -> int:
        """How many tasks are pending."""
        return self._delayed.live + self._ready.live + self._waiting_for_older

    @property
    def heap_size(self) -> int:
        """How many entries the heaps hold, stale ones included: at most `64 + 4 * len(queue)`."""
        return self._delayed.size + self._ready.size

    @property
    def active(self) -> int:
        """How many tasks are running: handed out and not yet finished."""
        return self._active

    @property
    def peak_active(self) -> int:
        """The most tasks that have been running at once."""
        return self._peak_active

    def _delay(self, task: _Task) -> None:
        """Put a task into the delayed heap, which keeps the standard order."""
        task.place = self._delayed
        self._delayed.push(task.run_at, _by_priority(task), task)

    def _promote(self, now: float) -> None:
        """Move what is due to the ready heap, and back what no longer is since the clock went back."""
        while (entry := self._delayed.pop_due(now)) is not None:
            task = entry[2]
            task.place = self._ready
            self._ready.push(task.order_key, task.version, task)
        while (head := self._ready.peek()) is not None and not head[2].run_at <= now:
            self._ready.pop()
            self._delay(head[2])

    def _wait(self, now: float) -> Wait | None:
        """What `next` answers when nothing is due."""
        head = self._delayed.peek()
        if head is not None:
            return Wait(seconds=head[0] - now)
        return Wait(seconds=inf) if self._waiting_for_older else None

    def _take_out(self, task: _Task) -> _Task | None:
        """End the task's waiting, if it waits; return the version of its id that runs, if one does."""
        place = task.place
        if place is None:
            return task
        if isinstance(place, _Task):
            self._waiting_for_older -= 1
            return place
        place.discard(task.version if place is self._ready else _by_priority(task))
        return None

    def _drop(self, task: _Task, running: _Task | None) -> None:
        """PENDING to CANCELLED, for a task that has been taken out from behind `running`."""
        if running is None:
            del self._tasks[task.task_id]
        else:
            self._tasks[task.task_id] = running
        self._remember(task.task_id, _CANCELLED)

    def _end(self, due: DueTask, end: TaskEnd) -> None:
        """RUNNING to an end; a newer version of the same id now has its turn."""
        task_id = due.task_id
        newest = self._tasks.get(task_id)
        if newest is due:
            del self._tasks[task_id]
        elif newest is not None and newest.place is due:
            self._waiting_for_older -= 1
            self._delay(newest)
        else:
            raise self._illegal(due, end)
        self._active -= 1
        self._remember(task_id, end)

    def _remember(self, task_id: Hashable, end: TaskEnd) -> None:
        """Keep how the id ended, and forget the older half of all ends when there are too many."""
        self._ended[task_id] = end
        if len(self._ended) >= self._generation:
            self._ended_before, self._ended = self._ended, {}

    def _last_end(self, task_id: Hashable) -> TaskEnd | None:
        return self._ended.get(task_id) or self._ended_before.get(task_id)

    def _unknown(self, task_id: Hashable) -> UnknownTask:
        return UnknownTask(
            f"No task {task_id!r} is known here: it was never scheduled, or it ended too long ago; the ends "
            f"of at most {self._history} ids are remembered.",
            task=str(task_id),
        )

    def _illegal(self, due: DueTask, end: TaskEnd) -> IllegalTransition:
        known = due.task_id in self._tasks or self._last_end(due.task_id) is not None
        return IllegalTransition(
            f"{due!r} is not running: give back each task that next() hands out exactly once.",
            status=self.state(due.task_id) if known else "",
            event=end.state,
        )


def _by_priority(task: _Task) -> int:
    """A number that sorts tasks of one `run_at`: the higher priority first, then the older version."""
    return task.version - task.priority * PRIORITY_STEP


def _order_key(order: ReadyOrder, run_at: float, priority: int) -> int:
    key = order(run_at, priority)
    if not is_int(key):
        raise ConfigurationError(f"order(run_at, priority) must return an int, not {key!r}.")
    return key
