"""A schedule's grid: the instants of its trigger between its start and its end, asked for with care.

A trigger may be anybody's code, and a clock may have jumped by years. So every answer is checked (it must
be strictly later), and what lies between two instants is counted without stepping through millions of
them: what is wanted of the past is its newest instants, and those are found by bisection.
"""

from __future__ import annotations

from dataclasses import dataclass

from betimes.core.durations import from_us
from betimes.core.job import Micros
from betimes.core.triggers import Trigger
from betimes.errors import BetimesError

STEPS = 1000
"""How many instants are stepped through before bisection takes over."""


class TriggerFailed(BetimesError):
    """A trigger raised, or its answer was not later than what it was asked; the text says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The instants that are due, from the first one not decided up to an instant.

    Attributes:
        newest: the newest ones, in order, as many as asked for.
        earlier: how many there are before these; exactly, or at least (`is_exact`).
        earlier_first, earlier_last: the first and the last of them; None: there are none.
        following: the first instant after the window; None: there is none.
    """

    newest: tuple[Micros, ...]
    following: Micros | None
    earlier: int = 0
    is_exact: bool = True
    earlier_first: Micros | None = None
    earlier_last: Micros | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The instants of a trigger within a schedule's bounds.

    Attributes:
        trigger: anchored.
        starts_at, ends_at: no instant is earlier or later; None: no bound.
    """

    trigger: Trigger
    starts_at: Micros | None = None
    ends_at: Micros | None = None

    def next(self, after: Micros) -> Micros | None:
        """Return the first instant strictly later than `after`; None: there is none.

        Raises:
            TriggerFailed: the trigger raised, or did not advance.
        """
        if self.starts_at is not None and after < self.starts_at:
            after = self.starts_at - 1
        try:
            found = self.trigger.next_us(after)
        except Exception as error:
            raise TriggerFailed(f"its trigger raised {type(error).__name__}: {error}") from error
        if found is None:
            return None
        if found <= after:
            raise TriggerFailed(
                f"its trigger does not advance: asked for what follows {from_us(after).isoformat()}, it "
                f"answered {from_us(found).isoformat()}"
            )
        return None if self.ends_at is not None and found > self.ends_at else found

    def window(self, first: Micros, until: Micros, *, keep: int) -> Window:
        """Return what is due: the instants from `first`, which is one of them, up to `until`.

        Args:
            first: the earliest.
            until: the latest instant that counts, not before `first`.
            keep: how many of the newest to return; at least 1.

        Raises:
            TriggerFailed: as `next`.
        """
        found = [first]
        following = self.next(first)
        while following is not None and following <= until and len(found) < keep + STEPS:
            found.append(following)
            following = self.next(following)
        if following is None or following > until:
            earlier = found[:-keep]
            return Window(
                newest=tuple(found[-keep:]),
                following=following,
                earlier=len(earlier),
                earlier_first=earlier[0] if earlier else None,
                earlier_last=earlier[-1] if earlier else None,
            )
        return self._far_window(found, until, keep)

    def _far_window(self, found: list[Micros], until: Micros, keep: int) -> Window:
        """Return the window of which the first instants are `found`, and which has more than these."""
        newest: list[Micros] = []
        latest = until
        for _ in range(keep):
            latest = self._latest(found[-1], latest)
            newest.append(latest)
            latest -= 1
            if latest < found[-1]:
                break
        newest.reverse()
        counted = self.trigger.count(found[0] - 1, newest[0] - 1)
        earlier = [instant for instant in found if instant < newest[0]]
        return Window(
            newest=tuple(newest),
            following=self.next(until),
            earlier=len(earlier) if counted is None else counted,
            is_exact=counted is not None,
            earlier_first=found[0],
            earlier_last=self._latest(earlier[-1], newest[0] - 1),
        )

    def _latest(self, low: Micros, until: Micros) -> Micros:
        """Return the latest instant up to `until`, given an earlier one: by bisection."""
        high = until
        while low < high:
            middle = (low + high) // 2
            found = self.next(middle)
            if found is not None and found <= until:
                low = found
            else:
                high = middle
        return low
