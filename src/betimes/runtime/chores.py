"""Chores: what the worker does every now and then, each when it is due, one after the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(slots=True)
class _Chore:
    every_s: float
    do: Callable[[], Awaitable[None]]
    due: float


class Chores:
    """A handful of recurring steps. They run within the worker's own loop, so never beside a claim.

    Attributes:
        next_due: when the next one is due, on the loop's clock.
    """

    def __init__(self) -> None:
        """Start without chores."""
        self._chores: list[_Chore] = []
        self.next_due = float("inf")

    def add(self, every_s: float, do: Callable[[], Awaitable[None]], *, now: float) -> None:
        """Have `do` awaited every so many seconds, the first time one interval from now."""
        self._chores.append(_Chore(every_s, do, now + every_s))
        self._look()

    def hurry(self, do: Callable[[], Awaitable[None]]) -> None:
        """Make a chore due at once."""
        for chore in self._chores:
            if chore.do == do:
                chore.due = float("-inf")
        self._look()

    def hasten(self, do: Callable[[], Awaitable[None]], due: float) -> None:
        """Have a chore come by then, if it would come later."""
        for chore in self._chores:
            if chore.do == do:
                chore.due = min(chore.due, due)
        self._look()

    def _look(self) -> None:
        self.next_due = min(chore.due for chore in self._chores)

    async def run_due(self, now: float) -> None:
        """Do what is due. After a long sleep each is done once, not once for each interval missed."""
        for chore in self._chores:
            if chore.due <= now:
                chore.due = now + chore.every_s
                self._look()
                await chore.do()
