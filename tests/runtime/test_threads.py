"""`ThreadScheduler` on real threads: they meet at events and barriers, and nothing is timed."""

from __future__ import annotations

import functools
import gc
import os
import subprocess
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Generator
from typing import Any

import pytest

from betimes.core.queue import TaskState
from betimes.errors import ConfigurationError, SchedulerClosed, UnknownTask
from betimes.threads import CancelToken, ThreadScheduler

LIMIT_S = 30.0


class HandClock:
    """A clock that stands where the test puts it, and tells when the dispatcher has read it."""

    def __init__(self, now: float = 100.0) -> None:
        self.now = now
        self.read = threading.Event()

    def __call__(self) -> float:
        self.read.set()
        return self.now


class Gate:
    """A function that says when it has started, and returns when the test lets it."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.may_end = threading.Event()

    def __call__(self) -> None:
        self.started.set()
        sure(self.may_end)


def sure(event: threading.Event) -> None:
    assert event.wait(LIMIT_S), "it never happened"


def let_the_dispatcher_wait(s: ThreadScheduler, clock: HandClock) -> None:
    """Return when the dispatcher has seen all that was scheduled, and waits for an instant."""
    with s._lock:
        clock.read.clear()
        s.wake()
    sure(clock.read)
    with s._lock:  # It reads the clock under this lock, and lets go of it only by waiting.
        pass


def run_to_the_end(s: ThreadScheduler, *functions: Callable[..., object]) -> None:
    """Run the functions one after the other, and close."""
    done = threading.Event()
    for number, fn in enumerate(functions):
        s.schedule(number, run_at=0.0, fn=fn)
    s.schedule("last", run_at=0.0, fn=done.set)
    sure(done)
    assert s.close(timeout_s=LIMIT_S)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def s(clock: HandClock) -> Generator[ThreadScheduler]:
    """A scheduler with one worker, so that its functions run in order; closed after the test."""
    scheduler = ThreadScheduler(workers=1, clock=clock)
    yield scheduler
    assert scheduler.close(timeout_s=LIMIT_S)


@pytest.fixture
def gate(s: ThreadScheduler) -> Generator[Gate]:
    """The only worker is busy until the gate opens; it opens at the latest when the test is over."""
    gate = Gate()
    s.schedule("gate", run_at=0.0, priority=10**6, fn=gate)
    sure(gate.started)
    yield gate
    gate.may_end.set()


# -------------------------------------------------------------------------------------------- running


def test_a_due_function_runs_on_a_worker_and_completes() -> None:
    names: list[str] = []
    with ThreadScheduler(workers=2) as s:
        run_to_the_end(s, lambda: names.append(threading.current_thread().name))
    assert (s.state(0), s.error(0)) == (TaskState.COMPLETED, None)
    assert names[0].startswith("betimes-worker-")


def test_a_future_function_waits_for_the_clock(s: ThreadScheduler, clock: HandClock) -> None:
    late, soon = threading.Event(), threading.Event()
    s.schedule("late", run_at=s.now() + 10, fn=late.set)
    s.schedule("soon", run_at=s.now(), fn=soon.set)
    sure(soon)
    assert (s.state("late"), len(s), late.is_set()) == (TaskState.PENDING, 1, False)
    clock.now = 110.0
    s.wake()
    sure(late)


def test_an_earlier_function_interrupts_a_wait(s: ThreadScheduler, clock: HandClock) -> None:
    s.schedule("late", run_at=1e9, fn=print)
    let_the_dispatcher_wait(s, clock)
    earlier = threading.Event()
    s.schedule("earlier", run_at=100.0, fn=earlier.set)
    sure(earlier)
    assert s.state("late") is TaskState.PENDING


def test_a_clock_that_jumps_back_starts_nothing_early(
    s: ThreadScheduler, clock: HandClock, gate: Gate
) -> None:
    early, due = threading.Event(), threading.Event()
    s.schedule("early", run_at=105.0, fn=early.set)
    s.schedule("due", run_at=100.0, fn=due.set)
    clock.now = 110.0
    s.wake()
    clock.now = 100.0
    s.wake()
    gate.may_end.set()
    sure(due)
    assert (s.state("early"), early.is_set()) == (TaskState.PENDING, False)
    clock.now = 105.0
    s.wake()
    sure(early)


def test_a_clock_that_runs_on_by_itself_is_looked_at_again(
    clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("betimes.threads.scheduler.LONGEST_WAIT_S", 0.001)
    done = threading.Event()
    with ThreadScheduler(workers=1, clock=clock) as s:
        s.schedule("a", run_at=1e9, fn=done.set)
        let_the_dispatcher_wait(s, clock)
        clock.now = 1e9
        sure(done)


def test_functions_start_by_run_at_then_priority_then_sequence(s: ThreadScheduler, gate: Gate) -> None:
    order: list[str] = []
    rows = [("e", 2.0, 9), ("d", 1.0, -1), ("b", 1.0, 5), ("c", 1.0, 5), ("a", 0.5, 0), ("f", 2.0, 9)]
    for task_id, run_at, priority in rows:
        s.schedule(task_id, run_at=run_at, priority=priority, fn=functools.partial(order.append, task_id))
    done = threading.Event()
    s.schedule("last", run_at=3.0, fn=done.set)
    gate.may_end.set()
    sure(done)
    assert "".join(order) == "abcdef"


def test_another_order_can_be_chosen(clock: HandClock) -> None:
    gate, done, order = Gate(), threading.Event(), list[int]()
    with ThreadScheduler(workers=1, clock=clock, order=lambda run_at, priority: -priority) as s:
        s.schedule("gate", run_at=0.0, fn=gate)
        sure(gate.started)
        for number in (1, 3, 2):
            note = functools.partial(order.append, number)
            s.schedule(number, run_at=float(number), priority=number, fn=note)
        s.schedule("last", run_at=0.0, priority=0, fn=done.set)
        gate.may_end.set()
        sure(done)
    assert order == [3, 2, 1]


def test_never_more_than_the_workers_run_at_once_and_all_of_them_do() -> None:
    together = threading.Barrier(3)
    lock, running, seen = threading.Lock(), 0, list[int]()

    def fn() -> None:
        nonlocal running
        with lock:
            running += 1
            seen.append(running)
        together.wait(LIMIT_S)  # Broken, hence an error, unless three run at once.
        with lock:
            running -= 1
        together.wait(LIMIT_S)

    with ThreadScheduler(workers=3) as s:
        run_to_the_end(s, *[fn] * 12)
    assert max(seen) == 3
    assert s.peak_active == 3
    assert {s.state(number) for number in range(12)} == {TaskState.COMPLETED}


def test_what_many_threads_schedule_runs_exactly_once() -> None:
    ran: Counter[tuple[int, int]] = Counter()
    lock, all_done, start = threading.Lock(), threading.Event(), threading.Barrier(8)

    def fn(key: tuple[int, int]) -> None:
        with lock:
            ran[key] += 1
            if ran.total() == 200:
                all_done.set()

    def submit(s: ThreadScheduler, thread: int) -> None:
        start.wait(LIMIT_S)
        for number in range(25):
            s.schedule((thread, number), run_at=0.0, fn=functools.partial(fn, (thread, number)))

    with ThreadScheduler(workers=4) as s:
        threads = [threading.Thread(target=submit, args=(s, number)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT_S)
        sure(all_done)
    assert set(ran.values()) == {1}
    assert s.peak_active <= 4
    assert (len(s), s.active) == (0, 0)


def test_a_function_may_schedule_itself_again(s: ThreadScheduler) -> None:
    runs, done = list[int](), threading.Event()

    def fn() -> None:
        runs.append(len(runs))
        if len(runs) < 5:
            s.schedule("a", run_at=0.0, fn=fn)
        else:
            done.set()

    s.schedule("a", run_at=0.0, fn=fn)
    sure(done)
    assert runs == [0, 1, 2, 3, 4]


# -------------------------------------------------------------------------------------------- arguments


def test_only_a_required_positional_parameter_gets_a_token(s: ThreadScheduler) -> None:
    got: list[object] = []

    class Holder:
        def with_token(self, token: CancelToken) -> None:
            got.append(token)

        def without(self) -> None:
            got.append("method")

    def with_default(number: int = 7) -> None:
        got.append(number)

    def packed(*args: object, **kwargs: object) -> None:
        got.append((args, kwargs))

    def positional_only(token: CancelToken, /, *, other: int = 1) -> None:
        got.append(token)

    holder = Holder()
    functions: list[Callable[..., object]] = [
        holder.with_token,
        positional_only,
        got.append,
        functools.partial(lambda number, token: got.append(token), 1),
        holder.without,
        with_default,
        packed,
        functools.partial(got.append, "bound"),
        lambda number=3: got.append(number),
        dict,  # It does not tell what it takes.
    ]
    run_to_the_end(s, *functions)
    assert [isinstance(item, CancelToken) for item in got[:4]] == [True] * 4
    assert len({id(item) for item in got[:4]}) == 4
    assert got[4:] == ["method", 7, ((), {}), "bound", 3]
    assert [s.state(number) for number in range(10)] == [TaskState.COMPLETED] * 10


async def coroutine_function() -> None: ...


def generator_function() -> Generator[None]:
    yield


async def async_generator_function() -> Any:
    yield


def two_parameters(first: int, second: int) -> None: ...


def keyword_only(*, number: int) -> None: ...


@pytest.mark.parametrize(
    "fn",
    [
        coroutine_function,
        functools.partial(coroutine_function),
        generator_function,
        async_generator_function,
        two_parameters,
        keyword_only,
        None,
        "work",
    ],
)
def test_a_function_that_could_not_be_run_is_refused(s: ThreadScheduler, fn: Any) -> None:
    with pytest.raises(ConfigurationError, match="fn must"):
        s.schedule("a", run_at=0.0, fn=fn)
    with pytest.raises(UnknownTask):
        s.state("a")


def test_wrong_arguments_are_refused_at_the_call(s: ThreadScheduler) -> None:
    wrong: dict[str, Any] = {"run_at": float("nan"), "priority": 1.5, "task_id": []}
    for name, value in wrong.items():
        arguments: dict[str, Any] = {"task_id": "a", "run_at": 0.0, "fn": print, name: value}
        with pytest.raises(ConfigurationError, match=name):
            s.schedule(**arguments)
    assert len(s) == 0


@pytest.mark.parametrize(
    "settings",
    [{"workers": 0}, {"workers": True}, {"workers": 1.5}, {"clock": 3.0}, {"order": 1}, {"history": 0}],
)
def test_a_wrong_setting_is_refused_and_starts_no_thread(settings: dict[str, Any]) -> None:
    before = threading.active_count()
    with pytest.raises(ConfigurationError, match=next(iter(settings))):
        ThreadScheduler(**settings)
    assert threading.active_count() == before


# -------------------------------------------------------------------------------------------- failing


@pytest.mark.parametrize(
    "error", [ValueError("broken"), SystemExit(3), KeyboardInterrupt(), GeneratorExit(), BaseException()]
)
def test_a_failing_function_harms_nobody(s: ThreadScheduler, error: BaseException) -> None:
    def fail() -> None:
        raise error

    run_to_the_end(s, fail)
    assert (s.state(0), s.error(0)) == (TaskState.FAILED, error)
    assert s.state("last") is TaskState.COMPLETED


def test_a_coroutine_that_nobody_would_run_is_an_error(s: ThreadScheduler) -> None:
    run_to_the_end(s, lambda: coroutine_function())  # noqa: PLW0108 - hidden from the check at the call
    assert s.state(0) is TaskState.FAILED
    assert isinstance(s.error(0), ConfigurationError)


def test_case_143_an_error_keeps_its_lines_and_not_the_variables_behind_it(s: ThreadScheduler) -> None:
    class Large: ...

    alive: list[weakref.ref[Large]] = []

    def broken() -> None:
        large = Large()
        alive.append(weakref.ref(large))
        raise ValueError("first")

    def fail() -> None:
        large = Large()
        alive.append(weakref.ref(large))
        try:
            broken()
        except ValueError as error:
            raise ExceptionGroup("both", [error, TypeError("second")]) from error

    gc.collect()
    gc.disable()
    try:
        run_to_the_end(s, fail)
        assert [ref() for ref in alive] == [None, None]
    finally:
        gc.enable()
    error = s.error(0)
    assert isinstance(error, ExceptionGroup)
    assert error.__traceback__ is not None
    assert isinstance(error.__cause__, ValueError)
    assert error.__cause__.__traceback__ is not None


def test_an_error_is_freed_as_soon_as_it_is_forgotten() -> None:
    class Broken(Exception): ...

    alive: list[weakref.ref[Broken]] = []

    def fail() -> None:
        error = Broken()
        alive.append(weakref.ref(error))
        raise error

    gc.collect()
    gc.disable()
    try:
        run_to_the_end(ThreadScheduler(workers=1, history=1), fail)
        assert [ref() for ref in alive] == [None]
    finally:
        gc.enable()


def test_an_error_that_passed_a_generator_leaves_it_alone(s: ThreadScheduler) -> None:
    def resumable() -> Generator[BaseException | str]:
        try:
            raise ValueError("inside")
        except ValueError as error:
            yield error
        yield "still there"

    generator = resumable()

    def fail() -> None:
        error = next(generator)
        assert isinstance(error, BaseException)
        raise error

    run_to_the_end(s, fail)
    assert isinstance(s.error(0), ValueError)
    assert next(generator) == "still there"


def test_an_error_that_is_still_being_handled_elsewhere_leaves_that_alone(s: ThreadScheduler) -> None:
    kept = "a variable of this running test"
    try:
        raise ValueError("shared")
    except ValueError as error:
        shared = error

    def fail() -> None:
        raise shared

    run_to_the_end(s, fail)
    assert s.error(0) is shared
    assert kept == "a variable of this running test"


# -------------------------------------------------------------------------------------------- cancelling


def test_a_queued_function_that_is_cancelled_never_starts(s: ThreadScheduler, gate: Gate) -> None:
    ran: list[str] = []
    s.schedule("a", run_at=0.0, fn=lambda: ran.append("a"))
    assert s.cancel("a") is True
    assert s.state("a") is TaskState.CANCELLED
    gate.may_end.set()
    run_to_the_end(s)
    assert ran == []


def test_a_running_function_is_told_and_ends_when_it_returns(s: ThreadScheduler) -> None:
    started, told, may_end = threading.Event(), threading.Event(), threading.Event()

    def fn(token: CancelToken) -> None:
        started.set()
        if token.wait(LIMIT_S) and token.cancelled:
            told.set()
        sure(may_end)

    s.schedule("a", run_at=0.0, fn=fn)
    sure(started)
    assert s.cancel_requested("a") is False
    assert s.cancel("a") is False
    sure(told)
    assert (s.state("a"), s.cancel_requested("a")) == (TaskState.RUNNING, True)
    may_end.set()
    run_to_the_end(s)
    assert (s.state("a"), s.cancel_requested("a"), s._tokens) == (TaskState.COMPLETED, False, {})


def test_a_running_function_without_a_token_is_only_marked(s: ThreadScheduler, gate: Gate) -> None:
    assert s.cancel("gate") is False
    assert (s.state("gate"), s.cancel_requested("gate")) == (TaskState.RUNNING, True)


def test_case_044_cancel_between_the_claim_and_the_start_withdraws_the_claim(s: ThreadScheduler) -> None:
    ran: list[str] = []
    with s._lock:  # No worker can take the claim meanwhile.
        s.schedule("a", run_at=0.0, fn=lambda: ran.append("a"))
        s.schedule("b", run_at=1.0, fn=lambda: ran.append("b"))
        s._claim()
        assert (s.state("a"), s.active, len(s)) == (TaskState.RUNNING, 1, 1)
        assert s.cancel("b") is True
        assert s.cancel("a") is True
        assert (s.state("a"), s.active) == (TaskState.CANCELLED, 0)
    run_to_the_end(s)
    assert ran == []
    assert s.state("a") is TaskState.CANCELLED


def test_a_withdrawn_claim_leaves_its_worker_to_the_next(
    s: ThreadScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    with s._lock, monkeypatch.context() as patch:
        s.schedule("a", run_at=0.0, fn=print)
        s._claim()
        patch.setattr(s._something_to_claim, "notify", lambda: told.append(s.active))
        assert s.cancel("a") is True
    assert told == [0]  # The dispatcher was told, when the claim no longer counted.


def test_cancelling_a_claim_with_a_newer_version_behind_it_stops_both(s: ThreadScheduler) -> None:
    ran: list[str] = []
    with s._lock:
        s.schedule("a", run_at=0.0, fn=lambda: ran.append("old"))
        s._claim()
        s.schedule("a", run_at=0.0, fn=lambda: ran.append("new"))
        assert s.cancel("a") is True
        assert len(s) == 0
    run_to_the_end(s)
    assert (ran, s.state("a")) == ([], TaskState.CANCELLED)


def test_cancelling_what_is_over_or_unknown_says_no(s: ThreadScheduler) -> None:
    run_to_the_end(s)
    assert s.cancel("last") is False
    assert s.cancel("nobody") is False
    assert s.state("last") is TaskState.COMPLETED


# -------------------------------------------------------------------------------------------- replacing


def test_a_replaced_function_never_starts(s: ThreadScheduler, gate: Gate) -> None:
    ran: list[str] = []
    old = s.schedule("a", run_at=-2.0, fn=lambda: ran.append("old"))
    new = s.schedule("a", run_at=-1.0, fn=lambda: ran.append("new"))
    assert new > old
    gate.may_end.set()
    run_to_the_end(s)
    assert (ran, s.state("a")) == (["new"], TaskState.COMPLETED)


def test_a_new_version_waits_until_the_running_function_has_returned() -> None:
    gate, done = Gate(), threading.Event()
    with ThreadScheduler(workers=2) as s:
        s.schedule("a", run_at=0.0, fn=gate)
        sure(gate.started)
        s.schedule("a", run_at=0.0, fn=done.set)
        other = threading.Event()
        s.schedule("b", run_at=0.0, fn=other.set)
        sure(other)  # A worker is free, and the new version is due; it waits nevertheless.
        assert (done.is_set(), s.state("a")) == (False, TaskState.PENDING)
        gate.may_end.set()
        sure(done)


# -------------------------------------------------------------------------------------------- closing


def test_schedule_during_close_is_refused_and_claimed_work_runs_on(s: ThreadScheduler, gate: Gate) -> None:
    s.schedule("pending", run_at=0.0, fn=print)
    assert (s.close(timeout_s=0), s.closed) == (False, False)
    with pytest.raises(SchedulerClosed, match="'late'"):
        s.schedule("late", run_at=0.0, fn=print)
    assert s.state("gate") is TaskState.RUNNING
    gate.may_end.set()
    assert (s.close(timeout_s=LIMIT_S), s.closed) == (True, True)
    assert (s.state("gate"), s.state("pending")) == (TaskState.COMPLETED, TaskState.PENDING)
    with pytest.raises(UnknownTask):
        s.state("late")


def test_what_is_pending_is_cancelled_on_request(s: ThreadScheduler, gate: Gate) -> None:
    ran: list[str] = []
    s.schedule("due", run_at=0.0, fn=lambda: ran.append("due"))
    s.schedule("later", run_at=1e9, fn=lambda: ran.append("later"))
    s.close(timeout_s=0)
    assert s.state("due") is TaskState.PENDING
    s.close(discard_pending=True, timeout_s=0)
    assert s.state("due") is s.state("later") is TaskState.CANCELLED
    gate.may_end.set()
    assert s.close()
    assert (ran, len(s)) == ([], 0)


def test_what_was_claimed_before_close_still_runs(s: ThreadScheduler) -> None:
    ran: list[str] = []
    with s._lock:
        s.schedule("a", run_at=0.0, fn=lambda: ran.append("a"))
        s._claim()
        s.close(timeout_s=0, discard_pending=True)
    assert s.close()
    assert (ran, s.state("a")) == (["a"], TaskState.COMPLETED)


def test_closing_wakes_a_dispatcher_that_waits_for_a_far_instant() -> None:
    with ThreadScheduler(workers=1) as s:
        s.schedule("far", run_at=s.now() + 1e6, fn=print)
    assert s.closed
    assert s.state("far") is TaskState.PENDING


def test_closing_twice_and_cancelling_afterwards_are_fine() -> None:
    s = ThreadScheduler(workers=1)
    s.schedule("far", run_at=s.now() + 1e6, fn=print)
    assert s.close()
    assert s.close()
    assert s.cancel("far") is True
    assert s.state("far") is TaskState.CANCELLED


def test_closing_from_many_threads_at_once_is_fine(s: ThreadScheduler, gate: Gate) -> None:
    answers: list[bool] = []
    start = threading.Barrier(9)

    def close() -> None:
        start.wait(LIMIT_S)
        answers.append(s.close())

    threads = [threading.Thread(target=close) for _ in range(8)]
    for thread in threads:
        thread.start()
    start.wait(LIMIT_S)
    gate.may_end.set()
    for thread in threads:
        thread.join(LIMIT_S)
    assert answers == [True] * 8


def test_closing_from_inside_a_function_does_not_wait_for_itself(s: ThreadScheduler) -> None:
    answers: list[object] = []
    done = threading.Event()

    def fn() -> None:
        answers.append(s.close())
        answers.append(s.closed)
        try:
            s.schedule("b", run_at=0.0, fn=print)
        except SchedulerClosed as error:
            answers.append(type(error))
        done.set()

    s.schedule("a", run_at=0.0, fn=fn)
    sure(done)
    assert s.close(timeout_s=LIMIT_S)
    assert answers == [False, False, SchedulerClosed]
    assert s.state("a") is TaskState.COMPLETED


def test_no_thread_is_left_behind() -> None:
    before = set(threading.enumerate())
    with ThreadScheduler(workers=3) as s:
        assert len(set(threading.enumerate()) - before) == 4
        s.schedule("a", run_at=0.0, fn=print)
    assert set(threading.enumerate()) <= before


def test_the_heap_stays_within_its_bound(s: ThreadScheduler) -> None:
    for _ in range(300):
        s.schedule("a", run_at=1e9, fn=print)
    assert len(s) == 1
    assert s.heap_size <= 64 + 4 * len(s)


def test_a_clock_that_fails_closes_the_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", reported.append)

    def broken() -> float:
        raise OSError("no clock")

    s = ThreadScheduler(workers=1, clock=broken)
    s._threads[0].join(LIMIT_S)
    assert [report.exc_type for report in reported] == [OSError]
    with pytest.raises(SchedulerClosed):
        s.schedule("a", run_at=0.0, fn=print)
    assert s.close()


def test_a_system_without_threads_left_keeps_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def limited(thread: threading.Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    with pytest.raises(RuntimeError, match="new thread"):
        ThreadScheduler(workers=4)
    for thread in started:
        thread.join(LIMIT_S)
    assert [thread.is_alive() for thread in started] == [False, False]


def test_a_running_function_does_not_hold_up_the_interpreter() -> None:
    script = """
import threading
from betimes.threads import ThreadScheduler
s = ThreadScheduler(workers=1)
started = threading.Event()
def endless():
    started.set()
    threading.Event().wait()
s.schedule("endless", run_at=0.0, fn=endless)
assert started.wait(30)
print("main is over")
"""
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "main is over\n", "")


def test_a_token_tells_what_it_was_told() -> None:
    token = CancelToken()
    assert token.wait(timeout_s=0) is False
    assert token.cancelled is False
    token.cancel()
    assert token.wait() is True
    assert token.cancelled is True
