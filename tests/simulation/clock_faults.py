"""The wall clock is set forward and back, and the machine sleeps."""

from __future__ import annotations

import logging
from collections.abc import Callable
from random import Random

from tests.simulation.tally import Met, Tally

from betimes.errors import StoreUnavailable
from betimes.testing import VirtualClock


class ClockFaults:
    """Moves the wall clock of all processes, which share a machine.

    Args:
        clock, rng: of the run.
        note: writes down what happens.
        before: is told how far the clock is about to be set.
    """

    def __init__(
        self,
        clock: VirtualClock,
        rng: Random,
        note: Callable[[str], None],
        before: Callable[[float], None],
    ) -> None:
        self._clock = clock
        self._before = before
        self._rng = rng
        self._note = note

    def strike(self) -> float | None:
        """Move the clock once; return how far it is to be set back a little later, None: not at all."""
        rng = self._rng
        kind = rng.choices(("little", "forward", "back", "sleep", "far"), (20, 35, 20, 20, 5))[0]
        seconds = {
            "little": rng.uniform(-20.0, 20.0),
            "forward": rng.uniform(32.0, 70.0),
            "back": -rng.uniform(32.0, 60.0),
            "sleep": rng.uniform(1.0, 90.0),
            "far": 7200.0 + rng.uniform(0.0, 60.0),
        }[kind]
        if kind == "sleep":
            self._note(f"the machine sleeps for {seconds:.1f} s")
            self._before(seconds)
            self._clock.suspend(seconds)
            return None
        self.set(seconds)
        return seconds if kind == "forward" and rng.random() < 0.7 else None

    def set(self, seconds: float) -> None:
        """Set the clock forward, or back."""
        self._note(f"the clock is set by {seconds:+.1f} s")
        self._before(seconds)
        self._clock.jump(seconds)


class LogWatch(logging.Handler):
    """What the scheduler logs as an error of its own is a broken promise, and what it notices is counted."""

    def __init__(self, fail: Callable[[str], None], tally: Tally) -> None:
        super().__init__(level=logging.WARNING)
        self._fail = fail
        self._tally = tally
        self._log = logging.getLogger("betimes")

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, StoreUnavailable):
            self._fail(f"logged: {record.getMessage()}: {error!r}")
        message = record.getMessage()
        if message.startswith("a schedule that a task asks for"):
            self._fail(f"logged: {message}")
        self._tally[Met.WENT_FORWARD] += message.startswith("the wall clock went forward")
        self._tally[Met.WENT_BACK] += message.startswith("the wall clock was set back")

    def __enter__(self) -> None:
        self._propagates = self._log.propagate
        self._log.propagate = False
        self._log.addHandler(self)

    def __exit__(self, *_: object) -> None:
        self._log.removeHandler(self)
        self._log.propagate = self._propagates
