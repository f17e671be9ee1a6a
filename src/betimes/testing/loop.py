"""An event loop on virtual time: a year of timers runs in a second, the same way every time.

Rules, and why:

* *Time moves only when nothing else can happen.* The loop runs what is ready and polls real I/O; only then
  does it set the clock to the next timer. So a step takes no time, and timers run when due, never early.
* *Equal deadlines run in the order in which they were set.* asyncio's own heap leaves that open, and on a
  real clock it hardly ever matters; on a virtual one equal deadlines are the rule.
* *Real work stops time.* While `real_work()` is held the loop waits, really, for what threads and sockets
  send, and no timer runs. Otherwise an hour of timeouts would pass before a thread has said its first word.
* *A loop that can never go on says so*, with the tasks that wait: `Deadlock`, `Livelock`, `TimeLimitPassed`.

The loop leans on four attributes of asyncio's own loop that are not documented: `_ready`, `_scheduled`,
`_clock_resolution`, and that each turn calls the selector once.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import math
import selectors
import threading
from asyncio import _get_running_loop, _set_running_loop
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from itertools import count, groupby
from typing import Any, Final, Self, TypeVar, TypeVarTuple

from betimes.clock import new_rng
from betimes.testing.clock import VirtualClock
from betimes.testing.stuck import Deadlock, Livelock, TimeLimitPassed, waiting_tasks

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Events = list[tuple[selectors.SelectorKey, int]]

DEFAULT_LIMIT_S: Final = 400 * 86_400.0
DEFAULT_MAX_TURNS: Final = 5_000_000
DEFAULT_REAL_LIMIT_S: Final = 30.0

_HALF_A_MICROSECOND = 0.5e-6


class VirtualLoop(asyncio.SelectorEventLoop):
    """An asyncio event loop whose time is a `VirtualClock`: it jumps to the next timer instead of waiting.

    `run_in_executor` without an executor runs the function inline, in a step of its own, in an empty context
    and with no running loop to be seen, as in a pool's thread. With an executor, given there or by
    `set_default_executor`, it runs really, and time stands still until it has ended.

    `shuffle=True` looks for code that leans on an order nobody promised: it draws the order of timers with
    equal deadlines, and the order of tasks that became ready one right after the other. It does not touch the
    order of plain callbacks among themselves or against tasks, since `call_soon` promises it and transports
    need it. To reorder more, make calls at the borders take random virtual time: that happens in reality too.

    Args:
        clock: whose time to use and to move; a new one by default. `loop.time() == clock.monotonic()`.
        seed: for `shuffle`; the same seed gives the same order.
        shuffle: whether to draw the orders named above.
        limit_s: virtual seconds that one run may take; it can be changed between two runs.
        max_turns: turns that the loop may make without time moving.
        real_limit_s: real seconds that it waits for real work or real I/O before it gives up.

    Example:
        >>> loop = VirtualLoop()
        >>> loop.run_until_complete(asyncio.sleep(3600))
        >>> loop.time()
        3600.0
        >>> loop.close()
    """

    is_virtual = True
    """For whatever measures real time, such as a watchdog: it has nothing to measure here."""

    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]
    _clock_resolution: float

    def __init__(
        self,
        *,
        clock: VirtualClock | None = None,
        seed: int = 0,
        shuffle: bool = False,
        limit_s: float = DEFAULT_LIMIT_S,
        max_turns: int = DEFAULT_MAX_TURNS,
        real_limit_s: float = DEFAULT_REAL_LIMIT_S,
    ) -> None:
        self.clock = VirtualClock() if clock is None else clock
        self._rng = new_rng(seed)
        self._is_shuffled = shuffle
        self._order = count()
        self.limit_s, self._ends_at, self._halts_at = limit_s, math.inf, math.inf
        self._max_turns, self._turns, self._turned_at = max_turns, 0, math.nan
        self._real_limit_s = real_limit_s
        self._real_work, self._real_work_lock = 0, threading.Lock()
        self._executor: Executor | None = None
        self._files = _TurnSelector(self._turn)
        super().__init__(self._files)
        self._own_files = len(self._files.get_map())  # the pipe through which other threads wake the loop

    def time(self) -> float:
        """The virtual time: `clock.monotonic()`."""
        return self.clock.monotonic()

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call back at the virtual time `when`; equal times in the order of these calls, unless shuffled."""
        order = self._rng.random() if self._is_shuffled else next(self._order)
        return super().call_at(_Deadline(when, order), callback, *args, context=context)

    def run_forever(self) -> None:
        """Run until stopped, at most `limit_s` virtual seconds from now.

        Raises:
            Deadlock: nothing will ever wake the loop, or real work did not end within `real_limit_s`.
            Livelock: the loop turned `max_turns` times without time moving.
            TimeLimitPassed: the next timer lies beyond the limit.
        """
        self._ends_at = self.time() + self.limit_s if self._halts_at == math.inf else math.inf
        self._turns = 0
        super().run_forever()

    def run_until(self, when: float) -> None:
        """Run all that is due by a virtual time and all that it brings at once; then time stands there.

        Args:
            when: a reading of `time()`, in seconds, to the microsecond.

        Raises:
            Deadlock: real work did not end within `real_limit_s`.
            Livelock: the loop turned `max_turns` times without time moving.

        Example:
            >>> loop, rung = VirtualLoop(), []
            >>> timers = [loop.call_later(s, rung.append, s) for s in (1.0, 60.0, 61.0)]
            >>> loop.run_until(60.0)
            >>> rung, loop.time()
            ([1.0, 60.0], 60.0)
            >>> loop.close()
        """
        # A deadline that was reckoned as a sum may lie a trace behind the instant it stands for.
        self._halts_at = when + _HALF_A_MICROSECOND
        try:
            self.run_forever()
        finally:
            self._halts_at = math.inf
        self.clock.advance_to(when)

    @contextlib.contextmanager
    def real_work(self) -> Iterator[None]:
        """Stop virtual time while the block runs: the loop then waits, really, for threads and sockets.

        Example:
            >>> async def main():
            ...     loop, answered = asyncio.get_running_loop(), asyncio.Event()
            ...     with loop.real_work():
            ...         threading.Thread(target=loop.call_soon_threadsafe, args=(answered.set,)).start()
            ...         await answered.wait()
            >>> run_virtual(main())
        """
        self.begin_real_work()
        try:
            yield
        finally:
            self.end_real_work()

    def begin_real_work(self) -> None:
        """Stop virtual time until `end_real_work` has been called as often; from any thread."""
        with self._real_work_lock:
            self._real_work += 1

    def end_real_work(self) -> None:
        """Let virtual time go on, once nobody else stops it; from any thread."""
        with self._real_work_lock:
            self._real_work -= 1
        # The loop may be waiting because of the old count: make it look again. A closed loop need not.
        with contextlib.suppress(RuntimeError):
            self.call_soon_threadsafe(lambda: None)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run the function inline in a later step, or really, in the executor that was given."""
        chosen = self._executor if executor is None else executor
        if chosen is None:
            future: asyncio.Future[T] = self.create_future()
            self.call_soon(_run_inline, future, func, args, context=contextvars.Context())
            return future
        self.begin_real_work()
        try:
            job = chosen.submit(func, *args)
        except BaseException:
            self.end_real_work()
            raise
        # In this order: the result must be on its way to the loop before time may move again.
        wrapped = asyncio.wrap_future(job, loop=self)
        job.add_done_callback(lambda _: self.end_real_work())
        return wrapped

    def set_default_executor(self, executor: Any) -> None:
        """From now on `run_in_executor(None, …)` runs really, in this executor."""
        super().set_default_executor(executor)
        self._executor = executor

    async def shutdown_default_executor(self, *args: Any, **kwargs: Any) -> None:
        """Wait, really, for the threads of the executor given to `set_default_executor`."""
        with self.real_work():
            await super().shutdown_default_executor(*args, **kwargs)

    def _turn(self, poll: Callable[[float], Events], timeout: float | None) -> Events:
        """Stand in for the selector's wait, once a turn: poll, wait for real work, or move the clock."""
        self._look_at_time()
        if self._is_shuffled:
            self._shuffle_ready()
        # Read before the poll: a thread sends its result, then ends its work. So where no work is left, what
        # it sent is there to be polled, and no jump comes in between.
        is_working = self._real_work > 0
        events = poll(0)
        if events or timeout == 0:
            return events
        if is_working or (timeout is None and self._must_wait_for_files()):
            return self._wait_really(poll)
        if self._halts_at < math.inf and (timeout is None or self._scheduled[0].when() > self._halts_at):
            self.stop()
            return events
        if timeout is None:
            raise Deadlock("nothing is ready and no timer is set; these wait:", waiting=waiting_tasks(self))
        self._jump()
        return events

    def _must_wait_for_files(self) -> bool:
        """Whether only a file can bring the loop on, and nobody has said how long to go on."""
        return self._halts_at == math.inf and len(self._files.get_map()) > self._own_files

    def _look_at_time(self) -> None:
        """Count the turns that were made at this instant, and allow for no error in comparing with it."""
        now = self.time()
        if now != self._turned_at:
            self._turned_at, self._turns = now, 0
            # asyncio runs what is due before `time() + resolution`. With one unit in the last place that is
            # what is due now, and nothing else, however long the clock has run.
            self._clock_resolution = math.ulp(now)
        self._turns += 1
        if self._turns > self._max_turns:
            text = f"the loop turned {self._max_turns} times at {now} s without time moving; not ended:"
            raise Livelock(text, waiting=waiting_tasks(self))

    def _jump(self) -> None:
        """Set the clock to the first deadline."""
        when = self._scheduled[0].when()
        if when > self._ends_at:
            text = f"the next timer is at {when} s, beyond this run's limit at {self._ends_at} s; not ended:"
            raise TimeLimitPassed(text, waiting=waiting_tasks(self))
        self.clock.advance_to(when)
        self._look_at_time()

    def _wait_really(self, poll: Callable[[float], Events]) -> Events:
        """Wait for threads and sockets while virtual time stands still."""
        events = poll(self._real_limit_s)
        if not events:
            text = (
                f"no real thread or socket woke the loop for {self._real_limit_s} real seconds; these wait:"
            )
            raise Deadlock(text, waiting=waiting_tasks(self))
        return events

    def _shuffle_ready(self) -> None:
        """Draw a new order for each run of task steps that stand one right after the other."""
        ready = self._ready
        # Other threads only ever append, so what is taken from the left and put back there stays whole.
        handles = [ready.popleft() for _ in range(len(ready))]
        drawn: list[asyncio.Handle] = []
        for is_step, run in groupby(handles, key=_is_task_step):
            steps = list(run)
            if is_step:
                self._rng.shuffle(steps)
            drawn += steps
        ready.extendleft(reversed(drawn))


