"""Running one coroutine on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from betimes.testing.clock import VirtualClock
from betimes.testing.loop import DEFAULT_LIMIT_S, DEFAULT_MAX_TURNS, DEFAULT_REAL_LIMIT_S, VirtualLoop
from betimes.testing.stuck import LoopStuck

T = TypeVar("T")


def run_virtual(
    main: Coroutine[Any, Any, T],
    *,
    clock: VirtualClock | None = None,
    seed: int = 0,
    shuffle: bool = False,
    limit_s: float = DEFAULT_LIMIT_S,
    max_turns: int = DEFAULT_MAX_TURNS,
    real_limit_s: float = DEFAULT_REAL_LIMIT_S,
) -> T:
    """Run a coroutine to its end on a fresh `VirtualLoop` and return its result, like `asyncio.run`.

    Afterwards it cancels the tasks that are left, shuts down asynchronous generators and closes the loop;
    each of these steps may take `limit_s` anew. When the run itself fails and the clean-up then is stuck, the
    error of the run is raised, with a note.

    Args:
        main: the coroutine.
        clock: whose time to use and to move; a new one by default.
        seed: for `shuffle`; the same seed gives the same order.
        shuffle: whether to draw the orders that nobody promised; see `VirtualLoop`.
        limit_s: virtual seconds that the run may take.
        max_turns: turns that the loop may make without time moving.
        real_limit_s: real seconds that it waits for real work or real I/O before it gives up.

    Raises:
        LoopStuck: the run cannot or must not go on: `Deadlock`, `Livelock` or `TimeLimitPassed`.

    Example:
        >>> async def year():
        ...     await asyncio.sleep(365 * 86_400)
        ...     return asyncio.get_running_loop().time()
        >>> run_virtual(year())
        31536000.0
    """

    def new_loop() -> VirtualLoop:
        return VirtualLoop(
            clock=clock,
            seed=seed,
            shuffle=shuffle,
            limit_s=limit_s,
            max_turns=max_turns,
            real_limit_s=real_limit_s,
        )

    runner = asyncio.Runner(loop_factory=new_loop)
    try:
        result = runner.run(main)
    except BaseException as error:
        try:
            runner.close()
        except LoopStuck as second:
            error.add_note(f"and the clean-up was stuck too: {second}")
        raise
    runner.close()
    return result
