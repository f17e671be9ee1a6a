"""What a virtual loop says when it cannot go on, and who was waiting for what."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import FrameType
from typing import Final

from betimes.errors import BetimesError

SHOWN: Final = 20


class LoopStuck(BetimesError, RuntimeError):
    """The virtual loop cannot or must not go on; `str()` lists the tasks that had not ended.

    Attributes:
        waiting: for each of them its name and the calls it stands in, outermost first.
    """

    def __init__(self, message: str, *, waiting: tuple[str, ...] = ()) -> None:
        lines = [message, *(f"  {line}" for line in waiting[:SHOWN])]
        if len(waiting) > SHOWN:
            lines.append(f"  and {len(waiting) - SHOWN} more")
        super().__init__("\n".join(lines))
        self.waiting = waiting


class Deadlock(LoopStuck):
    """Nothing is ready, no timer is set and nothing outside can wake the loop: find who should have."""


class Livelock(LoopStuck):
    """The loop turned too often without time moving: callbacks call each other in a circle; break it."""


class TimeLimitPassed(LoopStuck):
    """The next timer lies beyond the run's limit: what waits will not come, or give a larger `limit_s`."""


def waiting_tasks(loop: asyncio.AbstractEventLoop) -> tuple[str, ...]:
    """The tasks of the loop that have not ended, by name, each with the calls in which it waits."""
    return tuple(sorted(_describe(task) for task in asyncio.all_tasks(loop)))


def _describe(task: asyncio.Task[object]) -> str:
    coroutine = task.get_coro()
    return f"{task.get_name()}: {' > '.join(_calls(coroutine)) or repr(coroutine)}"


def _calls(awaited: object) -> list[str]:
    """Follow what a suspended coroutine awaits down to the future at the end."""
    calls = []
    while awaited is not None:
        frame = _first(awaited, "cr_frame", "gi_frame", "ag_frame")
        if isinstance(frame, FrameType):
            code = frame.f_code
            calls.append(f"{code.co_qualname} ({Path(code.co_filename).name}:{frame.f_lineno})")
        awaited = _first(awaited, "cr_await", "gi_yieldfrom", "ag_await")
    return calls


def _first(thing: object, *names: str) -> object:
    """The first of these attributes that is there: coroutines and generators name them differently."""
    return next((found for name in names if (found := getattr(thing, name, None)) is not None), None)
