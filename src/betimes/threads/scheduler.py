"""`ThreadScheduler`: a dispatcher thread claims what is due, and a fixed number of workers run it.

The rules, and why:

1. *One lock* guards the queue and the claims. No function of a user's runs under it, so nothing that one
   does or waits for can stop the scheduler. It is re-entrant, because an object that dies under it may call
   back from its destructor.
2. *The dispatcher claims only for a free worker*: at most `workers` tasks are claimed at any moment, and what
   waits can still be cancelled and overtaken.
3. *A claim has started once a worker has taken it.* Until then `cancel` withdraws it, and its function is
   never called.
4. *Closing:* refuse, claim nothing more, run what is claimed, end all threads. They are daemon threads: an
   interpreter that exits does not wait for them.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable
from types import TracebackType
from typing import Self

from betimes.clock import monotonic_s
from betimes.core.due_task import is_int
from betimes.core.queue import HISTORY, DueTask, ReadyOrder, TaskQueue, TaskState
from betimes.errors import ConfigurationError, SchedulerClosed
from betimes.threads.call import Call, CancelToken, TaskFunction, error_of, forget_variables

# An injected clock may run on while ours stands still, so the dispatcher looks at it at least this often.
LONGEST_WAIT_S = 60.0


class ThreadScheduler:
    """Runs each scheduled function once it is due, on one of `workers` threads, in the order of `TaskQueue`.

    Every method may be called from any thread, from the functions it runs too. A function that fails harms
    nobody: its error is kept (`error(task_id)`). Threads start at once and end with `close()`.

    Args:
        workers: how many functions run at once, at most.
        clock: returns seconds that run evenly; every `run_at` is on its scale. After setting a clock of one's
            own ahead, call `wake()`.
        order: as for `TaskQueue`.
        history: as for `TaskQueue`.

    Raises:
        ConfigurationError: an argument cannot be used.

    Example:
        >>> with ThreadScheduler(workers=2) as s:
        ...     started = threading.Event()
        ...     version = s.schedule("a", run_at=s.now(), fn=started.set)
        ...     in_time = started.wait(timeout=60.0)
        >>> in_time, s.state("a")
        (True, <TaskState.COMPLETED: 'completed'>)
    """

    def __init__(
        self,
        workers: int = 4,
        *,
        clock: Callable[[], float] = monotonic_s,
        order: ReadyOrder | None = None,
        history: int = HISTORY,
    ) -> None:
        if not is_int(workers) or workers < 1:
            raise ConfigurationError(f"workers must be an int of 1 or more, not {workers!r}.")
        self._queue = TaskQueue(clock, order=order, history=history)
        self._clock = clock
        self._workers = workers
        self._lock = threading.RLock()
        self._something_to_claim = threading.Condition(self._lock)
        self._something_claimed = threading.Condition(self._lock)
        self._claimed: deque[DueTask] = deque()
        self._tokens: dict[Hashable, CancelToken] = {}
        self._closing = False
        names = [(self._work, f"betimes-worker-{number}") for number in range(1, workers + 1)]
        self._threads = [
            threading.Thread(target=target, name=name, daemon=True)
            for target, name in [(self._dispatch, "betimes-dispatcher"), *names]
        ]
        self._start()

    def now(self) -> float:
        """The clock's present reading, in seconds: what `run_at` is compared with."""
        return self._clock()

    def schedule(self, task_id: Hashable, *, run_at: float, priority: int = 0, fn: TaskFunction) -> int:
        """Have `fn` called at `run_at`, or as soon after as a worker is free; replaces what is pending.

        Args:
            task_id: any hashable value, such as a str. While a version of it runs, a new one waits.
            run_at: seconds on the scheduler's clock, such as `s.now() + 5`.
            priority: among functions due at the same time the larger goes first; any int.
            fn: is called without arguments; or with a `CancelToken`, if its only parameter without a default
                is a positional one.

        Returns:
            The version: larger than every version before, of this and of any other id.

        Raises:
            SchedulerClosed: `close()` has been called.
            ConfigurationError: an argument cannot be used.
        """
        call = Call(fn)
        with self._lock:
            if self._closing:
                raise SchedulerClosed(
                    f"The scheduler is closed and did not take {task_id!r}: schedule before close(), or make "
                    "a new ThreadScheduler."
                )
            version = self._queue.schedule(task_id, run_at=run_at, priority=priority, fn=call)
            self._something_to_claim.notify()
            return version

    def cancel(self, task_id: Hashable) -> bool:
        """Cancel the id: what has not started never does, what runs is told so by its `CancelToken`.

        Returns:
            True if a version had not started: it is CANCELLED. False if there was none; a running one goes
            on until its function returns, and until then `cancel_requested(task_id)` is true.
        """
        with self._lock:
            withdrawn = self._withdraw(task_id)
            cancelled = self._queue.cancel(task_id)
            token = self._tokens.get(task_id)
        if token is not None:
            token.cancel()
        return withdrawn or cancelled

    def close(self, *, discard_pending: bool = False, timeout_s: float | None = None) -> bool:
        """Refuse new work, claim nothing more, wait until what is claimed has run, and end all threads.

        Closing twice, also from several threads at once, is fine. From inside a function that it runs, it
        closes without waiting, since that would be waiting for itself.

        Args:
            discard_pending: what is pending becomes CANCELLED; otherwise it stays PENDING, and never starts.
            timeout_s: wait at most so many seconds; None: as long as it takes.

        Returns:
            Whether it is closed: all threads have ended.
        """
        deadline = None if timeout_s is None else monotonic_s() + timeout_s
        with self._lock:
            self._close_claims()
            if discard_pending:
                self._queue.discard_pending()
        if threading.current_thread() in self._threads:
            return False
        for thread in self._threads:
            thread.join(None if deadline is None else max(0.0, deadline - monotonic_s()))
        return self.closed

    @property
    def closed(self) -> bool:
        """Whether `close()` has been called and all claimed work is over."""
        return self._closing and not any(thread.is_alive() for thread in self._threads)

    def state(self, task_id: Hashable) -> TaskState:
        """Where the id stands, as `TaskQueue.state` says; RUNNING lasts until the function has returned.

        Raises:
            UnknownTask: it was never scheduled, or its end has been forgotten.
        """
        with self._lock:
            return self._queue.state(task_id)

    def error(self, task_id: Hashable) -> BaseException | None:
        """What the version that ended last has raised; its traceback is kept, the frames' variables are not.

        Raises:
            UnknownTask: as for `state`.
        """
        with self._lock:
            return self._queue.error(task_id)

    def cancel_requested(self, task_id: Hashable) -> bool:
        """Whether a version of the id is running and `cancel` has asked it to stop."""
        with self._lock:
            return self._queue.cancel_requested(task_id)

    def wake(self) -> None:
        """Look at the clock again now: for a clock of one's own that was set."""
        with self._lock:
            self._something_to_claim.notify()

    def __len__(self) -> int:
        """How many tasks are pending."""
        with self._lock:
            return len(self._queue)

    @property
    def heap_size(self) -> int:
        """How many entries the queue's heaps hold, stale ones included: at most `64 + 4 * len(s)`."""
        with self._lock:
            return self._queue.heap_size

    @property
    def active(self) -> int:
        """How many tasks are claimed or running; never more than `workers`."""
        with self._lock:
            return self._queue.active

    @property
    def peak_active(self) -> int:
        """The most tasks that have been claimed or running at once."""
        with self._lock:
            return self._queue.peak_active

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self) -> None:
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:  # The system has no thread left, for instance: those that run must not stay.
            with self._lock:
                self._close_claims()
            raise

    def _close_claims(self) -> None:
        """From now on nothing is taken and nothing is claimed. Called under the lock."""
        self._closing = True
        self._something_to_claim.notify_all()
        self._something_claimed.notify_all()

    def _dispatch(self) -> None:
        """The dispatcher: claim what is due for each free worker, then wait for the next event or instant."""
        with self._lock:
            try:
                while not self._closing:
                    self._something_to_claim.wait(self._claim())
            finally:  # A clock that raises ends the dispatcher: then take no work that nobody would start.
                self._close_claims()

    def _claim(self) -> float | None:
        """Claim for each free worker what is due; say how many seconds to wait then, None: until notified."""
        while self._queue.active < self._workers:
            due = self._queue.next()
            if not isinstance(due, DueTask):
                return None if due is None else min(due.seconds, LONGEST_WAIT_S)
            self._claimed.append(due)
            self._something_claimed.notify()
        return None

    def _withdraw(self, task_id: Hashable) -> bool:
        """Take back a claim that no worker has taken yet, if the id has one. Called under the lock."""
        for due in self._claimed:
            if due.task_id == task_id:
                self._claimed.remove(due)
                self._queue.withdraw(due)
                self._something_to_claim.notify()
                return True
        return False

    def _work(self) -> None:
        """A worker: run one claim after the other until there are no more."""
        while self._serve():
            pass

    def _serve(self) -> bool:
        """Run one claim and record how it ended; False when closing and nothing is claimed."""
        due = self._take()
        if due is None:
            return False
        error = error_of(due.fn)
        if error is not None:
            forget_variables(error)
        with self._lock:
            self._tokens.pop(due.task_id, None)
            self._queue.finish(due, error)
            self._something_to_claim.notify()
        # The error's traceback reaches this frame; without these it keeps nothing of the user's alive.
        del due, error
        return True

    def _take(self) -> DueTask | None:
        """Wait for a claim and start it."""
        with self._lock:
            while not self._claimed:
                if self._closing:
                    return None
                self._something_claimed.wait()
            due = self._claimed.popleft()
            if isinstance(due.fn, Call) and due.fn.token is not None:
                self._tokens[due.task_id] = due.fn.token
            return due
