"""Several event loops on one virtual clock, run turn by turn in an order drawn from the seed.

Each simulated process has a loop of its own. To crash a process is never to run its loop again: its tasks,
timers and attempts vanish without any clean-up. To pause it is not to run its loop for a while: afterwards
every timer comes late, and everything it knows is stale. Between two of its turns any other process may have
had one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf
from random import Random

from betimes.testing import VirtualClock, VirtualLoop

MOST_TURNS_AT_ONE_INSTANT = 100_000
TURNS_TO_END = 1000

pass_time = asyncio.sleep  # noqa: TID251 - on virtual time nothing sleeps really


class SteppedLoop(VirtualLoop):
    """A virtual loop that somebody else runs, one turn at a time.

    Attributes:
        is_held: whether it is to be left alone: its process is paused, or dead.
        is_over: whether that is for ever.
    """

    def __init__(self, clock: VirtualClock, seed: int, on_error: Callable[[str], None]) -> None:
        super().__init__(clock=clock, seed=seed, shuffle=True)
        self.is_held = self.is_over = False
        self._on_error = on_error
        self.set_exception_handler(self._note_error)

    @property
    def next_at(self) -> float:
        """When its first timer is due."""
        return self._scheduled[0].when() if self._scheduled else inf

    def is_runnable(self, now: float) -> bool:
        """Whether a turn would do something now."""
        return not self.is_held and (bool(self._ready) or self.next_at <= now)

    def turn(self) -> None:
        """Run what is ready now, and what is due, once."""
        self.stop()
        self.run_forever()

    def end(self) -> None:
        """Cancel what is left, let it end, and close; whatever it does now must have no effect any more."""
        self.set_exception_handler(lambda _loop, _context: None)
        for _ in range(TURNS_TO_END):
            tasks = asyncio.all_tasks(self)
            if not tasks:
                break
            for task in tasks:
                task.cancel()
            self.turn()
        else:
            raise AssertionError(f"tasks do not end: {asyncio.all_tasks(self)}")
        self.run_until_complete(self.shutdown_asyncgens())
        self.close()

    def _note_error(self, _loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        self._on_error(f"{context.get('message')}: {context.get('exception')!r}")


class Stepper:
    """Runs the loops: whichever can run, in an order drawn by chance; and time when none can."""

    def __init__(self, clock: VirtualClock, rng: Random) -> None:
        self._clock = clock
        self._rng = rng
        self.loops: list[SteppedLoop] = []
        self.turns = 0

    def run(self, is_over: Callable[[], bool]) -> None:
        """Go on until it is over."""
        at_this_instant = 0
        while not is_over():
            now = self._clock.monotonic()
            runnable = [loop for loop in self.loops if loop.is_runnable(now)]
            if runnable:
                loop = runnable[0] if len(runnable) == 1 else self._rng.choice(runnable)
                loop.turn()
                self.turns += 1
                at_this_instant += 1
                assert at_this_instant < MOST_TURNS_AT_ONE_INSTANT, "the loops turn and time stands still"
            else:
                at_this_instant = 0
                self.loops = [loop for loop in self.loops if not loop.is_over]
                when = min(loop.next_at for loop in self.loops if not loop.is_held)
                assert when < inf, "nothing will ever happen again"
                self._clock.advance_to(when)