class _TurnSelector(selectors.DefaultSelector):
    """The platform's selector, which leaves the waiting to the loop."""

    def __init__(self, turn: Callable[[Callable[[float], Events], float | None], Events]) -> None:
        super().__init__()
        self._turn = turn

    def select(self, timeout: float | None = None) -> Events:
        return self._turn(super().select, timeout)


class _Deadline(float):
    """A timer's instant; among equal ones, the smaller `order` is earlier."""

    __slots__ = ("order",)

    order: float

    def __new__(cls, when: float, order: float) -> Self:
        made = super().__new__(cls, when)
        made.order = order
        return made

    def __lt__(self, other: float) -> bool:
        if self == other and isinstance(other, _Deadline):
            return self.order < other.order
        return float(self) < other


def _is_task_step(handle: asyncio.Handle) -> bool:
    return isinstance(getattr(getattr(handle, "_callback", None), "__self__", None), asyncio.Task)


def _run_inline(future: asyncio.Future[T], func: Callable[..., T], args: tuple[Any, ...]) -> None:
    """Run the function as a pool's thread would, and put its outcome into the future."""
    if future.cancelled():
        return  # as in a pool: cancelled before its turn came, it never runs
    loop = _get_running_loop()
    _set_running_loop(None)
    try:
        result = func(*args)
    except (SystemExit, KeyboardInterrupt):
        raise
    except StopIteration as error:
        future.set_exception(RuntimeError(f"the function raised {error!r}, which no future can hold"))
    except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to whoever awaits the future
        future.set_exception(error)
    else:
        future.set_result(result)
    finally:
        _set_running_loop(loop)
