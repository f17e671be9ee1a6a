"""Chores: what the worker does every now and then, each when it is due, one after the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(slots=True)
class _Chore:
    every_s: float
    do: Callable[[], Awaitable[None]]
    due: float
    rests: bool


class Chores:
    """A handful of recurring steps. They run within the worker's own loop, so never beside a claim.

    Most of them only matter while jobs run, here or under other workers. Where nobody else works on the
    store, an idle worker need not wake up for these: whatever wakes it has them done first.

    Attributes:
        next_due: when the next one is due, on the loop's clock.
        may_rest: whether those that matter only while jobs run can wait while none does.
    """

    def __init__(self) -> None:
        """Start without chores."""
        self._chores: list[_Chore] = []
        self.next_due = float("inf")
        self.may_rest = False

    def add(
        self, every_s: float, do: Callable[[], Awaitable[None]], *, now: float, rests: bool = True
    ) -> None:
        """Have `do` awaited every so many seconds, the first time one interval from now.

        Args:
            every_s: the interval; `inf`: only when it is hurried or hastened.
            do: the step.
            now: the loop's time.
            rests: whether it matters only while jobs run.
        """
        self._chores.append(_Chore(every_s, do, now + every_s, rests))
        self._look()

    def next_wake(self, *, is_idle: bool) -> float:
        """Return when the worker must wake up for a chore, on the loop's clock."""
        if not (is_idle and self.may_rest):
            return self.next_due
        return min((chore.due for chore in self._chores if not chore.rests), default=float("inf"))

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
