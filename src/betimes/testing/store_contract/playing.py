"""How a suite of scenes is played: on a fresh store for each, with the books checked at the end."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from betimes.ports import Store
from betimes.testing.clock import VirtualClock
from betimes.testing.run import run_virtual
from betimes.testing.store_contract.stage import Stage

STRATEGY = "priority"


class Played:
    """The part of a suite that makes stores and runs scenes; its subclasses have the tests."""

    def make_store(self, clock: VirtualClock) -> Store:
        """Return a store on this clock, not yet open; a durable one in one test always on the same data."""
        raise NotImplementedError(f"{type(self).__name__} must say how its store is made")

    def run(self, main: Callable[[], Coroutine[Any, Any, None]], clock: VirtualClock) -> None:
        """Run one test's coroutine; override it to run on another loop."""
        run_virtual(main(), clock=clock)

    def play(self, scene: Callable[[Stage], Coroutine[Any, Any, None]]) -> None:
        """Play a scene on a fresh store, and check afterwards that its books balance."""
        clock = VirtualClock()

        async def main() -> None:
            stage = Stage(self.make_store(clock), clock)
            await stage.store.open(strategy=STRATEGY)
            try:
                await scene(stage)
                await stage.check()
            finally:
                await stage.store.close()

        self.run(main, clock)
